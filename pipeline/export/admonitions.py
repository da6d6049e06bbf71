"""Docusaurus' admonitions as markdown: the lines of colons around them go, their titles and words stay."""

from __future__ import annotations

import re

from pipeline.export.prose import rewrite

# docusaurus.io/docs/markdown-features/admonitions: `:::tip`, `:::tip[Title]{.class}` and, before version 3,
# `:::tip Title`; more colons around those that hold others. The line's end is looked at before the title, or
# a line of many brackets would take time in the square of its length.
_LINE = re.compile(
    r"^(?P<indent>[ \t>]*):{3,}"
    r"(?:[a-zA-Z][\w-]*"
    r"(?:\[(?=[^\n]*[\]}][ \t]*\r?$)(?P<title>[^\n]*)\]|[ \t]+(?P<words>[^\n{]*))?(?:\{[^\n]*\})?)?"
    r"[ \t]*\r?$",
    re.M,
)


def strip_admonitions(text: str) -> str:
    """The markdown without the lines that open and end admonitions; a title is a paragraph of its own."""
    if ":::" not in text:
        return text

    def replacement(_: str, match: re.Match[str]) -> tuple[str, int]:
        title = _title(match)
        return (f"{match['indent']}{title}\n{match['indent']}" if title else ""), match.end()

    return rewrite(text, _LINE, replacement)


def titles(text: str) -> list[tuple[int, str]]:
    """The titles that admonitions of a text have been given, each with its line, from 1."""
    lines: list[re.Match[str]] = []
    if ":::" in text:
        rewrite(text, _LINE, lambda _, match: lines.append(match))
    found = []
    number, counted_to = 1, 0
    for line in lines:
        number += text.count("\n", counted_to, line.start())
        counted_to = line.start()
        if title := _title(line):
            found.append((number, title))
    return found


def _title(line: re.Match[str]) -> str:
    return (line["title"] or line["words"] or "").strip()
