"""The local index: a rag.db that grows and shrinks file by file, beside the bundle, which never changes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import apsw
import numpy as np

from handler.bundle.database import (
    PAGE_SIZE_BYTES,
    create_tables,
    insert_chunk,
    insert_page,
    open_for_writing,
    read_schema,
)
from handler.bundle.encoder import ModelSpec, Vector
from handler.bundle.links import definitions_by_page, link_definitions, split_links
from handler.bundle.live import (
    LOCAL_VERSION,
    check_is_file,
    check_local_version,
    lacks_title_vectors,
    reason_of,
)
from handler.bundle.passage import passage_text
from handler.bundle.terms import keyword_text
from handler.bundle.types import BundleError, Chunk

LOCAL_SCHEMA = Path(__file__).with_name("local_schema.sql")
TITLE_VECTORS = Path(__file__).with_name("local_title_vectors.sql")
KEYWORDS = Path(__file__).with_name("local_keywords.sql")

# Of each page by its URL: the addresses that it defines for its reference links, by name.
Definitions = dict[str, Mapping[str, str]]

# Another process may be writing; each of its transactions lasts some milliseconds.
BUSY_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Document:
    """A file that is in the index. `ingested_at` is empty for a page of unknown origin."""

    url: str
    title: str
    path: str
    collection: str
    n_chunks: int
    ingested_at: str


class AddressTakenError(Exception):
    """Another file, at `location` if that is known, has the same address, `url`."""

    def __init__(self, url: str, location: str) -> None:
        super().__init__(f"another file has the address {url} already")
        self.url = url
        self.location = location


class LocalIndex:
    """An open local index. Every change is one transaction, and processes take turns."""

    def __init__(self, connection: apsw.Connection, definitions: Definitions) -> None:
        """`definitions` are what the connection's functions know of the pages' links."""
        self._connection = connection
        self._definitions = definitions

    def digest(self, location: str) -> str | None:
        """The digest that the file at an absolute path was ingested with, or None."""
        digest: str | None = self._connection.execute(
            "SELECT digest FROM file WHERE location = ?", (location,)
        ).get
        return digest

    def locations(self, folder: str) -> list[str]:
        """The absolute paths of the files beneath a folder, which is one itself, in order."""
        sql = "SELECT location FROM file WHERE substr(location, 1, length(?1)) = ?1 ORDER BY location"
        return [location for (location,) in self._connection.execute(sql, (f"{folder.rstrip('/')}/",))]

    def vectors(self, location: str) -> dict[str, Vector]:
        """The vectors of a file's chunks, (dim,) float32, by the passage texts that they were made of."""
        sql = """
            SELECT title, heading, text, embedding
            FROM file JOIN page ON page.id = file.page JOIN chunk ON chunk.page = page.id
                JOIN chunk_vec ON chunk_vec.chunk = chunk.id
            WHERE location = ?
        """
        return {
            passage_text(title, tuple(json.loads(heading)), text): np.frombuffer(vector, "<f4")
            for title, heading, text, vector in self._connection.execute(sql, (location,))
        }

    def documents(self, collection: str | None = None) -> list[Document]:
        """What is in the index, by collection and path; in one collection, or in all of them."""
        sql = """
            SELECT url, title, path, collection, count(chunk.id), coalesce(ingested_at, '')
            FROM page JOIN chunk ON chunk.page = page.id LEFT JOIN file ON file.page = page.id
            WHERE ?1 IS NULL OR collection = ?1
            GROUP BY page.id ORDER BY collection, path, url
        """
        return [Document(*row) for row in self._connection.execute(sql, (collection,))]

    def replace(
        self, location: str, digest: str, chunks: Sequence[Chunk], vectors: Vector, title_vector: Vector
    ) -> bool:
        """Puts a file's chunks in, in place of those that it had; returns whether it had some.

        `chunks` are of one page, `vectors` is (n, dim) float32 with unit rows, row i for chunk i, and
        `title_vector` (dim,) is the page's title's. Raises AddressTakenError when another file has the page's
        address.
        """
        with _transaction(self._connection):
            old = self._page_at(location)
            self._delete(old)
            self._insert(location, digest, chunks, vectors, title_vector)
        return old is not None

    def delete(self, location: str) -> int:
        """Takes the page out that is a file, or has an address; returns how many chunks it had."""
        with _transaction(self._connection):
            page = self._page_at(location)
            sql = "SELECT count(*) FROM chunk WHERE page = ?"
            n_chunks: int = self._connection.execute(sql, (page,)).get
            self._delete(page)
        return n_chunks

    def _page_at(self, location: str) -> int | None:
        sql = """
            SELECT page FROM file WHERE location = ?1
            UNION ALL SELECT id FROM page WHERE url = ?1 LIMIT 1
        """
        page: int | None = self._connection.execute(sql, (location,)).get
        return page

    def _delete(self, page: int | None) -> None:
        text_digest = self._connection.execute("SELECT text_digest FROM file WHERE page = ?", (page,)).get
        self._connection.execute("DELETE FROM page WHERE id = ?", (page,))
        self._connection.execute("UPDATE page SET canonical = id WHERE canonical = ?", (page,))
        self._choose_canonical(text_digest)

    def _insert(
        self, location: str, digest: str, chunks: Sequence[Chunk], vectors: Vector, title_vector: Vector
    ) -> None:
        first, text_digest = chunks[0], _text_digest(chunks)
        sql = "SELECT coalesce(location, '') FROM page LEFT JOIN file ON file.page = page.id WHERE url = ?"
        holder: str | None = self._connection.execute(sql, (first.url,)).get
        if holder is not None:
            raise AddressTakenError(first.url, holder)
        page = 1 + (self._connection.execute("SELECT max(id) FROM page").get or 0)
        insert_page(self._connection, page, page, first, title_vector)
        self._definitions.clear()
        self._definitions.update(definitions_by_page((chunk.url, chunk.text) for chunk in chunks))
        for chunk, vector in zip(chunks, vectors, strict=True):
            insert_chunk(self._connection, None, page, chunk, vector)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._connection.execute(
            "INSERT INTO file VALUES (?, ?, ?, ?, ?)", (page, location, digest, text_digest, now)
        )
        self._choose_canonical(text_digest)

    def _choose_canonical(self, text_digest: str | None) -> None:
        """Of pages with one text, the one with the shortest URL is canonical, as in a bundle."""
        self._connection.execute(
            """
            WITH alike AS (SELECT id, url FROM page JOIN file ON file.page = page.id WHERE text_digest = ?)
            UPDATE page SET canonical = (SELECT id FROM alike ORDER BY length(url), url LIMIT 1)
            WHERE id IN (SELECT id FROM alike)
            """,
            (text_digest,),
        )


@contextmanager
def open_local_index(path: Path, model: ModelSpec | None) -> Iterator[LocalIndex]:
    """The local index in a file, brought to this version's schema; closed with the context.

    With a `model` it is made when it is not there, and holds vectors of that model alone. Raises BundleError
    when it is not there, is no index, is a newer version's, has vectors of another model, or cannot be
    written.
    """
    try:
        check_is_file(path)
        if model is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.exists():
            raise BundleError(f"{path} is not there: nothing was ingested yet")
        connection = open_for_writing(path)
    except (OSError, apsw.Error) as error:
        raise BundleError(f"{path} cannot be written: {reason_of(error)}") from error
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        definitions: Definitions = {}
        _create_functions(connection, definitions)
        _bring_up_to_date(connection, path, model, definitions)
        yield LocalIndex(connection, definitions)
    except apsw.Error as error:
        raise BundleError(f"{path} cannot be written: {reason_of(error)}") from error
    finally:
        connection.close()


def _create_functions(connection: apsw.Connection, definitions: Definitions) -> None:
    """Creates what triggers know by name. Of a page without definitions, a chunk's own hold."""

    def split(text: str, url: str) -> tuple[str, str]:
        return split_links(text, url, definitions.get(url) or link_definitions(text))

    functions: tuple[tuple[str, int, Callable[..., str]], ...] = (
        ("keyword_text", 1, keyword_text),
        ("own_text", 2, lambda text, url: split(text, url)[0]),
        ("links", 2, lambda text, url: split(text, url)[1]),
    )
    for name, n_texts, function in functions:
        connection.create_scalar_function(name, function, n_texts, deterministic=True)


def _bring_up_to_date(
    connection: apsw.Connection, path: Path, model: ModelSpec | None, definitions: Definitions
) -> None:
    check_local_version(connection)
    if connection.pragma("user_version") < LOCAL_VERSION:
        # Both count for a new file alone, and neither can be had inside of a transaction.
        connection.pragma("page_size", PAGE_SIZE_BYTES)
        _switch_to_wal(connection)
        with _transaction(connection):
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
            if not tables and model is not None:
                create_tables(connection, model.dim)
                connection.execute("INSERT INTO meta VALUES ('model', ?)", (model.fingerprint,))
            elif not tables >= {"meta", "page", "chunk", "chunk_fts", "chunk_vec"}:
                raise BundleError(f"{path} is no index of this program: name another file in RAG_DB_PATH")
            # Again: another process may have done it in the meantime.
            version = connection.pragma("user_version")
            if version < 1:
                connection.execute(read_schema(LOCAL_SCHEMA))
            if lacks_title_vectors(connection):
                connection.execute(read_schema(TITLE_VECTORS))
            if version < LOCAL_VERSION:
                texts = connection.execute(
                    "SELECT url, text FROM chunk JOIN page ON page.id = chunk.page ORDER BY chunk.id"
                )
                definitions.update(definitions_by_page(texts))
                connection.execute(read_schema(KEYWORDS))
                connection.pragma("user_version", LOCAL_VERSION)
    made_with = connection.execute("SELECT value FROM meta WHERE key = 'model'").get
    if model is not None and made_with != model.fingerprint:
        raise BundleError(
            f"{path} was made with another embedding model than {model.name}: "
            "name another file in RAG_DB_PATH and ingest again, or the model's bundle in RALPH_BUNDLE"
        )


def _switch_to_wal(connection: apsw.Connection) -> None:
    """While another process makes the same file, SQLite refuses at once: its busy timeout is not for that."""
    until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def _transaction(connection: apsw.Connection) -> Iterator[None]:
    """What is done in it is done as a whole or not at all, and by one process at a time."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _text_digest(chunks: Sequence[Chunk]) -> str:
    texts = [" ".join(chunk.text.split()) for chunk in chunks]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()
