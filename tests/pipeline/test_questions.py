from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.questions import Question, read_questions
from pipeline.site import SiteError


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_questions_come_in_the_order_of_the_file_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '\ufeff{"id": 2, "text": "How?", "expected": ["https://example.org/"], "kind": "howto"}\n\n'
        '{"id": "off", "text": "Who won?", "expected": []}\n',
    )
    questions = read_questions(path)
    assert questions == [
        Question("2", "How?", ("https://example.org/",)),
        Question("off", "Who won?", ()),
    ]
    assert [question.where for question in questions] == [f"{path}:1", f"{path}:3"]


def test_a_site_without_the_file_has_no_questions(tmp_path: Path) -> None:
    assert read_questions(tmp_path / "questions.jsonl") == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a line of JSON"),
        ("[]", "write an object"),
        ('{"text": "How?", "expected": []}', "id: None is neither"),
        ('{"id": "a", "text": " ", "expected": []}', "text: ' ' is no question"),
        ('{"id": "a", "text": "How?"}', "expected: write a list"),
        ('{"id": "a", "text": "How?", "expected": "https://example.org"}', "expected: write a list"),
    ],
)
def test_a_wrong_line_is_an_error_with_file_line_and_key(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, f'{{"id": "ok", "text": "How?", "expected": []}}\n{line}\n')
    with pytest.raises(SiteError) as error:
        read_questions(path)
    assert str(error.value).startswith(f"{path}:2: {message}")


def test_two_questions_with_one_id_are_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, '{"id": "a", "text": "How?", "expected": []}\n' * 2)
    with pytest.raises(SiteError, match="id: 'a' names two questions"):
        read_questions(path)
