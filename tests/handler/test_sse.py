from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import pytest

from handler.events import Done, Error, Event, Source, Sources, Text, Timing, Usage
from handler.sse import PING, PING_AFTER_S, EventStream, encode

NOTHING = Sources(())
DONE = Done("fake", None, "end", Usage(), Timing(1.0, None, 2.0), "v1")


class Browser:
    """The other side of an ASGI response: collects its messages, and leaves when it is told to."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.has = asyncio.Condition()
        self.leaves = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        async with self.has:
            self.sent.append(message)
            self.has.notify_all()

    async def wait_for(self, part: bytes) -> None:
        async with self.has:
            await self.has.wait_for(lambda: part in self.body)

    async def read(self, response: EventStream) -> None:
        await response({"type": "http", "asgi": {"spec_version": "2.3"}}, self.receive, self.send)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


class Answer:
    """Events that stop for `gate`, and know whether they came to an end of their own."""

    def __init__(self, *before: Event, after: tuple[Event, ...] = ()) -> None:
        self.gate = asyncio.Event()
        self.closed = asyncio.Event()
        self._before, self._after = before, after

    async def events(self) -> AsyncGenerator[Event]:
        try:
            async with asyncio.timeout(60):  # as generators have them: it needs one task from begin to end
                for event in self._before:
                    yield event
                await self.gate.wait()
                for event in self._after:
                    yield event
        finally:
            self.closed.set()


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(limited())


async def events_of(*events: Event) -> AsyncGenerator[Event]:
    for event in events:
        yield event


def parsed(body: bytes) -> list[tuple[str, Any]]:
    frames = [
        frame.split("\n") for frame in body.decode().split("\n\n") if frame and not frame.startswith(":")
    ]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in frames]


def test_an_event_is_its_name_and_one_line_of_json() -> None:
    assert encode(Text("one\ntwo\r\u2028\u2029\x85 ü 🐘")) == (
        b'event: text\ndata: {"text":"one\\ntwo\\r\\u2028\\u2029\\u0085 \\u00fc \\ud83d\\udc18"}\n\n'
    )
    assert encode(Error("timeout", "Too slow.")) == (
        b'event: error\ndata: {"code":"timeout","message":"Too slow.","retry_after_s":null}\n\n'
    )


def test_events_are_sent_in_their_order_each_as_it_comes() -> None:
    async def test() -> None:
        source = Source(1, "Pond", "", "https://example.org/pond", "Algae", 1)
        browser = Browser()
        await browser.read(EventStream(events_of(Sources((source,)), Text("Yes."), DONE)))
        assert [name for name, _ in parsed(browser.body)] == ["sources", "text", "done"]
        assert [len(parsed(message.get("body", b""))) for message in browser.sent] == [0, 1, 1, 1, 0]

    run(test)


def test_proxies_are_told_neither_to_store_nor_to_collect() -> None:
    headers = EventStream(events_of(DONE)).headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-cache, no-transform"
    assert headers["x-accel-buffering"] == "no"


def test_silence_is_broken_by_pings_until_the_answer_goes_on() -> None:
    assert PING_AFTER_S <= 15

    async def test() -> None:
        answer, browser = Answer(NOTHING, after=(Text("At last."), DONE)), Browser()
        reading = asyncio.create_task(browser.read(EventStream(answer.events(), ping_after_s=0.005)))
        await browser.wait_for(PING * 4)
        answer.gate.set()
        await reading
        assert [name for name, _ in parsed(browser.body)] == ["sources", "text", "done"]

    run(test)


def test_an_answer_that_breaks_ends_in_an_error_event_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> AsyncGenerator[Event]:
        yield NOTHING
        raise ZeroDivisionError("the secret of a stack")

    browser = Browser()
    run(lambda: browser.read(EventStream(broken())))
    (_, (name, error)) = parsed(browser.body)
    assert (name, error["code"]) == ("error", "internal")
    assert b"secret" not in browser.body
    assert "ZeroDivisionError" in caplog.text


def test_an_answer_that_just_stops_ends_in_an_error_event() -> None:
    browser = Browser()
    run(lambda: browser.read(EventStream(events_of(NOTHING, Text("And then")))))
    assert [name for name, _ in parsed(browser.body)] == ["sources", "text", "error"]


def test_when_the_reader_leaves_all_work_ends() -> None:
    async def test() -> None:
        answer, browser, ended = Answer(NOTHING), Browser(), asyncio.Event()

        async def end() -> None:
            await asyncio.to_thread(ended.set)

        reading = asyncio.create_task(browser.read(EventStream(answer.events(), on_end=end)))
        await browser.wait_for(b"event: sources")
        browser.leaves.set()
        await reading
        assert answer.closed.is_set()
        assert ended.is_set()
        assert len(asyncio.all_tasks()) == 1

    run(test)


def test_a_reader_that_left_before_the_first_event_is_settled_too() -> None:
    async def test() -> None:
        answer, browser, ended = Answer(NOTHING), Browser(), asyncio.Event()

        async def end() -> None:
            ended.set()

        browser.leaves.set()
        await browser.read(EventStream(answer.events(), on_end=end))
        assert ended.is_set()
        assert len(asyncio.all_tasks()) == 1

    run(test)


def test_a_server_that_stops_says_so() -> None:
    async def test() -> None:
        answer, browser = Answer(NOTHING, Text("On")), Browser()
        reading = asyncio.create_task(browser.read(EventStream(answer.events())))
        await browser.wait_for(b"event: text")
        reading.cancel()
        await reading
        assert parsed(browser.body)[-1][1]["code"] == "cut_off"
        assert answer.closed.is_set()

    run(test)
