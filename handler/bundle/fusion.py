"""One score for each chunk out of what the vector leg and the keyword leg say of it."""

from __future__ import annotations

import math
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

# Tuned together, with both models, on a third of SQuAD 2.0 dev and the questions, link texts and descriptions
# of one site, so that the worst of them gains; SciFact was looked at, and hardly moves
# (`python -m benchmarks.retrieval` prints the outcome).
# How many standard deviations of the cosine the best keyword match is worth.
KEYWORD_WEIGHT = 3.75
# A best BM25 below this is no strong match, and is worth less in proportion. Without the floor one common
# word counts as much as a whole name, and hit@1 of the site's questions falls from .82 to .77.
STRONG_BM25 = 18.75
# What two words of the question count that stand side by side in a chunk too, beside what each counts.
PAIR_WEIGHT = 0.4
# How much of the vector leg's say is the page's mean vector's. 0 loses .015 of nDCG@10 on link texts.
PAGE_SHARE = 0.3
# A chunk of fewer bytes loses so many standard deviations each time its length is divided by e: a heading
# with a line below it is near to much and answers little. Worth .01 of nDCG@10 on link texts.
SHORT_TEXT_BYTES = 300
SHORT_TEXT_COST = 0.5
# Lifts the page the reader is on over others that fit about as well, not over those that clearly fit better.
CURRENT_PAGE_BONUS = 0.5

# In a handful of chunks the spread of the cosines says little; it is drawn towards what is usual.
_USUAL_SPREAD = 0.06
_USUAL_WEIGHT = 30


def z_scores(cosines: Floats) -> Floats:
    """(n,) how many standard deviations each of a question's cosines is above their mean."""
    prior = _USUAL_WEIGHT * _USUAL_SPREAD**2
    variance = (float(cosines.var()) * len(cosines) + prior) / (len(cosines) + _USUAL_WEIGHT)
    return np.asarray((cosines - cosines.mean()) / math.sqrt(variance), np.float32)


@dataclass(frozen=True, slots=True)
class Legs:
    """What both legs say of each of n chunks, all (n,), higher is better.

    `cosine` is in [-1, 1], `bm25` from 0. `meaning` is the z-score of the cosine, some of it the page's, less
    what a short chunk loses, and `words` the BM25 with something for words that stand side by side. A chunk
    outside the collections that were asked has -inf and 0.
    """

    cosine: Floats
    meaning: Floats
    bm25: Floats
    words: Floats


def hybrid_scores(legs: Legs) -> Floats:
    """(n,) the meaning plus the words against the best match, in standard deviations of the cosine.

    A sum of scores on one scale beats a sum of ranks (Bruch et al. 2022). The cosine is scaled by the
    question's own spread because models use a narrow band of it; the words by their maximum because BM25
    grows with the length of the question.
    """
    best_match = max(float(legs.words.max()), STRONG_BM25)
    return legs.meaning + KEYWORD_WEIGHT / best_match * legs.words


def short_text_costs(sizes: NDArray[np.int32]) -> Floats:
    """(n,) what chunks of these sizes in bytes lose for being short, in standard deviations of the cosine."""
    costs = SHORT_TEXT_COST * np.log(SHORT_TEXT_BYTES / np.maximum(sizes, 1))
    return np.maximum(costs, 0).astype(np.float32)


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
