"""Answers and hits as text for a person at a terminal."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence

from handler.answer import Answer
from handler.bundle.passage import plain_text
from handler.bundle.search import Hit, SearchResult
from handler.bundle.types import Chunk
from handler.generate.extractive import Quote
from handler.generate.sentences import as_markdown, quotable_spans

MAX_WIDTH = 100
SNIPPET_CHARS = 200

# A terminal obeys them: a page could colour, move or rename what is on the screen.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def format_answer(answer: Answer) -> str:
    """The quotes with the numbers of their sources, then the sources with their links."""
    if not answer.quotes:
        return f"{answer.text}\n({answer.gate.reason})"
    lines = []
    for quote in answer.quotes:
        lines += _quoted(quote)
    for source in sorted({quote.source for quote in answer.quotes}):
        chunk = answer.hits[source - 1].chunk
        lines += ["", f"[{source}] {_place(chunk)}", f"    {link(chunk)}"]
    return _shown([*lines, "", "quoted from these pages word for word; nothing left this machine"])


def format_hits(result: SearchResult, explain: bool = False) -> str:
    """The hits with their links; with `explain`, why each is there and what the gate made of them."""
    lines = []
    for number, hit in enumerate(result.hits, start=1):
        snippet = textwrap.shorten(_words(hit.chunk), SNIPPET_CHARS, placeholder=" …")
        lines += [f"{number}. {_place(hit.chunk)}", f"   {link(hit.chunk)}"]
        lines += _explained(hit) if explain else []
        lines += [*_wrapped(snippet, indent="   "), ""]
    if not result.hits:
        lines.append("nothing found" if result.gate.accepted else "nothing found that is near enough")
    if explain or not result.hits:
        lines.append(f"gate: {'accepted' if result.gate.accepted else 'refused'}: {result.gate.reason}")
    return _shown(lines).rstrip("\n")


def link(chunk: Chunk) -> str:
    """The address of a chunk, down to its heading where that has one."""
    return f"{chunk.url}#{chunk.anchor}" if chunk.anchor else chunk.url


def _shown(lines: Sequence[str]) -> str:
    return _CONTROL.sub("", "\n".join(lines))


def _quoted(quote: Quote) -> list[str]:
    """Prose without its markup, and code line for line, to be copied."""
    if quote.is_code:
        return [
            *(f"    {line}".rstrip() for line in textwrap.dedent(quote.text).split("\n")),
            f"[{quote.source}]",
        ]
    return _wrapped(f"“{' '.join(plain_text(quote.markdown).split())}” [{quote.source}]")


def _words(chunk: Chunk) -> str:
    """What a chunk says beside its heading."""
    return " ".join(plain_text(as_markdown(chunk.text, span)) for span in quotable_spans(chunk.text))


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
