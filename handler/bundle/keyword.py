"""The keyword leg: FTS5's BM25 of every chunk, kept term by term."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import apsw
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Rows = NDArray[np.int32]

# 64 MB hold the terms of some thousand questions at 100,000 chunks.
CACHE_BYTES = 64 * 2**20
# What an entry takes beside its chunks: terms that stand nowhere would be kept without bound.
_ENTRY_BYTES = 512

# A word in the title counts twice; in the headings above a chunk as in its text. In a link to another page it
# only makes the chunk be found where nothing else has it: the other page is the one to find.
_SQL = """
    SELECT rowid, -bm25(chunk_fts, 2, 1, 1, 0.05) FROM chunk_fts WHERE chunk_fts MATCH ? ORDER BY rowid
"""


@dataclass(frozen=True, slots=True)
class Posting:
    """The chunks that a term stands in: `rows` from 0, ascending, and each one's BM25, higher is better."""

    rows: Rows
    bm25: Floats

    @property
    def size_bytes(self) -> int:
        """What the posting takes in memory, with its place in a cache."""
        return self.rows.nbytes + self.bm25.nbytes + _ENTRY_BYTES


class Postings:
    """Postings by term, read once and then kept, the least recently used dropped first.

    BM25 of a question is the sum over its terms, and FTS5's own bm25() adds it up so as well: asked term
    by term it gives the same order as one OR query, but a common word costs its 100 ms for 100,000 chunks
    only once. Safe for many threads.
    """

    def __init__(self, n_chunks: int, read: Callable[[str], Posting]) -> None:
        """`read` finds the posting of a phrase that is asked for the first time."""
        self.n_chunks = n_chunks
        self._read = read
        self._size_bytes = 0
        self._postings: OrderedDict[str, Posting] = OrderedDict()
        self._lock = threading.Lock()

    def __getitem__(self, phrase: str) -> Posting:
        """The posting of a folded word, or of several in a row."""
        with self._lock:
            if phrase in self._postings:
                self._postings.move_to_end(phrase)
                return self._postings[phrase]
        posting = self._read(phrase)
        with self._lock:
            if phrase not in self._postings:
                self._postings[phrase] = posting
                self._size_bytes += posting.size_bytes
            while self._size_bytes > CACHE_BYTES and len(self._postings) > 1:
                self._size_bytes -= self._postings.popitem(last=False)[1].size_bytes
        return posting

    def idf(self, n_found: int) -> float:
        """How rare a term is that stands in so many chunks, over 0: of one in all of them nearly nothing."""
        return _idf(n_found, self.n_chunks)


def read_posting(connection: apsw.Connection, chunk_ids: NDArray[np.int64], phrase: str) -> Posting:
    """What FTS5 says of a folded word, or of several in a row. `chunk_ids` (n,) are the rows', ascending."""
    quoted = '"' + phrase.replace('"', '""') + '"'
    found = connection.execute(_SQL, (quoted,)).fetchall()
    ids, bm25 = zip(*found, strict=True) if found else ((), ())
    rows = np.searchsorted(chunk_ids, ids).astype(np.int32)
    scale = _idf(len(rows), len(chunk_ids)) / _fts5_idf(len(rows), len(chunk_ids))
    return Posting(rows, (np.array(bm25) * scale).astype(np.float32))


def _idf(df: int, n_chunks: int) -> float:
    """Robertson and Sparck Jones's weight with a 1 under the logarithm, as Lucene has it.

    FTS5's own is 0 for a term in half of the chunks, which in a bundle of five are most of its words.
    """
    return math.log(1 + (n_chunks - df + 0.5) / (df + 0.5))


def _fts5_idf(df: int, n_chunks: int) -> float:
    """What bm25() multiplies a term's frequency by (SQLite, ext/fts5/fts5_aux.c)."""
    return max(1e-6, math.log((n_chunks - df + 0.5) / (df + 0.5)))


def sum_bm25(postings: Iterable[Posting], n_chunks: int) -> Floats:
    """(n_chunks,) float32: BM25 of every chunk for a question of these terms; 0 where none stands."""
    scores = np.zeros(n_chunks, dtype=np.float32)
    for posting in postings:
        scores[posting.rows] += posting.bm25
    return scores
