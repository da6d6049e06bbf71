"""The [n] of a model's text, however its stream is cut."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.generate.marks import Mark, MarkReader


def read(*pieces: str) -> list[str | tuple[int, ...]]:
    """Texts, joined, and the numbers between them."""
    reader = MarkReader()
    parts: list[str | Mark] = []
    for piece in pieces:
        parts += reader.feed(piece)
    return joined([*parts, *reader.end()])


def joined(parts: Sequence[str | Mark]) -> list[str | tuple[int, ...]]:
    result: list[str | tuple[int, ...]] = []
    for part in parts:
        if isinstance(part, Mark):
            result.append(part.numbers)
        elif result and isinstance(result[-1], str):
            result[-1] += part
        else:
            result.append(part)
    return result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Water is wet [1].", ["Water is wet", (1,), "."]),
        ("Water[1][2]", ["Water", (1,), (2,)]),
        ("Water [1, 2; 5].", ["Water", (1, 2, 5), "."]),
        ("Water [1-3] [2–3]", ["Water", (1, 2, 3), (2, 3)]),
        ("Water [^1] and 【2】", ["Water", (1,), " and", (2,)]),
        ("Water [Source 1, source 2]", ["Water", (1, 2)]),
        ("Water [1", ["Water [1"]),
        ("Water [a link](https://example.org) in [2026], [ ] and []", None),
        ("Run `argv[1]` or ``a ` [2]``", None),
        ("```python\nx[0]\n\ny[1]\n```", None),
        ("```\nx[0]\n```\nSo [1]", ["```\nx[0]\n```\nSo", (1,)]),
        ("A ` alone.\n\nThen [1]", ["A ` alone.\n\nThen", (1,)]),
        ("[1] first", [(1,), " first"]),
        ("", []),
    ],
)
def test_marks_are_told_from_text_and_code(text: str, expected: list[object] | None) -> None:
    assert read(text) == ([text] if expected is None else expected)


PIECES = st.lists(
    st.sampled_from(["Water", " ", "[", "1", "]", ",", "\n", "`", "```", "[1]", "[2, 3]", "x[0]", "ä", "."]),
    max_size=24,
)


@given(PIECES)
def test_where_the_stream_is_cut_changes_nothing(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert read(*pieces) == read(*text) == read(text)


@given(PIECES)
def test_no_text_is_lost_but_the_marks_and_the_space_before_them(pieces: list[str]) -> None:
    texts = [part for part in read("".join(pieces)) if isinstance(part, str)]
    rest = "".join(pieces)
    for text in texts:
        assert text in rest
        rest = rest.partition(text)[2]


def test_text_is_given_as_soon_as_it_is_certain() -> None:
    reader = MarkReader()
    assert list(reader.feed("Water is ")) == ["Water is"]
    assert list(reader.feed("wet")) == [" wet"]
    assert list(reader.feed(" [")) == []
    assert list(reader.feed("1]")) == [Mark((1,))]
