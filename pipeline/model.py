"""The embedding model of a bundle: one small ONNX graph, its tokenizer, and the spec of both."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from handler.bundle.encoder import ModelSpec
from handler.bundle.layout import MODEL, TOKENIZER
from pipeline.bert import Bert, Weights, build_graph, read_weights
from pipeline.fetch import FetchedModel, PinnedFile, default_cache, fetch_model
from pipeline.layout import MODEL_SPEC
from pipeline.site import SiteError
from pipeline.sources import HUB, Source

MODELS_TOML = Path(__file__).with_name("models.toml")


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """One entry of models.toml. Its spec has no fingerprint yet: that takes the built files."""

    spec: ModelSpec
    bert: Bert
    weights: PinnedFile
    tokenizer: PinnedFile
    sources: tuple[Source, ...]


def load_models(path: Path = MODELS_TOML) -> dict[str, EmbeddingModel]:
    """The known models by name, the preferred one first."""
    return {name: _model(name, table) for name, table in tomllib.loads(path.read_text("utf-8")).items()}


def build_model(
    out_dir: Path,
    name: str | None = None,
    query_prefix: str | None = None,
    *,
    cache: Path | None = None,
    hub: str = HUB,
    models: Mapping[str, EmbeddingModel] | None = None,
    say: Callable[[str], None] = print,
) -> ModelSpec:
    """Fetches the model and writes model.onnx, tokenizer.json and model.json; returns its spec.

    A model asked for by `name` is used or SiteError raised; else the first obtainable one of `models` is
    used, and `say` tells which and why. `query_prefix`, unless None, takes the place of the model's own.
    `cache` and `hub` are as fetch_model has them. Same weights, same bytes.
    """
    known = load_models() if models is None else models
    if name is not None and name not in known:
        raise SiteError(f"EMBED_MODEL: {name!r} is none of {', '.join(known)}")
    wanted = list(known.values()) if name is None else [known[name]]
    model, files = _first_obtainable(wanted, cache or default_cache(), hub, say)
    spec = model.spec if query_prefix is None else replace(model.spec, query_prefix=query_prefix)
    return write_model(out_dir, read_weights(files.weights), model.bert, files.tokenizer, spec)


def write_model(
    out_dir: Path, weights: Weights, bert: Bert, tokenizer: Path, spec: ModelSpec, int8: bool = True
) -> ModelSpec:
    """Writes the three files of a model from its weights; returns the spec with its fingerprint."""
    out_dir.mkdir(parents=True, exist_ok=True)
    graph_bytes = build_graph(weights, bert, int8).SerializeToString(deterministic=True)
    tokenizer_bytes = _plain_tokenizer(tokenizer)
    spec = replace(spec, fingerprint=_fingerprint(graph_bytes, tokenizer_bytes, spec))
    (out_dir / MODEL).write_bytes(graph_bytes)
    (out_dir / TOKENIZER).write_bytes(tokenizer_bytes)
    # Last, so that a folder with a spec is a whole one.
    text = json.dumps(spec.to_dict(), indent=2, ensure_ascii=False) + "\n"
    (out_dir / MODEL_SPEC).write_text(text, encoding="utf-8", newline="\n")
    return spec


def read_spec(folder: Path) -> ModelSpec:
    """The spec that `write_model` left in a folder."""
    return ModelSpec.from_dict(json.loads((folder / MODEL_SPEC).read_text("utf-8")))


def _first_obtainable(
    models: Sequence[EmbeddingModel], cache: Path, hub: str, say: Callable[[str], None]
) -> tuple[EmbeddingModel, FetchedModel]:
    failures: list[str] = []
    for model in models:
        name = model.spec.name
        try:
            files = fetch_model(name, model.weights, model.tokenizer, model.sources, cache, hub)
        except SiteError as error:
            failures.append(str(error))
            continue
        for failure in failures:
            say(failure)
        say(f"model: {name}{' instead' if failures else ''}, from {files.source}")
        return model, files
    raise SiteError("\n".join(failures))


def _model(name: str, table: Mapping[str, Any]) -> EmbeddingModel:
    return EmbeddingModel(
        spec=ModelSpec(
            name=name,
            dim=table["dim"],
            max_tokens=table["max_tokens"],
            pooling=table["pooling"],
            query_prefix=table["query_prefix"],
            passage_prefix=table["passage_prefix"],
            fingerprint="",
            licence=table["licence"],
        ),
        bert=Bert(table["n_layers"], table["n_heads"], table["dim"], table["max_tokens"], table["pooling"]),
        weights=PinnedFile(**table["weights"]),
        tokenizer=PinnedFile(**table["tokenizer"]),
        sources=tuple(Source(**source) for source in table["sources"]),
    )


def _plain_tokenizer(path: Path) -> bytes:
    """The tokenizer that neither cuts nor pads, whatever its file says: both are the encoder's business."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    text: str = tokenizer.to_str(pretty=False)
    return text.encode("utf-8")


def _fingerprint(graph: bytes, tokenizer: bytes, spec: ModelSpec) -> str:
    parts = {
        **spec.to_dict(),
        "fingerprint": [hashlib.sha256(part).hexdigest() for part in (graph, tokenizer)],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
