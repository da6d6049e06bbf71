"""An index that another program writes to."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from handler.bundle.database import create_database
from handler.bundle.encoder import Encoder
from handler.bundle.live import LiveIndex
from handler.bundle.search import search
from handler.bundle.types import BundleError
from tests.conftest import PAGES, MakeBundle


@pytest.fixture
def database(make_bundle: MakeBundle, tmp_path: Path) -> Path:
    """A copy of a bundle's database that may be written to, in a folder with a name to be quoted."""
    path = tmp_path / "a folder?#%" / "rag.db"
    path.parent.mkdir()
    path.write_bytes((make_bundle() / "rag.db").read_bytes())
    return path


@pytest.fixture(params=["wal", "delete"])
def writer(database: Path, request: pytest.FixtureRequest) -> Iterator[apsw.Connection]:
    """The other program's connection."""
    connection = apsw.Connection(str(database))
    connection.execute(f"PRAGMA journal_mode = {request.param}")
    yield connection
    connection.close()


def test_what_is_committed_is_seen_and_what_is_not_is_not(database: Path, writer: apsw.Connection) -> None:
    live = LiveIndex(database)
    first = live.current()
    assert live.current() is first
    writer.execute("BEGIN IMMEDIATE; UPDATE page SET title = 'New'")
    assert live.current() is first
    writer.execute("COMMIT")
    assert {chunk.title for chunk in live.current().chunks([0, 1])} == {"New"}
    assert "New" not in {chunk.title for chunk in first.chunks([0, 1])}


def test_a_file_that_was_replaced_is_opened_again(
    database: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    live = LiveIndex(database)
    other = tmp_path / "other.db"
    other.write_bytes((make_bundle({"notes/one.md": "One\n\nA single page.\n"}) / "rag.db").read_bytes())
    other.replace(database)
    assert [chunk.title for chunk in live.current().chunks([0])] == ["One"]


def test_a_search_finds_what_it_finds_in_the_bundle(
    database: Path, writer: apsw.Connection, tiny_encoder: Encoder
) -> None:
    index = LiveIndex(database).current()
    found = search(index, tiny_encoder, "secret diary", collections=index.collections)
    assert found.hits[0].chunk.collection == "diary"


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    for path in (tmp_path / "pipe.db", tmp_path):
        with pytest.raises(BundleError, match="is no file: name one in RAG_DB_PATH"):
            LiveIndex(path)


def test_an_index_outlives_the_thread_that_read_it(database: Path) -> None:
    live: list[LiveIndex] = []
    thread = threading.Thread(target=lambda: live.append(LiveIndex(database)))
    thread.start()
    thread.join()
    index = live[0].current()
    assert len(index.chunks(range(len(index)))) == len(index) >= len(PAGES)


def test_nothing_is_written_to_the_database(database: Path, writer: apsw.Connection) -> None:
    before = database.read_bytes()
    LiveIndex(database).current()
    assert database.read_bytes() == before


def test_an_index_without_chunks_is_one(tmp_path: Path, tiny_encoder: Encoder) -> None:
    create_database(tmp_path / "new.db", tiny_encoder.spec.dim).close()
    index = LiveIndex(tmp_path / "new.db").current()
    assert (len(index), index.collections) == (0, {})
    assert search(index, tiny_encoder, "pond", collections=()).hits == ()


@pytest.mark.parametrize("content", [None, b"", b"no database at all, but long enough to be read"])
def test_what_is_no_index_is_refused_by_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "rag.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BundleError, match=r"rag\.db"):
        LiveIndex(path)


def test_an_index_that_breaks_later_is_an_error_until_it_is_whole(
    database: Path, writer: apsw.Connection
) -> None:
    live = LiveIndex(database)
    writer.execute("UPDATE page SET canonical = 99 WHERE id = 1")
    for _ in range(2):
        with pytest.raises(BundleError, match="damaged"):
            live.current()
    writer.execute("UPDATE page SET canonical = 1 WHERE id = 1")
    assert len(live.current()) >= len(PAGES)
