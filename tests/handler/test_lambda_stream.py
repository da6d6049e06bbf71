from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from handler.bundle.layout import MODEL
from handler.lambda_runtime import RuntimeApi as Client
from handler.lambda_stream import LAST_WORDS_S, answer_all
from tests.fakes.anthropic_api import HOLD, AnthropicApi, Block, anthropic_api, stream
from tests.fakes.runtime_api import (
    ERROR_TYPE,
    PATIENCE_S,
    Post,
    RuntimeApi,
    function_process,
    function_url_event,
    runtime_api,
)
from tests.fakes.secrets_manager import SECRET, secret_environ, secrets_manager
from tests.fakes.server_process import environment

MakeBundle = Callable[..., Path]

ASK = function_url_event(body={"question": "When do tomatoes want sun?"})
HEALTH = function_url_event("GET", "/healthz")


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    with runtime_api() as api:
        yield api


@pytest.fixture
def claude() -> Iterator[AnthropicApi]:
    with anthropic_api() as claude:
        yield claude


@pytest.fixture
def secret() -> Iterator[dict[str, str]]:
    with secrets_manager() as environ:
        yield environ


def function_environ(
    api: RuntimeApi, bundle: Path, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    return environment({**api.environ, "RALPH_BUNDLE": str(bundle), **(environ or {})})


def function(
    api: RuntimeApi, bundle: Path, environ: Mapping[str, str] | None = None
) -> AbstractContextManager[subprocess.Popen[str]]:
    """The real app in a process of its own, with the streaming client."""
    return function_process(
        "handler.lambda_stream",
        environ=function_environ(api, bundle, environ),
    )


def answers(api: RuntimeApi, app: ASGIApp, *events: Any, deadline_s: float = PATIENCE_S) -> list[Post]:
    """What the client tells of events that `app` answers."""

    async def invoke() -> list[Post]:
        client = asyncio.create_task(answer_all(Client(api.address), app))
        try:
            return [await asyncio.to_thread(api.invoke, event, deadline_s) for event in events]
        finally:
            client.cancel()
            with suppress(asyncio.CancelledError):
                await client

    return asyncio.run(invoke())


def events_of(post: Post) -> list[tuple[str, Any]]:
    blocks = [block.split("\n") for block in post.body.decode().split("\n\n") if not block.startswith(":")]
    return [
        (block[0].removeprefix("event: "), json.loads(block[1].removeprefix("data: ")))
        for block in blocks
        if len(block) == 2
    ]


async def begin(send: Send, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def whole(scope: Scope, receive: Receive, send: Send) -> None:
    await begin(send)
    await send({"type": "http.response.body", "body": b"whole", "more_body": False})


async def breaking(scope: Scope, receive: Receive, send: Send) -> None:
    await begin(send)
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    raise RuntimeError("in mid-answer")


def test_an_answer_is_streamed_as_it_is_written(
    api: RuntimeApi, claude: AnthropicApi, sample_bundle: Path
) -> None:
    steps = stream(Block(["Sun ", "and water."]))
    claude.replies.append([*steps[:3], HOLD, *steps[3:]])
    key = {"ANTHROPIC_API_KEY": "sk-secret", "ANTHROPIC_BASE_URL": claude.url}
    with function(api, sample_bundle, key):
        api.begin(ASK)
        while b"Sun" not in api.chunks.get(timeout=PATIENCE_S):
            pass
        claude.go_on()  # only now: what came before it was not held back
        post = api.take()
    assert post.kind == "response"
    assert post.headers["lambda-runtime-function-response-mode"] == "streaming"
    assert post.headers["content-type"] == "application/vnd.awslambda.http-integration-response"
    assert post.prelude["statusCode"] == 200
    assert post.prelude["headers"]["content-type"].startswith("text/event-stream")
    assert post.trailers == {}
    names = [name for name, _ in events_of(post)]
    assert (names[0], names[-1]) == ("sources", "done")
    assert [data["text"] for name, data in events_of(post) if name == "text"] == ["Sun ", "and water."]


def test_an_answer_that_runs_out_of_time_ends_in_an_event_that_says_so(
    api: RuntimeApi, claude: AnthropicApi, sample_bundle: Path
) -> None:
    claude.replies.append([*stream(Block(["Sun "]))[:3], HOLD])
    key = {"ANTHROPIC_API_KEY": "sk-secret", "ANTHROPIC_BASE_URL": claude.url}
    with function(api, sample_bundle, key):
        assert api.invoke(HEALTH).kind == "response"
        cut = api.invoke(ASK, deadline_s=LAST_WORDS_S + 1)
        assert claude.wait_for_aborted(1)
        after = api.invoke(ASK)
    assert cut.trailers == {}
    assert [name for name, _ in events_of(cut)] == ["sources", "text", "error"]
    assert events_of(cut)[-1][1]["code"] == "cut_off"
    assert events_of(after)[-1][0] == "done"


def test_one_start_serves_many_requests_and_each_writes_its_log_and_metrics(
    api: RuntimeApi, sample_bundle: Path
) -> None:
    with function(api, sample_bundle) as process:
        health = api.invoke(HEALTH)
        asked = api.invoke(ASK)
        page = api.invoke(function_url_event("GET", "/ask/widget.js"))
        refused = api.invoke(function_url_event(body={"no": "question"}))
        api.close()
        out, err = process.communicate(timeout=PATIENCE_S)
    assert json.loads(health.body)["bundle"] == sample_bundle.name
    assert events_of(asked)[-1][1]["generator"] == "extractive"
    assert b"ralph" in page.body
    assert refused.prelude["statusCode"] == 422
    requests = [line for line in map(json.loads, err.splitlines()[:4]) if line["message"] == "request"]
    assert [line["function_request_id"] for line in requests] == [f"invocation-{n}" for n in (1, 2, 3, 4)]
    assert {line["client"] for line in requests} == {"203.0.113.0/24"}
    assert "tomatoes" not in err
    metrics = [json.loads(line) for line in out.splitlines()]
    assert [line["Failed"] for line in metrics] == [[0.0]] * 4
    assert "Tokens" in metrics[1]
    assert metrics[0]["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Ralph"


def test_a_start_that_fails_is_reported(api: RuntimeApi, make_bundle: MakeBundle) -> None:
    bundle = make_bundle()
    with (bundle / MODEL).open("ab") as file:
        file.write(b"x")
    with function(api, bundle) as process:
        post = api.take()
        assert process.wait(PATIENCE_S) == 1
    assert post.path.endswith("/runtime/init/error")
    assert post.headers[ERROR_TYPE] == "Runtime.BundleError"
    assert "model.onnx" in post.json["errorMessage"]


def test_a_snapshot_is_taken_before_the_key_is_read(
    api: RuntimeApi, claude: AnthropicApi, sample_bundle: Path
) -> None:
    environ = {
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
        "ANTHROPIC_API_KEY": "sk-secret",
        "ANTHROPIC_BASE_URL": claude.url,
    }
    with function(api, sample_bundle, environ):
        assert json.loads(api.invoke(HEALTH).body)["generator"] == "claude"
        assert api.n_restored == 1


def test_the_key_comes_from_the_secret_and_into_no_log(
    api: RuntimeApi, claude: AnthropicApi, secret: dict[str, str], sample_bundle: Path
) -> None:
    environ = {**secret, "ANTHROPIC_BASE_URL": claude.url}
    with function(api, sample_bundle, environ) as process:
        assert events_of(api.invoke(ASK))[-1][1]["generator"] == "claude"
        process.kill()
        out, err = process.communicate(timeout=PATIENCE_S)
    assert claude.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in out + err


def test_a_restore_that_fails_is_reported(api: RuntimeApi, sample_bundle: Path) -> None:
    environ = {**secret_environ("http://127.0.0.1:1"), "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"}
    with function(api, sample_bundle, environ) as process:
        post = api.take()
        assert process.wait(PATIENCE_S) == 1
    assert api.n_restored == 1
    assert post.path.endswith("/runtime/restore/error")


def test_an_error_in_mid_answer_is_told_in_the_trailers(api: RuntimeApi) -> None:
    broken, fine = answers(api, breaking, HEALTH, HEALTH)
    assert (broken.kind, broken.body) == ("response", b"half")
    assert broken.trailers[ERROR_TYPE] == "Runtime.RuntimeError"
    assert broken.trailing_error["errorMessage"] == "in mid-answer"
    assert fine.kind == "response"


def test_an_answer_without_an_end_is_an_error(api: RuntimeApi) -> None:
    async def ends_early(scope: Scope, receive: Receive, send: Send) -> None:
        await begin(send)

    (post,) = answers(api, ends_early, HEALTH)
    assert post.trailers[ERROR_TYPE] == "Runtime.AnswerError"


def test_an_error_before_the_answer_is_told_in_its_place(api: RuntimeApi) -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("at once")

    (post,) = answers(api, fails, HEALTH)
    assert post.kind == "error"
    assert post.headers[ERROR_TYPE] == "Runtime.ValueError"
    assert post.json == {"errorType": "ValueError", "errorMessage": "at once", "stackTrace": []}


def test_an_error_after_a_whole_answer_does_not_spoil_it(api: RuntimeApi) -> None:
    async def fails_late(scope: Scope, receive: Receive, send: Send) -> None:
        await whole(scope, receive, send)
        raise ValueError("late")

    (post,) = answers(api, fails_late, HEALTH)
    assert (post.kind, post.body, post.trailers) == ("response", b"whole", {})


def test_an_event_of_another_kind_is_refused(api: RuntimeApi) -> None:
    posts = answers(api, whole, {"Records": []}, [], "text", {**HEALTH, "version": "1.0"}, HEALTH)
    assert [post.kind for post in posts] == [*["error"] * 4, "response"]


@pytest.mark.parametrize(
    "part",
    [
        {"headers": None},
        {"headers": {"host": "abc", "x-forwarded-port": "none"}},
        {"rawQueryString": "\ud800"},
        {"body": "abc", "isBase64Encoded": True},
        {"body": 3, "isBase64Encoded": True},
    ],
)
def test_an_event_that_makes_no_request_ends_nothing(api: RuntimeApi, part: dict[str, Any]) -> None:
    wrong, right = answers(api, whole, {**HEALTH, **part}, HEALTH)
    assert (wrong.kind, right.kind) == ("error", "response")


def test_a_body_comes_as_it_was_sent_and_then_nothing_more(api: RuntimeApi) -> None:
    async def echo(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        assert message["more_body"] is False
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await receive()
        await begin(send)
        await send({"type": "http.response.body", "body": message["body"]})

    (post,) = answers(api, echo, function_url_event(body={"question": "Grüße?"}))
    assert json.loads(post.body) == {"question": "Grüße?"}


def test_cookies_stay_apart_and_other_headers_are_joined(api: RuntimeApi) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        cookies = [(b"Set-Cookie", b"a=1"), (b"set-cookie", b"b=2")]
        await begin(send, *cookies, (b"Vary", b"a"), (b"vary", b"b"), (b"Content-Length", b"0"))
        await send({"type": "http.response.body"})

    (post,) = answers(api, app, HEALTH)
    assert post.prelude == {"statusCode": 200, "headers": {"vary": "a, b"}, "cookies": ["a=1", "b=2"]}
    assert post.body == b""


def test_an_app_that_does_not_end_in_time_is_ended(api: RuntimeApi) -> None:
    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await begin(send)
        await asyncio.Event().wait()

    (post,) = answers(api, endless, HEALTH, deadline_s=LAST_WORDS_S + 0.2)
    assert post.trailers[ERROR_TYPE] == "Runtime.TimeoutError"


def test_an_answer_that_lambda_cut_off_does_not_end_the_function(
    api: RuntimeApi, caplog: pytest.LogCaptureFixture
) -> None:
    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/healthz":
            await whole(scope, receive, send)
            return
        await begin(send)
        while True:
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(0)

    api.drop_after_chunks = 3
    api.begin(ASK)
    (post,) = answers(api, endless, HEALTH)
    assert post.body == b"whole"
    assert "an answer did not arrive" in caplog.messages


def test_a_refused_answer_does_not_end_the_function(
    api: RuntimeApi, caplog: pytest.LogCaptureFixture
) -> None:
    api.status = 413
    first, second = answers(api, whole, HEALTH, HEALTH)
    assert (first.body, second.body) == (b"whole", b"whole")
    assert "an answer did not arrive" in caplog.messages


def test_a_function_whose_runtime_api_is_gone_ends(api: RuntimeApi) -> None:
    api.close()
    with pytest.raises(OSError, match="invocation/next"):
        asyncio.run(answer_all(Client(api.address), whole))
