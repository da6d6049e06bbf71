"""An opened rag.db: vectors in memory, text and keywords read when they are asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

import apsw
import numpy as np
from numpy.typing import NDArray

from handler.bundle.counted import counted
from handler.bundle.database import copy_in_memory, open_database
from handler.bundle.encoder import Vector
from handler.bundle.fusion import Floats, short_text_costs
from handler.bundle.keyword import Posting, Postings, read_posting
from handler.bundle.spelling import Vocabulary
from handler.bundle.types import BundleError, Chunk

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Index:
    """What a search needs of a database. Rows count chunks from 0, and pages count from 1, by their ids.

    The ids themselves may have gaps, where chunks were deleted.
    `vectors` is (n, dim) float32, unit rows, `page_vectors` (pages, dim) the mean of each page's, of unit
    length again, and `title_vectors` (pages, dim) those of their titles. `page_numbers` and
    `canonical_numbers` are (n,): the page of each row, and the page whose text it repeats, mostly the same.
    `short_text_costs` (n,) is what each row loses in a ranking for being
    short. `collections` has the rows of each, ascending.
    `model` is the fingerprint of the model that made the vectors.
    """

    vectors: Vector
    page_vectors: Vector
    title_vectors: Vector
    page_numbers: NDArray[np.int32]
    canonical_numbers: NDArray[np.int32]
    short_text_costs: Floats
    collections: dict[str, NDArray[np.intp]]
    page_number_by_url: dict[str, int]
    postings: Postings
    texts: Texts
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
            pages = _rows(
                connection, "SELECT id, canonical, collection, url, title_vector FROM page ORDER BY id"
            )
            chunks = _rows(connection, "SELECT id, page, octet_length(text) FROM chunk ORDER BY id")
            chunk_ids, pages_of_chunks, sizes = np.array(chunks, np.int64).reshape(-1, 3).T
            page_ids = np.array([row[0] for row in pages], np.int64)
            page_numbers = _numbers(pages_of_chunks, page_ids, "chunks are of pages")
            canonical = _numbers([row[1] for row in pages], page_ids, "pages repeat pages")
            _check_order(page_numbers, len(pages))
            _check_keywords(connection, len(chunks))
            vectors = _read_vectors(connection, np.ascontiguousarray(chunk_ids))
            title_vectors = _title_vectors([row[4] for row in pages], vectors.shape[1])
            model = dict(_rows(connection, "SELECT key, value FROM meta")).get("model", "")
        except apsw.Error as error:
            raise BundleError(f"{path} is no bundle's database: {error}") from error
        except BundleError as error:
            raise BundleError(f"{path} is damaged: {error}") from None
        return cls(
            vectors=vectors,
            page_vectors=_page_vectors(vectors, page_numbers),
            title_vectors=title_vectors,
            page_numbers=page_numbers,
            canonical_numbers=canonical[page_numbers - 1],
            short_text_costs=short_text_costs(sizes.astype(np.int32), page_numbers),
            collections=_collection_rows([row[2] for row in pages], page_numbers),
            page_number_by_url={row[3]: number for number, row in enumerate(pages, start=1)},
            postings=Postings(
                len(chunk_ids), lambda phrase: read_posting(connections.get(), chunk_ids, phrase)
            ),
            texts=StoredTexts(connections, chunk_ids),
            model=model,
        )

    def __len__(self) -> int:
        return len(self.vectors)

    def chunks(self, rows: Sequence[int]) -> list[Chunk]:
        """The chunks of these rows, in their order."""
        return self.texts.chunks(rows)

    def postings_of(self, phrases: Sequence[str]) -> list[Posting]:
        """A posting for each term, empty ones left as they are.

        A word that stands nowhere gets the posting of the word that was probably meant.
        """
        postings = [self.postings[phrase] for phrase in phrases]
        for i, phrase in enumerate(phrases):
            if not len(postings[i].rows) and " " not in phrase:
                meant = self.texts.nearest_word(phrase)
                if meant is not None:
                    postings[i] = self.postings[meant]
        return postings

    def page_number(self, url: str) -> int | None:
        """The page that a browser shows at an address, whatever query or fragment the address has."""
        bare = url.partition("#")[0].partition("?")[0]
        for candidate in (url, bare, bare.rstrip("/"), f"{bare.rstrip('/')}/"):
            if candidate in self.page_number_by_url:
                return self.page_number_by_url[candidate]
        return None

    def rows_of(self, collections: Iterable[str] | None) -> NDArray[np.bool_] | None:
        """(n,) which rows belong to the collections, or None for all of them."""
        if collections is None:
            return None
        mask = np.zeros(len(self), dtype=np.bool_)
        for name in collections:
            mask[self.rows_in(name)] = True
        return mask

    def rows_in(self, collection: str) -> NDArray[np.intp]:
        """The rows of one collection, ascending; none of one that is not there."""
        return self.collections.get(collection, np.zeros(0, np.intp))


class Texts(Protocol):
    """What stays on the disk until somebody asks for it."""

    def chunks(self, rows: Sequence[int]) -> list[Chunk]:
        """The chunks of these rows, in their order."""
        ...

    def nearest_word(self, word: str) -> str | None:
        """The word that was probably meant by a folded one that stands nowhere, or None."""
        ...


class StoredTexts:
    """The texts of one database. `chunk_ids` (n,) are those of the rows, ascending."""

    def __init__(self, connections: Connections, chunk_ids: Ids) -> None:
        self._connections = connections
        self._chunk_ids = chunk_ids
        self._vocabulary = cache(lambda: Vocabulary(connections.get()))

    def chunks(self, rows: Sequence[int]) -> list[Chunk]:
        """The chunks of these rows, in their order."""
        sql = """
            SELECT chunk.id, url, title, path, collection, heading, anchor, ordinal, text
            FROM chunk JOIN page ON page.id = chunk.page
            WHERE chunk.id IN (SELECT value FROM json_each(?))
        """
        ids = [int(self._chunk_ids[row]) for row in rows]
        found = {
            chunk_id: Chunk(url, title, path, collection, tuple(json.loads(heading)), anchor, ordinal, text)
            for chunk_id, url, title, path, collection, heading, anchor, ordinal, text in _rows(
                self._connections.get(), sql, json.dumps(ids)
            )
        }
        return [found[chunk_id] for chunk_id in ids]

    def nearest_word(self, word: str) -> str | None:
        """The word that was probably meant by a folded one that stands nowhere, or None."""
        return self._vocabulary().nearest(word, self._connections.get())


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


def _numbers(ids: Any, known: Ids, what: str) -> NDArray[np.int32]:
    """(len(ids),) the number from 1 of each id among the ascending known ones. Raises BundleError."""
    if not np.isin(ids, known).all():
        raise BundleError(f"{what} that are not there")
    numbers: NDArray[np.int32] = (np.searchsorted(known, ids) + 1).astype(np.int32)
    return numbers


def _check_order(page_numbers: NDArray[np.int32], n_pages: int) -> None:
    """Raises BundleError unless every page has chunks, and they stand together in the pages' order."""
    numbers = range(1, n_pages + 1)
    if not np.array_equal(np.unique(page_numbers), numbers) or (np.diff(page_numbers) < 0).any():
        raise BundleError("chunks are not numbered by page")


def _check_keywords(connection: apsw.Connection, n_chunks: int) -> None:
    """Raises BundleError unless the keyword index is of just these chunks."""
    sql = "SELECT count(*), count(chunk.id) FROM chunk_fts_docsize LEFT JOIN chunk USING (id)"
    if _rows(connection, sql) != [(n_chunks, n_chunks)]:
        raise BundleError(f"the keyword index is out of step with the bundle's {counted(n_chunks, 'chunk')}")


def _collection_rows(
    collection_of_page: Sequence[str], page_numbers: NDArray[np.int32]
) -> dict[str, NDArray[np.intp]]:
    """The rows of each collection."""
    names = np.array(collection_of_page, dtype=object)
    return {name: np.flatnonzero((names == name)[page_numbers - 1]) for name in sorted(set(names))}


def _page_vectors(vectors: Vector, page_numbers: NDArray[np.int32]) -> Vector:
    """(pages, dim) the mean of each page's vectors, of unit length. A page's chunks stand in a row."""
    if not len(vectors):
        return vectors
    sums = np.add.reduceat(vectors, np.flatnonzero(np.diff(page_numbers, prepend=0)))
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray(sums / np.maximum(norms, np.finfo(np.float32).tiny), np.float32)


def _title_vectors(blobs: Sequence[bytes], dim: int) -> Vector:
    """(pages, dim) float32, the vectors of the pages' titles."""
    if any(len(blob) != 4 * dim for blob in blobs):
        raise BundleError(f"a title's vector has another number of dimensions than {dim}")
    return np.frombuffer(b"".join(blobs), "<f4").reshape(len(blobs), dim)


def _rows(connection: apsw.Connection, sql: str, *values: str) -> list[Any]:
    return connection.execute(sql, values).fetchall()


def _read_vectors(connection: apsw.Connection, chunk_ids: Ids) -> Vector:
    """(n, dim) float32, the vectors of the chunks, copied out of vec0's own tables block by block.

    vec0 returns 100,000 vectors row by row in 0.5 s, its blocks in 0.1 s. A block has its row ids beside it,
    and a bit for each place that is in use: new vectors go where there is room, in no order.
    """
    sql = "SELECT chunk_id, size, validity, rowids FROM chunk_vec_chunks ORDER BY chunk_id"
    blocks = [
        (block_id, size, np.unpackbits(np.frombuffer(bits, np.uint8), count=size, bitorder="little"), ids)
        for block_id, size, bits, ids in _rows(connection, sql)
    ]
    ids_of = {block_id: np.frombuffer(ids, "<i8")[used == 1] for block_id, _, used, ids in blocks}
    if not np.array_equal(np.sort(np.concatenate([*ids_of.values(), chunk_ids[:0]])), chunk_ids):
        raise BundleError(f"the vectors are not those of the bundle's {counted(len(chunk_ids), 'chunk')}")
    vectors = np.zeros((len(chunk_ids), 0), np.float32)
    for block_id, size, used, _ in blocks:
        with connection.blob_open("main", "chunk_vec_vector_chunks00", "vectors", block_id, False) as blob:
            block = np.frombuffer(blob.read(), "<f4").reshape(size, -1)
        if not vectors.size:
            vectors = np.zeros((len(chunk_ids), block.shape[1]), np.float32)
        vectors[np.searchsorted(chunk_ids, ids_of[block_id])] = block[used == 1]
    return vectors
