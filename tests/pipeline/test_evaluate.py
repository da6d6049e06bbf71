from __future__ import annotations

from pathlib import Path

from pipeline.evaluate import Evaluation, format_evaluation


def test_without_questions_the_files_to_write_them_into_are_named() -> None:
    nothing = Evaluation(n_answerable=0, n_refusals=0, modes={}, kept=None, refused=None)
    files = [Path("sites", name, "questions.jsonl") for name in ("a", "b")]
    assert format_evaluation(nothing, files) == (
        "no questions to measure with; write some into sites/a/questions.jsonl or sites/b/questions.jsonl"
    )
