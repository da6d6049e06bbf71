from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from handler.bundle.counted import counted

ROOT = Path(__file__).resolve().parents[3]
NOUNS = "pages|chunks|lists|warnings|open reminders"


@pytest.mark.parametrize(
    ("n", "said"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (12345, "12,345 pages")]
)
def test_one_is_one_and_all_else_are_many(n: int, said: str) -> None:
    assert counted(n, "page") == said


def test_a_plural_that_is_no_s_is_named() -> None:
    assert [counted(n, "query", "queries") for n in (1, 2)] == ["1 query", "2 queries"]


def test_nothing_else_puts_a_number_in_front_of_a_plural() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("pipeline", "handler")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.JoinedStr)
        for before, text in zip(node.values, node.values[1:], strict=False)
        if isinstance(before, ast.FormattedValue)
        and isinstance(text, ast.Constant)
        and re.match(rf" ({NOUNS})\b", str(text.value))
    ]
    assert wrong == []
