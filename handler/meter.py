"""What one answer was and cost, read off its events as they go by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from handler.budget import Budget, Reservation
from handler.events import Done, Error, Event, Sources, Text


class Meter:
    """Notes facts for the log, and settles what was reserved of the budget.

    From its sources on an answer may cost something, and only its end says how much: one that is left or
    breaks off is counted as all that was reserved. One that fails before its first word costs nothing.
    """

    def __init__(self, facts: dict[str, Any], budget: Budget | None, reservation: Reservation | None) -> None:
        self._facts = facts
        self._budget = budget
        self._reservation = reservation
        self._tokens: int | None = 0
        self._has_text = False

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
                self._tokens = None
            case Text():
                self._has_text = True
            case Done():
                self._tokens = event.usage.total
                self._facts.update(tokens=event.usage.total, stop_reason=event.stop_reason)
            case Error():
                self._facts["error"] = event.code
                if not self._has_text:
                    self._tokens = 0
