from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from handler.budget import Budget
from handler.events import Citation, Done, Error, Event, Sources, Text, Timing, Usage
from handler.meter import Meter

SOURCES, TEXT, ERROR = Sources(()), Text("Sun."), Error("overloaded", "Later.")
DONE = Done("claude", "m", "end", Usage(30, 10, 500, 2), Timing(1.0, 2.0, 3.0), "v1")


def metered(tmp_path: Path, *events: Event, n_read: int = 99) -> tuple[dict[str, Any], bool]:
    """The facts, and whether anything of a budget of 100, all of it reserved, is left."""
    budget = Budget(100, tmp_path, lambda: 0.0)
    facts: dict[str, Any] = {}

    async def given() -> AsyncGenerator[Event]:
        for event in events:
            yield event

    async def read() -> None:
        meter = Meter(facts, budget, budget.reserve(100))
        watched = meter.watch(given())
        seen = [event async for event in _first(watched, n_read)]
        assert seen == list(events[:n_read])
        await watched.aclose()
        await meter.settle()

    asyncio.run(read())
    return facts, budget.reserve(1) is not None


async def _first(events: AsyncGenerator[Event], n: int) -> AsyncGenerator[Event]:
    for _ in range(n):
        try:
            yield await anext(events)
        except StopAsyncIteration:
            return


def test_a_whole_answer_costs_what_it_says(tmp_path: Path) -> None:
    facts, is_left = metered(tmp_path, SOURCES, TEXT, Citation(1, "Sun", 4), DONE)
    assert facts == {"hits": 0, "tokens": 42, "stop_reason": "end"}
    assert is_left


@pytest.mark.parametrize("n_read", [1, 2])
def test_an_answer_that_its_reader_leaves_costs_all_that_was_reserved(tmp_path: Path, n_read: int) -> None:
    facts, is_left = metered(tmp_path, SOURCES, TEXT, DONE, n_read=n_read)
    assert "tokens" not in facts
    assert not is_left


def test_an_answer_that_breaks_off_costs_all_that_was_reserved(tmp_path: Path) -> None:
    facts, is_left = metered(tmp_path, SOURCES, TEXT, ERROR)
    assert facts["error"] == "overloaded"
    assert not is_left


@pytest.mark.parametrize("events", [(), (SOURCES, ERROR)])
def test_an_answer_that_never_began_costs_nothing(tmp_path: Path, events: tuple[Event, ...]) -> None:
    assert metered(tmp_path, *events)[1]
