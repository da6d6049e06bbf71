"""The relevance gate: whether what was found answers the question at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from handler.bundle.typed import typed
from handler.bundle.types import BundleError

# How much covering all of the question's words counts against the cosine when the chunk is chosen that
# speaks for the bundle: the best of .2 to .5 on a third of SQuAD 2.0 dev.
COVERAGE_WEIGHT = 0.4

# What a gate weighs of a question's evidence, in this order.
WEIGHED = (
    "cosine",
    "coverage",
    "covered_idf",
    "best_coverage",
    "page_cosine",
    "legs_agree",
    "points_at_site",
    "asks_a_service",
)
N_EVIDENCE = len(WEIGHED)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a search found out about the chunk that speaks best for an answer.

    `cosine` is its, `covered_idf` the sum of the rarities (idf) of the question's terms that it has, and
    `coverage` in [0, 1] their share of the sum of all. `best_coverage` is the highest of any chunk, and
    `page_cosine` that of the mean of the page that the search puts first. `legs_agree` says whether both legs
    have their best chunk on one page, `points_at_site` whether the question speaks of the site or its author,
    and `asks_a_service` whether something is to be done. The rule of distance asks for the highest cosine of
    any chunk, `best_cosine`, and whether any term stands anywhere.
    """

    cosine: float
    coverage: float
    covered_idf: float
    best_coverage: float
    page_cosine: float
    legs_agree: bool
    points_at_site: bool
    asks_a_service: bool
    best_cosine: float
    keyword_hit: bool

    @property
    def values(self) -> NDArray[np.float64]:
        """(N_EVIDENCE,) what a gate's weights are for."""
        return np.array([float(getattr(self, name)) for name in WEIGHED])


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a question is answered, and why, in one line for a person."""

    accepted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Gate:
    """A line between questions that the bundle answers and others.

    A question's score is the sum of its evidence, weighted by `weights` in the order of Evidence.values, and
    of its vector, weighted by `direction`, which is empty where nothing told what the site's readers ask. It
    is accepted from `threshold` on. With `max_distance` it is another rule: the L2 distance of the best
    chunk is at most that, or a word of the question stands in the bundle.

    `false_refusals` and `false_answers` are the shares measured at calibration, on questions that the
    weights were not fitted to; None where nothing was measured.
    """

    threshold: float
    weights: tuple[float, ...]
    direction: tuple[float, ...] = ()
    calibrated: bool = False
    false_refusals: float | None = None
    false_answers: float | None = None
    max_distance: float | None = None

    def score(self, evidence: Evidence, query: NDArray[np.float32]) -> float:
        """What is compared with the threshold. `query` is the question's vector, (dim,)."""
        score = float(np.dot(self.weights, evidence.values))
        return score + float(np.dot(self.direction, query)) if self.direction else score

    def judge(self, evidence: Evidence, query: NDArray[np.float32]) -> Verdict:
        """The verdict on what a search found."""
        if self.max_distance is not None:
            return _judge_distance(evidence, self.max_distance)
        score = self.score(evidence, query)
        accepted = score >= self.threshold
        side = "at least" if accepted else "below"
        return Verdict(
            accepted,
            f"score {score:.3f}, {side} {self.threshold:.3f}: the best chunk has a cosine of "
            f"{evidence.cosine:.3f} and {evidence.coverage:.0%} of the question's words, by rarity",
        )

    def keeps(self, cosine: float, bm25: float) -> bool:
        """Whether a hit of an accepted question is shown: all are, but by the rule of distance."""
        return self.max_distance is None or bm25 > 0 or _distance(cosine) <= self.max_distance

    def to_dict(self) -> dict[str, Any]:
        """The gate as the manifest stores it: with the name of what each weight is for."""
        return asdict(self) | {"weights": dict(zip(WEIGHED, self.weights, strict=True))}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """The gate that `to_dict` wrote. Raises BundleError when it is not one."""
        weights = table.get("weights")
        if not isinstance(weights, Mapping) or set(weights) != set(WEIGHED):
            raise BundleError(f"gate: weights: not a table of {', '.join(WEIGHED)}; build the bundle again")
        gate: Self = typed(cls, {**table, "weights": [weights[name] for name in WEIGHED]}, "gate")
        return gate


def _judge_distance(evidence: Evidence, max_distance: float) -> Verdict:
    distance = _distance(evidence.best_cosine)
    if distance <= max_distance:
        return Verdict(True, f"L2 distance {distance:.3f}, at most {max_distance}")
    if evidence.keyword_hit:
        return Verdict(True, f"L2 distance {distance:.3f}, over {max_distance}, but a word is found")
    return Verdict(False, f"L2 distance {distance:.3f}, over {max_distance}, and no word is found")


def _distance(cosine: float) -> float:
    """The L2 distance of two unit vectors with this cosine."""
    return math.sqrt(max(0.0, 2 - 2 * cosine))
