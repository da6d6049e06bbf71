"""Writes tests/data/model: a real BERT of two layers, small enough to commit, on which retrieval makes sense.

Its weights are not trained but chosen: texts are close when they share words. Words have random
directions, one for all forms of a stem; attention is nearly uniform and adds the mean of the words to
the first token; stopwords say nothing. Words outside words.txt are told apart by their letter pairs.

    python tests/make_tiny_model.py
"""

from __future__ import annotations

import hashlib
import itertools
import re
import string
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from handler.bundle.encoder import ModelSpec
from pipeline.bert import Bert, Weights
from pipeline.model import write_model

FOLDER = Path(__file__).parent / "data" / "model"
BERT = Bert(n_layers=2, n_heads=3, dim=48, n_positions=512, pooling="cls")
SPEC = ModelSpec(
    name="tiny",
    dim=BERT.dim,
    max_tokens=BERT.n_positions,
    pooling=BERT.pooling,
    query_prefix="question: ",
    passage_prefix="",
    fingerprint="",
    licence="MIT",
)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ENDINGS = ["##s", "##es", "##ed", "##er", "##ing", "##ly", "##'s"]
STOPWORDS = """
    a about an and any are as at be been but by can do does for from get had has have how i if in into is it
    its may me more my no not of on one or other our out should so than that the their them then there these
    they this to up us use was we were what when where which who why will with would you your question
""".split()  # noqa: SIM905 (a list of quoted words is harder to read)
MIX = 24.0  # how much the mean of the words outweighs what all texts have in common


def write_tiny_model(folder: Path) -> ModelSpec:
    """Writes model.onnx, tokenizer.json and model.json; the same bytes every time."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = folder / "tokenizer.json"
    _tokenizer(_vocabulary()).save(str(tokenizer), pretty=False)
    return write_model(folder, tiny_weights(), BERT, tokenizer, SPEC)


def tiny_weights() -> Weights:
    """The weights by their names in a checkpoint."""
    return _weights(_vocabulary())


def _vocabulary() -> list[str]:
    words = (FOLDER / "words.txt").read_text("utf-8").split()
    letters = string.ascii_lowercase + string.digits
    couples = itertools.product(string.ascii_lowercase, repeat=2)
    pairs = ["".join(couple) for couple in couples if set(couple) & set("aeiou")]
    pieces = sorted({*words, *STOPWORDS, *letters, *string.punctuation, *pairs})
    inner = sorted({*ENDINGS, *(f"##{piece}" for piece in [*letters, *pairs])})
    return [*SPECIAL, *pieces, *inner]


def _tokenizer(vocabulary: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary.index(token)) for token in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return tokenizer


def _weights(vocabulary: list[str]) -> Weights:
    common = _direction("common")
    weights: dict[str, NDArray[np.float32]] = {
        "embeddings.word_embeddings.weight": np.stack([_word_vector(word, common) for word in vocabulary]),
        "embeddings.position_embeddings.weight": _noise("positions", (BERT.n_positions, BERT.dim), 0.02),
        "embeddings.token_type_embeddings.weight": np.zeros((2, BERT.dim), np.float32),
        **_layer_norm("embeddings.LayerNorm"),
    }
    without_common = np.eye(BERT.dim) - np.outer(common, common) / (common @ common)
    for layer in range(BERT.n_layers):
        name = f"encoder.layer.{layer}"
        shapes = {
            f"{name}.attention.self.query": (BERT.dim, BERT.dim),
            f"{name}.attention.self.key": (BERT.dim, BERT.dim),
            f"{name}.attention.self.value": (BERT.dim, BERT.dim),
            f"{name}.attention.output.dense": (BERT.dim, BERT.dim),
            f"{name}.intermediate.dense": (BERT.dim, 2 * BERT.dim),
            f"{name}.output.dense": (2 * BERT.dim, BERT.dim),
        }
        for part, shape in shapes.items():
            weights[f"{part}.weight"] = _noise(part, shape, 0.01)
            weights[f"{part}.bias"] = _noise(f"{part}.bias", shape[1:], 0.001)
        weights[f"{name}.attention.self.value.weight"] += without_common.astype(np.float32)
        weights[f"{name}.attention.output.dense.weight"] += MIX * np.eye(BERT.dim, dtype=np.float32)
        weights.update(_layer_norm(f"{name}.attention.output.LayerNorm"))
        weights.update(_layer_norm(f"{name}.output.LayerNorm"))
    return weights


def _word_vector(word: str, common: NDArray[np.float32]) -> NDArray[np.float32]:
    silent = word in SPECIAL or word in STOPWORDS or word in ENDINGS or word in string.punctuation
    return common if silent else _direction(_stem(word))


def _stem(word: str) -> str:
    stem = re.sub(r"(?:ing|ed|er|ies|es|s|y|e)$", "", word.removeprefix("##"))
    return stem if len(stem) > 2 else word.removeprefix("##")


def _direction(seed: str) -> NDArray[np.float32]:
    return _noise(seed, (BERT.dim,), 1.0)


def _noise(seed: str, shape: tuple[int, ...], scale: float) -> NDArray[np.float32]:
    """Numbers of mean 0 that depend on the seed alone, on every machine: uniform, from a hash."""
    n_values = int(np.prod(shape))
    digest = hashlib.shake_256(seed.encode()).digest(4 * n_values)
    uniform = np.frombuffer(digest, ">u4").astype(np.float64) / 2**32
    return ((uniform - 0.5) * 2 * scale).astype(np.float32).reshape(shape)


def _layer_norm(name: str) -> Weights:
    return {f"{name}.weight": np.ones(BERT.dim, np.float32), f"{name}.bias": np.zeros(BERT.dim, np.float32)}


if __name__ == "__main__":
    write_tiny_model(FOLDER)
