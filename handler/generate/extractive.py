"""An answer without a language model: the sentences that answer best, quoted word for word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from handler.bundle.encoder import Encoder
from handler.bundle.passage import passage_text, plain_text
from handler.bundle.search import Hit
from handler.bundle.terms import query_phrases
from handler.generate.sentences import as_markdown, quotable_spans

MAX_QUOTES = 3
# From more pages an answer becomes a list of search results.
MAX_SOURCES = 3
# What is embedded to choose from, some 5 ms each.
MAX_CANDIDATES = 24
# What a place further down the hits costs a quote, in cosine. Chosen on 60 questions about two sites with
# known answers: the three quotes hold the answer for 28 of them, without it for 26; 32 can be had at all.
COSINE_PER_RANK = 0.04
# A further quote that is this much further from the question answers something else.
MAX_COSINE_BELOW_BEST = 0.05


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a hit, as they stand in its chunk. `source` is the hit's rank, from 1.

    `markdown` is the same to be shown: code has its fence around it.
    """

    source: int
    start: int
    text: str
    markdown: str
    is_code: bool


def best_quotes(question: str, hits: Sequence[Hit], encoder: Encoder) -> list[Quote]:
    """The quotes that answer the question best, by source and place; none without hits.

    Candidates are the quotable parts of the first hits. Those that have most words of the question are
    embedded, each under its title and headings, and the nearest are taken.
    """
    candidates = [
        Quote(source, span.start, hit.chunk.text[span.start : span.end], markdown, span.is_code)
        for source, hit in enumerate(hits[:MAX_SOURCES], start=1)
        for span in quotable_spans(hit.chunk.text)
        if plain_text(markdown := as_markdown(hit.chunk.text, span)).strip()  # no bare picture or tag
    ]
    words = _word_starts(question)
    candidates.sort(key=lambda quote: -len(words.intersection(_word_starts(quote.text))))
    candidates = candidates[:MAX_CANDIDATES]
    if not candidates:
        return []
    vectors = np.stack([encoder.embed_query(_in_context(quote, hits)) for quote in candidates])
    scores = vectors @ encoder.embed_query(question) - COSINE_PER_RANK * np.array(
        [q.source for q in candidates]
    )
    best = np.argsort(-scores, kind="stable")[:MAX_QUOTES]
    chosen = [candidates[i] for i in best if scores[i] >= scores[best[0]] - MAX_COSINE_BELOW_BEST]
    return sorted(chosen, key=lambda quote: (quote.source, quote.start))


def _in_context(quote: Quote, hits: Sequence[Hit]) -> str:
    chunk = hits[quote.source - 1].chunk
    return passage_text(chunk.title, chunk.heading, quote.markdown)


def _word_starts(text: str) -> set[str]:
    """The text's words without stopwords, cut short: a rough stem that needs no index."""
    return {word[: max(4, len(word) - 2)] for phrase in query_phrases(text) for word in phrase.split()}
