"""The snippets for Apache and nginx as they ship, in real servers, in front of the real handler."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.anthropic_api import HOLD, AnthropicApi, Block, anthropic_api, stream
from tests.fakes.server_process import PATIENCE_S, ServerProcess, serving

INFRA = Path(__file__).resolve().parent.parent.parent / "infra"
PATH = "/usr/sbin:/usr/local/sbin:/usr/bin:/bin"
MODULES = Path("/usr/lib/apache2/modules")
BACKEND = "127.0.0.1:3001"

NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off; gzip on; gzip_types *; gzip_proxied any;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{ listen 127.0.0.1:{port}; include {folder}/davo-bot.conf; }}
}}
"""
APACHE = """
ServerRoot {folder}
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile {folder}/pid
ErrorLog {folder}/error.log
DefaultRuntimeDir {folder}
{modules}
AddOutputFilterByType DEFLATE text/event-stream text/javascript application/json
<VirtualHost 127.0.0.1:{port}>
Include {folder}/davo-bot.conf
</VirtualHost>
"""
APACHE_MODULES = (
    "mpm_event",
    "authz_core",
    "proxy",
    "proxy_http",
    "headers",
    "setenvif",
    "deflate",
    "filter",
)


def start_argv(name: str, folder: Path, port: int) -> list[str]:
    """Writes the configuration of a web server that includes the snippet, and returns what starts it."""
    program = shutil.which("nginx" if name == "nginx" else "apache2", path=PATH)
    if not program:
        pytest.skip(f"needs {name} (Debian: nginx, apache2)")
    if name == "nginx":
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
        return [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    lines = [f"LoadModule {each}_module {MODULES}/mod_{each}.so" for each in APACHE_MODULES]
    configuration = APACHE.format(folder=folder, port=port, modules="\n".join(lines))
    (folder / "apache.conf").write_text(configuration)
    return [program, "-d", str(folder), "-f", str(folder / "apache.conf"), "-DFOREGROUND"]


@contextmanager
def proxied(name: str, folder: Path, server: ServerProcess) -> Iterator[str]:
    """The address of a web server that passes /ask/ on to a handler."""
    folder.mkdir()
    snippet = (INFRA / name / "davo-bot.conf").read_text()
    assert BACKEND in snippet
    snippet = snippet.replace(BACKEND, server.url.removeprefix("http://"))
    (folder / "davo-bot.conf").write_text(snippet)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen(
        start_argv(name, folder, port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            transport = httpx.HTTPTransport(retries=8)  # until it listens; pauses grow from half a second
            with httpx.Client(transport=transport, timeout=PATIENCE_S) as client:
                client.get(f"http://127.0.0.1:{port}/")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.fixture
def api() -> Iterator[AnthropicApi]:
    with anthropic_api() as api:
        yield api


@pytest.mark.parametrize("name", ["apache", "nginx"])
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
        proxied(name, tmp_path / name, server) as url,
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


@pytest.mark.parametrize("name", ["apache", "nginx"])
def test_a_web_server_passes_on_the_widget_the_search_and_nothing_else(
    name: str, sample_bundle: Path, tmp_path: Path
) -> None:
    with (
        serving(sample_bundle, tmp_path) as server,
        proxied(name, tmp_path / name, server) as url,
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
