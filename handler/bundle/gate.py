"""The relevance gate: whether what was found answers the question at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from handler.bundle.types import BundleError


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a search found out about the best it found.

    `cosine` is the highest. `coverage` in [0, 1] is the share of the question's terms, each weighted by how
    rare it is, that one chunk covers. `keyword_hit` says whether any term stands anywhere.
    """

    cosine: float
    coverage: float
    keyword_hit: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a question is answered, and why, in one line for a person."""

    accepted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Gate:
    """Accepts a question when cosine + coverage_weight * coverage reaches the threshold.

    With `max_distance` it is another rule: the best chunk's L2 distance is at most that, or a word of the
    question stands in the bundle. `false_refusals` and `false_answers` are the shares measured at
    calibration, None where nothing was measured.
    """

    threshold: float
    coverage_weight: float
    calibrated: bool = False
    false_refusals: float | None = None
    false_answers: float | None = None
    max_distance: float | None = None

    def judge(self, evidence: Evidence) -> Verdict:
        """The verdict on what a search found."""
        if self.max_distance is not None:
            return self._judge_distance(evidence, self.max_distance)
        score = self.score(evidence)
        accepted = score >= self.threshold
        side = "at least" if accepted else "below"
        return Verdict(accepted, f"{score:.3f}, {side} {self.threshold:.3f}")

    def score(self, evidence: Evidence) -> float:
        """What is compared with the threshold."""
        return evidence.cosine + self.coverage_weight * evidence.coverage

    def _judge_distance(self, evidence: Evidence, max_distance: float) -> Verdict:
        distance = max(0.0, 2 - 2 * evidence.cosine) ** 0.5
        if distance <= max_distance:
            return Verdict(True, f"L2 distance {distance:.3f}, at most {max_distance}")
        if evidence.keyword_hit:
            return Verdict(True, f"L2 distance {distance:.3f}, over {max_distance}, but a word is found")
        return Verdict(False, f"L2 distance {distance:.3f}, over {max_distance}, and no word is found")

    def to_dict(self) -> dict[str, Any]:
        """The gate as the manifest stores it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """The gate that `to_dict` wrote. Raises BundleError when it is not one."""
        try:
            return cls(**table)
        except TypeError as error:
            raise BundleError(f"gate: {error}") from None


DEFAULT_GATE = Gate(threshold=0.78, coverage_weight=0.4)
