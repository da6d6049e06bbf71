from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.generate.sentences import as_markdown, points_elsewhere, quotable_spans


def quotes(text: str) -> list[str]:
    return [text[span.start : span.end] for span in quotable_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One thing. Another thing!\nA third?", ["One thing.", "Another thing!", "A third?"]),
        ("It is e.g. this, by Dr. J. R. Smith. Done.", ["It is e.g. this, by Dr. J. R. Smith.", "Done."]),
        ("Version 3.11 came. It works.", ["Version 3.11 came.", "It works."]),
        ("今日は晴れ。明日は雨。", ["今日は晴れ。", "明日は雨。"]),
        ("# Title\n\nText.\n\nSetext\n===\nMore.", ["Text.", "More."]),
        ("- one\n- two\n  goes on\n1. three", ["one", "two\n  goes on", "three"]),
        ("- [ ] milk\n- [x] bread", ["milk", "bread"]),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", ["| a | b |", "| 1 | 2 |"]),
        (
            "Run:\n```sh\nmake demo\n# not a heading\n```\nThen.",
            ["Run:", "make demo\n# not a heading", "Then."],
        ),
        ("~~~\n```\nstill code\n~~~\n", ["```\nstill code"]),
        ("```\nnever closed", ["never closed"]),
        ("***\n\n---\n", []),
        ("```one``` line of code\n\nIs no fence.", ["```one``` line of code", "Is no fence."]),
        (
            "Run:\n\n    make demo\n    # not a heading\n\n      ask. Again.\n\nThen. Stop.",
            ["Run:", "    make demo\n    # not a heading\n\n      ask. Again.", "Then.", "Stop."],
        ),
        ("# Title\n\tmake demo\nThen.", ["\tmake demo", "Then."]),
        ("    - not an item\n", ["not an item"]),
        ("    <p>\n    Words.", ["<p>\n    Words."]),
        ("A paragraph\n    goes on.", ["A paragraph\n    goes on."]),
        ("- item\n\n    goes on\n\n      code\n", ["item", "goes on", "      code"]),
        ("- [ ] milk\n\n    and bread", ["milk", "and bread"]),
        ("1. item\n\n       code\n\n- next\n\n  text\n", ["item", "       code", "next", "text"]),
        ("- a\n  - b\n\n        code\n\n    text\n\n    text", ["a", "b", "        code", "text", "text"]),
        ("- a\n\nEnd.\n\n    code", ["a", "End.", "    code"]),
        ("    | a | b |\n", ["    | a | b |"]),
        ("", []),
    ],
)
def test_a_chunk_is_quoted_by_sentence_item_row_and_code(text: str, expected: list[str]) -> None:
    assert quotes(text) == expected


def test_the_first_row_of_a_table_is_known() -> None:
    text = "| a | b |\n|---|:-:|\n| 1 | 2 |\n\n| c |\n| 3 |\n"
    assert [text[span.start : span.end] for span in quotable_spans(text) if span.kind == "header"] == [
        "| a | b |"
    ]


def test_long_code_is_quoted_line_by_line() -> None:
    listing = "\n".join(f"line {i} of a long listing" for i in range(40))
    assert quotes(f"```\n{listing}\n```") == listing.splitlines()


def test_code_is_markdown_again_in_a_fence_of_its_own() -> None:
    text = "Run **this**:\n\n~~~\n```\nrm *.log\n~~~\n"
    assert [as_markdown(text, span) for span in quotable_spans(text)] == [
        "Run **this**:",
        "````\n```\nrm *.log\n````",
    ]
    indented = "    def f():\n        pass\n"
    assert [as_markdown(indented, span) for span in quotable_spans(indented)] == [
        "```\ndef f():\n    pass\n```"
    ]


@given(st.text(alphabet="ab.A! \n`~#|-*1>。", max_size=200))
def test_quotes_stand_in_order_and_do_not_overlap(text: str) -> None:
    end = 0
    for start, stop, *_ in quotable_spans(text):
        assert end <= start < stop <= len(text)
        end = stop


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("[Install](#install)", True),
        ("[Install][1]", True),
        ("[![Badge](b.svg)](https://example.org/)", True),
        ("<a href='x'>Install</a>", True),
        ('<img src="a.png" alt="A pond">', True),
        ('- [A library](https://example.org/a "Title")', True),
        ("https://example.org/a <https://example.org/b>", True),
        ("See https://example.org/a", False),
        ("[Install](#install) it.", False),
        ("Install", False),
        ("[^1]: _On ponds_ - https://example.org/a\n[^2]: A garden - https://example.org/b", True),
        ("[^1]: A pond is a small lake.", False),
        ("See https://example.org/ for ponds.[^1]", False),
        ("[Install] is a word", False),
    ],
)
def test_a_link_or_a_picture_alone_points_elsewhere(markdown: str, expected: bool) -> None:
    assert points_elsewhere(markdown) is expected
