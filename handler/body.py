"""Bodies that are too large are refused before anybody reads them."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handler.problem import problem

_TOO_LARGE = "The question and what was said before it are too long together."


class BodyLimit:
    """Middleware that answers 413 to a body of more than `max_bytes`, announced or not.

    FastAPI has one too, whose answer is no JSON.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on a request that is not announced as too large, and ends it where it becomes so."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > self._max_bytes:
            await problem(413, "bad_request", _TOO_LARGE)(scope, receive, send)
            return
        n_bytes = 0

        async def receive_some() -> Message:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > self._max_bytes:
                raise HTTPException(413, _TOO_LARGE)
            return message

        await self._app(scope, receive_some, send)
