"""The calibration stage: the gate that a bundle gets, measured on its own questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from handler.bundle.gate import DEFAULT_GATE, Gate
from handler.bundle.reader import Index
from handler.bundle.search import QueryEncoder, find_evidence
from pipeline.questions import Question

OFF_TOPIC = Path(__file__).with_name("offtopic.jsonl")
# The share of answerable questions that pass.
KEPT = 0.95


def calibrate(index: Index, encoder: QueryEncoder, questions: Sequence[Question]) -> Gate:
    """The gate that lets KEPT of the answerable questions pass; the default one when there are none."""
    answerable = [question.text for question in questions if question.expected]
    if not answerable:
        return DEFAULT_GATE
    scores = [DEFAULT_GATE.score(find_evidence(index, encoder, text)) for text in answerable]
    return Gate(
        threshold=float(np.quantile(scores, 1 - KEPT)),
        coverage_weight=DEFAULT_GATE.coverage_weight,
        calibrated=True,
    )


def read_off_topic(path: Path = OFF_TOPIC) -> list[str]:
    """Questions that hardly any site answers."""
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
