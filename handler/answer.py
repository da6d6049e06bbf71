"""A question to the events of its answer. Knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from handler.bundle.bundle import Bundle
from handler.bundle.search import CHUNKS_FOR_ANSWER
from handler.events import Citation, Done, Error, Event, Sources, Text, Timing
from handler.followup import Search, search_in_context
from handler.generate.types import Finished, Generator, GeneratorError, PageRead, Prompt, Turn
from handler.sources import as_read, source_numbers, sources_of


@dataclass(frozen=True, slots=True)
class Question:
    """What a reader asks, and what was said before, oldest first.

    `collections` narrows the search by name; None asks all that are public.
    """

    text: str
    history: Sequence[Turn] = ()
    page: PageRead | None = None
    collections: Sequence[str] | None = None


def answer_events(
    bundle: Bundle, generator: Generator, question: Question, clock: Callable[[], float] = time.monotonic
) -> AsyncGenerator[Event, None]:
    """The answer of a bundle's public pages: Sources, then Text and Citation, then Done or Error.

    A collection that is unknown or not public has nothing to find. Closing the iterator early ends all work.
    """
    search = partial(
        bundle.search,
        collections=public_names(bundle, question.collections),
        page=question.page.url if question.page else None,
        chunks_per_page=CHUNKS_FOR_ANSWER,
    )
    return answer_events_from(search, generator, question, bundle.manifest.version, clock)


def public_names(bundle: Bundle, asked: Sequence[str] | None) -> list[str]:
    """The collections that anyone may ask, those of them that are asked."""
    return [name for name in bundle.manifest.public_collections if asked is None or name in asked]


async def answer_events_from(
    search: Search, generator: Generator, question: Question, version: str, clock: Callable[[], float]
) -> AsyncGenerator[Event, None]:
    """The answer of whatever `search` finds, in the same events. `version` is that of what it searches."""
    started = clock()

    def elapsed_ms() -> float:
        return round(1000 * (clock() - started), 1)

    # In a thread: a search holds the processor for some 10 ms, during which other answers stream on.
    found = await asyncio.to_thread(search_in_context, search, question.text, question.history, question.page)
    yield Sources(sources_of(found.hits))
    numbers = source_numbers(found.hits)
    sources_ms = elapsed_ms()
    first_text_ms: float | None = None
    prompt = Prompt(question.text, found.hits, question.history, question.page, found.question, found.vector)
    try:
        async with aclosing(generator.generate(prompt)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Finished):
                    yield Done(
                        generator=generator.name,
                        model=generator.model,
                        stop_reason=piece.stop_reason,
                        usage=piece.usage,
                        timing=Timing(sources_ms, first_text_ms, elapsed_ms()),
                        bundle=version,
                        dropped_citations=piece.dropped_citations,
                    )
                    return
                if first_text_ms is None and isinstance(piece, Text):
                    first_text_ms = elapsed_ms()
                if isinstance(piece, Citation):
                    chunk = found.hits[piece.source - 1].chunk
                    number = numbers[piece.source - 1]
                    yield replace(piece, source=number, shown=as_read(chunk, piece.quote))
                else:
                    yield piece
    except GeneratorError as error:
        yield Error(error.code, str(error), error.retry_after_s)
        return
    raise AssertionError(f"{generator.name} ended without Finished")
