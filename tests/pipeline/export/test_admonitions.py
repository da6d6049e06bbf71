"""Admonitions become markdown without losing a word that a reader sees."""

from __future__ import annotations

import pytest

from pipeline.export.admonitions import strip_admonitions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":::tip\nUse it once.\n:::\n", "\nUse it once.\n\n"),
        (":::note[Todo]\n\nMore.\n\n:::", "Todo\n\n\nMore.\n\n"),
        (":::caution Pending docs\nSoon.\n:::\n", "Pending docs\n\nSoon.\n\n"),
        (":::info[A [link](b)]{.wide}\nSoon.\n:::\n", "A [link](b)\n\nSoon.\n\n"),
        (":::tip{.wide}\r\nSoon.\r\n:::\r\n", "\nSoon.\r\n\n"),
        ("::::tip\n:::danger\nNested.\n:::\n::::\n", "\n\nNested.\n\n\n"),
        ("- One\n\n  :::warning\n  Two.\n  :::\n", "- One\n\n\n  Two.\n\n"),
        ("> :::note[Todo]\n> More.\n", "> Todo\n> \n> More.\n"),
    ],
)
def test_an_admonition_is_its_title_and_its_words(text: str, expected: str) -> None:
    assert strip_admonitions(text) == expected


@pytest.mark.parametrize("signs", ["]{", "]", "{", "] "])
def test_a_line_of_brackets_is_read_in_linear_time(signs: str) -> None:
    """Written otherwise, the expression takes minutes: it looks to the line's end from each bracket."""
    text = f":::tip[{signs * 500_000}x"
    assert strip_admonitions(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "```md\n:::tip\nIn code.\n:::\n```\n",
        "    :::tip\n",
        "A::B and C:::D\n",
        "::: a row of dots ::: and more\n",
    ],
)
def test_other_colons_stay(text: str) -> None:
    assert strip_admonitions(text) == text
