"""Answers and hits as text for a person at a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from operator import itemgetter

from handler.bundle.search import Hit, SearchResult
from handler.bundle.types import Chunk
from handler.generate.extractive import I_DONT_KNOW
from handler.generate.quotes import Quote
from handler.sources import link, snippet, source_numbers, without_controls

MAX_WIDTH = 100


def format_answer(found: SearchResult, quotes: Sequence[Quote]) -> str:
    """The quotes with the numbers of their sources, then the sources with their links."""
    if not quotes:
        return f"{I_DONT_KNOW}\n({found.gate.reason})"
    lines = []
    numbers = source_numbers(found.hits)
    chunks: dict[int, Chunk] = {}
    for quote in quotes:
        number = numbers[quote.source - 1]
        lines += _quoted(quote, number)
        chunks.setdefault(number, found.hits[quote.source - 1].chunk)
    for number, chunk in sorted(chunks.items(), key=itemgetter(0)):
        lines += ["", f"[{number}] {_place(chunk)}", f"    {link(chunk)}"]
    return _shown([*lines, "", "quoted from these pages word for word; nothing left this machine"])


def format_hits(result: SearchResult, explain: bool = False) -> str:
    """The hits with their links; with `explain`, why each is there and what the gate made of them."""
    lines = []
    for number, hit in enumerate(result.hits, start=1):
        lines += [f"{number}. {_place(hit.chunk)}", f"   {link(hit.chunk)}"]
        lines += _explained(hit) if explain else []
        lines += [*_wrapped(snippet(hit.chunk), indent="   "), ""]
    if not result.hits:
        lines.append("nothing found" if result.gate.accepted else "nothing found that is near enough")
    if explain or not result.hits:
        lines.append(f"gate: {'accepted' if result.gate.accepted else 'refused'}: {result.gate.reason}")
    return _shown(lines).rstrip("\n")


def _shown(lines: Sequence[str]) -> str:
    # A terminal obeys them: a page could colour, move or rename what is on the screen.
    return without_controls("\n".join(lines))


def _quoted(quote: Quote, number: int) -> list[str]:
    """Prose without its markup, and code line for line, to be copied."""
    if quote.is_code:
        return [
            *(f"    {line}".rstrip() for line in textwrap.dedent(quote.text).split("\n")),
            f"[{number}]",
        ]
    if quote.is_block:
        lines = [wrapped for line in quote.shown.split("\n") for wrapped in _wrapped(line)]
        return [*lines, f"[{number}]"]
    return _wrapped(f"“{quote.shown}” [{number}]")


def _explained(hit: Hit) -> list[str]:
    vector = f"cosine {hit.cosine:.3f}, rank {hit.vector_rank or '-'}"
    keyword = f"bm25 {hit.bm25:.2f}, rank {hit.keyword_rank or '-'}"
    return [f"   score {hit.score:.3f}: {vector}; {keyword}", f"   {hit.reason}"]


def _place(chunk: Chunk) -> str:
    return " > ".join(dict.fromkeys([chunk.title, *chunk.heading]))


def _wrapped(text: str, indent: str = "") -> list[str]:
    """The text in lines as wide as the terminal, on one line where there is none to fit."""
    if not sys.stdout.isatty():
        return [indent + text]
    width = min(MAX_WIDTH, shutil.get_terminal_size().columns)
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)
