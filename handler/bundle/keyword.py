"""The keyword leg: FTS5's BM25 of every chunk, kept term by term."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Posting:
    """The chunks that a term stands in: `rows` from 0, ascending, and each one's BM25, higher is better."""

    rows: Rows
    bm25: Floats

    @property
    def size_bytes(self) -> int:
        """What the posting takes in memory."""
        return self.rows.nbytes + self.bm25.nbytes


class Postings:
    """Postings by term, read from FTS5 once and then kept, the least recently used dropped first.

    BM25 of a question is the sum over its terms, and FTS5's own bm25() adds it up so as well: asked term
    by term it gives the same numbers as one OR query, but a common word costs its 100 ms for 100,000
    chunks only once. Safe for many threads.
    """

    def __init__(self, connect: Callable[[], apsw.Connection], n_chunks: int) -> None:
        self.n_chunks = n_chunks
        self._connect = connect
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

    def idf(self, posting: Posting) -> float:
        """How rare a term is, at least 0: Robertson and Sparck Jones's weight, as FTS5 has it."""
        df = len(posting.rows)
        return max(0.0, float(np.log((self.n_chunks - df + 0.5) / (df + 0.5))))

    def _read(self, phrase: str) -> Posting:
        quoted = '"' + phrase.replace('"', '""') + '"'
        sql = "SELECT rowid - 1, -bm25(chunk_fts) FROM chunk_fts WHERE chunk_fts MATCH ? ORDER BY rowid"
        found = self._connect().execute(sql, (quoted,)).fetchall()
        rows, bm25 = zip(*found, strict=True) if found else ((), ())
        return Posting(np.array(rows, dtype=np.int32), np.array(bm25, dtype=np.float32))


def sum_bm25(postings: Iterable[Posting], n_chunks: int) -> Floats:
    """(n_chunks,) float32: BM25 of every chunk for a question of these terms; 0 where none stands."""
    scores = np.zeros(n_chunks, dtype=np.float32)
    for posting in postings:
        scores[posting.rows] += posting.bm25
    return scores
