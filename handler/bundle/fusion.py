"""One score for each chunk out of what the vector leg and the keyword leg say of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from handler.bundle.types import Mode

Floats = NDArray[np.float32]

# Cormack, Clarke and Buettcher 2009; the constant of their paper.
RRF_K = 60
# How many of its best chunks a leg brings into the reciprocal ranks, and gets a rank shown for.
LEG_DEPTH = 100

# Tuned together, with both models, on SQuAD 2.0 dev, the questions, link texts and descriptions of one site,
# and the link texts and descriptions of two others, so that the worst of them gains; SciFact was looked at,
# and hardly moves (`python -m benchmarks.retrieval` prints the outcome).
# How many standard deviations of the cosine the best keyword match is worth.
KEYWORD_WEIGHT = 3.5
# A best BM25 below this is no strong match, and is worth less in proportion. Without the floor one common
# word counts as much as a whole name, and hit@1 of the site's questions falls from .82 to .70.
STRONG_BM25 = 18.75
# What two words of the question count that stand side by side in a chunk too, beside what each counts.
PAIR_WEIGHT = 0.3
# How much of the vector leg's say is the page's: its mean vector's, or its title's where that fits better.
# Without the titles link texts lose .02 to .05 of nDCG@10. In a plain sum with the mean they would gain as
# much, but most questions are not about what a title says, and hit@1 of those falls by .05.
PAGE_SHARE = 0.4
# Who pastes a sentence looks for its page: a chunk that has all of a question, word for word, gains so many
# standard deviations, if the question is of so many words. Worth .01 of nDCG@10 on descriptions, which
# often are a sentence of their page; questions hardly ever stand anywhere.
MIN_VERBATIM_WORDS = 6
VERBATIM_BONUS = 3.0
# A chunk of fewer bytes loses so many standard deviations each time its length is divided by e: a heading
# with a line below it is near to much and answers little. Worth .01 of nDCG@10 on the site's questions. The
# only chunk of a page loses nothing: short pages are written so, and pages of reference by the hundred.
SHORT_TEXT_BYTES = 300
SHORT_TEXT_COST = 0.5
# Lifts the page the reader is on over others that fit about as well, not over those that clearly fit better.
CURRENT_PAGE_BONUS = 0.5

# In a handful of chunks the spread of the cosines says little; it is drawn towards what is usual.
_USUAL_SPREAD = 0.06
_USUAL_WEIGHT = 30


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a question's cosines lie: models use a narrow band of them, another one for each question."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, cosines: Floats) -> Self:
        """The scale of some cosines."""
        prior = _USUAL_WEIGHT * _USUAL_SPREAD**2
        variance = (float(cosines.var()) * len(cosines) + prior) / (len(cosines) + _USUAL_WEIGHT)
        return cls(float(cosines.mean()), math.sqrt(variance))

    def z_scores(self, cosines: Floats) -> Floats:
        """(n,) how many standard deviations each cosine is above the mean."""
        return np.asarray((cosines - self.mean) / self.deviation, np.float32)


def meaning_scores(
    cosines: Floats, page_cosines: Floats, title_cosines: Floats, page_numbers: NDArray[np.int32]
) -> Floats:
    """(n,) how near each chunk is to the question, in standard deviations of the chunks' cosines.

    `cosines` is (n,), those of the pages' mean vectors and of their titles are (pages,), and `page_numbers`
    (n,) counts each chunk's page from 1. A mean is compared with other means, a title with the chunks: it is
    a text among texts.
    """
    chunks = Scale.of(cosines)
    pages = np.maximum(Scale.of(page_cosines).z_scores(page_cosines), chunks.z_scores(title_cosines))
    meaning = (1 - PAGE_SHARE) * chunks.z_scores(cosines) + PAGE_SHARE * pages[page_numbers - 1]
    return np.asarray(meaning, np.float32)


@dataclass(frozen=True, slots=True)
class Legs:
    """What both legs say of each of n chunks, all (n,), higher is better.

    `cosine` is in [-1, 1], `bm25` from 0. `meaning` is how near chunk and page are, less what a short chunk
    loses, and `words` the BM25 with something for words that stand side by side. `verbatim` is 1 where the
    chunk has all of the question in one piece. A chunk outside the collections that were asked has -inf
    and 0.
    """

    cosine: Floats
    meaning: Floats
    bm25: Floats
    words: Floats
    verbatim: Floats


def hybrid_scores(legs: Legs) -> Floats:
    """(n,) the meaning, the words against the best match and the whole in one piece, in standard deviations.

    A sum of scores on one scale beats a sum of ranks (Bruch et al. 2022). The cosine is scaled by the
    question's own spread because models use a narrow band of it; the words by their maximum because BM25
    grows with the length of the question.
    """
    best_match = max(float(legs.words.max()), STRONG_BM25)
    scores = legs.meaning + KEYWORD_WEIGHT / best_match * legs.words + VERBATIM_BONUS * legs.verbatim
    return np.asarray(scores, np.float32)


def short_text_costs(sizes: NDArray[np.int32], page_numbers: NDArray[np.int32]) -> Floats:
    """(n,) what chunks of these sizes in bytes lose for being short, in standard deviations of the cosine.

    `page_numbers` (n,) counts each chunk's page from 1.
    """
    costs = SHORT_TEXT_COST * np.log(SHORT_TEXT_BYTES / np.maximum(sizes, 1))
    costs[np.bincount(page_numbers)[page_numbers] == 1] = 0
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
