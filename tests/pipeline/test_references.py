"""Reference links get their addresses beside them; nothing else changes."""

from __future__ import annotations

import pytest

from pipeline.references import inline_references

DEFINITIONS = """
[pond]: /notes/pond "The pond"
[Far Away]: <https://far.example/a b>
  [img]:
  /img/pond.jpg
[open]: /pond_(water
[pond]: /other
[^note]: A footnote.
"""


@pytest.mark.parametrize(
    ("text", "inlined"),
    [
        ("See [the pond][pond].", "See [the pond](/notes/pond)."),
        ("See [Pond][].", "See [Pond](/notes/pond)."),
        ("See [pond].", "See [pond](/notes/pond)."),
        ("[far\n away]", "[far\n away](<https://far.example/a b>)"),
        ("[`x`][FAR  AWAY]", "[`x`](<https://far.example/a b>)"),
        ("![A pond][img]", "![A pond](/img/pond.jpg)"),
        ("[![A pond](/img/x.jpg)][pond]", "[![A pond](/img/x.jpg)](/notes/pond)"),
        ("[water][open]", "[water](</pond_(water>)"),
    ],
)  # fmt: skip
def test_a_reference_is_a_link(text: str, inlined: str) -> None:
    assert inline_references(text + "\n" + DEFINITIONS) == inlined + "\n" + DEFINITIONS


@pytest.mark.parametrize(
    "text",
    [
        "[pond](/elsewhere)",
        "`[pond]` and\n\n```\n[pond]\n```",
        r"\[pond]",
        "[lake] and [the lake][lake]",
        "A footnote.[^note]",
        "[pond]: /once/more",
        "- [ ] to do, [x] done",
    ],
)
def test_what_is_no_reference_stays(text: str) -> None:
    assert inline_references(text + "\n" + DEFINITIONS) == text + "\n" + DEFINITIONS


def test_definitions_in_code_define_nothing() -> None:
    text = "[pond]\n\n```\n[pond]: /pond\n```\n"
    assert inline_references(text) == text


@pytest.mark.parametrize("unit", ["[", "[a]", "[a][", "![a](b)", "[a\\", "[![a]("])
def test_many_marks_take_little_time(unit: str) -> None:
    text = unit * 50_000 + "\n\n[b]: /b\n"
    assert inline_references(text) == text
