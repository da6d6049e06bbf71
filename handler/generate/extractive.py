"""An answer without a language model: the sentences that answer best, quoted word for word."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Literal

import numpy as np

from handler.bundle.encoder import Encoder, Vector
from handler.bundle.passage import passage_text, plain_text
from handler.bundle.search import Hit
from handler.bundle.terms import query_phrases
from handler.events import Citation, Text
from handler.generate.sentences import Kind, as_markdown, points_elsewhere, quotable_spans
from handler.generate.types import Finished, Prompt
from handler.smalltalk import is_small_talk

I_DONT_KNOW = "I don't know: these pages do not say."

MAX_QUOTES = 3
# From more hits an answer becomes a list of search results.
MAX_SOURCES = 4
# What is embedded to choose from, some 5 ms each. With 24 the quotes hold the answer to 199 of the questions
# below, with these to 198.
MAX_CANDIDATES = 16
# What a place further down the hits costs a quote, in cosine. Chosen on questions with known answers: of 60
# about two sites, 150 of SQuAD and 44 about Hugo the quotes hold 198, with .04 they hold 191; without it 197,
# and are 7% longer.
COSINE_PER_RANK = 0.015
# What a quote costs, in cosine, that is but a link or a picture, or asks something itself. Under its headings
# it is nearer to the question than the sentence that answers it; in a list of links all cost the same. The
# questions above hardly depend on it: it was chosen by reading the answers to 50 about five sites.
COSINE_OF_A_POINTER = 0.1
# A further quote that is this much further from the question answers something else. Of the questions above
# the quotes hold 188 with .05 and 204 with .12, and are 15% shorter and 20% longer.
MAX_COSINE_BELOW_BEST = 0.08

# `\|` is a sign within a cell.
_CELL_BORDER = re.compile(r"(?<!\\)\|")

ABOUT_ME = "I am here for questions about this site: I answer with sentences of its pages, word for word."


# A sentence that ends in a colon says something itself if it is longer than a label.
MAX_LABEL_WORDS = 8
# A list or table of more characters is no answer to be taken in at once.
MAX_LIST_CHARS = 600


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


def best_quotes(
    question: str, hits: Sequence[Hit], encoder: Encoder, vector: Vector | None = None
) -> list[Quote]:
    """The quotes that answer the question best, best first; none without hits.

    Candidates are the quotable parts of the first hits. Those that have most words of the question are
    embedded, each under its title and headings, and the nearest are taken, a sentence that ends in a colon
    followed by the code or the list that it announces. `vector` is the question's, where it is known.
    """
    words = _word_starts(question)
    parts = [
        part
        for source, hit in enumerate(hits[:MAX_SOURCES], start=1)
        for part in _parts(hit.chunk.text, source)
    ]
    announced = _announced(parts, hits)
    # A table that came from HTML without a header has data in its first row.
    parts = [
        part for part in parts if part.kind != "header" or not words.isdisjoint(_word_starts(part.markdown))
    ]
    # A name in a list or a table is near to every question about it, and says nothing.
    telling = [part for part in parts if part.is_code or _word_starts(part.shown) - words]
    candidates = _without_repeats(telling or parts)
    candidates.sort(key=lambda quote: -len(words.intersection(_word_starts(quote.text))))
    candidates = candidates[:MAX_CANDIDATES]
    if not candidates:
        return []
    vectors = np.stack([encoder.embed_query(_in_context(quote, hits)) for quote in candidates])
    asked = encoder.embed_query(question) if vector is None else vector
    scores = vectors @ asked - COSINE_PER_RANK * np.array([quote.source for quote in candidates])
    is_pointer = [_says_nothing_itself(quote) and quote not in announced for quote in candidates]
    scores -= COSINE_OF_A_POINTER * np.array(is_pointer)
    best = np.argsort(-scores, kind="stable")[:MAX_QUOTES]
    near = [candidates[i] for i in best if scores[i] >= scores[best[0]] - MAX_COSINE_BELOW_BEST]
    # What is nearer than the sentence that announces it still stands below it.
    leads = {below: sentence for sentence, below in announced.items() if sentence in near}
    chosen: list[Quote] = []
    for part in near:
        group = [quote for quote in (leads.get(part), part, announced.get(part)) if quote]
        group = [quote for quote in group if not any(_repeats(quote, other) for other in chosen)]
        # A label is nothing without what it announces.
        if len(chosen) + len(group) <= MAX_QUOTES or not chosen:
            chosen += group
        elif len(chosen) < MAX_QUOTES and part in group and not _says_nothing_itself(part):
            chosen.append(part)
    return chosen


def _parts(text: str, source: int) -> list[Quote]:
    """The quotable parts of a chunk, without bare pictures and tags."""
    parts = [
        Quote(source, span.start, text[span.start : span.end], as_markdown(text, span), span.kind)
        for span in quotable_spans(text)
    ]
    return [part for part in parts if part.shown.strip()]


def _announced(parts: Sequence[Quote], hits: Sequence[Hit]) -> dict[Quote, Quote]:
    """What follows each sentence that ends in a colon: code, or a whole list or table."""
    announced: dict[Quote, Quote] = {}
    for i, (lead, below) in enumerate(pairwise(parts), start=1):
        if lead.kind != "prose" or not _announces(lead) or below.source != lead.source:
            continue
        if below.is_code:
            announced[lead] = below
        elif len(rows := _list_from(parts[i:])) > 1 and rows[-1].end - below.start <= MAX_LIST_CHARS:
            announced[lead] = _as_list(rows, hits[lead.source - 1].chunk.text)
    return announced


def _announces(quote: Quote) -> bool:
    return quote.shown.endswith((":", "："))


def _list_from(parts: Sequence[Quote]) -> list[Quote]:
    """The items or rows at the beginning of the parts of one or more chunks."""
    first = parts[0]
    kinds = ("item",) if first.kind == "item" else ("header", "row")
    return [*takewhile(lambda part: part.source == first.source and part.kind in kinds, parts)]


def _as_list(parts: Sequence[Quote], text: str) -> Quote:
    """Items or rows that follow each other as one quote. Items of several sentences keep to their lines."""
    lines: list[str] = []
    end = parts[0].start
    for part in parts:
        line = " ".join(part.markdown.split())
        if part.kind == "item" and lines and not text[end : part.start].strip():  # no bullet
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        end = part.end
    start = parts[0].start
    kind: Literal["list", "table"] = "list" if parts[0].kind == "item" else "table"
    return Quote(parts[0].source, start, text[start:end], "\n".join(lines), kind)


def numbered_text(quotes: Sequence[Quote]) -> str:
    """The quotes as markdown, each with the number of its source behind; without any, I_DONT_KNOW."""
    if not quotes:
        return I_DONT_KNOW
    return "\n".join(
        f"{as_answer(quote)}\n[{quote.source}]"
        if quote.is_block
        else f"“{' '.join(quote.markdown.split())}” [{quote.source}]"
        for quote in quotes
    )


class ExtractiveGenerator:
    """Answers with the best quotes, without any language model."""

    name = "extractive"
    model: str | None = None

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Text | Citation | Finished, None]:
        """Each quote with its citation behind; else who answers here, or that the pages do not say."""
        if is_small_talk(prompt.question):
            yield Text(ABOUT_ME)
            yield Finished("end")
            return
        quotes = await asyncio.to_thread(
            best_quotes, prompt.search_text or prompt.question, prompt.hits, self._encoder, prompt.vector
        )
        if not quotes:
            yield Text(I_DONT_KNOW)
        at = 0
        for quote in quotes:
            shown = ("\n" if at else "") + as_answer(quote) + ("\n" if quote.is_block else "")
            at += len(shown)
            yield Text(shown)
            yield Citation(quote.source, quote.text, at)
        yield Finished("end")


def as_answer(quote: Quote) -> str:
    """A quote as plain text in quotation marks, or a list or a fenced block of code on lines of its own."""
    if quote.is_code:
        return quote.markdown
    return quote.shown if quote.is_block else f"“{quote.shown}”"


def _without_repeats(quotes: Sequence[Quote]) -> list[Quote]:
    """The first quote of each wording: examples stand on many pages, and chunks overlap."""
    first: dict[str, Quote] = {}
    for quote in quotes:
        first.setdefault(quote.shown, quote)
    return [*first.values()]


def _repeats(quote: Quote, other: Quote) -> bool:
    """Whether one is part of the other or both say the same: examples repeat, and chunks overlap."""
    overlaps = quote.source == other.source and quote.start < other.end and other.start < quote.end
    return overlaps or quote.shown == other.shown


def _says_nothing_itself(quote: Quote) -> bool:
    """Whether it is but a link, a question, names of columns, an announcement, or a comment in a listing."""
    if quote.is_code:
        return "\n" not in quote.text and quote.text.lstrip().startswith("#")
    return (
        points_elsewhere(quote.markdown)
        or quote.kind == "header"
        or quote.shown.endswith(("?", "？"))
        or (_announces(quote) and len(quote.shown.split()) <= MAX_LABEL_WORDS)
    )


def _in_context(quote: Quote, hits: Sequence[Hit]) -> str:
    chunk = hits[quote.source - 1].chunk
    return passage_text(chunk.title, chunk.heading, quote.markdown)


def _word_starts(text: str) -> set[str]:
    """The text's words without stopwords, cut short: a rough stem that needs no index."""
    return {word[: max(4, len(word) - 2)] for phrase in query_phrases(text) for word in phrase.split()}
