"""Code is told apart from prose, so that only prose is rewritten."""

from __future__ import annotations

import re

import pytest

from pipeline.export.prose import code_spans, drop_comments, rewrite


def code_of(text: str) -> list[str]:
    return [text[start:end] for start, end in code_spans(text)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n```\nx\n```\nb", ["```\nx\n```"]),
        ("~~~ sh\n```\n~~~\n", ["~~~ sh\n```\n~~~"]),
        ("````\n```\n````\n", ["````\n```\n````"]),
        ("```\nx\n`````\nb", ["```\nx\n`````"]),
        ("   ```\nx\n   ```\nb", ["```\nx\n   ```"]),
        ("```\nnever closed\n", ["```\nnever closed\n"]),
        ("> ```\n> x\n> ```\nb", ["```\n> x\n> ```"]),
        ("- ```\n  x\n  ```\n- b", ["```\n  x\n  ```"]),
        ("1. a\n\n   ```\n   x\n   ```\n", ["```\n   x\n   ```"]),
        ("- a\n\n    ```\n    x\n    ```\n", ["```\n    x\n    ```"]),
        ("- a\n\n  ```\n  x\n\nProse `y`", ["```\n  x\n\n", "`y`"]),
        ("a `b` and ``c ` d``", ["`b`", "``c ` d``"]),
        ("```<!-- x -->``` inline", ["```<!-- x -->```"]),
        ("a ` b\n\nc ` d", []),
        ("\\`a` b", []),
        ("Text\n\n    x = 1\n    y\n\nText", ["    x = 1\n    y\n\n"]),
        ("    x\nText", ["    x\n"]),
        ("Text\n    lazy", []),
        ("- a\n\n    more of a\n", []),
        ("- a\n\n      code of a\n", ["      code of a\n"]),
        ("<!--\n```\n-->\nText\n", []),
    ],
)
def test_code_spans(text: str, code: list[str]) -> None:
    assert code_of(text) == code


def test_comments_go_but_those_in_code_stay() -> None:
    text = "a<!-- x\n\ny -->b `<!-- in -->`\n\n```\n<!-- in -->\n```\n\n    <!-- in -->\n"
    assert drop_comments(text) == "ab `<!-- in -->`\n\n```\n<!-- in -->\n```\n\n    <!-- in -->\n"


def test_a_comment_that_is_never_closed_stays() -> None:
    assert drop_comments("a <!-- b") == "a <!-- b"


def test_a_comment_around_a_fence_goes_whole() -> None:
    assert drop_comments("a\n<!--\n```\nsecret\n```\n-->\nb") == "a\n\nb"


def test_rewrite_leaves_a_match_that_is_refused() -> None:
    def replace(_: str, match: re.Match[str]) -> tuple[str, int] | None:
        return None if match[0] == "x1" else ("y", match.end())

    assert rewrite("x1 x2 `x3` x4", re.compile(r"x\d"), replace) == "x1 y `x3` y"


def test_a_long_line_of_unmatched_backticks_takes_linear_time() -> None:
    text = " ".join("`" * (1 + i % 50) for i in range(20_000))
    assert code_spans(text)


def test_a_long_line_of_inline_code_takes_linear_time() -> None:
    n_spans = 100_000  # walked back to the line's start for each, it would take minutes
    assert len(code_spans("`a" * 2 * n_spans)) == n_spans


def test_thousands_of_blank_lines_take_linear_time() -> None:
    text = "\n" * 200_000 + "    code\n" + " \r\n" * 100_000
    assert [text[start:end].strip() for start, end in code_spans(text)] == ["code"]
