"""The app behind a Function URL of AWS Lambda, which shows answers as they are written.

It takes the place of the client of Lambda's Python runtime, which cannot stream: a wrapper script starts
`python -m handler.lambda_stream` instead.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from mangum.handlers.api_gateway import HTTPGateway
from mangum.types import LambdaConfig
from starlette.types import ASGIApp, Message

from handler.lambda_runtime import Exchange, Invocation, RuntimeApi, RuntimeApiError
from handler.lambda_settings import read_lambda_settings

# An answer that has no more time than this left is ended, so that it can still say so.
LAST_WORDS_S = 1.0

_CONFIG: LambdaConfig = {"api_gateway_base_path": "/", "text_mime_types": [], "exclude_headers": []}

_log = logging.getLogger(__name__)


class AnswerError(Exception):
    """The app gave no answer, or half of one."""


async def run(environ: Mapping[str, str]) -> NoReturn:
    """Starts the app once and answers one invocation after the other.

    A start that fails is reported and raises what went wrong.
    """
    api = RuntimeApi(environ["AWS_LAMBDA_RUNTIME_API"])
    is_snapshot = read_lambda_settings(environ).is_snapshot
    try:
        from handler.lambda_app import open_function  # here, so that an import that fails is reported too

        function = open_function(environ)
        if not is_snapshot:
            function.begin()
    except Exception as error:
        await api.fail("/init", error)
        raise
    if is_snapshot:
        await api.wait_for_restore()
        try:
            function.begin()
        except Exception as error:
            await api.fail("/restore", error)
            raise
    await answer_all(api, function.app)


async def answer_all(api: RuntimeApi, app: ASGIApp) -> NoReturn:
    """Answers invocations as long as there are any. Raises OSError when the Runtime API is gone."""
    while True:
        invocation = await api.next()
        if invocation.trace_id:
            os.environ["_X_AMZN_TRACE_ID"] = invocation.trace_id  # where AWS's libraries look for it
        try:
            await answer(api, app, invocation)
        except (OSError, RuntimeApiError):
            # Lambda ended this answer. If it is gone for good, asking for the next one fails.
            _log.exception("an answer did not arrive")


async def answer(api: RuntimeApi, app: ASGIApp, invocation: Invocation) -> None:
    """Answers one invocation. Raises OSError or RuntimeApiError when the answer cannot be delivered.

    An error before the answer's status is reported in its place, a later one after what was already sent.
    """
    response = _Response(api, invocation.id)
    failure: Exception | None = None
    try:
        request = HTTPGateway(invocation.event, _Context(invocation.id), _CONFIG)  # type: ignore[arg-type]
        scope, body = {**request.scope}, _Body(request.body)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        _log.error("the event is none of a Function URL", extra={"reason": repr(error)})
        await api.fail(f"/invocation/{invocation.id}", error)
        return
    try:
        async with asyncio.timeout(invocation.deadline_s - time.time() - LAST_WORDS_S):
            await app(scope, body.receive, response.send)
    except Exception as error:
        _log.exception("the app failed")
        failure = error
    await response.end(failure)


@dataclass(frozen=True, slots=True)
class _Context:
    """The part of Lambda's context that the app looks at."""

    aws_request_id: str


class _Body:
    """A request's body, which came whole. Lambda tells nobody that a reader left."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    async def receive(self) -> Message:
        body, self._body = self._body, None
        if body is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": body, "more_body": False}


class _Response:
    """The answer on its way: ASGI's messages in, the Runtime API's stream out."""

    def __init__(self, api: RuntimeApi, invocation_id: str) -> None:
        self._api = api
        self._invocation_id = invocation_id
        self._exchange: Exchange | None = None
        self._is_whole = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: Any = message.get("headers", ())
            self._exchange = await self._api.respond(self._invocation_id, message["status"], headers)
        elif message["type"] == "http.response.body":
            assert self._exchange
            if body := message.get("body"):
                await self._exchange.send(body)
            self._is_whole = not message.get("more_body", False)

    async def end(self, failure: Exception | None) -> None:
        """Ends the answer: as it is when it is whole, else with what went wrong."""
        if not self._is_whole and failure is None:
            failure = AnswerError("the app ended without the end of its answer")
        if self._exchange is None:
            assert failure
            await self._api.fail(f"/invocation/{self._invocation_id}", failure)
            return
        try:
            await self._exchange.end(None if self._is_whole else failure)
        finally:
            self._exchange.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(run(os.environ)))
