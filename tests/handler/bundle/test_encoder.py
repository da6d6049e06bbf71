from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from handler.bundle.encoder import Encoder, ModelSpec, check_unit, saturates_int8
from handler.bundle.types import BundleError
from pipeline.model import read_spec

MODEL = Path(__file__).parents[2] / "data" / "model"
SPEC = read_spec(MODEL)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.load(MODEL, SPEC)


def test_a_spec_comes_back_from_its_dict() -> None:
    assert ModelSpec.from_dict(SPEC.to_dict()) == SPEC


@pytest.mark.parametrize("key", ["dim", "pooling", "fingerprint"])
def test_a_spec_with_a_missing_key_is_refused_by_its_name(key: str) -> None:
    table = SPEC.to_dict()
    del table[key]
    with pytest.raises(BundleError, match=key):
        ModelSpec.from_dict(table)


@pytest.mark.parametrize("text", ["", " ", "\0", "cats", "猫", "\ud800", "👩‍👩‍👧", "café ﬁ", "a" * 5000])
def test_any_text_has_a_unit_vector(encoder: Encoder, text: str) -> None:
    for vector in (encoder.embed_query(text), encoder.embed_passage(text)):
        assert vector.shape == (SPEC.dim,)
        assert vector.dtype == np.float32
        assert abs(float(vector @ vector) - 1) < 1e-5


def test_texts_that_share_words_are_closer(encoder: Encoder) -> None:
    passages = [
        encoder.embed_passage(text)
        for text in (
            "The river floods every spring, when the snow of the mountains melts.",
            "Cats sleep most of the day and hunt at night.",
        )
    ]
    river, cats = (float(passage @ encoder.embed_query("when does the river flood?")) for passage in passages)
    assert river > cats + 0.2


def test_the_query_prefix_is_put_before_queries_alone(encoder: Encoder) -> None:
    prefixed = encoder.embed_passage(SPEC.query_prefix + "install the server")
    assert np.array_equal(encoder.embed_query("install the server"), prefixed)


def test_the_passage_prefix_is_embedded_and_counted(encoder: Encoder) -> None:
    prefixing = Encoder.load(MODEL, replace(SPEC, passage_prefix="river "))
    assert np.array_equal(prefixing.embed_passage("server"), encoder.embed_passage("river server"))
    assert prefixing.count_tokens("server") == encoder.count_tokens("river server")


def test_tokens_are_counted_with_special_ones_and_without_limit(encoder: Encoder) -> None:
    assert encoder.count_tokens("") == 2
    assert encoder.count_tokens("server " * 2000) == 2002


def test_a_passage_at_the_limit_is_embedded_and_one_over_it_is_an_error(encoder: Encoder) -> None:
    encoder.embed_passage("server " * (SPEC.max_tokens - 2))
    with pytest.raises(BundleError, match=f"{SPEC.max_tokens + 1} tokens"):
        encoder.embed_passage("server " * (SPEC.max_tokens - 1))


def test_a_query_over_the_limit_is_cut_and_keeps_its_last_special_token(encoder: Encoder) -> None:
    n_words = SPEC.max_tokens - encoder.count_tokens(SPEC.query_prefix)
    fitting = encoder.embed_query("server " * n_words)
    assert np.array_equal(encoder.embed_query("server " * n_words + "river " * 9), fitting)


def test_threads_do_not_change_a_vector(encoder: Encoder) -> None:
    texts = [f"server {i} of the river" * (i + 1) for i in range(20)]
    alone = np.stack([encoder.embed_passage(text) for text in texts])
    with ThreadPoolExecutor(4) as pool:
        together = np.stack(list(pool.map(Encoder.load(MODEL, SPEC, threads=2).embed_passage, texts)))
    assert np.array_equal(alone, together)


def test_a_model_of_another_dimension_is_an_error() -> None:
    with pytest.raises(BundleError, match="384 dimensions"):
        Encoder.load(MODEL, replace(SPEC, dim=384)).embed_query("cats")


@pytest.mark.parametrize("scale", [0.0, 0.99, 1.01, float("nan")])
def test_vectors_without_unit_length_are_an_error(scale: float) -> None:
    rows = np.eye(SPEC.dim, dtype=np.float32)
    check_unit(rows, SPEC)
    rows[3] *= np.float32(scale)
    with pytest.raises(BundleError, match="unit length"):
        check_unit(rows, SPEC)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_truncated_or_missing_file_is_a_bundle_error(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(MODEL, folder)
    (folder / name).write_bytes((MODEL / name).read_bytes()[:1000])
    with pytest.raises(BundleError, match="does not load"):
        Encoder.load(folder, SPEC)
    (folder / name).unlink()
    with pytest.raises(BundleError, match="does not load"):
        Encoder.load(folder, SPEC)


@pytest.mark.parametrize(
    ("machine", "flags", "saturates"),
    [
        ("x86_64", "flags : fpu avx2 fma", True),
        ("AMD64", "", True),
        ("x86_64", "flags : fpu avx2 avx_vnni", False),
        ("x86_64", "flags : avx512f avx512_vnni", False),
        ("arm64", "", False),
        ("aarch64", "", False),
    ],
)
def test_only_x86_without_vnni_is_told_to_be_exact(machine: str, flags: str, saturates: bool) -> None:
    assert saturates_int8(machine, flags) is saturates


def test_a_model_is_loaded_without_a_trace_in_the_home_folder(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from handler.bundle.encoder import Encoder; "
        "from pipeline.model import read_spec; "
        "Encoder.load(Path(sys.argv[1]), read_spec(Path(sys.argv[1]))).embed_query('garden')"
    )
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(MODEL.parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", code, str(MODEL)], env=environ, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.rglob("*")) == []
