"""What each channel costs a session before anything of it is used, in tokens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handler.bundle.counted import counted
from pipeline.plugins.build import PluginError, plugin_folders
from pipeline.plugins.checks import front_matter

# A safe bound for English and JSON; the true number depends on the model.
BYTES_PER_TOKEN = 3.5
# Compact JSON of their tools, counted the same way.
OTHERS = (
    ("server @modelcontextprotocol/server-filesystem", 1_700),
    ("server codebase-memory-mcp", 5_000),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What is loaded into every session that has it, and what only when it is used."""

    what: str
    always_tokens: int
    used_tokens: int = 0


def costs(root: Path) -> Iterator[Cost]:
    """The costs of every plugin of a marketplace and of its server's tools, as they are in the tree."""
    for folder in plugin_folders(root):
        paths = [*folder.glob("skills/*/SKILL.md"), *folder.glob("commands/*.md")]
        if paths:
            texts = [path.read_text(encoding="utf-8") for path in paths]
            listed = sum(tokens(_listing(path.stem, text)) for path, text in zip(paths, texts, strict=True))
            yield Cost(f"plugin {folder.name}", listed, sum(map(tokens, texts)))
        package = folder.name.replace("-", "_")
        if (folder / package).is_dir():
            tools = list_tools([sys.executable, "-m", package], folder)
            yield Cost(f"server {folder.name}, {counted(len(tools), 'tool')}", tokens(compact(tools)))


def report(root: Path) -> str:
    """The costs as a table, with those of others below. Raises PluginError when a server does not start."""
    try:
        own = list(costs(root))
    except subprocess.CalledProcessError as error:
        reason = (str(error.stderr).splitlines() or [f"exit code {error.returncode}"])[-1]
        raise PluginError(
            f"the server did not start ({reason}); `make test` sets up what it needs"
        ) from error
    rows = [*own, *(Cost(f"{what} (for comparison)", number) for what, number in OTHERS)]
    lines = [f"{'tokens of a session':<68} {'always':>7} {'if used':>8}"]
    lines += [
        f"{row.what:<68} {row.always_tokens:>7,} {f'{row.used_tokens:,}' if row.used_tokens else '':>8}"
        for row in rows
    ]
    return "\n".join(lines)


def tokens(text: str) -> int:
    """How many tokens a text has at most, about."""
    return round(len(text.encode()) / BYTES_PER_TOKEN)


def compact(tools: list[Any]) -> str:
    """The tools as JSON without spaces, which is how a client passes them on."""
    return json.dumps(tools, separators=(",", ":"), ensure_ascii=False)


def list_tools(command: list[str], folder: Path) -> list[Any]:
    """What a server on standard input and output answers to tools/list.

    Modules of `folder` can be imported by it. Raises CalledProcessError, with what it
    complains of, when it does not start.
    """
    start = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "ralph", "version": "1"},
    }
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": start},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(folder.parent.parent)])}
    with tempfile.TemporaryFile("w+") as complaints:  # nobody reads a pipe while the answers are read
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True, env=environ
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for message in messages:
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
            # The input stays open until the answer is there: its end is the server's too.
            answers = map(json.loads, process.stdout)
            tools = next((answer["result"]["tools"] for answer in answers if answer.get("id") == 2), None)
        complaints.seek(0)
        if tools is None:
            raise subprocess.CalledProcessError(process.returncode, command, stderr=complaints.read())
    return list(tools)


def _listing(default_name: str, text: str) -> str:
    """What a session lists of a skill or a command before it is used."""
    table = front_matter(text)
    name = table.get("name", default_name)
    return f"{name}: {table.get('description', '')} {table.get('when_to_use', '')}".strip()
