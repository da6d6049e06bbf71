"""What of a chunk can be quoted: sentences, items, rows and code, and the lists that sentences announce."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Literal

from handler.bundle.passage import plain_text
from handler.generate.sentences import Kind, as_markdown, points_elsewhere, quotable_spans

# A sentence that ends in a colon says something itself if it is longer than a label.
MAX_LABEL_WORDS = 8
# A list or table of more characters is no answer to be taken in at once.
MAX_LIST_CHARS = 600

_SENTENCE_ENDS = tuple(".!?…。！？")
# `\|` is a sign within a cell.
_CELL_BORDER = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a hit, as they stand in its chunk. `source` is the hit's rank, from 1.

    `markdown` is the same to be shown: code has its fence around it, and a "list" of items or a "table" of
    rows a line for each.
    """

    source: int
    start: int
    text: str
    markdown: str
    kind: Kind | Literal["list", "table"]

    @property
    def end(self) -> int:
        """Where in the chunk it ends."""
        return self.start + len(self.text)

    @property
    def is_code(self) -> bool:
        """Whether it is code."""
        return self.kind == "code"

    @property
    def is_block(self) -> bool:
        """Whether it stands on lines of its own."""
        return self.kind in ("code", "list", "table")

    @property
    def as_answer(self) -> str:
        """Plain text in quotation marks, or a list or a fenced block of code on lines of its own."""
        if self.is_code:
            return self.markdown
        return self.shown if self.is_block else f"“{self.shown}”"

    @property
    def shown(self) -> str:
        """The words as readers of the page see them, on one line; of a list or a table a line each."""
        if self.kind in ("list", "table"):
            return "\n".join(f"- {self._plain(line)}" for line in self.markdown.split("\n"))
        return self._plain(self.markdown)

    def _plain(self, markdown: str) -> str:
        is_row = self.kind in ("row", "header", "table")
        cells = _CELL_BORDER.split(markdown) if is_row else [markdown]
        plain = (" ".join(plain_text(cell.replace(r"\|", "|")).split()) for cell in cells)
        return " | ".join(cell for cell in plain if cell)


def quotes_of(text: str, source: int) -> list[Quote]:
    """The quotable parts of a chunk's text, in order, without bare pictures and tags."""
    parts = [
        Quote(source, span.start, text[span.start : span.end], as_markdown(text, span), span.kind)
        for span in quotable_spans(text)
    ]
    return [part for part in parts if part.shown.strip()]


def announced_among(parts: Sequence[Quote], text: str) -> dict[Quote, Quote]:
    """What follows a sentence of a chunk that ends in a colon, or is ended by a list: code, a list, a table.

    `parts` are all of the chunk's, and `text` is its.
    """
    announced: dict[Quote, Quote] = {}
    for i, (lead, below) in enumerate(pairwise(parts), start=1):
        goes_on = below.kind == "item" and not lead.shown.endswith(_SENTENCE_ENDS)
        if lead.kind != "prose" or not (_announces(lead) or goes_on):
            continue
        if below.is_code:
            announced[lead] = below
        elif len(rows := _list_from(parts[i:])) > 1 and rows[-1].end - below.start <= MAX_LIST_CHARS:
            announced[lead] = _as_list(rows, text)
    return announced


def says_nothing_itself(quote: Quote) -> bool:
    """Whether it is but a link, a question, names of columns, a label, or a comment in a listing."""
    if quote.is_code:
        return "\n" not in quote.text and quote.text.lstrip().startswith("#")
    return (
        points_elsewhere(quote.markdown)
        or quote.kind == "header"
        or quote.shown.endswith(("?", "？"))
        or (_announces(quote) and len(quote.shown.split()) <= MAX_LABEL_WORDS)
    )


def repeats(quote: Quote, other: Quote) -> bool:
    """Whether one is part of the other or both say the same: examples repeat, and chunks overlap."""
    overlaps = quote.source == other.source and quote.start < other.end and other.start < quote.end
    return overlaps or quote.shown == other.shown


def without_repeats(quotes: Iterable[Quote]) -> list[Quote]:
    """The first quote of each wording."""
    first: dict[str, Quote] = {}
    for quote in quotes:
        first.setdefault(quote.shown, quote)
    return [*first.values()]


def _announces(quote: Quote) -> bool:
    return quote.shown.endswith((":", "："))


def _list_from(parts: Sequence[Quote]) -> list[Quote]:
    """The items or rows at the beginning of a chunk's parts."""
    kinds = ("item",) if parts[0].kind == "item" else ("header", "row")
    return [*takewhile(lambda part: part.kind in kinds, parts)]


def _as_list(parts: Sequence[Quote], text: str) -> Quote:
    """Items or rows that follow each other as one quote. Items of several sentences keep to their lines."""
    lines: list[str] = []
    start = end = parts[0].start
    for part in parts:
        line = " ".join(part.markdown.split())
        if part.kind == "item" and lines and not text[end : part.start].strip():  # no bullet
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        end = part.end
    kind: Literal["list", "table"] = "list" if parts[0].kind == "item" else "table"
    return Quote(parts[0].source, start, text[start:end], "\n".join(lines), kind)
