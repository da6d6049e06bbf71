"""A question to the chunks that answer it best, and to the verdict whether they do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from handler.bundle.encoder import NORM_TOLERANCE, Vector
from handler.bundle.fusion import LEG_DEPTH, SCORES, Floats, Legs, best_rows, keyword_scores
from handler.bundle.gate import Evidence, Gate, Verdict
from handler.bundle.keyword import Posting, sum_bm25
from handler.bundle.reader import Index
from handler.bundle.terms import query_phrases
from handler.bundle.types import BundleError, Chunk, Mode

# One chunk alone, or the same chunk many times, has no spread of cosines.
_SMALLEST_STD = 1e-3


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
    """The hits of a question, best first, none when the gate refused it."""

    question: str
    hits: tuple[Hit, ...]
    gate: Verdict


def search(
    index: Index,
    encoder: QueryEncoder,
    question: str,
    *,
    collections: Iterable[str] | None = None,
    top_k: int = 6,
    mode: Mode = "hybrid",
    gate: Gate | None = None,
    all_chunks: bool = False,
    page: str | None = None,
) -> SearchResult:
    """The best chunks for a question, one a page unless `all_chunks`, and the gate's verdict.

    `collections` limits the search, None means all. Without a `gate` every question is accepted. `page` is
    the URL that the reader is on. Raises BundleError when the encoder's vector does not fit the index.
    """
    if not question.strip() or not len(index):
        return SearchResult(question, (), Verdict(False, "the question or the index is empty"))
    asked = index.rows_of(collections)
    postings = [index.postings[phrase] for phrase in query_phrases(question)]
    legs = _legs(index, _checked(encoder.embed_query(question), index), postings, asked)
    scores = SCORES[mode](legs)
    rows = (
        best_rows(scores, top_k).tolist() if all_chunks else _best_by_page(scores, index.canonical_ids, top_k)
    )
    verdict = gate.judge(_evidence(index, legs, postings)) if gate else Verdict(True, "no gate")
    return SearchResult(
        question, tuple(_hits(index, rows, scores, legs)) if verdict.accepted else (), verdict
    )


def find_evidence(index: Index, encoder: QueryEncoder, question: str) -> Evidence:
    """What the gate is shown when the question is asked of the whole index."""
    postings = [index.postings[phrase] for phrase in query_phrases(question)]
    legs = _legs(index, _checked(encoder.embed_query(question), index), postings, None)
    return _evidence(index, legs, postings)


def _checked(query: Vector, index: Index) -> Vector:
    """The query's vector, when it can be compared with the index's: a wrong one would only find nonsense."""
    dim = index.vectors.shape[1]
    if query.shape != (dim,):
        raise BundleError(
            f"the question's vector has shape {query.shape}, the bundle's have {dim} dimensions"
        )
    norm = float(np.linalg.norm(query))
    if not abs(norm - 1) <= NORM_TOLERANCE:
        raise BundleError(f"the question's vector has length {norm:.3f}, not 1")
    return query.astype(np.float32, copy=False)


def _legs(index: Index, query: Vector, postings: Sequence[Posting], asked: NDArray[np.bool_] | None) -> Legs:
    """Both legs. Chunks that are not asked get -inf and 0, so that no later step can bring them back."""
    cosine = index.vectors @ query
    mean, std = float(cosine.mean()), max(float(cosine.std()), _SMALLEST_STD)
    bm25 = sum_bm25(postings, len(index))
    if asked is not None:
        cosine[~asked] = -np.inf
        bm25[~asked] = 0
    return Legs(cosine, bm25, mean, std)


def _best_by_page(scores: Floats, canonical_ids: NDArray[np.int32], count: int) -> list[int]:
    """The best row of each of the `count` best pages, best first. Pages with one text count as one page."""
    n_looked_at = 8 * count
    while True:
        best: dict[int, int] = {}
        rows = best_rows(scores, n_looked_at)
        for row in rows.tolist():
            best.setdefault(int(canonical_ids[row]), row)
        if len(best) >= count or len(rows) < n_looked_at:
            return list(best.values())[:count]
        n_looked_at *= 4


def _evidence(index: Index, legs: Legs, postings: Sequence[Posting]) -> Evidence:
    weights = [index.postings.idf(posting) for posting in postings]
    covered = np.zeros(len(index), dtype=np.float32)
    for posting, weight in zip(postings, weights, strict=True):
        covered[posting.rows] += weight
    covered[legs.cosine == -np.inf] = 0
    total = sum(weights)
    return Evidence(
        cosine=float(legs.cosine.max()),
        coverage=float(covered.max()) / total if total else 0.0,
        keyword_hit=bool(legs.bm25.any()),
    )


def _hits(index: Index, rows: Sequence[int], scores: Floats, legs: Legs) -> list[Hit]:
    vector_ranks = _ranks(legs.cosine)
    keyword_ranks = _ranks(keyword_scores(legs))
    hits = []
    for row, chunk in zip(rows, index.chunks(rows), strict=True):
        cosine, bm25 = float(legs.cosine[row]), float(legs.bm25[row])
        vector_rank, keyword_rank = vector_ranks.get(row), keyword_ranks.get(row)
        reason = f"{_place('meaning', vector_rank)}, {_place('words', keyword_rank if bm25 else None)}"
        hits.append(Hit(chunk, float(scores[row]), cosine, bm25, vector_rank, keyword_rank, reason))
    return hits


def _ranks(leg: Floats) -> dict[int, int]:
    return {row: rank for rank, row in enumerate(best_rows(leg, LEG_DEPTH).tolist(), start=1)}


def _place(leg: str, rank: int | None) -> str:
    return f"{leg} {rank}." if rank else f"not among the best {LEG_DEPTH} by {leg}"
