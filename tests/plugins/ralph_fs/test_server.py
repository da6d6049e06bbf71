"""The server as clients meet it: its tools, what they cost, and what is on its standard output."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Tool

from ralph_fs.server import make_server
from tests.fakes.mcp_files import CALLS, SECRET, Answer, Ground, answer_of, with_client
from tests.fakes.server_process import environment

PLUGIN = Path(__file__).resolve().parents[3] / "plugins" / "ralph-fs"
MAX_FILE_TOKENS = 1_500
MAX_TOKENS = 2_200


def tools_of(ground: Ground, mode: Literal["legacy", "auto"] = "auto") -> dict[str, Tool]:
    async def list_tools(client: Client) -> list[Tool]:
        return (await client.list_tools()).tools

    return {tool.name: tool for tool in with_client(make_server(ground.settings), list_tools, mode)}


def n_tokens(tools: list[Tool]) -> float:
    """The tokens of a list of tools, as an upper bound."""
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    return len(json.dumps({"tools": listed}, separators=(",", ":"), ensure_ascii=False).encode()) / 3.5


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_every_tool_can_be_called_in_either_protocol(ground: Ground, mode: Literal["legacy", "auto"]) -> None:
    async def call_all(client: Client) -> list[Answer]:
        return [await answer_of(client, tool, arguments) for tool, arguments in CALLS.items()]

    answers = with_client(make_server(ground.settings), call_all, mode)
    assert [answer.text for answer in answers if answer.is_error] == []
    assert {name for name in tools_of(ground, mode) if not name.startswith("rag_")} == set(CALLS)


def test_the_schemas_cost_less_than_was_promised(ground: Ground) -> None:
    tools = tools_of(ground)
    assert n_tokens([tool for name, tool in tools.items() if name in CALLS]) <= MAX_FILE_TOKENS
    assert n_tokens(list(tools.values())) <= MAX_TOKENS


def test_the_schemas_say_what_a_client_needs(ground: Ground) -> None:
    tools = tools_of(ground)
    for tool in (tools[name] for name in CALLS):
        assert tool.description
        assert "title" not in json.dumps(tool.input_schema)
        assert all("type" in schema for schema in tool.input_schema["properties"].values())


def test_annotations_tell_what_a_tool_does_to_files(ground: Ground) -> None:
    def hints(name: str) -> tuple[bool | None, ...]:
        annotations = tools[name].annotations
        assert annotations
        assert annotations.open_world_hint is False
        return annotations.read_only_hint, annotations.destructive_hint, annotations.idempotent_hint

    tools = tools_of(ground)
    for name in list(CALLS)[:7]:
        assert hints(name)[0] is True
    assert {name: hints(name) for name in list(CALLS)[7:]} == {
        "write_file": (False, True, True),
        "edit_file": (False, True, False),
        "create_directory": (False, False, True),
        "move_file": (False, True, False),
        "delete_file": (False, True, True),
    }


def test_an_argument_that_a_tool_does_not_have_is_an_error(ground: Ground) -> None:
    server = make_server(ground.settings)
    answer = with_client(
        server, lambda client: answer_of(client, "delete_file", {"path": "docs", "force": True})
    )
    assert answer.is_error
    assert "no argument force" in answer.text


def test_an_error_is_bounded_however_much_is_wrong(ground: Ground) -> None:
    arguments = {"path": "note.txt", "edits": [{"oldText": "one", "newText": "1"}] * 500}
    answer = with_client(
        make_server(ground.settings), lambda client: answer_of(client, "edit_file", arguments)
    )
    assert answer.is_error
    assert "old_text" in answer.text
    assert len(answer.text) < 2_500


NAMES = ["..", ".", "", "docs", "note.txt", "link", "~", "\0", "%2e%2e", "secret.txt", "outside", "é"]
PIECES = ["../", "/", "\\", "root-evil", "file:", "C:", "\u202e", "\ufeff", "\n"]
PATHS = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(NAMES), max_size=9).map("/".join),
    st.lists(st.sampled_from(PIECES), max_size=9).map("".join),
)


@given(path=PATHS, other=PATHS, absolute=st.booleans())
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_path_leads_out_or_brings_a_traceback(
    ground: Ground, path: str, other: str, absolute: bool
) -> None:
    (ground.root / "link").unlink(missing_ok=True)
    (ground.root / "link").symlink_to("../outside")
    if absolute:
        path = f"{ground.root}/{path}"

    async def call_all(client: Client) -> list[Answer]:
        paths: dict[str, dict[str, Any]] = {
            "move_file": {"source": path, "destination": other},
            "read_multiple_files": {"paths": [path, other]},
        }
        return [
            await answer_of(client, tool, {**arguments, **paths.get(tool, {"path": path})})
            for tool, arguments in CALLS.items()
        ]

    for answer in with_client(make_server(ground.settings), call_all):
        assert SECRET not in answer.text
        assert "Traceback" not in answer.text
        # A crash has no reason; a refusal always has.
        assert not answer.text.startswith("Error executing tool") or ":" in answer.text
        assert absolute or str(ground.root.parent) not in answer.text
    assert ground.outside_is_untouched()


@pytest.mark.parametrize("path", [1, None, [], {"a": 1}, True, 1.5, "\ud800", "a\udcff"])
def test_what_is_no_path_is_an_error(ground: Ground, path: Any) -> None:
    server = make_server(ground.settings)
    answer = with_client(server, lambda client: answer_of(client, "read_file", {"path": path}))
    assert answer.is_error
    assert "Traceback" not in answer.text


def process_environment(environ: Mapping[str, str]) -> dict[str, str]:
    clone = Path(__file__).resolve().parents[3]
    return environment({"PYTHONPATH": f"{clone}:{clone / 'plugins' / 'ralph-fs'}", **environ})


def request(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def test_standard_output_carries_json_rpc_only(ground: Ground) -> None:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    lines = [
        request(1, "initialize", **hello),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        request(2, "tools/list"),
        "this is no JSON",
        request(3, "tools/call", name="read_file", arguments={"path": "../outside/secret.txt"}),
        request(4, "tools/call", name="read_file", arguments={"path": "note.txt"}),
        request(5, "tools/call", name="no_such_tool", arguments={}),
        request(6, "no/such/method"),
        request(7, "tools/call", name="write_file", arguments={"path": "new", "content": "\ud800"}),
        '["\\ud800"]',
        "[]",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "ralph_fs"],
        cwd=ground.root,
        env=process_environment({}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdin and process.stdout
        process.stdin.write("".join(f"{line}\n" for line in lines))
        process.stdin.flush()
        answers: dict[int, Any] = {}
        errors: list[int] = []
        # Calls that are under way when its input ends are not answered.
        while len(answers) < 7 or len(errors) < 3:
            answer = json.loads(process.stdout.readline())
            assert answer["jsonrpc"] == "2.0"
            if answer.get("id"):
                answers[answer["id"]] = answer
            elif "error" in answer:
                assert answer["id"] is None
                errors.append(answer["error"]["code"])
        assert process.communicate()[0] == ""
    assert process.returncode == 0
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert answers[1]["result"]["serverInfo"]["version"] == project["version"]
    # What cannot be read is answered: with the call's id where there is one, else with none.
    assert answers[7]["error"]["code"] == -32700
    assert errors == [-32700, -32700, -32600]
    assert not (ground.root / "new").exists()
    assert answers[3]["result"]["isError"]
    assert answers[4]["result"]["content"][0]["text"] == "one\ntwo\nthree\n"
    assert SECRET not in json.dumps(answers)


def test_a_client_starts_the_server_as_a_process(ground: Ground) -> None:
    async def use() -> tuple[Answer, Answer]:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "ralph_fs"],
            env=process_environment(
                {"RALPH_ROOT_DIR": str(ground.root), "RALPH_ALLOWED_DIRS": str(ground.root)}
            ),
        )
        async with Client(stdio_client(parameters)) as client:
            return (
                await answer_of(client, "read_file", {"path": "docs/page.md"}),
                await answer_of(client, "read_file", {"path": "../outside/secret.txt"}),
            )

    good, bad = anyio.run(use)
    assert "algae" in good.text
    assert bad.is_error


def test_a_wrong_setting_ends_the_server_with_a_plain_sentence(ground: Ground) -> None:
    environ = process_environment({"RALPH_ROOT_DIR": "missing"})
    command = [sys.executable, "-m", "ralph_fs"]
    done = subprocess.run(command, cwd=ground.root, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "ralph-fs: RALPH_ROOT_DIR: 'missing' is no folder; create it, or name another\n"


def test_a_folder_that_is_gone_ends_the_server_with_a_plain_sentence(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir "$PWD" && exec "$0" -m ralph_fs', sys.executable]
    environ = process_environment({})
    done = subprocess.run(command, cwd=gone, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "ralph-fs: the folder that it is started in is gone\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_while_it_waits(ground: Ground, number: signal.Signals) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    with subprocess.Popen(
        [sys.executable, "-m", "ralph_fs"],
        cwd=ground.root,
        env=process_environment({}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(request(1, "initialize", **hello) + "\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(number)
        assert process.wait(timeout=30) == -number


def test_nothing_slow_is_loaded_before_a_tool_needs_it() -> None:
    slow = {"numpy", "onnxruntime", "apsw", "tokenizers", "regex", "markdown_it"}
    program = f"import ralph_fs.__main__, sys; print(*sorted({slow} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=process_environment({}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []
