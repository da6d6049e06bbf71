from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from handler.bundle.gate import Evidence, Gate
from handler.bundle.types import BundleError

FAR = Evidence(
    cosine=0.4,
    coverage=0.5,
    covered_idf=3.0,
    best_coverage=0.5,
    page_cosine=0.4,
    legs_agree=False,
    points_at_site=False,
    asks_a_service=False,
    best_cosine=0.5,
    keyword_hit=True,
)
QUERY = np.array([1.0, 0.0], dtype=np.float32)
GATE = Gate(threshold=0.6, weights=(1.0, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))


def test_a_question_passes_from_the_threshold_on() -> None:
    assert GATE.score(FAR, QUERY) == pytest.approx(0.6)
    assert GATE.judge(replace(FAR, cosine=0.41), QUERY).accepted
    assert not GATE.judge(replace(FAR, cosine=0.39), QUERY).accepted


def test_the_questions_vector_counts_where_the_gate_has_a_direction() -> None:
    assert replace(GATE, direction=(0.5, 0.0)).score(FAR, QUERY) == pytest.approx(1.1)


def test_the_rule_of_distance_lets_a_single_word_pass() -> None:
    by_distance = replace(GATE, max_distance=0.9)
    assert by_distance.judge(FAR, QUERY).accepted
    assert not by_distance.judge(replace(FAR, keyword_hit=False), QUERY).accepted
    assert by_distance.judge(replace(FAR, keyword_hit=False, best_cosine=0.6), QUERY).accepted


def test_the_rule_of_distance_keeps_hits_one_by_one_and_the_gate_all_of_them() -> None:
    by_distance = replace(GATE, max_distance=0.9)
    assert by_distance.keeps(cosine=0.6, bm25=0)
    assert by_distance.keeps(cosine=0.1, bm25=2.5)
    assert not by_distance.keeps(cosine=0.59, bm25=0)
    assert GATE.keeps(cosine=0.1, bm25=0)


def test_a_gate_survives_the_manifest() -> None:
    gate = replace(GATE, direction=(0.25, -0.5), calibrated=True, false_answers=0.03)
    assert Gate.from_dict(json.loads(json.dumps(gate.to_dict()))) == gate


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"threshold": 1.0},
        {**GATE.to_dict(), "colour": "red"},
        {**GATE.to_dict(), "weights": {"cosine": 1.0}},
    ],
)
def test_what_is_no_gate_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(BundleError, match="gate"):
        Gate.from_dict(table)
