"""A BERT sentence encoder as one small ONNX graph: token ids in, unit sentence embedding out.

The published graphs return every token's state, take masks that a single text does not need, and spell
attention out in some thousand nodes. This one is written for one text an inference, with the fused
operators of ONNX Runtime, pooling and normalisation inside, and optionally int8 weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

from handler.bundle.encoder import Pooling

Weights = Mapping[str, NDArray[np.float32]]

# Written down, not taken from the installed library: the same weights must give the same bytes.
_IR_VERSION = 9
_OPSET = 18
_FUSED = "com.microsoft"  # https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
_EPSILON = 1e-12  # layer_norm_eps of every BERT


@dataclass(frozen=True, slots=True)
class Bert:
    """The shape of a BERT encoder. `n_positions` is the longest input, in tokens, that the graph takes."""

    n_layers: int
    n_heads: int
    dim: int
    n_positions: int
    pooling: Pooling


def read_weights(path: Path) -> Weights:
    """Weights by their names in the original checkpoint; matrices are (in, out), as a MatMul wants them.

    Reads .safetensors, and .onnx as Optimum and transformers.js export BERT.
    """
    if path.suffix == ".safetensors":
        tensors = load_file(path)
        return {name: tensor.T if _is_linear(name) else tensor for name, tensor in tensors.items()}
    return _weights_of_graph(onnx.load(path).graph)


def build_graph(weights: Weights, bert: Bert, int8: bool) -> onnx.ModelProto:
    """The model: input_ids (1, n) int64 -> sentence_embedding (1, dim) float32, of unit length.

    With `int8` the matrices hold eight bits a weight, one scale a column, and activations are quantised
    at run time. Same weights, same bytes.
    """
    graph = _GraphWriter(int8)
    states = _embed_tokens(graph, weights, bert)
    for layer in range(bert.n_layers):
        # CLS pooling looks at the first token only, so the last layer need not compute the others.
        first_only = bert.pooling == "cls" and layer == bert.n_layers - 1
        states = _encoder_layer(graph, weights, bert, f"encoder.layer.{layer}", states, first_only)
    pooled = graph.node("ReduceMean", [states, graph.constant("token_axis", [1])], keepdims=0)
    graph.node("LpNormalization", [pooled], output="sentence_embedding", axis=-1, p=2)
    return graph.finish(bert)


def _embed_tokens(graph: _GraphWriter, weights: Weights, bert: Bert) -> str:
    words = graph.rows("embeddings.word_embeddings.weight", weights, "input_ids")
    # One text has one segment, so its type embedding is a constant of every position.
    positions = (
        weights["embeddings.position_embeddings.weight"][: bert.n_positions]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    length = graph.node("Shape", ["input_ids"], start=1, end=2)
    start, axis = graph.constant("start", [0]), graph.constant("row_axis", [0])
    located = graph.node("Slice", [graph.tensor("embeddings.positions", positions), start, length, axis])
    total = graph.node("Add", [words, located])
    scale, bias = graph.pair("embeddings.LayerNorm", weights)
    return graph.node("LayerNormalization", [total, scale, bias], axis=-1, epsilon=_EPSILON)


def _encoder_layer(
    graph: _GraphWriter, weights: Weights, bert: Bert, name: str, states: str, first_only: bool
) -> str:
    """One transformer layer: post-norm attention, then feed-forward (Vaswani 2017; Devlin 2019)."""
    attention = f"{name}.attention.self"
    parts = ("query", "key", "value")
    if first_only:
        first, one = graph.constant("start", [0]), graph.constant("one", [1])
        residual = graph.node("Slice", [states, first, one, graph.constant("token_axis", [1])])
        query = graph.matmul(residual, f"{attention}.query", weights[f"{attention}.query.weight"])
        key_value = np.concatenate([weights[f"{attention}.{part}.weight"] for part in parts[1:]], axis=1)
        key, value = graph.split(graph.matmul(states, f"{attention}.key_value", key_value), 2)
    else:
        residual = states
        joined = np.concatenate([weights[f"{attention}.{part}.weight"] for part in parts], axis=1)
        query, key, value = graph.split(graph.matmul(states, f"{attention}.query_key_value", joined), 3)
    biases = np.concatenate([weights[f"{attention}.{part}.bias"] for part in parts])
    context = graph.node(
        "MultiHeadAttention",
        [query, key, value, graph.tensor(f"{attention}.bias", biases)],
        domain=_FUSED,
        num_heads=bert.n_heads,
    )
    attended = _project_and_norm(graph, weights, f"{name}.attention.output", context, residual)
    wide = graph.matmul(attended, f"{name}.intermediate", weights[f"{name}.intermediate.dense.weight"])
    bias = graph.tensor(f"{name}.intermediate.bias", weights[f"{name}.intermediate.dense.bias"])
    activated = graph.node("BiasGelu", [wide, bias], domain=_FUSED)
    return _project_and_norm(graph, weights, f"{name}.output", activated, attended)


def _project_and_norm(graph: _GraphWriter, weights: Weights, name: str, states: str, residual: str) -> str:
    projected = graph.matmul(states, f"{name}.dense", weights[f"{name}.dense.weight"])
    scale, shift = graph.pair(f"{name}.LayerNorm", weights)
    bias = graph.tensor(f"{name}.dense.bias", weights[f"{name}.dense.bias"])
    return graph.node(
        "SkipLayerNormalization", [projected, residual, scale, shift, bias], domain=_FUSED, epsilon=_EPSILON
    )


class _GraphWriter:
    """Collects nodes and initialisers in the order they are asked for, and names the values between."""

    def __init__(self, int8: bool) -> None:
        self._int8 = int8
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: dict[str, onnx.TensorProto] = {}

    def node(
        self,
        operator: str,
        inputs: list[str],
        *,
        output: str | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """Adds an operator with one output; returns the output's name."""
        output = output or f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def split(self, value: str, n_parts: int) -> list[str]:
        """Cuts the last axis into equal parts; returns their names."""
        outputs = [f"v{len(self._nodes)}_{part}" for part in range(n_parts)]
        self._nodes.append(helper.make_node("Split", [value], outputs, axis=-1, num_outputs=n_parts))
        return outputs

    def tensor(self, name: str, array: NDArray[np.generic]) -> str:
        """Adds an initialiser, once; returns its name."""
        if name not in self._tensors:
            self._tensors[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def constant(self, name: str, values: list[int]) -> str:
        """Adds a small list of int64, once; returns its name."""
        return self.tensor(name, np.array(values, np.int64))

    def pair(self, name: str, weights: Weights) -> tuple[str, str]:
        """Adds the weight and bias of a layer norm; returns their names."""
        scale, bias = f"{name}.weight", f"{name}.bias"
        return self.tensor(scale, weights[scale]), self.tensor(bias, weights[bias])

    def matmul(self, value: str, name: str, matrix: NDArray[np.float32]) -> str:
        """value @ matrix. The bias is left to the operator that follows: each of them adds one for free."""
        if not self._int8:
            return self.node("MatMul", [value, self.tensor(f"{name}.weight", matrix)])
        quantised, scales = quantise(matrix, axis=0)
        zero = np.zeros(len(scales), np.int8)
        inputs = [
            value,
            self.tensor(f"{name}.weight", quantised),
            self.tensor(f"{name}.scale", scales),
            self.tensor(f"{name}.zero", zero),
        ]
        return self.node("DynamicQuantizeMatMul", inputs, domain=_FUSED)

    def rows(self, name: str, weights: Weights, indices: str) -> str:
        """The rows of a table that `indices` picks, float32. Stored with one scale a row when int8."""
        if not self._int8:
            return self.node("Gather", [self.tensor(name, weights[name]), indices])
        quantised, scales = quantise(weights[name], axis=1)
        picked = self.node("Gather", [self.tensor(name, quantised), indices])
        scale = self.node("Gather", [self.tensor(f"{name}.scale", scales[:, np.newaxis]), indices])
        return self.node("Mul", [self.node("Cast", [picked], to=TensorProto.FLOAT), scale])

    def finish(self, bert: Bert) -> onnx.ModelProto:
        """The whole model, checked."""
        graph = helper.make_graph(
            self._nodes,
            "sentence_encoder",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "n_tokens"])],
            [helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, [1, bert.dim])],
            list(self._tensors.values()),
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="ralph")
        model.ir_version = _IR_VERSION
        onnx.checker.check_model(model)
        return model


def quantise(matrix: NDArray[np.float32], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """int8 values and float32 scales, one for each slice across `axis`: matrix ≈ values * scales.

    Symmetric, in [-127, 127], with zero kept exact. Seven bits would spare processors without VNNI an
    overflow that the encoder avoids otherwise, and add a fifth to the error: mean cosine of
    bge to fp32 .9974 instead of .9978 over 23 texts. Moving the activations' spread into the weights
    (SmoothQuant, Xiao 2022) brought .9983, too little to carry it.
    """
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    return np.rint(matrix / scales).astype(np.int8), scales.squeeze(axis)


def _is_linear(name: str) -> bool:
    return name.endswith(".weight") and "embeddings" not in name and "LayerNorm" not in name


def _weights_of_graph(graph: onnx.GraphProto) -> Weights:
    """The initialisers under their checkpoint names.

    Export transposes the matrices and renames them to onnx::MatMul_<n>. Each is told by the bias that
    its product is added to.
    """
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    added_bias = {
        value: name
        for node in graph.node
        if node.op_type == "Add"
        for name in node.input
        if name in tensors
        for value in node.input
        if value != name
    }
    weights = {name: tensor for name, tensor in tensors.items() if not name.startswith("onnx::")}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in tensors:
            bias = added_bias[node.output[0]]
            weights[bias.removesuffix("bias") + "weight"] = tensors[node.input[1]]
    return weights
