"""Two indexes asked as one: a bundle's, and that of the files beside it.

One search of both is what makes their hits comparable. In lists of two searches a word's rarity and a
cosine's distance from the mean are another thing each time, above all in an index of a few pages: there,
merged by score, one right page in fifteen comes first, taking turns none, and by one search as many as in one
index of all. The gate was calibrated on the whole, too: of each index it lets 82% of those questions pass, of
both together 98% (`python -m benchmarks.joined`, one site's questions).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from handler.bundle.bundle import Bundle
from handler.bundle.keyword import Posting, Postings
from handler.bundle.live import LiveIndex
from handler.bundle.reader import Index, Texts
from handler.bundle.search import CHUNKS_FOR_ANSWER, Hit, SearchResult
from handler.bundle.types import BundleError, Chunk


class Joined:
    """The live index in a file, joined with a bundle's, and again when either changed. Any thread may ask."""

    def __init__(self, path: Path, *, required: bool = False) -> None:
        """One that is not `required` is asked as soon as it is there, and as long."""
        self.path = path
        self._required = required
        self._lock = threading.Lock()
        self._live: LiveIndex | None = None
        self._joined: tuple[Index, Index, Index] | None = None

    @property
    def is_asked(self) -> bool:
        """Whether it has a part in the answers."""
        try:
            return self._required or self.path.exists()
        except OSError:  # in a folder that this process may not enter: opening it says so
            return True

    def with_bundle(self, bundle: Bundle) -> Bundle:
        """The bundle with both indexes as its own, as they are now. Raises BundleError."""
        if not self.is_asked:
            return bundle
        with self._lock:
            self._live = self._live or LiveIndex(self.path)
            local = self._live.current()
            if self._joined is None or self._joined[0] is not bundle.index or self._joined[1] is not local:
                self._joined = bundle.index, local, join(bundle.index, local)
            return replace(bundle, index=self._joined[2])


def search_distinct(
    bundle: Bundle, question: str, collections: Iterable[str], top_k: int = 6
) -> SearchResult:
    """What the bundle finds in the collections, each text once: a file may be a page that was published."""
    # Others take the place of what is left out.
    found = bundle.search(
        question, collections=collections, top_k=2 * top_k, chunks_per_page=CHUNKS_FOR_ANSWER
    )
    return replace(found, hits=distinct(found.hits)[:top_k])


def distinct(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """The first hit of each text, in their order."""
    by_text: dict[str, Hit] = {}
    for hit in hits:
        by_text.setdefault(" ".join(hit.chunk.text.split()), hit)
    return tuple(by_text.values())


def join(first: Index, second: Index) -> Index:
    """An index of the rows of both, those of the first before those of the second.

    Of one address in both it has the second one's page, which may have been edited since. Raises BundleError
    when they hold vectors of different models.
    """
    if not len(first) or not len(second):
        return second if len(second) else first
    if first.model != second.model:
        raise BundleError(
            "the bundle and the local index were made with different embedding models: ingest again into "
            "a new file (RAG_DB_PATH), or name a bundle of the other model (RALPH_BUNDLE)"
        )
    urls = first.page_number_by_url
    first = without(first, [urls[url] for url in second.page_number_by_url if url in urls])
    if not len(first):
        return second
    n_rows, n_pages = len(first), len(first.page_vectors)
    names = sorted({*first.collections, *second.collections})
    return Index(
        vectors=np.concatenate([first.vectors, second.vectors]),
        page_vectors=np.concatenate([first.page_vectors, second.page_vectors]),
        title_vectors=np.concatenate([first.title_vectors, second.title_vectors]),
        page_numbers=np.concatenate([first.page_numbers, second.page_numbers + n_pages]),
        canonical_numbers=np.concatenate([first.canonical_numbers, second.canonical_numbers + n_pages]),
        short_text_costs=np.concatenate([first.short_text_costs, second.short_text_costs]),
        collections={
            name: np.concatenate([first.rows_in(name), second.rows_in(name) + n_rows]) for name in names
        },
        page_number_by_url={
            **first.page_number_by_url,
            **{url: number + n_pages for url, number in second.page_number_by_url.items()},
        },
        postings=joined_postings(first.postings, second.postings),
        texts=JoinedTexts(first.texts, second.texts, n_rows),
        model=first.model,
    )


def without(index: Index, page_numbers: Sequence[int]) -> Index:
    """An index of the other pages."""
    if not page_numbers:
        return index
    is_kept = np.ones(len(index.page_vectors), np.bool_)
    is_kept[np.array(page_numbers) - 1] = False
    new_numbers = np.cumsum(is_kept, dtype=np.int32)  # at the place of each old one
    keeps_row = is_kept[index.page_numbers - 1]
    new_rows = np.cumsum(keeps_row, dtype=np.int32) - 1
    rows = np.flatnonzero(keeps_row)
    pages, canonical = index.page_numbers[rows], index.canonical_numbers[rows]
    # Where the canonical page is left out, the first of those that repeat its text takes its place.
    _, firsts, groups = np.unique(canonical, return_index=True, return_inverse=True)
    canonical = np.where(is_kept[canonical - 1], canonical, pages[firsts][groups])

    def read(phrase: str) -> Posting:
        posting = index.postings[phrase]
        found = keeps_row[posting.rows]
        kept = new_rows[posting.rows[found]]
        scale = postings.idf(len(kept)) / index.postings.idf(len(posting.rows))
        return Posting(kept, (posting.bm25[found] * scale).astype(np.float32))

    postings = Postings(len(rows), read)
    return replace(
        index,
        vectors=index.vectors[rows],
        page_vectors=index.page_vectors[is_kept],
        title_vectors=index.title_vectors[is_kept],
        page_numbers=new_numbers[pages - 1],
        canonical_numbers=new_numbers[canonical - 1],
        short_text_costs=index.short_text_costs[rows],
        collections={
            name: new_rows[old[keeps_row[old]]].astype(np.intp)
            for name, old in index.collections.items()
            if keeps_row[old].any()
        },
        page_number_by_url={
            url: int(new_numbers[number - 1])
            for url, number in index.page_number_by_url.items()
            if is_kept[number - 1]
        },
        postings=postings,
        texts=SomeTexts(index.texts, rows.tolist()),
    )


class SomeTexts:
    """The texts of some rows of an index."""

    def __init__(self, texts: Texts, rows: Sequence[int]) -> None:
        self._texts, self._rows = texts, rows

    def chunks(self, rows: Sequence[int]) -> list[Chunk]:
        """The chunks of these rows, in their order."""
        return self._texts.chunks([self._rows[row] for row in rows])

    def nearest_word(self, word: str) -> str | None:
        """The word that was probably meant by a folded one that stands nowhere, or None."""
        return self._texts.nearest_word(word)


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
