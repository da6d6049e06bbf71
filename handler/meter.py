"""What one answer was and cost, read off its events as they go by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from handler.budget import Budget, Reservation
from handler.events import Done, Error, Event, Sources, Text


class Meter:
    """Notes facts for the log, and settles what was reserved of the budget."""

    def __init__(self, facts: dict[str, Any], budget: Budget | None, reservation: Reservation | None) -> None:
        self._facts = facts
        self._budget = budget
        self._reservation = reservation
        self._tokens: int | None = 0

    async def watch(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """The same events."""
        async with aclosing(events):
            async for event in events:
                self._note(event)
                yield event

    async def settle(self) -> None:
        """To be called once, when the answer has ended, however it did."""
        if self._budget and self._reservation and self._tokens is not None:
            await asyncio.to_thread(self._budget.settle, self._reservation, self._tokens)

    def _note(self, event: Event) -> None:
        match event:
            case Sources(sources):
                self._facts["hits"] = len(sources)
            case Text():
                # From here on it costs something, and only the end says how much: an answer that breaks off
                # is counted as all that was reserved.
                self._tokens = None
            case Done():
                self._tokens = event.usage.total
                self._facts.update(tokens=event.usage.total, stop_reason=event.stop_reason)
            case Error():
                self._facts["error"] = event.code
