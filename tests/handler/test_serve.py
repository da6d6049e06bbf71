from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from handler.bundle.layout import FORMAT_VERSION, MANIFEST, MODEL
from tests.fakes.anthropic_api import DROP, HOLD, AnthropicApi, Block, anthropic_api, stream
from tests.fakes.server_process import PATIENCE_S, ServerProcess, command, environment, serving

MakeBundle = Callable[..., Path]

QUESTION = {"question": "When do tomatoes want sun?"}
BOAT = {"notes/boat.md": "Boat\n\nThe boat is red.\n"}


@pytest.fixture
def api() -> Iterator[AnthropicApi]:
    with anthropic_api() as api:
        yield api


def key(api: AnthropicApi) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": "sk-secret", "ANTHROPIC_BASE_URL": api.url}


def held_answer() -> list[Any]:
    """An answer that stops after its first words, until the test lets it go on."""
    whole = stream(Block(["Sun ", "and water."]))
    return [*whole[:3], HOLD, *whole[3:]]


@contextmanager
def asking(server: ServerProcess) -> Iterator[Iterator[tuple[str, Any]]]:
    """The events of an answer, as they come."""
    with (
        httpx.Client(timeout=PATIENCE_S) as client,
        client.stream("POST", f"{server.url}/api/ask", json=QUESTION) as response,
    ):
        assert response.status_code == 200
        yield events(response.iter_lines())


def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    for line in lines:
        if line.startswith("event: "):
            yield line.removeprefix("event: "), json.loads(next(lines).removeprefix("data: "))


def ask(server: ServerProcess) -> list[tuple[str, Any]]:
    with asking(server) as answer:
        return list(answer)


def version(server: ServerProcess) -> str:
    return str(httpx.get(f"{server.url}/healthz").json()["bundle"])


def run(bundle: Path, folder: Path, environ: Mapping[str, str] | None = None, *options: str) -> str:
    """What a server that cannot start says."""
    done = subprocess.run(
        command(bundle, *options),
        cwd=folder,
        env=environment(environ or {}),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


def test_a_clone_without_a_key_answers_with_quotes(sample_bundle: Path, tmp_path: Path) -> None:
    with serving(sample_bundle, tmp_path) as server:
        answer = ask(server)
        assert [name for name, _ in answer][:3] == ["sources", "text", "citation"]
        assert answer[-1][1]["generator"] == "extractive"
        assert httpx.get(f"{server.url}/ask/demo").status_code == 200
        assert "ralph" in httpx.get(f"{server.url}/ask/widget.js").text
        line = server.wait_for_log("request")
        assert (line["path"], line["generator"], line["tokens"]) == ("/api/ask", "extractive", 0)
        server.send(signal.SIGTERM)
        assert server.wait() == 0


def test_with_a_key_claude_answers(sample_bundle: Path, tmp_path: Path, api: AnthropicApi) -> None:
    with serving(sample_bundle, tmp_path, {**key(api), "ASK_MODEL": "claude-x"}) as server:
        answer = ask(server)
        names = [name for name, _ in answer]
        assert (names[0], names[-1]) == ("sources", "done")
        assert {"text", "citation"} <= set(names)
        assert (answer[-1][1]["generator"], answer[-1][1]["model"]) == ("claude", "claude-x")
        line = server.wait_for_log("request")
        assert (
            line["tokens"] == answer[-1][1]["usage"]["input_tokens"] + answer[-1][1]["usage"]["output_tokens"]
        )
        assert "sk-secret" not in str(line)
        assert "tomatoes" not in str(line)
    assert api.requests[0].body["model"] == "claude-x"


def test_a_cut_upstream_ends_in_an_error(sample_bundle: Path, tmp_path: Path, api: AnthropicApi) -> None:
    api.replies.append([*stream(Block(["Sun "]))[:3], DROP])
    with serving(sample_bundle, tmp_path, key(api)) as server:
        answer = ask(server)
        assert [name for name, _ in answer] == ["sources", "text", "error"]
        assert answer[-1][1]["code"] == "cut_off"
        assert server.wait_for_log("request")["error"] == "cut_off"


def test_upstream_is_aborted_when_the_reader_leaves(
    sample_bundle: Path, tmp_path: Path, api: AnthropicApi
) -> None:
    api.replies.append(held_answer())
    with serving(sample_bundle, tmp_path, key(api)) as server:
        with asking(server) as answer:
            assert [next(answer)[0], next(answer)[0]] == ["sources", "text"]
        assert api.wait_for_aborted(1)
        assert "tokens" not in server.wait_for_log("request")


def test_a_hangup_changes_the_bundle_and_open_answers_end_on_the_old_one(
    sample_bundle: Path, make_bundle: MakeBundle, tmp_path: Path, api: AnthropicApi
) -> None:
    new = make_bundle(BOAT)
    current = tmp_path / "current"
    current.symlink_to(sample_bundle)
    api.replies.append(held_answer())
    with serving(current, tmp_path, key(api)) as server:
        old = version(server)
        with asking(server) as answer:
            assert [next(answer)[0], next(answer)[0]] == ["sources", "text"]
            (tmp_path / "next").symlink_to(new)
            (tmp_path / "next").replace(current)
            assert version(server) == old
            server.send(signal.SIGHUP)
            changed = server.wait_for_log("another bundle")["bundle"]
            assert version(server) == changed == new.name != old
            api.go_on()
            rest = list(answer)
        assert rest[-1][0] == "done"
        assert rest[-1][1]["bundle"] == old
        hits = httpx.get(f"{server.url}/api/search", params={"q": "red boat"}).json()["hits"]
        assert [hit["title"] for hit in hits] == ["Boat"]


def test_a_bad_bundle_does_not_replace_a_good_one(
    sample_bundle: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    bad = make_bundle(BOAT)
    with (bad / MODEL).open("ab") as file:
        file.write(b"x")
    current = tmp_path / "current"
    current.symlink_to(sample_bundle)
    with serving(current, tmp_path) as server:
        old = version(server)
        current.unlink()
        for target in (bad, tmp_path / "nowhere"):
            current.symlink_to(target)
            server.send(signal.SIGHUP)
            assert str(target) in server.wait_for_log("the bundle stays as it is")["reason"]
            current.unlink()
        assert version(server) == old
        assert ask(server)[-1][0] == "done"


def test_a_server_that_is_asked_to_end_lets_answers_end_first(
    sample_bundle: Path, tmp_path: Path, api: AnthropicApi
) -> None:
    api.replies.append(held_answer())
    with serving(sample_bundle, tmp_path, key(api)) as server:
        with asking(server) as answer:
            assert [next(answer)[0], next(answer)[0]] == ["sources", "text"]
            server.send(signal.SIGTERM)
            api.go_on()
            assert [name for name, _ in answer] == ["text", "done"]
        assert server.wait() == 0


def test_an_answer_that_is_cut_off_at_the_end_says_so(
    sample_bundle: Path, tmp_path: Path, api: AnthropicApi
) -> None:
    api.replies.append(held_answer())
    with serving(sample_bundle, tmp_path, key(api)) as server:
        with asking(server) as answer:
            assert [next(answer)[0], next(answer)[0]] == ["sources", "text"]
            server.send(signal.SIGTERM)
            assert server.wait_until_closed()
            server.send(signal.SIGINT)  # who presses Ctrl-C twice does not want to wait
            ((name, error),) = answer
            assert (name, error["code"]) == ("error", "cut_off")
        assert api.wait_for_aborted(1)


def test_with_dev_both_loopbacks_answer_else_only_one(sample_bundle: Path, tmp_path: Path) -> None:
    with serving(sample_bundle, tmp_path, {"DEV": "1"}, n_urls=2 if has_ipv6() else 1) as server:
        assert [httpx.get(f"{url}/healthz").status_code for url in server.urls] == [200] * len(server.urls)
    with serving(sample_bundle, tmp_path) as server:
        assert server.url.startswith("http://127.0.0.1:")
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url.replace('127.0.0.1', '[::1]')}/healthz")


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_a_file_beside_it_is_read(sample_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ASK_STARTERS=Where is the boat?\nPORT=1\n")
    with serving(sample_bundle, tmp_path) as server:
        assert httpx.get(f"{server.url}/api/about").json()["starters"] == ["Where is the boat?"]


def test_tokens_that_cannot_be_counted_together_are_counted_alone_and_that_is_said(
    sample_bundle: Path, tmp_path: Path
) -> None:
    environ = {"ASK_DAILY_TOKENS": "1000", "STATE_DIR": "/proc/nowhere"}
    with serving(sample_bundle, tmp_path, environ) as server:
        assert httpx.get(f"{server.url}/healthz").json()["budget"] == "per process"
        line = server.wait_for_log("this process counts its tokens for itself")
        assert (line["level"], line["STATE_DIR"]) == ("WARNING", "/proc/nowhere")


def test_what_cannot_start_says_why_in_one_sentence(make_bundle: MakeBundle, tmp_path: Path) -> None:
    bundle = make_bundle()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"{port} is in use on 127.0.0.1" in run(bundle, tmp_path, {}, "--port", str(port))
    assert "HOST: '192.0.2.1' is no address of this machine" in run(bundle, tmp_path, {"HOST": "192.0.2.1"})
    assert "HOST: 'no.such.invalid'" in run(bundle, tmp_path, {"HOST": "no.such.invalid"})
    assert "ASK_DAILY_TOKENS: 'much'" in run(bundle, tmp_path, {"ASK_DAILY_TOKENS": "much"})
    assert "is no bundle" in run(tmp_path / "nowhere", tmp_path)

    manifest = (bundle / MANIFEST).read_text()
    this_format = f'"format_version": {FORMAT_VERSION}'
    for other, remedy in ((99, "update Ralph"), (FORMAT_VERSION - 1, "build it again")):
        (bundle / MANIFEST).write_text(manifest.replace(this_format, f'"format_version": {other}'))
        assert remedy in run(bundle, tmp_path)
    (bundle / MANIFEST).write_text(manifest)
    with (bundle / MODEL).open("r+b") as file:
        file.seek(100)
        file.write(b"damage")
    assert "damaged: model.onnx" in run(bundle, tmp_path)


def test_nothing_slow_is_loaded_before_it_is_needed() -> None:
    """Anthropic's SDK takes longer than all the rest, and only the first answer needs it."""
    program = (
        "import sys, handler.app, handler.serve, handler.generate.claude; print('anthropic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
