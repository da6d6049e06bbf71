"""How long answers take and what they cost, as CloudWatch counts it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handler.log import FACTS

NAMESPACE = "Ralph"


class Invocations:
    """Middleware that names the invocation in each line of the log, and writes a line of metrics for it.

    A function has one request at a time, so that what the logger is told of it holds until the next.
    """

    def __init__(
        self,
        app: ASGIApp,
        logger: Logger,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._logger = logger
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on and counts it, however it ends."""
        started = self._clock()
        status, first_byte_ms = 500, None
        facts: dict[str, Any] = {}
        self._logger.append_keys(function_request_id=scope["aws.context"].aws_request_id)

        async def send_and_note(message: Message) -> None:
            nonlocal status, first_byte_ms
            if message["type"] == "http.response.start":
                status = message["status"]
            elif first_byte_ms is None:
                first_byte_ms = 1000 * (self._clock() - started)
            await send(message)

        try:
            await self._app({**scope, FACTS: facts}, receive, send_and_note)
        finally:
            add = self._metrics.add_metric
            add("Duration", MetricUnit.Milliseconds, round(1000 * (self._clock() - started), 1))
            if first_byte_ms is not None:
                add("FirstByte", MetricUnit.Milliseconds, round(first_byte_ms, 1))
            add("Failed", MetricUnit.Count, int(status >= 500 or "error" in facts))
            if "tokens" in facts:
                add("Tokens", MetricUnit.Count, facts["tokens"])
            self._metrics.flush_metrics()
