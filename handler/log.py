"""One line of JSON for each request: what happened, and nothing of what was asked or by whom."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.logging import Logger
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handler.limit import short_client

# Where a request's facts are in its scope. Whoever answers it adds to them.
FACTS = "ralph.facts"


def open_log() -> Logger:
    """The log of the server, as JSON lines on stderr; what anything else warns of goes there too."""
    logger = Logger(service="ralph", stream=sys.stderr, utc=True, location=None)
    logging.getLogger(logger.name).propagate = False  # or each line would be there twice
    logging.getLogger().handlers = [logger.registered_handler]
    return logger


class RequestLog:
    """Middleware that logs each request when its response has ended, however it ended."""

    def __init__(
        self, app: ASGIApp, logger: logging.Logger | Logger, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._logger = logger
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on and logs it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = self._clock()
        status = 500  # what the server sends for an exception that nobody answered
        facts: dict[str, Any] = scope.get(FACTS, {})

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app({**scope, FACTS: facts}, receive, send_and_note)
        finally:
            line = {
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(1000 * (self._clock() - started), 1),
                "client": short_client(scope),
                **facts,
            }
            self._logger.info("request", extra=line)
