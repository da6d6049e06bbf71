from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import Metrics
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handler.lambda_metrics import NAMESPACE, Invocations
from handler.log import FACTS


def metrics_of(app: ASGIApp, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What CloudWatch reads after a request, on a clock that a second passes on between two looks."""
    seconds = count()
    metrics = Metrics(namespace=NAMESPACE, service="ralph")
    counted = Invocations(app, Logger(service="ralph"), metrics, clock=lambda: next(seconds))
    scope = {"type": "http", "aws.context": SimpleNamespace(aws_request_id="invocation-1")}

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        pass

    with suppress(RuntimeError):
        asyncio.run(counted(scope, receive, send))
    (line,) = capsys.readouterr().out.splitlines()
    return dict(json.loads(line))


def answering(status: int, **facts: object) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope[FACTS].update(facts)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await send({"type": "http.response.body", "body": b"b"})

    return app


def test_an_answer_counts_its_time_its_first_byte_and_its_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    line = metrics_of(answering(200, tokens=7), capsys)
    names = ("FirstByte", "Duration", "Tokens", "Failed")
    assert [line[name] for name in names] == [[1000], [2000], [7], [0]]


@pytest.mark.parametrize("app", [answering(503), answering(200, error="overloaded")])
def test_an_answer_that_says_it_failed_counts_as_failed(
    app: ASGIApp, capsys: pytest.CaptureFixture[str]
) -> None:
    assert metrics_of(app, capsys)["Failed"] == [1]


def test_an_app_that_breaks_before_its_answer_counts_as_failed(capsys: pytest.CaptureFixture[str]) -> None:
    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError

    line = metrics_of(breaks, capsys)
    assert line["Failed"] == [1]
    assert "FirstByte" not in line
