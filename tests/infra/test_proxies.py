"""The snippets for Apache and nginx as they ship, in real servers, in front of the real handler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.anthropic_api import HOLD, AnthropicApi, Block, anthropic_api, stream
from tests.fakes.server_process import PATIENCE_S, ServerProcess, serving
from tests.fakes.web_server import PROGRAMS, web_server

web_servers = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.skipif(not program, reason=f"needs {name} (Debian: nginx, apache2)")
        )
        for name, program in PROGRAMS.items()
    ],
)


@pytest.fixture
def api() -> Iterator[AnthropicApi]:
    with anthropic_api() as api:
        yield api


@web_servers
def test_events_pass_a_web_server_as_they_come(
    name: str, sample_bundle: Path, tmp_path: Path, api: AnthropicApi
) -> None:
    """The model holds its answer until the reader has seen its first words: a buffer would wait for ever."""
    whole = stream(Block(["Sun ", "and water."]))
    api.replies.append([*whole[:3], HOLD, *whole[3:]])
    environ = {
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": api.url,
        "TRUSTED_PROXIES": "127.0.0.1",
    }
    with (
        serving(sample_bundle, tmp_path, environ) as server,
        web_server(name, tmp_path / name, server.url) as url,
        httpx.Client(timeout=PATIENCE_S, headers={"Accept-Encoding": "gzip"}) as client,
    ):
        seen = []
        question = {"question": "When do tomatoes want sun?"}
        headers = {"Origin": url, "X-Forwarded-For": "203.0.113.9"}
        with client.stream("POST", f"{url}/ask/api/ask", json=question, headers=headers) as response:
            assert response.status_code == 200
            assert "content-encoding" not in response.headers
            for line in response.iter_lines():
                if line.startswith("event: "):
                    seen.append(line.removeprefix("event: "))
                    if seen == ["sources", "text"]:
                        api.go_on()
        assert seen[-1] == "done"
        logged = json.dumps(request_line(server, "/api/ask"))
        assert "127.0.0" in logged
        assert "203.0.113" not in logged


@web_servers
def test_a_web_server_passes_on_the_widget_the_search_and_nothing_else(
    name: str, sample_bundle: Path, tmp_path: Path
) -> None:
    with (
        serving(sample_bundle, tmp_path) as server,
        web_server(name, tmp_path / name, server.url) as url,
        httpx.Client(timeout=PATIENCE_S) as client,
    ):
        widget = client.get(f"{url}/ask/widget.js")
        assert widget.text == httpx.get(f"{server.url}/ask/widget.js").text
        assert widget.headers["content-encoding"] == "gzip"
        assert client.get(f"{url}/ask/api/about").json()["name"]
        found = client.get(f"{url}/ask/api/search", params={"q": "tomatoes & sun"}).json()
        assert found["hits"]
        for path in ("/", "/healthz", "/docs", "/api/chat", "/ask/api/chat", "/ask/../healthz"):
            assert client.get(f"{url}{path}").status_code == 404, path


def request_line(server: ServerProcess, path: str) -> dict[str, Any]:
    while True:
        line = server.wait_for_log("request")
        if line["path"] == path:
            return line
