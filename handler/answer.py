"""A question to an answer with its sources. Knows nothing of terminals or HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from handler.bundle.bundle import Bundle
from handler.bundle.gate import Verdict
from handler.bundle.search import Hit
from handler.generate.extractive import Quote, best_quotes

I_DONT_KNOW = "I don't know: these pages do not say."


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader gets. Without quotes the answer is I_DONT_KNOW, and `gate` says why."""

    question: str
    quotes: tuple[Quote, ...]
    hits: tuple[Hit, ...]
    gate: Verdict

    @property
    def text(self) -> str:
        """The quotes as markdown, each with the number of its source behind: a line, or a block of code."""
        if not self.quotes:
            return I_DONT_KNOW
        return "\n".join(
            f"{quote.markdown}\n[{quote.source}]"
            if quote.is_code
            else f"“{' '.join(quote.text.split())}” [{quote.source}]"
            for quote in self.quotes
        )


def answer(
    bundle: Bundle,
    question: str,
    *,
    collections: Iterable[str] | None = None,
    page: str | None = None,
    gated: bool = True,
) -> Answer:
    """The answer of the bundle's pages to a question, or that they have none."""
    found = bundle.search(question, collections=collections, page=page, gated=gated)
    quotes = best_quotes(question, found.hits, bundle.encoder)
    return Answer(question, tuple(quotes), found.hits, found.gate)
