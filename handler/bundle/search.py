"""A question to the chunks that answer it best, and to the verdict whether they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from handler.bundle.encoder import NORM_TOLERANCE, Vector
from handler.bundle.fusion import (
    CURRENT_PAGE_BONUS,
    LEG_DEPTH,
    MIN_VERBATIM_WORDS,
    PAIR_WEIGHT,
    SCORES,
    Floats,
    Legs,
    best_rows,
    hybrid_scores,
    keyword_scores,
    meaning_scores,
)
from handler.bundle.gate import COVERAGE_WEIGHT, Evidence, Gate, Verdict
from handler.bundle.keyword import Posting, sum_bm25
from handler.bundle.links import split_links
from handler.bundle.passage import plain_text
from handler.bundle.reader import Index
from handler.bundle.terms import (
    MAX_QUESTION_CHARS,
    asks_a_service,
    neighbours,
    points_at_site,
    query_phrases,
    running_words,
)
from handler.bundle.types import BundleError, Chunk, Mode

# Of one page, for an answer: the words that answer are often not in the chunk that stands for their page. Of
# 60 questions with known answers, six chunks have them for 33 with one a page, for 46 with three, for 48 with
# no bound, which would let one long page take all places.
CHUNKS_FOR_ANSWER = 3

# A word in more chunks than this is too common to be looked for beside another: FTS5 walks through every
# place of both. Without the bound, pairs took a third of the time of a search in 100,000 chunks.
MAX_PAIRED_ROWS = 2_000

# So many of the chunks that have all of a question's words are looked through for the question itself.
MAX_LOOKED_THROUGH = 20


class QueryEncoder(Protocol):
    """Embeds questions: the bundle's Encoder, or vectors made before."""

    def embed_query(self, text: str) -> Vector:
        """(dim,) float32, unit length."""
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found. Scores are higher for better; ranks start at 1.

    `score` is the fused one and compares hits of one search only. A rank is None when the chunk is not
    among the leg's best LEG_DEPTH. `reason` says in one line for a person why the chunk is here.
    """

    chunk: Chunk
    score: float
    cosine: float
    bm25: float
    vector_rank: int | None
    keyword_rank: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a question, best first, none when the gate refused it.

    `vector` is the question's, (dim,) float32, None when there was no need to embed it.
    """

    question: str
    hits: tuple[Hit, ...]
    gate: Verdict
    vector: Vector | None = field(default=None, repr=False, compare=False)


def search(
    index: Index,
    encoder: QueryEncoder,
    question: str,
    *,
    collections: Iterable[str] | None = None,
    top_k: int = 6,
    mode: Mode = "hybrid",
    gate: Gate | None = None,
    chunks_per_page: int | None = 1,
    page: str | None = None,
) -> SearchResult:
    """The best chunks for a question, at most so many of a page, and the gate's verdict.

    `chunks_per_page` is None for as many as there are. `collections` limits the search, None means all.
    Without a `gate` every question is accepted. `page` is the URL that the reader is on. Raises BundleError
    when the encoder's vector does not fit the index.
    """
    if not question.strip() or not len(index):
        return SearchResult(question, (), Verdict(False, "the question or the index is empty"))
    asked = index.rows_of(collections)
    if asked is not None and not asked.any():
        return SearchResult(question, (), Verdict(False, "the collections have no chunks"))
    query = _understand(index, encoder, question)
    legs = _legs(index, query, asked)
    scores = SCORES[mode](legs)
    verdict = Verdict(True, "no gate")
    if gate is not None:
        hybrid = scores if mode == "hybrid" else hybrid_scores(legs)
        verdict = gate.judge(_evidence(index, query, legs, hybrid), query.vector)
        if not verdict.accepted:
            return SearchResult(question, (), verdict, query.vector)
    page_number = index.page_number(page) if page and mode == "hybrid" else None
    if page_number is not None:
        scores[index.page_numbers == page_number] += CURRENT_PAGE_BONUS
    found = _best_by_page(index, scores, top_k, chunks_per_page)
    if gate is not None:
        kept = [row for row in found if gate.keeps(float(legs.cosine[row]), float(legs.bm25[row]))]
        found = {row: found[row] for row in kept}
    return SearchResult(question, tuple(_hits(index, found, legs)), verdict, query.vector)


def find_evidence(index: Index, encoder: QueryEncoder, question: str) -> tuple[Evidence, Vector]:
    """What the gate is shown when the question is asked of the whole index, and the question's vector."""
    query = _understand(index, encoder, question)
    legs = _legs(index, query, None)
    return _evidence(index, query, legs, hybrid_scores(legs)), query.vector


@dataclass(frozen=True, slots=True)
class _Query:
    """A question as an index understands it: its vector, its terms, and a posting for each of them."""

    text: str
    vector: Vector
    phrases: tuple[str, ...]
    postings: list[Posting]


def _understand(index: Index, encoder: QueryEncoder, question: str) -> _Query:
    """The question as a vector that fits the index, and as postings of its terms."""
    vector = encoder.embed_query(question)
    dim = index.vectors.shape[1]
    if vector.shape != (dim,):
        raise BundleError(
            f"the question's vector has the shape {vector.shape}, the bundle's {dim} dimensions"
        )
    norm = float(np.linalg.norm(vector))
    if not abs(norm - 1) <= NORM_TOLERANCE:
        raise BundleError(f"the question's vector has the length {norm:.3f}, not 1")
    phrases = query_phrases(question)
    return _Query(question, vector.astype(np.float32, copy=False), phrases, index.postings_of(phrases))


def _legs(index: Index, query: _Query, asked: NDArray[np.bool_] | None) -> Legs:
    """Both legs. A chunk that is not asked is ruled out here, so that no later step can bring it back."""
    cosine = index.vectors @ query.vector
    pages, titles = index.page_vectors @ query.vector, index.title_vectors @ query.vector
    meaning = meaning_scores(cosine, pages, titles, index.page_numbers) - index.short_text_costs
    bm25 = sum_bm25(query.postings, len(index))
    pairs = sum_bm25([index.postings[pair] for pair in _pairs(query)], len(index))
    words = bm25 + PAIR_WEIGHT * pairs
    if asked is not None:
        cosine, meaning = (np.where(asked, leg, np.float32(-np.inf)) for leg in (cosine, meaning))
        bm25, words = (np.where(asked, leg, np.float32(0)) for leg in (bm25, words))
    return Legs(cosine, meaning, bm25, words, _verbatim(index, query, bm25))


def _pairs(query: _Query) -> tuple[str, ...]:
    """The pairs of the question's words that are looked for side by side."""
    return neighbours(
        [
            phrase if len(posting.rows) <= MAX_PAIRED_ROWS else ""
            for phrase, posting in zip(query.phrases, query.postings, strict=True)
        ]
    )


def _verbatim(index: Index, query: _Query, bm25: Floats) -> Floats:
    """(n,) 1 for chunks that have the question's words in one piece, and not as the text of a link elsewhere.

    `bm25` (n,) is 0 for chunks that are not asked.
    """
    scores = np.zeros(len(index), dtype=np.float32)
    asked = running_words(plain_text(query.text[:MAX_QUESTION_CHARS]))
    if not query.postings or len(asked.split()) < MIN_VERBATIM_WORDS:
        return scores
    rows = query.postings[0].rows
    for posting in query.postings[1:]:
        rows = np.intersect1d(rows, posting.rows, assume_unique=True)
    rows = rows[bm25[rows] > 0]
    rows = rows[np.argsort(-bm25[rows], kind="stable")][:MAX_LOOKED_THROUGH]
    for row, chunk in zip(rows.tolist(), index.chunks(rows.tolist()), strict=True):
        scores[row] = asked in running_words(plain_text(chunk.text)) and not _is_link_only(asked, chunk)
    return scores


def _is_link_only(words: str, chunk: Chunk) -> bool:
    """Whether words that a chunk has are the text of a link to another page, and stand nowhere beside it."""
    own, links = split_links(chunk.text, chunk.url)
    if words in running_words(plain_text(own)):
        return False
    return any(words in running_words(plain_text(link)) for link in links.split("\n"))


def _best_by_page(index: Index, scores: Floats, count: int, chunks_per_page: int | None) -> dict[int, float]:
    """The `count` best rows with their scores, best first. Pages with one text count as one page."""
    n_looked_at = 8 * count
    while True:
        found: dict[int, float] = {}
        n_found = Counter[int]()
        rows = best_rows(scores, n_looked_at)
        for row in rows.tolist():
            # A text keeps the score that ranked it, whichever of its pages is shown.
            shown, page = _canonical(row, index, scores), int(index.canonical_numbers[row])
            if shown in found or n_found[page] == chunks_per_page:
                continue
            found[shown] = float(scores[row])
            n_found[page] += 1
            if len(found) == count:
                return found
        if len(rows) < n_looked_at:
            return found
        n_looked_at *= 4


def _canonical(row: int, index: Index, scores: Floats) -> int:
    """The row of the same text on the canonical page, unless that page is not asked."""
    page, canonical = index.page_numbers[row], index.canonical_numbers[row]
    if page == canonical:
        return row
    first, canonical_first = np.searchsorted(index.page_numbers, [page, canonical])
    twin = int(row - first + canonical_first)
    return twin if scores[twin] > -np.inf else row


def _evidence(index: Index, query: _Query, legs: Legs, hybrid: Floats) -> Evidence:
    idfs = [index.postings.idf(len(posting.rows)) for posting in query.postings]
    covered = np.zeros(len(index), dtype=np.float32)
    for posting, idf in zip(query.postings, idfs, strict=True):
        covered[posting.rows] += idf
    # A chunk that is not asked speaks for nothing.
    covered[legs.cosine == -np.inf] = 0
    all_idf = max(sum(idfs), float(np.finfo(np.float32).tiny))
    spokesman = int((legs.cosine + COVERAGE_WEIGHT / all_idf * covered).argmax())
    first_page = index.page_numbers[int(hybrid.argmax())]
    return Evidence(
        cosine=float(legs.cosine[spokesman]),
        coverage=float(covered[spokesman]) / all_idf,
        covered_idf=float(covered[spokesman]),
        best_coverage=float(covered.max()) / all_idf,
        page_cosine=float(index.page_vectors[first_page - 1] @ query.vector),
        legs_agree=bool(index.page_numbers[legs.cosine.argmax()] == index.page_numbers[legs.bm25.argmax()]),
        points_at_site=points_at_site(query.text),
        asks_a_service=asks_a_service(query.text),
        best_cosine=float(legs.cosine.max()),
        keyword_hit=bool(covered.any()),
    )


def _hits(index: Index, scores: Mapping[int, float], legs: Legs) -> list[Hit]:
    """A hit for each row that has a score, in their order."""
    vector_ranks = _ranks(legs.cosine)
    keyword_ranks = _ranks(keyword_scores(legs))
    hits = []
    for (row, score), chunk in zip(scores.items(), index.chunks([*scores]), strict=True):
        cosine, bm25 = float(legs.cosine[row]), float(legs.bm25[row])
        vector_rank, keyword_rank = vector_ranks.get(row), keyword_ranks.get(row)
        reason = f"{_place('meaning', vector_rank)}, {_place('words', keyword_rank if bm25 else None)}"
        hits.append(Hit(chunk, score, cosine, bm25, vector_rank, keyword_rank, reason))
    return hits


def _ranks(leg: Floats) -> dict[int, int]:
    return {row: rank for rank, row in enumerate(best_rows(leg, LEG_DEPTH).tolist(), start=1)}


def _place(leg: str, rank: int | None) -> str:
    return f"rank {rank} by {leg}" if rank else f"not among the best {LEG_DEPTH} by {leg}"
