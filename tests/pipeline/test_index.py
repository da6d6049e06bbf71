from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np
import pytest

from handler.bundle.database import open_database
from handler.bundle.encoder import Encoder, Vector
from handler.bundle.reader import Index
from handler.bundle.types import BundleError, Chunk
from pipeline.index import write_index
from tests.conftest import title_vectors


def chunks_of(n: int) -> list[Chunk]:
    return [
        Chunk(
            f"https://x.org/{page}",
            "Title",
            f"{page}.md",
            f"c{i // 300}",
            ("A", "B > C"),
            "b",
            i % 3,
            f"text {i}",
        )
        for i in range(n)
        for page in [i // 3]
    ]


def vectors_of(n: int, dim: int) -> Vector:
    vectors = np.random.default_rng(7).normal(size=(n, dim)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


@pytest.mark.parametrize("n", [1, 1024, 1500])
def test_every_chunk_and_vector_comes_back(tmp_path: Path, tiny_encoder: Encoder, n: int) -> None:
    chunks, vectors = chunks_of(n), vectors_of(n, tiny_encoder.spec.dim)
    write_index(tmp_path / "rag.db", chunks, vectors, title_vectors(tiny_encoder, chunks), tiny_encoder.spec)
    index = Index.open(tmp_path / "rag.db")
    place = {chunk: row for row, chunk in enumerate(index.chunks(range(n)))}
    assert set(place) == set(chunks)
    assert np.array_equal(index.vectors[[place[chunk] for chunk in chunks]], vectors)
    assert sum(len(rows) for rows in index.collections.values()) == n


def test_each_page_has_the_vector_of_its_title(tmp_path: Path, tiny_encoder: Encoder) -> None:
    chunks = [replace(chunk, title=f"Title {chunk.url[-1]}") for chunk in chunks_of(12)]
    vectors = vectors_of(12, tiny_encoder.spec.dim)
    write_index(tmp_path / "rag.db", chunks, vectors, title_vectors(tiny_encoder, chunks), tiny_encoder.spec)
    index = Index.open(tmp_path / "rag.db")
    for number in range(4):
        page = index.page_number(f"https://x.org/{number}")
        assert page
        expected = tiny_encoder.embed_passage(f"Title {number}")
        np.testing.assert_array_equal(index.title_vectors[page - 1], expected)


def test_equal_input_in_any_order_makes_equal_bytes(tmp_path: Path, tiny_encoder: Encoder) -> None:
    chunks, vectors = chunks_of(500), vectors_of(500, tiny_encoder.spec.dim)
    write_index(tmp_path / "a.db", chunks, vectors, title_vectors(tiny_encoder, chunks), tiny_encoder.spec)
    (tmp_path / "b.db").write_bytes(b"what was here before")
    write_index(
        tmp_path / "b.db", chunks[::-1], vectors[::-1], title_vectors(tiny_encoder, chunks), tiny_encoder.spec
    )
    assert (tmp_path / "a.db").read_bytes() == (tmp_path / "b.db").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"a.db", "b.db"}


def test_other_tools_find_the_vectors_with_vec0(tmp_path: Path, tiny_encoder: Encoder) -> None:
    chunks, vectors = chunks_of(600), vectors_of(600, tiny_encoder.spec.dim)
    write_index(tmp_path / "rag.db", chunks, vectors, title_vectors(tiny_encoder, chunks), tiny_encoder.spec)
    sql = "SELECT chunk FROM chunk_vec WHERE embedding MATCH ? AND k = ? AND collection = 'c1'"
    found = open_database(tmp_path / "rag.db").execute(sql, (vectors[400].tobytes(), 1)).fetchall()
    assert found == [(401,)]


def test_a_bundle_without_chunks_is_searchable(tmp_path: Path, tiny_encoder: Encoder) -> None:
    none = vectors_of(0, tiny_encoder.spec.dim)
    write_index(tmp_path / "rag.db", [], none, none, tiny_encoder.spec)
    assert len(Index.open(tmp_path / "rag.db")) == 0


def test_vectors_that_do_not_fit_stop_the_build(tmp_path: Path, tiny_encoder: Encoder) -> None:
    chunks, vectors = chunks_of(3), vectors_of(3, tiny_encoder.spec.dim)
    titles = title_vectors(tiny_encoder, chunks)
    for wrong in (vectors[:2], vectors * 2, vectors[:, :-1], vectors * np.float32(np.nan)):
        with pytest.raises(BundleError):
            write_index(tmp_path / "rag.db", chunks, np.ascontiguousarray(wrong), titles, tiny_encoder.spec)
    for wrong in (titles[:0], titles * 2, np.ascontiguousarray(titles[:, :-1])):
        with pytest.raises(BundleError):
            write_index(tmp_path / "rag.db", chunks, vectors, wrong, tiny_encoder.spec)
    assert not (tmp_path / "rag.db").exists()


def test_vectors_out_of_step_with_the_chunks_are_refused(tmp_path: Path, tiny_encoder: Encoder) -> None:
    chunks, vectors = chunks_of(9), vectors_of(9, tiny_encoder.spec.dim)
    write_index(tmp_path / "rag.db", chunks, vectors, title_vectors(tiny_encoder, chunks), tiny_encoder.spec)
    connection = apsw.Connection(str(tmp_path / "rag.db"))
    connection.execute("DELETE FROM chunk WHERE id = 9")
    connection.close()
    with pytest.raises(BundleError, match="vectors"):
        Index.open(tmp_path / "rag.db")


def test_a_file_that_is_no_bundle_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "rag.db").write_bytes(b"no database" * 1000)
    for path in (tmp_path / "rag.db", tmp_path / "missing.db"):
        with pytest.raises(BundleError, match=path.name):
            Index.open(path)
