"""An answer of the local chat: from all that the library has, and kept in its conversation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from handler.answer import Question, answer_events_from
from handler.bundle.types import BundleError
from handler.events import Done, Error, Event
from handler.generate.types import Generator
from handler.local.conversations import AnswerSoFar, Conversations
from handler.local.library import Library


async def answer(
    library: Library, generator: Generator, question: Question, clock: Callable[[], float] = time.monotonic
) -> AsyncGenerator[Event]:
    """The events of an answer from all that the library has now."""
    try:
        # In a thread: an index that changed is read again first.
        search = await asyncio.to_thread(library.search)
    except BundleError as error:
        yield Error("internal", f"The index cannot be read: {error}")
        return
    async with aclosing(answer_events_from(search, generator, question, library.version, clock)) as events:
        async for event in events:
            yield event


async def kept(
    events: AsyncGenerator[Event], conversations: Conversations, message_id: int
) -> AsyncGenerator[Event]:
    """The same events, of which the conversation keeps what came, whatever ends them."""
    so_far = AnswerSoFar()
    is_kept = False
    try:
        async with aclosing(events):
            async for event in events:
                so_far.add(event)
                if isinstance(event, Done | Error):
                    # Before it is sent: who has read it finds the answer in the conversation.
                    conversations.keep(message_id, so_far)
                    is_kept = True
                yield event
    finally:
        if not is_kept:
            conversations.keep(message_id, so_far)
