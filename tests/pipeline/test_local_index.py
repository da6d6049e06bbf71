"""The index that grows and shrinks file by file: what is found in it, and what other processes do to it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest

from handler.bundle.encoder import Encoder, ModelSpec, Vector
from handler.bundle.live import LiveIndex
from handler.bundle.passage import passage_text, title_text
from handler.bundle.search import search
from handler.bundle.types import BundleError, Chunk
from pipeline.local_index import AddressTakenError, LocalIndex, open_local_index
from tests.conftest import PAGES, MakeBundle


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "rag.db"


@pytest.fixture
def index(path: Path, tiny_spec: ModelSpec) -> Iterator[LocalIndex]:
    with open_local_index(path, tiny_spec) as opened:
        yield opened


def page(name: str, *texts: str, title: str = "", collection: str = "notes") -> list[Chunk]:
    url = f"file:///{name}"
    return [
        Chunk(url, title or name, f"/{name}", collection, ("Top", "Down"), "", ordinal, text)
        for ordinal, text in enumerate(texts)
    ]


def embedded(encoder: Encoder, chunks: list[Chunk]) -> Vector:
    return np.array([encoder.embed_passage(passage_text(c.title, c.heading, c.text)) for c in chunks])


def title(encoder: Encoder, chunks: list[Chunk]) -> Vector:
    return encoder.embed_passage(title_text(chunks[0].title))


def put(index: LocalIndex, encoder: Encoder, chunks: list[Chunk], digest: str = "1") -> bool:
    return index.replace(chunks[0].path, digest, chunks, embedded(encoder, chunks), title(encoder, chunks))


def found(path: Path, encoder: Encoder, question: str) -> list[str]:
    """The texts that a search finds by words."""
    return [
        hit.chunk.text for hit in search(LiveIndex(path).current(), encoder, question, mode="keyword").hits
    ]


def test_what_is_put_in_is_found_and_what_is_replaced_is_not(
    index: LocalIndex, path: Path, tiny_encoder: Encoder
) -> None:
    assert put(index, tiny_encoder, page("a", "The pond has algae.", "The garden is dry.")) is False
    assert put(index, tiny_encoder, page("b", "A piano.")) is False
    assert put(index, tiny_encoder, page("a", "The studio has a piano."), "2") is True
    assert found(path, tiny_encoder, "algae garden") == []
    assert sorted(found(path, tiny_encoder, "piano")) == ["A piano.", "The studio has a piano."]
    assert (index.digest("/a"), index.digest("/c")) == ("2", None)


def test_ids_have_gaps_and_every_chunk_keeps_its_own_vector(
    index: LocalIndex, path: Path, tiny_encoder: Encoder
) -> None:
    pages = [page(f"{n}", *(f"Text {n} {i} of the garden." for i in range(n % 3 + 1))) for n in range(40)]
    for chunks in pages:
        put(index, tiny_encoder, chunks)
    for chunks in pages[::2]:
        index.delete(chunks[0].path)
    for chunks in pages[::4]:
        put(index, tiny_encoder, chunks)
    live = LiveIndex(path).current()
    kept = {chunk.text: chunk for n, chunks in enumerate(pages) if n % 2 or n % 4 == 0 for chunk in chunks}
    chunks = live.chunks(range(len(live)))
    assert {chunk.text for chunk in chunks} == kept.keys()
    np.testing.assert_allclose(live.vectors, embedded(tiny_encoder, chunks), atol=1e-6)
    assert found(path, tiny_encoder, "39 garden")[0].startswith("Text 39")
    assert live.collections["notes"].tolist() == list(range(len(live)))


def test_collections_may_be_asked_one_by_one(index: LocalIndex, path: Path, tiny_encoder: Encoder) -> None:
    put(index, tiny_encoder, page("a", "The pond.", collection="diary"))
    put(index, tiny_encoder, page("b", "The pond."))
    put(index, tiny_encoder, page("c", "The pond too.", collection="diary"))
    live = LiveIndex(path).current()
    hits = search(live, tiny_encoder, "pond", collections=["diary"]).hits
    assert {hit.chunk.url for hit in hits} == {"file:///a", "file:///c"}


def test_pages_with_one_text_count_as_one_and_the_next_takes_over(
    index: LocalIndex, path: Path, tiny_encoder: Encoder
) -> None:
    for name in ("longer", "abc", "abcd"):
        put(index, tiny_encoder, page(name, "The pond has\nalgae.", title="Pond"))

    def urls() -> list[str]:
        return [hit.chunk.url for hit in search(LiveIndex(path).current(), tiny_encoder, "pond").hits]

    assert urls() == ["file:///abc"]
    index.delete("/abc")
    assert urls() == ["file:///abcd"]
    put(index, tiny_encoder, page("abcd", "Something else."))
    assert "file:///longer" in urls()


def test_keywords_follow_every_change_of_a_row(index: LocalIndex, path: Path, tiny_encoder: Encoder) -> None:
    put(index, tiny_encoder, page("a", "The pond.", "The lake.", title="Water"))
    index._connection.execute(
        "UPDATE page SET title = 'Ocean'; UPDATE chunk SET text = 'A river.' WHERE ordinal = 1"
    )
    assert found(path, tiny_encoder, "water lake") == []
    assert len(found(path, tiny_encoder, "ocean")) == 1  # one a page
    assert found(path, tiny_encoder, "river down") == ["A river."]
    index._connection.execute("INSERT INTO chunk_fts(chunk_fts) VALUES ('integrity-check')")


def test_links_of_a_page_may_be_defined_in_a_later_chunk(
    index: LocalIndex, path: Path, tiny_encoder: Encoder
) -> None:
    put(
        index, tiny_encoder, page("hub", "The [heron][bird], a [pond][].", "[bird]: bird.md\n[Pond]: pond.md")
    )
    put(index, tiny_encoder, page("bird", "Here stands, at the water behind the house, a heron."))
    assert found(path, tiny_encoder, "heron")[0] == "Here stands, at the water behind the house, a heron."
    assert len(found(path, tiny_encoder, "pond")) == 1


def test_two_files_cannot_have_one_address(index: LocalIndex, tiny_encoder: Encoder) -> None:
    put(index, tiny_encoder, page("a", "The pond."))
    other = page("a", "The lake.")
    with pytest.raises(AddressTakenError, match="file:///a"):
        index.replace("/b", "1", other, embedded(tiny_encoder, other), title(tiny_encoder, other))
    assert [document.path for document in index.documents()] == ["/a"]


def test_documents_are_listed_by_collection_and_deleted_by_path_or_address(
    index: LocalIndex, tiny_encoder: Encoder
) -> None:
    put(index, tiny_encoder, page("b", "One.", "Two."))
    put(index, tiny_encoder, page("a", "One.", collection="diary"))
    put(index, tiny_encoder, page("c", "Three."))
    assert [(d.collection, d.path, d.n_chunks) for d in index.documents()] == [
        ("diary", "/a", 1),
        ("notes", "/b", 2),
        ("notes", "/c", 1),
    ]
    assert [index.delete("/b"), index.delete("file:///c"), index.delete("/nothing")] == [2, 1, 0]
    assert index.documents("notes") == []


def test_vectors_of_a_file_are_known_by_what_they_were_made_of(
    index: LocalIndex, tiny_encoder: Encoder
) -> None:
    chunks = page("a", "One.", "Two.")
    put(index, tiny_encoder, chunks)
    known = index.vectors("/a")
    texts = [passage_text(chunk.title, chunk.heading, chunk.text) for chunk in chunks]
    np.testing.assert_array_equal([known[text] for text in texts], embedded(tiny_encoder, chunks))
    assert index.vectors("/b") == {}


def test_a_bundles_database_becomes_a_local_index(
    make_bundle: MakeBundle, tmp_path: Path, tiny_encoder: Encoder
) -> None:
    """An older file: what a bundle has is the schema before the first version."""
    path = tmp_path / "old.db"
    path.write_bytes((make_bundle() / "rag.db").read_bytes())
    with open_local_index(path, tiny_encoder.spec) as index:
        assert len(index.documents()) == len(PAGES)
        put(index, tiny_encoder, page("a", "The lake."))
        index.delete("https://example.org/notes/music")
    assert len(found(path, tiny_encoder, "pond diary lake nginx piano")) == len(PAGES)
    assert found(path, tiny_encoder, "piano") == []


def test_opening_again_changes_nothing(path: Path, index: LocalIndex, tiny_spec: ModelSpec) -> None:
    with open_local_index(path, tiny_spec) as again:
        schema = again._connection.execute("SELECT sql FROM sqlite_schema").fetchall()
    assert schema == index._connection.execute("SELECT sql FROM sqlite_schema").fetchall()
    assert schema


def test_a_file_of_the_first_version_gets_title_vectors(
    path: Path, tiny_encoder: Encoder, tiny_spec: ModelSpec
) -> None:
    chunks = page("a", "The pond.", "The lake.", title="Water")
    with open_local_index(path, tiny_spec) as index:
        put(index, tiny_encoder, chunks)
        index._connection.execute("ALTER TABLE page DROP COLUMN title_vector; PRAGMA user_version = 1")
    with pytest.raises(BundleError, match="older version of this program: ingest"):
        LiveIndex(path)
    with open_local_index(path, tiny_spec) as index:
        assert index.digest("/a") == ""  # the next ingestion takes the file as changed
    # Until then the first chunk speaks for the title.
    first, _ = embedded(tiny_encoder, chunks)
    np.testing.assert_array_equal(LiveIndex(path).current().title_vectors, [first])
    with open_local_index(path, tiny_spec) as index:
        put(index, tiny_encoder, chunks)
    np.testing.assert_array_equal(LiveIndex(path).current().title_vectors, [title(tiny_encoder, chunks)])


def test_a_file_of_the_second_version_gets_its_keywords_anew(
    path: Path, tiny_encoder: Encoder, tiny_spec: ModelSpec
) -> None:
    with open_local_index(path, tiny_spec) as index:
        put(index, tiny_encoder, page("a", "The [lake](/b) and the pond."))
        put(index, tiny_encoder, page("hub", "A [heron].", "[heron]: /bird"))
        put(index, tiny_encoder, page("bird", "Here stands, at the water behind the house, a heron."))
        for name in ("chunk_inserted", "chunk_updated", "page_updated"):
            index._connection.execute(f"DROP TRIGGER {name}")
        index._connection.execute(
            """
            DROP VIEW chunk_words; DROP TABLE chunk_fts;
            CREATE VIEW chunk_words AS SELECT fold(text) FROM chunk;
            CREATE TRIGGER chunk_inserted AFTER INSERT ON chunk BEGIN SELECT fold(new.text); END;
            CREATE VIRTUAL TABLE chunk_fts USING
                fts5(title, heading, text, content = '', contentless_delete = 1);
            PRAGMA user_version = 2
            """
        )
    with pytest.raises(BundleError, match="older version of this program: ingest"):
        LiveIndex(path)
    with open_local_index(path, tiny_spec) as index:
        assert index.digest("/a") == "1"
        put(index, tiny_encoder, page("c", "A lake."))
    assert found(path, tiny_encoder, "lake") == ["A lake.", "The [lake](/b) and the pond."]
    assert found(path, tiny_encoder, "pond") == ["The [lake](/b) and the pond."]
    # A page's links are defined in another of its chunks.
    assert found(path, tiny_encoder, "heron")[0] == "Here stands, at the water behind the house, a heron."


def test_a_copy_of_an_older_bundle_says_how_it_is_brought_up_to_date(
    make_bundle: MakeBundle, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "old.db"
    path.write_bytes((make_bundle() / "rag.db").read_bytes())
    with apsw.Connection(str(path)) as connection:
        connection.execute("ALTER TABLE page DROP COLUMN title_vector")
    with pytest.raises(BundleError, match=r"older version of this program: ingest .* `ralph ingest`"):
        LiveIndex(path)
    with open_local_index(path, tiny_encoder.spec) as index:
        put(index, tiny_encoder, page("a", "The lake."))
    assert len(LiveIndex(path).current().title_vectors) == len(PAGES) + 1


def test_a_newer_schema_is_refused_by_writer_and_reader(path: Path, tiny_spec: ModelSpec) -> None:
    with open_local_index(path, tiny_spec) as index:
        index._connection.pragma("user_version", 9)
    with (
        pytest.raises(BundleError, match="version 9, and this program knows 3"),
        open_local_index(path, None),
    ):
        pass
    with pytest.raises(BundleError, match="version 9"):
        LiveIndex(path)


def test_another_model_is_refused(path: Path, index: LocalIndex, tiny_spec: ModelSpec) -> None:
    other = ModelSpec.from_dict({**tiny_spec.to_dict(), "fingerprint": "other", "name": "another"})
    with (
        pytest.raises(BundleError, match="another embedding model than another"),
        open_local_index(path, other),
    ):
        pass


@pytest.mark.parametrize("content", [b"no database, but long enough for one" * 100, None])
def test_what_is_no_index_is_refused_and_stays_as_it_is(
    tmp_path: Path, tiny_spec: ModelSpec, content: bytes | None
) -> None:
    path = tmp_path / "rag.db"
    if content is None:
        apsw.Connection(str(path)).execute("CREATE TABLE rag_documents(id)")
    else:
        path.write_bytes(content)
    with pytest.raises(BundleError, match=r"rag\.db"):
        open_local_index(path, tiny_spec).__enter__()
    assert content is None or path.read_bytes() == content


def test_a_place_where_no_index_can_be_is_refused_and_named_once(
    tmp_path: Path, tiny_spec: ModelSpec
) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "file").write_bytes(b"")
    for name, reason in (
        ("pipe.db", "is no file"),
        (".", "is no file"),
        ("file/rag.db", "cannot be written: File exists"),
    ):
        path = tmp_path / name
        with pytest.raises(BundleError, match=reason) as caught:
            open_local_index(path, tiny_spec).__enter__()
        assert str(caught.value).count(str(tmp_path)) == 1


def test_without_a_model_nothing_is_made(path: Path) -> None:
    with pytest.raises(BundleError, match="nothing was ingested"):
        open_local_index(path, None).__enter__()
    assert not path.parent.exists()


def test_a_change_that_fails_is_taken_back(index: LocalIndex, path: Path, tiny_encoder: Encoder) -> None:
    put(index, tiny_encoder, page("a", "The pond."))
    chunks = page("a", "The lake.", "The sea.")
    with pytest.raises(ValueError, match="zip"):
        index.replace("/a", "2", chunks, embedded(tiny_encoder, chunks)[:1], title(tiny_encoder, chunks))
    assert (found(path, tiny_encoder, "pond"), index.digest("/a")) == (["The pond."], "1")


WRITER = """
import sys
import threading
from pathlib import Path
import numpy as np
from handler.bundle.encoder import Encoder
from handler.bundle.types import Chunk
from pipeline.local_index import open_local_index
from pipeline.model import read_spec

path, model, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
spec = read_spec(model)
vector = np.zeros((3, spec.dim), np.float32)
vector[:, 0] = 1
sys.stdin.readline()  # all processes begin together
for n in range(25):
    with open_local_index(path, spec) as index:
        # Some files of their own, and some that all of them write.
        file = f"/{name}-{n}" if n % 2 else f"/shared-{n}"
        chunks = [Chunk(f"file://{file}", file, file, "c", (), "", i, f"{file} {i}") for i in range(3)]
        index.replace(file, name, chunks, vector, vector[0])
    print(file, flush=True)
"""


def test_a_new_file_that_another_process_is_making_is_waited_for(path: Path, tiny_spec: ModelSpec) -> None:
    path.parent.mkdir()
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, other.execute, ["ROLLBACK"]).start()
    with open_local_index(path, tiny_spec) as index:
        assert index.documents() == []


def test_processes_that_write_at_once_lose_nothing(path: Path, tiny_spec: ModelSpec) -> None:
    model = Path(__file__).parent.parent / "data" / "model"
    names = ["a", "b", "c"]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(model), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.communicate(timeout=60)[1] for writer in writers] == ["", "", ""]
    expected = {f"/{name}-{n}" for name in names for n in range(1, 25, 2)}
    expected |= {f"/shared-{n}" for n in range(0, 25, 2)}
    with open_local_index(path, tiny_spec) as index:
        assert {document.path for document in index.documents()} == expected
        assert {document.n_chunks for document in index.documents()} == {3}
    assert len(LiveIndex(path).current()) == 3 * len(expected)


def test_a_writer_that_is_killed_leaves_whole_files(path: Path, tiny_spec: ModelSpec) -> None:
    model = Path(__file__).parent.parent / "data" / "model"
    command = [sys.executable, "-c", WRITER, str(path), str(model), "a"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
        written = {writer.stdout.readline().strip() for _ in range(5)}
        writer.kill()
    with open_local_index(path, tiny_spec) as index:
        assert written <= {document.path for document in index.documents()}
        assert {document.n_chunks for document in index.documents()} == {3}
    assert len(LiveIndex(path).current()) >= 3 * len(written)
