"""rag.db as a file: how it is made and how it is opened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import apsw
import numpy as np
import sqlite_vec

from handler.bundle.encoder import Vector
from handler.bundle.links import split_links
from handler.bundle.terms import TOKENIZER, keyword_text
from handler.bundle.types import BundleError, Chunk

SCHEMA = Path(__file__).with_name("schema.sql")

# Vectors are read once and front to back, keyword lists are short: larger pages only pad small bundles.
PAGE_SIZE_BYTES = 8192


def create_database(path: Path, dim: int) -> apsw.Connection:
    """A new rag.db with its empty tables. Whatever stood at the path is gone."""
    path.unlink(missing_ok=True)
    connection = apsw.Connection(str(path))
    # A WAL file beside the database would have to be written where a bundle is only read.
    connection.execute(f"PRAGMA page_size = {PAGE_SIZE_BYTES}; PRAGMA journal_mode = DELETE")
    create_tables(connection, dim)
    return connection


def create_tables(connection: apsw.Connection, dim: int) -> None:
    """Creates the empty tables of a bundle whose vectors have `dim` dimensions."""
    _load_vec0(connection)
    connection.execute(read_schema(SCHEMA).replace("{dim}", str(dim)))


def read_schema(path: Path) -> str:
    """The SQL of a file, with the tokenizer of keyword indexes in its place."""
    tokenizer = " ".join(f"'{word}'" if " " in word else word for word in TOKENIZER)
    return path.read_text(encoding="utf-8").replace("{tokenizer}", tokenizer)


def open_for_writing(path: Path) -> apsw.Connection:
    """A connection that may write, to a file that is made when it is not there. Raises apsw.Error."""
    connection = apsw.Connection(str(path))
    _load_vec0(connection)
    return connection


def insert_page(
    connection: apsw.Connection, page_id: int, canonical_id: int, chunk: Chunk, title_vector: Vector
) -> None:
    """Puts the page of a chunk in, and the vector of its title, (dim,) float32."""
    connection.execute(
        "INSERT INTO page VALUES (?, ?, ?, ?, ?, ?, ?)",
        (page_id, chunk.collection, chunk.path, chunk.url, chunk.title, canonical_id, _blob(title_vector)),
    )


def insert_chunk(
    connection: apsw.Connection, chunk_id: int | None, page_id: int, chunk: Chunk, vector: Vector
) -> None:
    """Puts a chunk of a page in, and its vector, (dim,) float32. An id of None is the next one."""
    heading = json.dumps(chunk.heading, ensure_ascii=False)
    connection.execute(
        "INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?)",
        (chunk_id, page_id, chunk.ordinal, heading, chunk.anchor, chunk.text),
    )
    connection.execute(
        "INSERT INTO chunk_vec(chunk, embedding, collection) VALUES (last_insert_rowid(), ?, ?)",
        (_blob(vector), chunk.collection),
    )


def insert_keywords(
    connection: apsw.Connection, chunk_id: int, chunk: Chunk, definitions: Mapping[str, str]
) -> None:
    """Puts the words of a chunk into the keyword index. `definitions` are those of its page's links."""
    fields = (chunk.title, " ".join(chunk.heading), *split_links(chunk.text, chunk.url, definitions))
    connection.execute(
        "INSERT INTO chunk_fts(rowid, title, heading, text, links) VALUES (?, ?, ?, ?, ?)",
        (chunk_id, *map(keyword_text, fields)),
    )


def open_database(path: Path) -> apsw.Connection:
    """A connection that only reads, and makes no file beside the database.

    Raises BundleError when the file is missing or no database.
    """
    try:
        return connect(f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1")
    except apsw.Error as error:
        raise BundleError(f"{path} cannot be opened: {error}") from error


def connect(uri: str) -> apsw.Connection:
    """A connection that only reads the database at an SQLite URI. Raises apsw.Error."""
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    _load_vec0(connection)
    connection.execute("PRAGMA temp_store = MEMORY; SELECT count(*) FROM sqlite_schema").fetchall()
    return connection


def copy_in_memory(connection: apsw.Connection) -> apsw.Connection:
    """A connection to a copy of an open database, whose file may be gone."""
    copy = apsw.Connection(":memory:")
    copy.deserialize("main", connection.serialize("main"))
    _load_vec0(copy)
    copy.execute("PRAGMA temp_store = MEMORY; PRAGMA query_only = 1")
    return copy


def _blob(vector: Vector) -> bytes:
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def _load_vec0(connection: apsw.Connection) -> None:
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)
