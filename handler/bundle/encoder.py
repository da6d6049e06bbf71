"""Text to unit vectors, the same at build and at serve time: tokenizer and ONNX model of one bundle."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from handler.bundle.layout import MODEL, TOKENIZER
from handler.bundle.onnx import ort
from handler.bundle.typed import typed
from handler.bundle.types import BundleError

Pooling = Literal["cls", "mean"]
Vector = NDArray[np.float32]

# How far a norm may be from 1: float32 rounding stays below 1e-6, an un-normalised model is far above.
NORM_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What one must know of a model to use its vectors. The manifest stores it as a dict.

    `max_tokens` counts the special tokens. `fingerprint` changes with anything that changes a vector:
    weights, tokenizer, prefixes, pooling, limit.
    """

    name: str
    dim: int
    max_tokens: int
    pooling: Pooling
    query_prefix: str
    passage_prefix: str
    fingerprint: str
    licence: str

    def to_dict(self) -> dict[str, Any]:
        """The spec as JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """The spec that `to_dict` wrote. Raises BundleError naming the key that is missing or wrong."""
        spec: Self = typed(cls, table, "model")
        return spec


class Encoder:
    """Embeds one text at a time; may be used from many threads at once.

    One text an inference on purpose: the int8 activation scales span a batch, so a text's vector would
    depend on its neighbours (cosine down to .995), and a batch is no faster on a processor.
    """

    def __init__(self, session: ort.InferenceSession, tokenizer: Tokenizer, spec: ModelSpec) -> None:
        self.spec = spec
        self._session = session
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, folder: Path, spec: ModelSpec, threads: int = 1) -> Self:
        """The encoder of a folder with model.onnx and tokenizer.json.

        `threads` work on one inference, and do not change its result. A question takes 4 ms on one; more
        gain little, and lose much where other work wants the cores. Raises BundleError when a file is
        missing or damaged.
        """
        try:
            tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            session = ort.InferenceSession(
                str(folder / MODEL), _session_options(threads), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # both libraries raise types of their own, tokenizers a bare Exception
            raise BundleError(f"{folder}: the embedding model does not load: {error}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return cls(session, tokenizer, spec)

    @property
    def goes_word_by_word(self) -> bool:
        """Whether a text's tokens are those of its words and marks, one after the other, as BERT's are."""
        return (
            isinstance(self._tokenizer.normalizer, BertNormalizer)
            and isinstance(self._tokenizer.pre_tokenizer, BertPreTokenizer)
            and self.spec.passage_prefix[-1:] in ("", " ")
        )

    @property
    def special_tokens(self) -> list[str]:
        """What the tokenizer takes whole where it stands in a text, such as `[MASK]`."""
        return [token.content for token in self._tokenizer.get_added_tokens_decoder().values()]

    def embed_query(self, text: str) -> Vector:
        """(dim,) float32, unit: a question's vector. What is over the token limit is cut off."""
        ids = self.token_ids(self.spec.query_prefix + text)
        if len(ids) > self.spec.max_tokens:
            ids = [*ids[: self.spec.max_tokens - 1], ids[-1]]  # the closing special token stays
        return self._infer(ids)

    def embed_passage(self, text: str) -> Vector:
        """(dim,) float32, unit: a chunk's vector.

        Raises BundleError when the text is over the token limit: cutting it would lose text silently.
        """
        ids = self.token_ids(self.spec.passage_prefix + text)
        if len(ids) > self.spec.max_tokens:
            raise BundleError(
                f"a passage of {len(ids)} tokens is over the {self.spec.max_tokens} of {self.spec.name}: "
                f"{text[:60]!r}…"
            )
        return self._infer(ids)

    def count_tokens(self, text: str) -> int:
        """How many tokens the model sees for a passage, prefix and special tokens included, never cut."""
        return len(self.token_ids(self.spec.passage_prefix + text))

    def token_ids(self, text: str) -> list[int]:
        """The ids that the tokenizer makes of a text as it stands: no prefix, special tokens, never cut."""
        # A lone surrogate, as JSON can carry one, has no UTF-8 form, and the tokenizer refuses it.
        well_formed = text.encode("utf-8", "replace").decode("utf-8")
        ids: list[int] = self._tokenizer.encode(well_formed).ids
        return ids

    def _infer(self, ids: list[int]) -> Vector:
        (batch,) = self._session.run(["sentence_embedding"], {"input_ids": np.array([ids], np.int64)})
        vector: Vector = batch[0]
        check_unit(vector, self.spec)
        return vector


def check_unit(vectors: Vector, spec: ModelSpec) -> None:
    """Raises BundleError unless the vector, or each row of a matrix, has the model's dimension and norm 1."""
    if vectors.dtype != np.float32 or vectors.shape[-1:] != (spec.dim,):
        raise BundleError(
            f"{spec.name} makes float32 vectors of {spec.dim} dimensions; "
            f"these are {vectors.dtype} of shape {vectors.shape}"
        )
    norms = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))
    wrong = ~(np.abs(norms - 1) <= NORM_TOLERANCE)  # written so that NaN is wrong too
    if wrong.any():
        raise BundleError(
            f"{spec.name}: {int(wrong.sum())} vectors without unit length, as {norms[wrong].flat[0]}"
        )


def saturates_int8(machine: str, flags: str) -> bool:
    """Whether the processor sums pairs of int8 products in 16 bits, which overflow: x86 without VNNI.

    `machine` is platform.machine(), `flags` what Linux lists of the processor; without a list the answer
    is the safe one.
    """
    return machine.lower() in ("x86_64", "amd64") and "vnni" not in flags


def _processor_flags() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""
    return next((line for line in text.splitlines() if line.startswith("flags")), "")


def _session_options(threads: int) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if saturates_int8(platform.machine(), _processor_flags()):
        # An exact way, half as fast: bge comes out at a cosine of .9975-.9984 to fp32, as on other
        # processors, in place of .9937-.9978. (Measured with a Haswell that QEMU emulated.)
        options.add_session_config_entry("session.x64quantprecision", "1")
    # Threads spin during an inference, for latency, and sleep after it: an idle server burns no processor.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options
