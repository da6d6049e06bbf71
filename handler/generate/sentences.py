"""The parts of a chunk that can be quoted on their own: sentences, list items, table rows, code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

# A sentence ends before a space and something that does not continue it in lower case ("e.g. this"), but
# not after an initial or one of the abbreviations that stand before names and numbers.
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bMrs)(?<!\bNo)(?<!\bvs)(?<!\bFig)"
    r"[.!?…][\"'”’)\]*_]*\s+(?=[^\sa-z])|[。！？](?=.)",
    re.DOTALL,
)
_FENCE = re.compile(r"\s*(?:>\s*)*(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r"\s{0,3}(?:=+|-+)\s*$")
_TABLE_ROW = re.compile(r"\s*\|.*\|\s*$")
_TABLE_RULE = re.compile(r"[\s|:-]+$")
_ITEM = re.compile(r"\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_WORD = re.compile(r"\w")

# Longer code is a listing, not an answer: its lines are offered one by one.
MAX_CODE_CHARS = 600

_Kind = Literal["prose", "row", "code"]


class Span(NamedTuple):
    """Where a quotable part stands in a chunk's markdown. Code stands between fences and is no markdown."""

    start: int
    end: int
    is_code: bool


def quotable_spans(text: str) -> list[Span]:
    """The quotable parts of a chunk's markdown, in order, without overlap.

    Headings, rules, fences and parts without any word are left out.
    """
    return [
        Span(start, end, kind == "code")
        for block_start, block_end, kind in _blocks(text)
        for start, end in (
            _sentences(text, block_start, block_end) if kind == "prose" else [(block_start, block_end)]
        )
        if _WORD.search(text, start, end)
    ]


def as_markdown(text: str, span: Span) -> str:
    """A part as markdown that stands on its own: code gets a fence again, longer than any inside."""
    part = text[span.start : span.end]
    if not span.is_code:
        return part
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", part)), default=0))
    return f"{fence}\n{part}\n{fence}"


def _blocks(text: str) -> Iterator[tuple[int, int, _Kind]]:
    """(start, end, kind) of paragraphs and list items, table rows and code blocks, trimmed."""
    start: int | None = None  # of the paragraph or item that is open
    fence, fence_start = "", 0
    offset = 0
    for line in text.splitlines(keepends=True):
        end = offset + len(line)
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip("`~ \n"):
                yield from _code(text, fence_start, offset)
                fence = ""
        elif _UNDERLINE.match(line):
            start = None  # what stands above is a heading
        elif mark or not line.strip() or _HEADING.match(line) or _TABLE_ROW.match(line):
            if start is not None:
                yield start, _trimmed(text, start, offset), "prose"
            start = None
            if mark:
                fence, fence_start = mark[1], end
            elif _TABLE_ROW.match(line) and not _TABLE_RULE.match(line):
                yield offset + len(line) - len(line.lstrip()), offset + len(line.rstrip()), "row"
        elif item := _ITEM.match(line):
            if start is not None:
                yield start, _trimmed(text, start, offset), "prose"
            start = offset + item.end()
        elif start is None:
            start = offset + len(line) - len(line.lstrip())
        offset = end
    if fence:
        yield from _code(text, fence_start, offset)
    elif start is not None:
        yield start, _trimmed(text, start, offset), "prose"


def _code(text: str, start: int, end: int) -> Iterator[tuple[int, int, _Kind]]:
    end = _trimmed(text, start, end)
    if end - start <= MAX_CODE_CHARS:
        yield start, end, "code"
        return
    for line in re.finditer(r"[^\n]*\S", text[start:end]):
        yield start + line.start(), start + line.end(), "code"


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for mark in _SENTENCE_END.finditer(text, start, end):
        yield start, _trimmed(text, start, mark.end())
        start = mark.end()
    if start < end:
        yield start, end


def _trimmed(text: str, start: int, end: int) -> int:
    """The end without the white space before it."""
    return start + len(text[start:end].rstrip())
