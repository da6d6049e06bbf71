"""An opened rag.db: vectors in memory, text and keywords read when they are asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import apsw
import numpy as np
from numpy.typing import NDArray

from handler.bundle.database import copy_in_memory, open_database
from handler.bundle.encoder import Vector
from handler.bundle.fusion import Floats, short_text_costs
from handler.bundle.keyword import Posting, Postings
from handler.bundle.spelling import Vocabulary
from handler.bundle.types import BundleError, Chunk


@dataclass(frozen=True, slots=True)
class Index:
    """What a search needs of a bundle's database. Rows count chunks from 0; row i is chunk id i + 1.

    `vectors` is (n, dim) float32, unit rows, `page_vectors` (pages, dim) the mean of each page's, of unit
    length again, in the order of page ids. `page_ids` and `canonical_ids` are (n,): the page of each
    row, and the page whose text it repeats, mostly the same. `short_text_costs` (n,) is what each row loses
    in a ranking for being short. `collections` has the range of rows of each.
    `model` is the fingerprint of the model that made the vectors.
    """

    vectors: Vector
    page_vectors: Vector
    page_ids: NDArray[np.int32]
    canonical_ids: NDArray[np.int32]
    short_text_costs: Floats
    collections: dict[str, range]
    page_id_by_url: dict[str, int]
    postings: Postings
    connections: Connections
    vocabulary: Callable[[], Vocabulary]
    model: str

    @classmethod
    def open(cls, path: Path) -> Index:
        """The index in a rag.db file. Raises BundleError when it is missing, damaged or inconsistent."""
        return cls.read(path, lambda: open_database(path))

    @classmethod
    def read(cls, path: Path, connect: Callable[[], apsw.Connection]) -> Index:
        """The index of a database that never changes, wherever it is. `path` names it in errors."""
        connections = Connections(connect)
        connection = connections.get()
        try:
            vectors = _read_vectors(connection)
            pages = _rows(connection, "SELECT id, canonical, collection, url FROM page ORDER BY id")
            chunks = _rows(connection, "SELECT page, octet_length(text) FROM chunk ORDER BY id")
            page_ids, sizes = np.array(chunks, np.int32).reshape(-1, 2).T
            model = dict(_rows(connection, "SELECT key, value FROM meta")).get("model", "")
            _check_numbering(connection, pages, page_ids)
        except apsw.Error as error:
            raise BundleError(f"{path} is no bundle's database: {error}") from error
        except BundleError as error:
            raise BundleError(f"{path} is damaged: {error}") from None
        canonical = np.array([0, *(row[1] for row in pages)], np.int32)
        return cls(
            vectors=vectors,
            page_vectors=_page_vectors(vectors, page_ids),
            page_ids=page_ids,
            canonical_ids=canonical[page_ids],
            short_text_costs=short_text_costs(sizes),
            collections=_collection_rows([row[2] for row in pages], page_ids),
            page_id_by_url={row[3]: row[0] for row in pages},
            postings=Postings(connections.get, len(vectors)),
            connections=connections,
            vocabulary=cache(lambda: Vocabulary(connections.get())),
            model=model,
        )

    def __len__(self) -> int:
        return len(self.vectors)

    def chunks(self, rows: Sequence[int]) -> list[Chunk]:
        """The chunks of these rows, in their order."""
        sql = """
            SELECT chunk.id, url, title, path, collection, heading, anchor, ordinal, text
            FROM chunk JOIN page ON page.id = chunk.page
            WHERE chunk.id IN (SELECT value FROM json_each(?))
        """
        ids = [int(row) + 1 for row in rows]
        found = {
            chunk_id: Chunk(url, title, path, collection, tuple(json.loads(heading)), anchor, ordinal, text)
            for chunk_id, url, title, path, collection, heading, anchor, ordinal, text in _rows(
                self.connections.get(), sql, json.dumps(ids)
            )
        }
        return [found[chunk_id] for chunk_id in ids]

    def postings_of(self, phrases: Sequence[str]) -> list[Posting]:
        """A posting for each term, empty ones left as they are.

        A word that stands nowhere gets the posting of the word that was probably meant.
        """
        postings = [self.postings[phrase] for phrase in phrases]
        for i, phrase in enumerate(phrases):
            if not len(postings[i].rows) and " " not in phrase:
                meant = self.vocabulary().nearest(phrase, self.connections.get())
                if meant is not None:
                    postings[i] = self.postings[meant]
        return postings

    def page_id(self, url: str) -> int | None:
        """The page that a browser shows at an address, whatever query or fragment the address has."""
        bare = url.partition("#")[0].partition("?")[0]
        for candidate in (url, bare, bare.rstrip("/"), f"{bare.rstrip('/')}/"):
            if candidate in self.page_id_by_url:
                return self.page_id_by_url[candidate]
        return None

    def rows_of(self, collections: Iterable[str] | None) -> NDArray[np.bool_] | None:
        """(n,) which rows belong to the collections, or None for all of them."""
        if collections is None:
            return None
        mask = np.zeros(len(self), dtype=np.bool_)
        for name in collections:
            rows = self.collections.get(name, range(0))
            mask[rows.start : rows.stop] = True
        return mask


class Connections:
    """One read-only connection a thread, opened when the thread first asks.

    The file may be gone by then: only the last bundles are kept, and a server may run on with an older one.
    One connection that nobody else uses has it open still, and later ones get its copy in memory.
    """

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._spare: apsw.Connection | None = None
        self._lock = threading.Lock()
        self._local = threading.local()

    def get(self) -> apsw.Connection:
        """The connection of the calling thread. Raises BundleError when the file cannot be opened."""
        if not hasattr(self._local, "connection"):
            with self._lock:
                self._local.connection = self._open()
        return cast("apsw.Connection", self._local.connection)

    def _open(self) -> apsw.Connection:
        if self._spare is None:
            self._spare = self._connect()
        try:
            return self._connect()
        except BundleError:
            return copy_in_memory(self._spare)


def _check_numbering(connection: apsw.Connection, pages: Sequence[Any], page_ids: NDArray[np.int32]) -> None:
    """Raises BundleError unless pages, chunks and keywords count from 1, as rows are looked up by number."""
    n = len(page_ids)
    sql = """
        SELECT count(*), min(id), max(id) FROM chunk UNION ALL
        SELECT count(*), min(id), max(id) FROM chunk_fts_docsize
    """
    chunks, keywords = _rows(connection, sql)
    if n and chunks != (n, 1, n):
        raise BundleError(f"chunks are not numbered from 1 to {n}")
    if chunks != keywords:
        raise BundleError(f"the keyword index is out of step: it has {keywords[0]} of {n} chunks")
    numbers = range(1, len(pages) + 1)
    if [row[0] for row in pages] != [*numbers] or not all(row[1] in numbers for row in pages):
        raise BundleError(f"pages are not numbered from 1 to {len(pages)}")
    if not np.array_equal(np.unique(page_ids), numbers) or (np.diff(page_ids) < 0).any():
        raise BundleError("chunks are not numbered by page")


def _collection_rows(collection_of_page: Sequence[str], page_ids: NDArray[np.int32]) -> dict[str, range]:
    """The rows of each collection. They are one range because chunks are numbered by collection."""
    rows: dict[str, range] = {}
    for row, page_id in enumerate(page_ids.tolist()):
        name = collection_of_page[page_id - 1]
        start = rows[name].start if name in rows else row
        if name in rows and rows[name].stop != row:
            raise BundleError(f"the chunks of collection {name} are not numbered in a row")
        rows[name] = range(start, row + 1)
    return rows


def _page_vectors(vectors: Vector, page_ids: NDArray[np.int32]) -> Vector:
    """(pages, dim) the mean of each page's vectors, of unit length. A page's chunks stand in a row."""
    if not len(vectors):
        return vectors
    sums = np.add.reduceat(vectors, np.flatnonzero(np.diff(page_ids, prepend=0)))
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray(sums / np.maximum(norms, np.finfo(np.float32).tiny), np.float32)


def _rows(connection: apsw.Connection, sql: str, *values: str) -> list[Any]:
    return connection.execute(sql, values).fetchall()


def _read_vectors(connection: apsw.Connection) -> Vector:
    """(n, dim) float32, by chunk id, copied out of vec0's own tables block by block.

    vec0 returns 100,000 vectors row by row in 0.5 s, its blocks in 0.1 s. A block has its row ids beside it,
    which must be the chunk ids in a row; unused places at the end of the last block are left out.
    """
    sizes = _rows(connection, "SELECT chunk_id, size, rowids FROM chunk_vec_chunks ORDER BY chunk_id")
    ((n,),) = _rows(connection, "SELECT count(*) FROM chunk")
    row_ids = np.concatenate([np.frombuffer(ids, "<i8") for _, _, ids in sizes] or [np.zeros(0, "<i8")])
    if not np.array_equal(row_ids[:n], np.arange(1, n + 1)) or row_ids[n:].any():
        raise BundleError(f"the vectors are not those of chunks 1 to {n}")
    blocks = []
    for block_id, size, _ in sizes:
        with connection.blob_open("main", "chunk_vec_vector_chunks00", "vectors", block_id, False) as blob:
            block = np.frombuffer(blob.read(), "<f4")
            blocks.append(block.reshape(size, -1))
    return np.ascontiguousarray(np.concatenate(blocks)[:n]) if blocks else np.zeros((0, 0), np.float32)
