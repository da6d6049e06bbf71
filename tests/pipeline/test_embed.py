from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from handler.bundle.encoder import Encoder
from handler.bundle.types import BundleError
from pipeline.embed import COMMIT_EVERY, embed_passages, write_vectors
from pipeline.model import read_spec
from pipeline.vector_cache import open_cache, vector_key

T = TypeVar("T")
MODEL = Path(__file__).parents[1] / "data" / "model"
SPEC = read_spec(MODEL)
TEXTS = [f"text {i} of the river" for i in range(10)]


class CountingEncoder(Encoder):
    """The real encoder, which also notes what it was asked for."""

    seen: list[str]

    def embed_passage(self, text: str):  # type: ignore[no-untyped-def]
        self.seen.append(text)
        return super().embed_passage(text)


@pytest.fixture
def encoder() -> CountingEncoder:
    encoder = CountingEncoder.load(MODEL, SPEC)
    encoder.seen = []
    return encoder


def quiet(message: str) -> None:
    raise AssertionError(message)


def test_rows_stand_in_the_order_of_the_texts(tmp_path: Path, encoder: CountingEncoder) -> None:
    with open_cache(tmp_path / "cache.db", quiet) as cache:
        vectors = embed_passages([*TEXTS, TEXTS[3]], encoder, cache)
    assert np.array_equal(vectors, np.stack([encoder.embed_passage(text) for text in [*TEXTS, TEXTS[3]]]))


def test_no_texts_give_no_rows(tmp_path: Path, encoder: CountingEncoder) -> None:
    with open_cache(tmp_path / "cache.db", quiet) as cache:
        assert embed_passages([], encoder, cache).shape == (0, SPEC.dim)


def test_only_texts_never_seen_are_embedded_each_once(tmp_path: Path, encoder: CountingEncoder) -> None:
    with open_cache(tmp_path / "cache.db", quiet) as cache:
        embed_passages([*TEXTS, *TEXTS], encoder, cache)
        assert sorted(encoder.seen) == TEXTS
    encoder.seen = []
    with open_cache(tmp_path / "cache.db", quiet) as cache:
        embed_passages([*TEXTS, "an edited text"], encoder, cache)
    assert encoder.seen == ["an edited text"]


def test_short_texts_that_come_first_are_not_embedded_first(tmp_path: Path, encoder: CountingEncoder) -> None:
    n_texts = 60
    texts = [f"text {i}{' of the river' * 20 * (i >= n_texts / 2)}" for i in range(n_texts)]
    with open_cache(tmp_path / "cache.db", quiet) as cache:
        embed_passages(texts, encoder, cache, workers=1)
    n_long = sum(len(text) > 100 for text in encoder.seen[: n_texts // 2])
    assert n_texts / 6 < n_long < n_texts / 3


def test_cached_and_fresh_vectors_are_equal_byte_for_byte(tmp_path: Path, encoder: CountingEncoder) -> None:
    with open_cache(tmp_path / "one.db", quiet) as cache:
        embed_passages(TEXTS[::2], encoder, cache, workers=1)
        mixed = embed_passages(TEXTS, encoder, cache, workers=3)
    with open_cache(tmp_path / "two.db", quiet) as cache:
        fresh = embed_passages(TEXTS, encoder, cache, workers=2)
    assert mixed.tobytes() == fresh.tobytes()


def test_another_model_shares_the_cache_but_not_the_vectors(tmp_path: Path, encoder: CountingEncoder) -> None:
    other = CountingEncoder.load(MODEL, replace(SPEC, fingerprint="other", passage_prefix="cats "))
    other.seen = []
    with open_cache(tmp_path / "cache.db", quiet) as cache:
        first = embed_passages(TEXTS, encoder, cache)
        assert not np.array_equal(embed_passages(TEXTS, other, cache), first)
        assert len(other.seen) == len(TEXTS)


def test_two_builds_may_use_one_cache_at_once(tmp_path: Path, encoder: CountingEncoder) -> None:
    path = tmp_path / "cache.db"
    with open_cache(path, quiet) as one, open_cache(path, quiet) as two:
        embed_passages(TEXTS[:6], encoder, one)
        embed_passages(TEXTS[4:], encoder, two)
        embed_passages(TEXTS, encoder, one)
    assert sorted(encoder.seen) == TEXTS


def test_a_stopped_run_keeps_what_it_computed(tmp_path: Path, encoder: CountingEncoder) -> None:
    n_seen = 7

    def interrupt(items: Iterable[T], total: int) -> Iterable[T]:
        for done, item in enumerate(items, start=1):
            yield item
            if done == n_seen:
                raise KeyboardInterrupt

    with open_cache(tmp_path / "cache.db", quiet) as cache, pytest.raises(KeyboardInterrupt):
        embed_passages(TEXTS, encoder, cache, interrupt)
    encoder.seen = []
    with open_cache(tmp_path / "cache.db", quiet) as cache:
        embed_passages(TEXTS, encoder, cache)
    assert len(encoder.seen) <= len(TEXTS) - n_seen + 1


KILLED = """
import os, signal, sys
from pathlib import Path
from handler.bundle.encoder import Encoder
from pipeline.embed import COMMIT_EVERY, embed_passages
from pipeline.model import read_spec
from pipeline.vector_cache import open_cache

def kill(items, total):
    for done, item in enumerate(items, start=1):
        yield item
        if done == COMMIT_EVERY + 5:
            os.kill(os.getpid(), signal.SIGKILL)

model, path = Path(sys.argv[1]), Path(sys.argv[2])
with open_cache(path) as cache:
    texts = [f"text {i}" for i in range(2 * COMMIT_EVERY)]
    embed_passages(texts, Encoder.load(model, read_spec(model)), cache, kill)
"""


def test_a_killed_run_keeps_its_committed_vectors(tmp_path: Path, encoder: CountingEncoder) -> None:
    path = tmp_path / "cache.db"
    done = subprocess.run([sys.executable, "-c", KILLED, str(MODEL), str(path)], check=False)
    assert done.returncode == -9
    texts = [f"text {i}" for i in range(2 * COMMIT_EVERY)]
    with open_cache(path, quiet) as cache:
        embed_passages(texts, encoder, cache)
    assert len(encoder.seen) == COMMIT_EVERY


@pytest.mark.parametrize("damage", [b"", b"not a database, but long enough to look at" * 40])
def test_a_damaged_cache_is_replaced_and_said(
    tmp_path: Path, encoder: CountingEncoder, damage: bytes
) -> None:
    path = tmp_path / "cache.db"
    with open_cache(path, quiet) as cache:
        fresh = embed_passages(TEXTS, encoder, cache)
    path.write_bytes(damage)
    said: list[str] = []
    with open_cache(path, said.append) as cache:
        assert np.array_equal(embed_passages(TEXTS, encoder, cache), fresh)
    # An empty file is an empty database: nothing to tell.
    assert [str(path) in line for line in said] == ([True] if damage else [])


def test_a_cache_with_a_damaged_page_is_replaced(tmp_path: Path, encoder: CountingEncoder) -> None:
    path = tmp_path / "cache.db"
    with open_cache(path, quiet) as cache:
        embed_passages([f"text {i}" for i in range(100)], encoder, cache)
    data = bytearray(path.read_bytes())
    data[8192:8300] = b"\xff" * 108
    path.write_bytes(data)
    said: list[str] = []
    with open_cache(path, said.append) as cache:
        assert embed_passages(TEXTS, encoder, cache).shape == (len(TEXTS), SPEC.dim)
    assert len(said) == 1


def test_a_flipped_bit_in_a_vector_is_computed_anew(tmp_path: Path, encoder: CountingEncoder) -> None:
    path = tmp_path / "cache.db"
    with open_cache(path, quiet) as cache:
        fresh = embed_passages(TEXTS, encoder, cache)
    key = vector_key(SPEC.fingerprint, TEXTS[4])
    with sqlite3.connect(path) as connection:
        (blob,) = connection.execute("SELECT vector FROM vector WHERE key = ?", (key,)).fetchone()
        damaged = bytes([blob[0] ^ 1]) + blob[1:]
        connection.execute("UPDATE vector SET vector = ? WHERE key = ?", (damaged, key))
    connection.close()
    encoder.seen = []
    with open_cache(path, quiet) as cache:
        assert np.array_equal(embed_passages(TEXTS, encoder, cache), fresh)
    assert encoder.seen == [TEXTS[4]]


def test_a_text_over_the_limit_stops_the_run(tmp_path: Path, encoder: CountingEncoder) -> None:
    with open_cache(tmp_path / "cache.db", quiet) as cache, pytest.raises(BundleError, match="tokens"):
        embed_passages([*TEXTS, "river " * 600], encoder, cache)


def test_vectors_are_written_as_numpy_reads_them_and_alone(tmp_path: Path) -> None:
    vectors = np.eye(3, dtype=np.float32)
    write_vectors(vectors, tmp_path / "deep" / "vectors.npy")
    assert np.array_equal(np.load(tmp_path / "deep" / "vectors.npy"), vectors)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["vectors.npy"]
