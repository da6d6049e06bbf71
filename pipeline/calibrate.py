"""The calibration stage: the gate that a bundle gets, fitted to its own questions and measured on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from handler.bundle.counted import counted
from handler.bundle.encoder import Encoder
from handler.bundle.gate import N_EVIDENCE, Gate
from handler.bundle.reader import Index
from handler.bundle.search import QueryEncoder, find_evidence
from pipeline.questions import Question

OFF_TOPIC = Path(__file__).with_name("offtopic.jsonl")

# The share of answerable questions that pass.
KEPT = 0.95
# Fewer answerable questions fit a line of their own accord.
MIN_ANSWERABLE = 20
N_FOLDS = 5
# How much the questions' vectors count beside the evidence, and how strongly all weights are drawn to 0:
# the best of seven pairs on halves of a third of SQuAD 2.0 dev and of one site's 60 questions. Without the
# vectors twice as many off-topic questions pass on the site.
VECTOR_SCALE = 2.0
SHRINKAGE = 0.02

# Evidence alone, for bundles that nobody wrote questions for: fitted to a third of SQuAD 2.0 dev and to one
# site's 60 questions, against questions of the world at large. Fitted so to random halves, of the other
# halves bge-small lets 96% and 95% of the answerable pass and 7% and 18% of the off-topic ones, MiniLM 97%
# and 93%, 11% and 16%.
DEFAULT_GATES = {
    "bge-small-en-v1.5": Gate(4.25, (3.8199, 0.2934, 0.0231, 0.6819, 2.1755, 0.0, 0.8806, 0.0)),
    "all-MiniLM-L6-v2": Gate(1.75, (2.0976, 0.4671, 0.0228, 0.529, 1.1823, 0.0, 0.8302, 0.0)),
}
_ANY_MODEL = "bge-small-en-v1.5"


@dataclass(frozen=True, slots=True)
class Sample:
    """What the gate is shown of n questions: `evidence` (n, N_EVIDENCE) and `vectors` (n, dim)."""

    evidence: NDArray[np.float64]
    vectors: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.evidence)

    def where(self, mask: NDArray[np.bool_]) -> Sample:
        """The questions that a mask (n,) picks."""
        return Sample(self.evidence[mask], self.vectors[mask])

    def and_also(self, others: Sample) -> Sample:
        """These questions and the others."""
        return Sample(
            np.concatenate([self.evidence, others.evidence]), np.concatenate([self.vectors, others.vectors])
        )


def calibrate(index: Index, encoder: Encoder, questions: Sequence[Question]) -> Gate:
    """The gate that lets KEPT of the answerable questions pass, and of the others as few as may be.

    The others are the built-in off-topic ones and those that the site itself wants refused. With fewer
    than MIN_ANSWERABLE answerable questions it is the model's default, and says that it is not calibrated.
    """
    answerable = [question.text for question in questions if question.expected]
    default = DEFAULT_GATES.get(encoder.spec.name, DEFAULT_GATES[_ANY_MODEL])
    if len(answerable) < MIN_ANSWERABLE:
        return default
    good = sample(index, encoder, answerable)
    own_refusals = sample(index, encoder, [question.text for question in questions if not question.expected])
    built_in = without_answered(sample(index, encoder, read_off_topic()), good, default)
    return fit_gate(good, own_refusals.and_also(built_in))


def format_calibration(gate: Gate, questions: Sequence[Question]) -> str:
    """One line for a person: what the gate was measured to let pass, or what it would take to fit it."""
    n_answerable = sum(bool(question.expected) for question in questions)
    if gate.false_refusals is None or gate.false_answers is None:
        return (
            f"the gate is the model's default: it has {counted(n_answerable, 'question')} to be fitted to, "
            f"and takes {MIN_ANSWERABLE}; write what your readers ask into a questions.jsonl beside a "
            "site.toml"
        )
    return (
        f"the gate lets {1 - gate.false_refusals:.0%} of {counted(n_answerable, 'question')} pass, and "
        f"{gate.false_answers:.1%} of those that the sites do not answer"
    )


def sample(index: Index, encoder: QueryEncoder, texts: Sequence[str]) -> Sample:
    """What the gate is shown of some questions asked of the whole index."""
    found = [find_evidence(index, encoder, text) for text in texts]
    return Sample(
        np.array([evidence.values for evidence, _ in found]).reshape(len(texts), N_EVIDENCE),
        np.array([vector for _, vector in found], dtype=np.float64).reshape(
            len(texts), index.vectors.shape[1]
        ),
    )


def without_answered(off_topic: Sample, answerable: Sample, default: Gate) -> Sample:
    """The built-in questions that the site does not seem to answer: a cookbook's readers do ask for soup."""
    weights = np.array(default.weights)
    usual = np.median(answerable.evidence @ weights)
    return off_topic.where(off_topic.evidence @ weights < usual)


def fit_gate(good: Sample, bad: Sample) -> Gate:
    """The gate between answerable questions and others, with its rates on questions left out of the fit."""
    folds = [np.arange(len(good)) % N_FOLDS, np.arange(len(bad)) % N_FOLDS]
    held_out_good, held_out_bad = np.zeros(len(good)), np.zeros(len(bad))
    for fold in range(N_FOLDS):
        in_good, in_bad = folds[0] != fold, folds[1] != fold
        line = fit_line(good.where(in_good), bad.where(in_bad))
        held_out_good[~in_good] = line.scores(good.where(~in_good))
        held_out_bad[~in_bad] = line.scores(bad.where(~in_bad))
    cut = float(np.quantile(held_out_good, 1 - KEPT))
    line = fit_line(good, bad)
    return Gate(
        # Rounded: a manifest for people, and the last digits are the processor's.
        threshold=round(cut - line.intercept, 6),
        weights=tuple(round(float(weight), 6) for weight in line.weights),
        direction=tuple(round(float(weight), 6) for weight in line.direction),
        calibrated=True,
        false_refusals=round(float((held_out_good < cut).mean()), 4),
        false_answers=round(float((held_out_bad >= cut).mean()), 4),
    )


@dataclass(frozen=True, slots=True)
class Line:
    """A linear score: above 0 is more like an answerable question, below 0 more like another."""

    weights: NDArray[np.float64]
    direction: NDArray[np.float64]
    intercept: float

    def scores(self, questions: Sample) -> NDArray[np.float64]:
        """(n,) the score of each question."""
        return questions.evidence @ self.weights + questions.vectors @ self.direction + self.intercept


def fit_line(good: Sample, bad: Sample) -> Line:
    """The ridge regression of +1 and -1 on evidence and vectors, both kinds weighing the same together."""
    evidence = np.concatenate([good.evidence, bad.evidence])
    vectors = np.concatenate([good.vectors, bad.vectors])
    target = np.concatenate([np.ones(len(good)), -np.ones(len(bad))])
    share = np.where(target > 0, 0.5 / len(good), 0.5 / len(bad))
    scale = np.concatenate([1 / (evidence.std(0) + 1e-9), np.full(vectors.shape[1], VECTOR_SCALE)])
    features = np.concatenate([evidence, vectors], axis=1) * scale
    mean = share @ features
    centred = features - mean
    gram = (centred.T * share) @ centred + SHRINKAGE * np.eye(len(mean))
    solution = np.linalg.solve(gram, (centred.T * share) @ target)
    weights = solution * scale
    n_evidence = evidence.shape[1]
    return Line(weights[:n_evidence], weights[n_evidence:], -float(solution @ mean))


def read_off_topic(path: Path = OFF_TOPIC) -> list[str]:
    """Questions that hardly any site answers."""
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
