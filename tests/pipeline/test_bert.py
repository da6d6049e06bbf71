from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

from handler.bundle.onnx import ort
from pipeline.bert import Bert, Weights, build_graph, quantise, read_weights

CLS = Bert(n_layers=2, n_heads=3, dim=12, n_positions=40, pooling="cls")
N_WORDS = 30
ERF = np.vectorize(math.erf)


def random_weights(bert: Bert) -> Weights:
    rng = np.random.default_rng(1)

    def normal(*shape: int, mean: float = 0.0) -> NDArray[np.float32]:
        return rng.normal(mean, 0.4, shape).astype(np.float32)

    dim = bert.dim
    weights = {
        "embeddings.word_embeddings.weight": normal(N_WORDS, dim),
        "embeddings.position_embeddings.weight": normal(bert.n_positions, dim),
        "embeddings.token_type_embeddings.weight": normal(2, dim),
        "embeddings.LayerNorm.weight": normal(dim, mean=1),
        "embeddings.LayerNorm.bias": normal(dim),
    }
    for layer in range(bert.n_layers):
        name = f"encoder.layer.{layer}"
        for part, rows, columns in [
            ("attention.self.query", dim, dim),
            ("attention.self.key", dim, dim),
            ("attention.self.value", dim, dim),
            ("attention.output.dense", dim, dim),
            ("intermediate.dense", dim, 4 * dim),
            ("output.dense", 4 * dim, dim),
        ]:
            weights[f"{name}.{part}.weight"] = normal(rows, columns)
            weights[f"{name}.{part}.bias"] = normal(columns)
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            weights[f"{name}.{part}.weight"] = normal(dim, mean=1)
            weights[f"{name}.{part}.bias"] = normal(dim)
    return weights


def reference(weights: Weights, bert: Bert, ids: list[int]) -> NDArray[np.float64]:
    """BERT as its paper has it, in plain float64 numpy."""

    def linear(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        product: NDArray[np.float64] = x @ weights[f"{name}.weight"].astype(np.float64)
        return product + weights[f"{name}.bias"]

    def norm(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        normed: NDArray[np.float64] = (
            centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]
        )
        return normed

    def heads(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return x.reshape(len(ids), bert.n_heads, -1).swapaxes(0, 1)

    x = norm(
        weights["embeddings.word_embeddings.weight"][ids].astype(np.float64)
        + weights["embeddings.position_embeddings.weight"][: len(ids)]
        + weights["embeddings.token_type_embeddings.weight"][0],
        "embeddings.LayerNorm",
    )
    for layer in range(bert.n_layers):
        name = f"encoder.layer.{layer}"
        parts = (f"{name}.attention.self.{part}" for part in ("query", "key", "value"))
        query, key, value = (heads(linear(x, part)) for part in parts)
        scores = np.exp(query @ key.swapaxes(1, 2) / math.sqrt(bert.dim // bert.n_heads))
        mixed = (scores / scores.sum(-1, keepdims=True) @ value).swapaxes(0, 1).reshape(len(ids), -1)
        x = norm(linear(mixed, f"{name}.attention.output.dense") + x, f"{name}.attention.output.LayerNorm")
        wide = linear(x, f"{name}.intermediate.dense")
        wide = wide * 0.5 * (1 + ERF(wide / math.sqrt(2)))
        x = norm(linear(wide, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
    pooled: NDArray[np.float64] = x[0] if bert.pooling == "cls" else x.mean(0)
    return pooled / np.linalg.norm(pooled)


def embed(model: onnx.ModelProto, ids: list[int]) -> NDArray[np.float32]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (vectors,) = session.run(None, {"input_ids": np.array([ids], np.int64)})
    assert vectors.shape == (1, CLS.dim)
    row: NDArray[np.float32] = vectors[0]
    return row


@pytest.mark.parametrize("bert", [CLS, replace(CLS, pooling="mean")], ids=["cls", "mean"])
@pytest.mark.parametrize("ids", [[2, 3], [1, 5, 9, 5, 2], list(range(N_WORDS)), [7] * CLS.n_positions])
def test_the_graph_computes_what_the_paper_says(bert: Bert, ids: list[int]) -> None:
    weights = random_weights(bert)
    expected = reference(weights, bert, ids)
    assert np.allclose(embed(build_graph(weights, bert, int8=False), ids), expected, atol=2e-5)
    assert embed(build_graph(weights, bert, int8=True), ids) @ expected > 0.99


@pytest.mark.parametrize("int8", [False, True])
def test_the_same_weights_give_the_same_bytes(int8: bool) -> None:
    one, two = (build_graph(random_weights(CLS), CLS, int8) for _ in range(2))
    assert one.SerializeToString(deterministic=True) == two.SerializeToString(deterministic=True)


def test_weights_read_from_safetensors_are_turned_for_a_matmul(tmp_path: Path) -> None:
    weights = random_weights(CLS)
    turned = {
        name: np.ascontiguousarray(array.T) if array.ndim == 2 and "embeddings" not in name else array
        for name, array in weights.items()
    }
    save_file(turned, tmp_path / "model.safetensors")
    read = read_weights(tmp_path / "model.safetensors")
    assert all(np.array_equal(read[name], weights[name]) for name in weights)


def test_weights_read_from_onnx_are_told_by_their_biases(tmp_path: Path) -> None:
    weights = random_weights(CLS)
    nodes, tensors, n_matrices = [], [], 0
    for name, array in weights.items():
        bias = name.removesuffix("weight") + "bias"
        if array.ndim == 2 and "embeddings" not in name:
            n_matrices += 1
            matrix = f"onnx::MatMul_{n_matrices}"
            nodes.append(helper.make_node("MatMul", ["x", matrix], [f"product{n_matrices}"]))
            # Exporters write the bias first or second.
            summands = [bias, f"product{n_matrices}"][:: 1 if n_matrices % 2 else -1]
            nodes.append(helper.make_node("Add", summands, [f"sum{n_matrices}"]))
            tensors.append(numpy_helper.from_array(array, matrix))
        else:
            tensors.append(numpy_helper.from_array(array, name))
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "exported", [value], [], tensors)
    onnx.save(helper.make_model(graph), tmp_path / "model.onnx")
    read = read_weights(tmp_path / "model.onnx")
    assert set(read) == set(weights)
    assert all(np.array_equal(read[name], weights[name]) for name in weights)


@pytest.mark.parametrize("axis", [0, 1])
def test_quantised_slices_are_right_to_half_a_step_and_keep_zero(axis: int) -> None:
    matrix = np.random.default_rng(2).normal(size=(50, 20)).astype(np.float32) * 10
    matrix[3] = 0
    matrix[:, 4] = 0
    values, scales = quantise(matrix, axis)
    scales = np.expand_dims(scales, axis)
    assert values.dtype == np.int8
    assert (np.abs(values * scales - matrix) <= scales * 0.5001).all()
    assert not values[3].any()
    assert not values[:, 4].any()
