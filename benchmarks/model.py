"""What quantising costs and what a query takes: the built model against the published one.

    python -m benchmarks.model --data DIR [--model NAME]

DIR holds retrieval sets, one folder each: corpus.jsonl {id, title, text}, queries.jsonl {id, text} and
qrels.tsv (header, then query, document, score). Prints for fp32 and int8: size, cosine to the published
graph, nDCG@10 of vectors alone, and the time of one query of 20 tokens on one thread.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from handler.bundle.encoder import Encoder, Vector
from handler.bundle.layout import MODEL
from handler.bundle.onnx import ort
from pipeline.bert import read_weights
from pipeline.embed import embed_passages
from pipeline.fetch import default_cache, fetch_model
from pipeline.model import load_models, write_model
from pipeline.progress import show_progress
from pipeline.vector_cache import open_cache

WORK = Path("build/benchmarks/model")
SETS = ("scifact", "squad2_A")
QUERY = "how do I keep the drafts of my site out of what the search shows?"
N_TIMED = 200
N_COMPARED = 200


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Documents and queries by id, and the gain of each relevant document of a query."""

    name: str
    documents: Mapping[str, str]
    queries: Mapping[str, str]
    gains: Mapping[str, Mapping[str, float]]


def main() -> None:
    """Prints the table of one model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of retrieval sets")
    parser.add_argument("--model", default=next(iter(load_models())), choices=list(load_models()))
    arguments = parser.parse_args()
    model = load_models()[arguments.model]
    files = fetch_model(arguments.model, model.weights, model.tokenizer, model.sources, default_cache())
    sets = [read_set(arguments.data / name) for name in SETS if (arguments.data / name).is_dir()]
    # Only bge is published as ONNX; MiniLM's graph is held to the paper by the tests.
    reference = ort.InferenceSession(str(files.weights)) if files.weights.suffix == ".onnx" else None
    for int8 in (False, True):
        folder = WORK / arguments.model / ("int8" if int8 else "fp32")
        spec = write_model(folder, read_weights(files.weights), model.bert, files.tokenizer, model.spec, int8)
        encoder = Encoder.load(folder, spec)
        figures = {"MB": (folder / MODEL).stat().st_size / 1e6, "query p50 ms": query_time_ms(encoder)}
        if reference and sets:
            texts = [fit(text, encoder) for text in list(sets[0].documents.values())[:N_COMPARED]]
            figures["lowest cosine"] = lowest_cosine(texts, encoder, reference)
        for dataset in sets:
            figures[f"{dataset.name} nDCG@10"] = ndcg(dataset, encoder, WORK / "vectors.db")
        line = "  ".join(f"{name} {figure:.7g}" for name, figure in figures.items())
        print(f"{folder.name}  {line}", flush=True)


def read_set(folder: Path) -> RetrievalSet:
    """The retrieval set of a folder."""
    gains: dict[str, dict[str, float]] = defaultdict(dict)
    with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        for query, document, gain in list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]:
            gains[query][document] = float(gain)
    corpus, queries = _rows(folder / "corpus.jsonl"), _rows(folder / "queries.jsonl")
    documents = {row["id"]: f"{row['title']}\n{row['text']}".strip() for row in corpus}
    asked = {row["id"]: row["text"] for row in queries if row["id"] in gains}
    return RetrievalSet(folder.name, documents, asked, gains)


def ndcg(dataset: RetrievalSet, encoder: Encoder, cache_path: Path, k: int = 10) -> float:
    """Mean nDCG@k of ranking whole documents by cosine, in [0, 1]; documents are cut at the token limit."""
    texts = [fit(text, encoder) for text in dataset.documents.values()]
    with open_cache(cache_path) as cache:
        matrix = embed_passages(texts, encoder, cache, show_progress(dataset.name, "documents"))
    ids = list(dataset.documents)
    scores = []
    for query, text in dataset.queries.items():
        ranked = np.argsort(-(matrix @ encoder.embed_query(text)), kind="stable")[:k]
        gains = dataset.gains[query]
        ideal = sorted(gains.values(), reverse=True)[:k]
        scores.append(_dcg([gains.get(ids[i], 0.0) for i in ranked]) / _dcg(ideal))
    return float(np.mean(scores))


def fit(text: str, encoder: Encoder) -> str:
    """The text, or as many of its first words as fit into the model."""
    if encoder.count_tokens(text) <= encoder.spec.max_tokens:
        return text
    words = text.split(" ")
    fits, too_many = 0, len(words)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if encoder.count_tokens(" ".join(words[:middle])) <= encoder.spec.max_tokens:
            fits = middle
        else:
            too_many = middle
    return " ".join(words[:fits])


def query_time_ms(encoder: Encoder) -> float:
    """Median time of one query of 20 tokens, special tokens and the model's prefix included."""
    words = QUERY.split()
    while encoder.count_tokens(encoder.spec.query_prefix + " ".join(words)) > 20:
        words.pop()
    times = []
    for _ in range(N_TIMED):
        start = time.perf_counter()
        encoder.embed_query(" ".join(words))
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1000


def lowest_cosine(texts: Sequence[str], encoder: Encoder, reference: ort.InferenceSession) -> float:
    """The lowest cosine between a text's vector and what the published graph makes of the same text."""
    return min(
        float(encoder.embed_passage(text) @ published_vector(text, encoder, reference)) for text in texts
    )


def published_vector(text: str, encoder: Encoder, reference: ort.InferenceSession) -> Vector:
    """(dim,) float32, unit: the vector that the published graph makes of a text."""
    ids = np.array([encoder.token_ids(text)], np.int64)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    states = reference.run(None, inputs)[0][0]
    pooled = states[0] if encoder.spec.pooling == "cls" else states.mean(axis=0)
    vector: Vector = pooled / np.linalg.norm(pooled)
    return vector


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


if __name__ == "__main__":
    main()
