"""A hit as a reader sees it: its place, its link, and what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handler.bundle.passage import plain_text
from handler.bundle.search import Hit
from handler.bundle.types import Chunk
from handler.events import Source
from handler.generate.sentences import as_markdown, quotable_spans

SNIPPET_CHARS = 200

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def sources_of(hits: Sequence[Hit]) -> tuple[Source, ...]:
    """The places of the hits as sources, in their order: what has one address is one source."""
    first_ranks: dict[int, int] = {}
    for rank, number in enumerate(source_numbers(hits), start=1):
        first_ranks.setdefault(number, rank)
    return tuple(_source(number, rank, hits[rank - 1].chunk) for number, rank in first_ranks.items())


def source_numbers(hits: Sequence[Hit]) -> list[int]:
    """The number of each hit's source, from 1."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(link(hit.chunk), len(numbers) + 1) for hit in hits]


def link(chunk: Chunk) -> str:
    """The address of a chunk, down to its heading where that has one."""
    return f"{chunk.url}#{chunk.anchor}" if chunk.anchor else chunk.url


def heading_path(chunk: Chunk) -> str:
    """The headings that a chunk stands under, on one line; empty above the first.

    One that only says the page's title again is left out.
    """
    first, *rest = [one_line(part) for part in chunk.heading] or [""]
    return " > ".join(rest if first.casefold() == one_line(chunk.title).casefold() else [first, *rest])


def snippet(chunk: Chunk) -> str:
    """The first words that a chunk says beside its heading: plain text of at most SNIPPET_CHARS."""
    words = ""
    for span in quotable_spans(chunk.text):
        words = one_line(f"{words} {plain_text(as_markdown(chunk.text, span))}")
        if len(words) > SNIPPET_CHARS:
            break
    if len(words) <= SNIPPET_CHARS:
        return words
    clipped = words[: SNIPPET_CHARS - len(" …")]
    whole_words = clipped.rpartition(" ")[0]
    # Scripts without spaces are cut anywhere.
    return f"{whole_words if len(whole_words) > SNIPPET_CHARS // 2 else clipped} …"


def as_read(chunk: Chunk, quote: str) -> str:
    """Words of a chunk as readers of its page see them: on one line without markup; code stays as it is."""
    start = chunk.text.find(quote)
    end = start + len(quote)
    if any(span.is_code and span.start < end and start < span.end for span in quotable_spans(chunk.text)):
        return quote
    return one_line(plain_text(quote)) or quote


def one_line(text: str) -> str:
    """The text on one line without control characters."""
    return " ".join(without_controls(text).split())


def without_controls(text: str) -> str:
    """The text without control characters but tabs and line feeds."""
    return _CONTROL.sub("", text)


def _source(number: int, rank: int, chunk: Chunk) -> Source:
    return Source(number, one_line(chunk.title), heading_path(chunk), link(chunk), snippet(chunk), rank)
