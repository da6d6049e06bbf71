"""One score for each chunk out of what the vector leg and the keyword leg say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from handler.bundle.types import Mode

Floats = NDArray[np.float32]

# Cormack, Clarke and Buettcher 2009; the constant of their paper.
RRF_K = 60
# How many of its best chunks a leg brings into the reciprocal ranks, and gets a rank shown for.
LEG_DEPTH = 100
BM25_WEIGHT = 0.15


@dataclass(frozen=True, slots=True)
class Legs:
    """What both legs say of each of n chunks; higher is better.

    `cosine` is (n,) in [-1, 1], `bm25` (n,) from 0. `cosine_mean` and `cosine_std` are those of this
    question's cosines over the whole bundle, whatever collections are asked.
    """

    cosine: Floats
    bm25: Floats
    cosine_mean: float
    cosine_std: float


def hybrid_scores(legs: Legs) -> Floats:
    """(n,) the cosine as a z-score, plus the weighted BM25."""
    return (legs.cosine - legs.cosine_mean) / legs.cosine_std + BM25_WEIGHT * legs.bm25


def rrf_scores(legs: Legs) -> Floats:
    """(n,) the sum of the reciprocal ranks in both legs (Cormack et al. 2009); -inf for chunks in neither."""
    scores = np.zeros(len(legs.cosine), dtype=np.float32)
    for leg in (legs.cosine, keyword_scores(legs)):
        best = best_rows(leg, LEG_DEPTH)
        scores[best] += 1 / (RRF_K + 1 + np.arange(len(best), dtype=np.float32))
    return np.where(scores > 0, scores, -np.inf).astype(np.float32)


def keyword_scores(legs: Legs) -> Floats:
    """(n,) the BM25; -inf for chunks without any of the question's terms."""
    return np.where(legs.bm25 > 0, legs.bm25, -np.inf).astype(np.float32)


def vector_scores(legs: Legs) -> Floats:
    """(n,) the cosine."""
    return legs.cosine


SCORES: dict[Mode, Callable[[Legs], Floats]] = {
    "hybrid": hybrid_scores,
    "rrf": rrf_scores,
    "keyword": keyword_scores,
    "vector": vector_scores,
}


def best_rows(scores: Floats, count: int) -> NDArray[np.intp]:
    """The rows of the highest scores, best first, equal ones by row; -inf is never among them."""
    if count < len(scores):
        threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
        rows = np.flatnonzero(scores >= max(threshold, np.finfo(np.float32).min))
    else:
        rows = np.flatnonzero(scores > -np.inf)
    return rows[np.argsort(-scores[rows], kind="stable")][:count]
