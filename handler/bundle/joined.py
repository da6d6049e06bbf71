"""Two indexes asked as one: a bundle's, and that of the files beside it.

One search of both is what makes their hits comparable. In lists of two searches a word's rarity and a
cosine's distance from the mean are another thing each time, above all in an index of a few pages: there,
merged by score, one right page in fifteen comes first, taking turns none, and by one search as many as in one
index of all. The gate was calibrated on the whole, too: of each index it lets 82% of those questions pass, of
both together 98% (`python -m benchmarks.joined`, one site's questions).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from handler.bundle.keyword import Posting, Postings
from handler.bundle.reader import Index, Texts
from handler.bundle.types import BundleError, Chunk


def join(first: Index, second: Index) -> Index:
    """An index of the rows of both, those of the first before those of the second.

    Raises BundleError when they hold vectors of different models.
    """
    if not len(first) or not len(second):
        return second if len(second) else first
    if first.model != second.model:
        raise BundleError(
            "the bundle and the local index were made with different embedding models: ingest again into "
            "a new file (RAG_DB_PATH), or name a bundle of the other model (RALPH_BUNDLE)"
        )
    n_rows, n_pages = len(first), len(first.page_vectors)
    names = sorted({*first.collections, *second.collections})
    return Index(
        vectors=np.concatenate([first.vectors, second.vectors]),
        page_vectors=np.concatenate([first.page_vectors, second.page_vectors]),
        page_numbers=np.concatenate([first.page_numbers, second.page_numbers + n_pages]),
        canonical_numbers=np.concatenate([first.canonical_numbers, second.canonical_numbers + n_pages]),
        short_text_costs=np.concatenate([first.short_text_costs, second.short_text_costs]),
        collections={
            name: np.concatenate([first.rows_in(name), second.rows_in(name) + n_rows]) for name in names
        },
        # Of one address in both, the page that was published.
        page_number_by_url={
            **{url: number + n_pages for url, number in second.page_number_by_url.items()},
            **first.page_number_by_url,
        },
        postings=joined_postings(first.postings, second.postings),
        texts=JoinedTexts(first.texts, second.texts, n_rows),
        model=first.model,
    )


class JoinedTexts:
    """The texts of both; `n_rows` are the first one's."""

    def __init__(self, first: Texts, second: Texts, n_rows: int) -> None:
        self._first, self._second = first, second
        self._n_rows = n_rows

    def chunks(self, rows: Sequence[int]) -> list[Chunk]:
        """The chunks of these rows, in their order."""
        first = [row for row in rows if row < self._n_rows]
        second = [row for row in rows if row >= self._n_rows]
        chunks = self._first.chunks(first) + self._second.chunks([row - self._n_rows for row in second])
        by_row = dict(zip(first + second, chunks, strict=True))
        return [by_row[row] for row in rows]

    def nearest_word(self, word: str) -> str | None:
        """The word that was probably meant by a folded one that stands nowhere, or None."""
        return self._first.nearest_word(word) or self._second.nearest_word(word)


def joined_postings(first: Postings, second: Postings) -> Postings:
    """The postings of both: how rare a word is, it is in all rows together.

    What stays of each index is the mean length of its chunks, which BM25 compares a chunk's with.
    """

    def read(phrase: str) -> Posting:
        mine, theirs = first[phrase], second[phrase]
        rows = np.concatenate([mine.rows, theirs.rows + np.int32(first.n_chunks)])
        idf = both.idf(len(rows))
        scales = idf / first.idf(len(mine.rows)), idf / second.idf(len(theirs.rows))
        bm25 = np.concatenate([mine.bm25 * scales[0], theirs.bm25 * scales[1]])
        return Posting(rows, bm25.astype(np.float32))

    both = Postings(first.n_chunks + second.n_chunks, read)
    return both
