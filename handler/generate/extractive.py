"""An answer without a language model: the sentences that answer best, quoted word for word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import numpy as np

from handler.bundle.encoder import Encoder, Vector
from handler.bundle.passage import passage_text
from handler.bundle.search import Hit
from handler.bundle.terms import query_phrases
from handler.events import Citation, Text
from handler.generate.quotes import (
    Quote,
    announced_among,
    quotes_of,
    repeats,
    says_nothing_itself,
    without_repeats,
)
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

ABOUT_ME = "I am here for questions about this site: I answer with sentences of its pages, word for word."


def best_quotes(
    question: str, hits: Sequence[Hit], encoder: Encoder, vector: Vector | None = None
) -> list[Quote]:
    """The quotes that answer the question best, best first; none without hits.

    Candidates are the quotable parts of the first hits. Those that have most words of the question are
    embedded, each under its title and headings, and the nearest are taken, a sentence that ends in a colon
    followed by the code or the list that it announces. `vector` is the question's, where it is known.
    """
    words = _word_starts(question)
    parts: list[Quote] = []
    announced: dict[Quote, Quote] = {}
    for source, hit in enumerate(hits[:MAX_SOURCES], start=1):
        of_hit = quotes_of(hit.chunk.text, source)
        announced |= announced_among(of_hit, hit.chunk.text)
        # A table that came from HTML without a header has data in its first row.
        parts += [part for part in of_hit if part.kind != "header" or words & _word_starts(part.markdown)]
    # A name in a list or a table is near to every question about it, and says nothing.
    telling = [part for part in parts if part.is_code or _word_starts(part.shown) - words]
    candidates = without_repeats(telling or parts)
    candidates.sort(key=lambda quote: -len(words.intersection(_word_starts(quote.text))))
    candidates = candidates[:MAX_CANDIDATES]
    if not candidates:
        return []
    vectors = np.stack([encoder.embed_query(_in_context(quote, hits)) for quote in candidates])
    asked = encoder.embed_query(question) if vector is None else vector
    scores = vectors @ asked - COSINE_PER_RANK * np.array([quote.source for quote in candidates])
    is_pointer = [says_nothing_itself(quote) and quote not in announced for quote in candidates]
    scores -= COSINE_OF_A_POINTER * np.array(is_pointer)
    best = np.argsort(-scores, kind="stable")[:MAX_QUOTES]
    near = [candidates[i] for i in best if scores[i] >= scores[best[0]] - MAX_COSINE_BELOW_BEST]
    # What is nearer than the sentence that announces it still stands below it.
    leads = {below: sentence for sentence, below in announced.items() if sentence in near}
    chosen: list[Quote] = []
    for part in near:
        group = [quote for quote in (leads.get(part), part, announced.get(part)) if quote]
        group = [quote for quote in group if not any(repeats(quote, other) for other in chosen)]
        # A label is nothing without what it announces.
        if len(chosen) + len(group) <= MAX_QUOTES or not chosen:
            chosen += group
        elif len(chosen) < MAX_QUOTES and part in group and not says_nothing_itself(part):
            chosen.append(part)
    return chosen


def numbered_text(quotes: Sequence[Quote]) -> str:
    """The quotes as markdown, each with the number of its source behind; without any, I_DONT_KNOW."""
    if not quotes:
        return I_DONT_KNOW
    return "\n".join(
        f"{quote.as_answer}\n[{quote.source}]"
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
            shown = ("\n" if at else "") + quote.as_answer + ("\n" if quote.is_block else "")
            at += len(shown)
            yield Text(shown)
            yield Citation(quote.source, quote.text, at)
        yield Finished("end")


def _in_context(quote: Quote, hits: Sequence[Hit]) -> str:
    chunk = hits[quote.source - 1].chunk
    return passage_text(chunk.title, chunk.heading, quote.markdown)


def _word_starts(text: str) -> set[str]:
    """The text's words without stopwords, cut short: a rough stem that needs no index."""
    return {word[: max(4, len(word) - 2)] for phrase in query_phrases(text) for word in phrase.split()}
