from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from handler.bundle.layout import MODEL
from tests.fakes.runtime_api import (
    ERROR_TYPE,
    PATIENCE_S,
    RuntimeApi,
    function_process,
    function_url_event,
    runtime_api,
)
from tests.fakes.server_process import environment

pytest.importorskip("awslambdaric", reason="Lambda's own client is for Linux")

ASK = function_url_event(body={"question": "When do tomatoes want sun?"})
HEALTH = function_url_event("GET", "/healthz")


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    with runtime_api() as api:
        yield api


def function(
    api: RuntimeApi, bundle: Path, environ: Mapping[str, str] | None = None
) -> AbstractContextManager[subprocess.Popen[str]]:
    """The real app under Lambda's own client, which is what starts it there."""
    return function_process(
        "awslambdaric",
        "handler.lambda_mangum.handler",
        environ=environment({**api.environ, "RALPH_BUNDLE": str(bundle), **(environ or {})}),
    )


def test_an_answer_comes_whole_at_its_end(api: RuntimeApi, sample_bundle: Path) -> None:
    with function(api, sample_bundle):
        post = api.invoke(ASK)
        again = api.invoke(HEALTH)
    assert "lambda-runtime-function-response-mode" not in post.headers
    assert post.json["statusCode"] == 200
    assert post.json["body"].startswith("event: sources\n")
    assert "event: done\n" in post.json["body"]
    assert json.loads(again.json["body"])["bundle"] == sample_bundle.name


def test_the_app_starts_once_for_all_requests(api: RuntimeApi, sample_bundle: Path) -> None:
    with function(api, sample_bundle) as process:
        for _ in range(3):
            assert api.invoke(HEALTH).json["statusCode"] == 200
        process.kill()  # it asks on and on for the next one
        _, err = process.communicate(timeout=PATIENCE_S)
    ids = [json.loads(line)["function_request_id"] for line in err.splitlines() if '"request"' in line]
    assert ids == ["invocation-1", "invocation-2", "invocation-3"]


def test_a_start_that_fails_is_reported(api: RuntimeApi, tmp_path: Path) -> None:
    with function(api, tmp_path / "nowhere"):
        post = api.take()
    assert post.path.endswith("/runtime/init/error")
    assert "BundleError" in post.headers[ERROR_TYPE]


def test_an_event_of_another_kind_is_an_error(api: RuntimeApi, sample_bundle: Path) -> None:
    with function(api, sample_bundle):
        post = api.invoke({"Records": []})
    assert post.kind == "error"
    assert post.json["errorType"] == "RuntimeError"


def test_a_damaged_bundle_does_not_start(api: RuntimeApi, sample_bundle: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    for path in sample_bundle.iterdir():
        (bundle / path.name).write_bytes(path.read_bytes())
    with (bundle / MODEL).open("ab") as file:
        file.write(b"x")
    with function(api, bundle):
        assert "model.onnx" in api.take().json["errorMessage"]
