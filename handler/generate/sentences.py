"""The parts of a chunk that can be quoted on their own: sentences, list items, table rows, code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Literal, NamedTuple

# A sentence ends before a space and something that does not continue it in lower case ("e.g. this"), but
# not after an initial or one of the abbreviations that stand before names and numbers.
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bMrs)(?<!\bNo)(?<!\bvs)(?<!\bFig)"
    r"[.!?…][\"'”’)\]*_]*\s+(?=[^\sa-z])|[。！？](?=.)",
    re.DOTALL,
)
_FENCE = re.compile(r"\s*(?:>\s*)*(`{3,}(?!.*`)|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r"\s{0,3}(?:=+|-+)\s*$")
_TABLE_ROW = re.compile(r"\s*\|.*\|\s*$")
_TABLE_RULE = re.compile(r"[\s|:-]+$")
_RULE_BELOW = re.compile(r"[ \t]*\n[ \t]*\|[ \t|:]*-[ \t|:-]*(?:\n|$)")
_ITEM = re.compile(r"(\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])\s+)(?:\[[ xX]\]\s+)?")
_ITEM_OR_TAG = re.compile(rf"{_ITEM.pattern}|\s*</?[a-zA-Z]")
_WORD = re.compile(r"\w")
_TARGET = r"(?:\([^()\s]*(?:\s[^()]*)?\)|\[[^\[\]]*\])"
_PICTURE = rf"!\[[^\[\]]*\]{_TARGET}"
# A link or a picture with the words that it shows; a bare address; any other tag.
_POINTER = re.compile(
    rf"{_PICTURE}|\[(?:[^\[\]]|{_PICTURE})*\]{_TARGET}|https?://[^\s<>]+|<a\b[^<]*</a>|</?[a-zA-Z][^<>]*>"
)
# A footnote that names where something is told.
_REFERENCE = re.compile(r"\[\^[^\[\]\s]+\]:.*://", re.DOTALL)

# From this indent on a line that opens a block is code (CommonMark 0.31, section 4.4).
_CODE_INDENT = 4
# Longer code is a listing, not an answer: its lines are offered one by one.
MAX_CODE_CHARS = 600

Kind = Literal["prose", "item", "row", "header", "code"]


class Span(NamedTuple):
    """Where a quotable part stands in a chunk's markdown. Code, fenced or indented, is no markdown.

    A sentence of a list item is of the kind "item". A table's first row is its header, which in most tables
    names the columns and says nothing.
    """

    start: int
    end: int
    kind: Kind

    @property
    def is_code(self) -> bool:
        """Whether it is code."""
        return self.kind == "code"


def quotable_spans(text: str) -> list[Span]:
    """The quotable parts of a chunk's markdown, in order, without overlap.

    Headings, rules, fences and parts without any word are left out.
    """
    return [
        Span(start, end, "header" if kind == "row" and _RULE_BELOW.match(text, end) else kind)
        for block_start, block_end, kind in _blocks(text)
        for start, end in (
            [(block_start, block_end)]
            if kind in ("row", "code")
            else _sentences(text, block_start, block_end)
        )
        if _WORD.search(text, start, end)
    ]


def as_markdown(text: str, span: Span) -> str:
    """A part as markdown that stands on its own, a table's row without the signs at its ends.

    Code gets a fence, longer than any inside, and loses its indent.
    """
    part = text[span.start : span.end]
    if span.kind in ("row", "header"):
        return part.strip("| \t")
    if not span.is_code:
        return part
    part = textwrap.dedent(part)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", part)), default=0))
    return f"{fence}\n{part}\n{fence}"


def points_elsewhere(markdown: str) -> bool:
    """Whether a part of markdown has no words but those of links and pictures, or is a reference."""
    return bool(_REFERENCE.match(markdown)) or not _WORD.search(_POINTER.sub("", markdown))


def _blocks(text: str) -> Iterator[tuple[int, int, Kind]]:
    """(start, end, kind) of paragraphs and list items, table rows and code blocks, trimmed."""
    start: int | None = None  # of the paragraph or item that is open
    kind: Kind = "prose"  # which of both it is
    fence, fence_start = "", 0
    code_start: int | None = None  # of the indented code that is open
    is_first = True  # no line with anything on it was before
    items: list[int] = []  # the columns at which the text of the open list items begins
    offset = 0
    for line in text.splitlines(keepends=True):
        end = offset + len(line)
        mark = _FENCE.match(line)
        is_indented = not fence and start is None and _is_code(line, items, is_first)
        is_first = is_first and not line.strip()
        if code_start is not None and line.strip() and not is_indented:
            yield from _code(text, code_start, offset)
            code_start = None
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip("`~ \n"):
                yield from _code(text, fence_start, offset)
                fence = ""
        elif is_indented:
            code_start = offset if code_start is None else code_start
        elif _UNDERLINE.match(line):
            start = None  # what stands above is a heading
        elif mark or not line.strip() or _HEADING.match(line) or _TABLE_ROW.match(line):
            if start is not None:
                yield start, _trimmed(text, start, offset), kind
            start = None
            if mark:
                fence, fence_start = mark[1], end
            elif _TABLE_ROW.match(line) and not _TABLE_RULE.match(line):
                yield offset + len(line) - len(line.lstrip()), offset + len(line.rstrip()), "row"
        elif item := _ITEM.match(line):
            if start is not None:
                yield start, _trimmed(text, start, offset), kind
            start, kind = offset + item.end(), "item"
            items.append(_width(item[1]))
        elif start is None:
            start, kind = offset + len(line) - len(line.lstrip()), "prose"
        offset = end
    if fence:
        yield from _code(text, fence_start, offset)
    elif code_start is not None:
        yield from _code(text, code_start, offset)
    elif start is not None:
        yield start, _trimmed(text, start, offset), kind


def _is_code(line: str, items: list[int], is_first: bool) -> bool:
    """Whether a line that opens a block, or goes on with code, is code by its indent below the open items.

    Takes from `items` those that the line ends. A chunk may begin within a list or raw HTML: its first item
    or tag is one, however deep.
    """
    indent = _width(line[: len(line) - len(line.lstrip(" \t"))])
    if not line.strip():
        return False
    while items and items[-1] > indent:
        items.pop()
    if is_first and _ITEM_OR_TAG.match(line):
        return False
    return indent - (items[-1] if items else 0) >= _CODE_INDENT and not _FENCE.match(line)


def _width(text: str) -> int:
    return len(text.expandtabs(4))


def _code(text: str, start: int, end: int) -> Iterator[tuple[int, int, Kind]]:
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
