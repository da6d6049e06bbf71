"""`ralph local` as a process: what it loads, whom it talks to, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from handler.local.serve import listen
from handler.settings import SettingsError
from tests.conftest import MakeBundle
from tests.fakes.ollama_api import HOLD, OllamaApi, row

ROOT = Path(__file__).resolve().parents[3]

# Runs the command, and says in the end which modules it loaded and where it connected to.
PROGRAM = """
import json, sys
asked = []
def note(event, arguments):
    if event == "socket.connect":
        asked.append(arguments[1][0])
    elif event == "socket.getaddrinfo":
        asked.append(arguments[0])
sys.addaudithook(note)
from handler.__main__ import main
code = main(["local", "--port", "0"])
print(json.dumps({"code": code, "modules": sorted(sys.modules), "asked": asked}))
"""

CLOUDS = (
    "anthropic",
    "openai",
    "google",
    "boto3",
    "botocore",
    "cohere",
    "mistralai",
    "groq",
    "litellm",
    "ollama",
)


@pytest.fixture
def environ(api: OllamaApi, make_bundle: MakeBundle, tmp_path: Path) -> dict[str, str]:
    """A process's environment, with much in it that would lead elsewhere."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "ANTHROPIC_API_KEY": "sk-ant-secret",
        "HTTP_PROXY": "http://192.0.2.1:9",
        "ALL_PROXY": "http://192.0.2.1:9",
        "FASTAPI_OTEL_AUTO_CONFIGURE": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1:4318",
        "OLLAMA_HOST": api.url,
        "STATE_DIR": str(tmp_path / "state"),
        "RALPH_BUNDLE": str(make_bundle()),
    }


def test_it_loads_no_cloud_and_connects_to_this_machine_alone(
    environ: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    with subprocess.Popen(command, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = address_in(process.stdout.readline())
        answer = httpx.post(f"{url}api/chat", json={"question": "What does the pond have?"}, trust_env=False)
        assert "event: done" in answer.text
        process.send_signal(signal.SIGINT)
        report = json.loads(process.stdout.read().splitlines()[-1])
    assert report["code"] == 130
    assert "handler.local.app" in report["modules"]
    assert [name for name in report["modules"] if name.partition(".")[0] in CLOUDS] == []
    assert "handler.generate.claude" not in report["modules"]
    assert set(report["asked"]) == {"127.0.0.1"}


def test_an_answer_that_streams_at_the_end_is_kept_as_cut(
    environ: dict[str, str], api: OllamaApi, tmp_path: Path
) -> None:
    api.replies.append([row("Half "), row("an answer"), HOLD])
    command = [sys.executable, "-m", "handler", "local", "--port", "0"]
    with subprocess.Popen(
        command, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        url = address_in(process.stdout.readline())
        with httpx.stream("POST", f"{url}api/chat", json={"question": "Pond?"}, trust_env=False) as response:
            assert any(line == 'data: {"text":"Half"}' for line in response.iter_lines())
            process.send_signal(signal.SIGINT)
            process.wait()
    with subprocess.Popen(command, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = address_in(process.stdout.readline())
        messages = httpx.get(f"{url}api/conversations/1", trust_env=False).json()["messages"]
        process.send_signal(signal.SIGINT)
    assert (messages[1]["state"], messages[1]["text"][:4]) == ("cut", "Half")


def test_what_it_cannot_do_is_one_sentence(environ: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "handler", "local"]
    environ["OLLAMA_HOST"] = "example.org"
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"ralph: OLLAMA_HOST: [^\n]+\n", done.stderr)


def test_it_says_at_its_start_that_ollama_does_not_run(environ: dict[str, str], tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        environ["OLLAMA_HOST"] = url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        command = [sys.executable, "-m", "handler", "local", "--port", "0"]
        with subprocess.Popen(
            command, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(3)]
            process.send_signal(signal.SIGINT)
    assert lines[2] == f"Ollama is not running at {url} yet: start it with `ollama serve`.\n"


def test_a_port_that_is_taken_is_said_to_be() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SettingsError, match="LOCAL_PORT"):
            listen("127.0.0.1", taken.getsockname()[1])


def test_who_asks_as_soon_as_the_address_is_known_is_not_turned_away() -> None:
    with listen("127.0.0.1", 0) as listener:
        socket.create_connection(listener.getsockname()).close()


def test_events_do_not_wait_for_each_other() -> None:
    """Asyncio turns Nagle's algorithm off for sockets that say they are TCP."""
    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def address_in(line: str) -> str:
    found = re.search(r"http://\S+", line)
    assert found, line
    return found[0]
