"""Events as a text/event-stream, which never falls silent and always ends in `done` or `error`."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

import anyio
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from handler.events import Done, Error, Event, event_data

# Proxies and phones end a connection that says nothing, mostly after 30 s or 60 s.
PING_AFTER_S = 15.0
PING = b": ping\n\n"

# A proxy that compresses or buffers would collect the events first. The second is nginx's word for it.
HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}

_BROKEN = Error("internal", "Something went wrong here. Please try again.")
_STOPPED = Error("cut_off", "The server is being restarted. Please ask again.", retry_after_s=5)
_END = None

_log = logging.getLogger(__name__)


class EventStream(StreamingResponse):
    """A response that sends events as they come, and closes `events` when the reader is gone.

    `on_end` is called once, whether the stream came to its end, was left, or never began.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[Event],
        ping_after_s: float = PING_AFTER_S,
        on_end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._stream = stream(events, ping_after_s)
        self._on_end = on_end
        super().__init__(self._stream, headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the events. Whatever ends it, nothing goes on working for this reader afterwards."""
        try:
            async with aclosing(self._stream):
                await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            # A server that ends has waited long enough. Nobody waits for this task: to raise on would only be
            # logged as a fault. Nothing can be sent when nothing was begun, or nobody is there any more.
            with suppress(OSError, RuntimeError):
                await send({"type": "http.response.body", "body": encode(_STOPPED), "more_body": False})
        finally:
            if self._on_end:
                await self._on_end()


def encode(event: Event) -> bytes:
    """One event of the stream. ASCII escapes leave no line end of any kind in its data."""
    return f"event: {event.name}\ndata: {json.dumps(event_data(event), separators=(',', ':'))}\n\n".encode()


async def stream(events: AsyncGenerator[Event], ping_after_s: float) -> AsyncGenerator[bytes]:
    """The bytes of a stream of events, with a comment after each `ping_after_s` of silence.

    An exception becomes the event that tells of it. Closing the iterator closes `events`.
    """
    # One task runs `events` from begin to end, as timeouts inside of it need; one event waits at most.
    queue: asyncio.Queue[Event | None] = asyncio.Queue(1)
    reader = asyncio.create_task(_read(events, queue))
    try:
        while True:
            try:
                async with asyncio.timeout(ping_after_s):
                    event = await queue.get()
            except TimeoutError:
                yield PING
                continue
            if event is _END:
                return
            yield encode(event)
    finally:
        reader.cancel()
        with anyio.CancelScope(shield=True):  # the reader's going cancels this task too, and again and again
            await asyncio.wait([reader])


async def _read(events: AsyncGenerator[Event], queue: asyncio.Queue[Event | None]) -> None:
    last: Event | None = None
    try:
        async with aclosing(events):
            async for event in events:
                await queue.put(event)
                last = event
    except Exception:
        _log.exception("an answer broke off")
    if not isinstance(last, Done | Error):
        await queue.put(_BROKEN)
    await queue.put(_END)
