"""The MCP server's file tools beside @modelcontextprotocol/server-filesystem: cost, speed, and ways out.

    python -m benchmarks.mcp_files [--calls N] [--inspector]

The rival is installed by npm into build/benchmarks/mcp_files. Both servers run as processes and are spoken to
in the same way. Each case of benchmarks/mcp_cases.py is tried on a fresh folder with a secret beside it; what
counts is what was read, written or hung, not what the server says. `--inspector` also has the MCP Inspector's
command line list the tools (`--strict`) and call each of them, in both eras of the protocol: minutes more.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mcp_cases import CASES, Arguments, Case
from tests.fakes.mcp_files import CALLS, SECRET, Answer, Ground, make_ground
from tests.fakes.swapped_link import swapped_link

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "benchmarks" / "mcp_files"
PACKAGES = ("@modelcontextprotocol/server-filesystem@2026.8.31", "@modelcontextprotocol/inspector@2.12.0")
REFERENCE_SCRIPT = "@modelcontextprotocol/server-filesystem/dist/index.js"
PATIENCE_S = 3.0
RACE_S = 4.0


class HungError(Exception):
    """A server gave no answer in time."""


class Connection:
    """A server process, initialized, and how long that took."""

    def __init__(self, command: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> None:
        started = time.perf_counter()
        self._process = subprocess.Popen(
            command, cwd=cwd, env=environ, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._n_requests = 0
        threading.Thread(target=self._read, daemon=True).start()
        client = {"name": "benchmark", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        self.request("initialize", hello, 60)
        self.start_s = time.perf_counter() - started
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Arguments, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """The answer to one request. Raises HungError."""
        self._n_requests += 1
        self._send({"jsonrpc": "2.0", "id": self._n_requests, "method": method, "params": params})
        end = time.monotonic() + patience_s
        while True:
            try:
                line = self._answers.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise HungError from None
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._n_requests:
                return answer

    def call(self, tool: str, arguments: Arguments) -> Answer:
        """The answer of one tool. Raises HungError."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return Answer(True, (answer["error"]["message"],))
        result = answer["result"]
        blocks = (block.get("text", "") for block in result["content"])
        return Answer(bool(result.get("isError")), tuple(blocks))

    def rss_mib(self) -> float:
        """The memory that the process holds."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def cpu_s(self) -> float:
        """The time that processors have spent on it."""
        fields = (
            Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()

    def _send(self, message: Arguments) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._answers.put(line)


@dataclass(frozen=True)
class Server:
    """How to start a server, and what its tools and their arguments are called."""

    name: str
    command: Callable[[Path], list[str]]
    environ: Callable[[Path], dict[str, str]]
    tools: Mapping[str, str]
    arguments: Mapping[str, str]

    def connect(self, ground: Ground, root: Path | None = None) -> Connection:
        """A connection to a new process that may touch the root."""
        root = root or ground.root
        environ = {"PATH": os.environ["PATH"], "HOME": str(ground.outside), **self.environ(root)}
        return Connection(self.command(root), root, environ)

    def translated(self, arguments: Any) -> Any:
        """The arguments in this server's words."""
        if isinstance(arguments, dict):
            return {self.arguments.get(key, key): self.translated(value) for key, value in arguments.items()}
        return [self.translated(item) for item in arguments] if isinstance(arguments, list) else arguments


RALPH = Server(
    "ralph-fs",
    lambda _: [sys.executable, "-m", "ralph_fs"],
    lambda root: {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins' / 'ralph-fs'}", "RALPH_ROOT_DIR": str(root)},
    {},
    {},
)
REFERENCE = Server(
    "server-filesystem",
    lambda root: ["node", str(WORK / "node_modules" / REFERENCE_SCRIPT), str(root)],
    lambda _: {},
    {"read_file": "read_text_file"},
    {"old_text": "oldText", "new_text": "newText", "dry_run": "dryRun"},
)


# A call of each of our other tools, in this order. ID is that of the chunk that the search finds.
RAG_CALLS: Mapping[str, Arguments] = {
    "rag_ingest_file": {"path": "note.txt", "collection": "ralph"},
    "rag_ingest_directory": {"path": ".", "collection": "ralph"},
    "rag_list_documents": {},
    "rag_search": {"query": "one two"},
    "rag_get_chunk": {"id": "ID"},
    "rag_delete_document": {"path": "note.txt"},
}
BUNDLE = ROOT / "build" / "current"


def main() -> None:
    """Prints the costs of both, then the table of the cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--inspector", action="store_true")
    arguments = parser.parse_args()
    install()
    with tempfile.TemporaryDirectory(prefix="ralph-mcp-") as folder:
        folders = (Path(folder) / str(number) for number in range(1_000))
        table = Table([server.name for server in SERVERS])
        measured = [costs(server, make_ground(next(folders)), arguments.calls) for server in SERVERS]
        for name in measured[0]:
            table.add(name, [values[name] for values in measured])
        n_told = [0] * len(SERVERS)
        for case in CASES:
            judged = [judge(server, case, make_ground(next(folders))) for server in SERVERS]
            table.add(case.name, [verdict for verdict, _ in judged])
            n_told = [n + told for n, (_, told) in zip(n_told, judged, strict=True)]
        raced = [race(server, make_ground(next(folders))) for server in SERVERS]
        table.add(f"a link swapped for {RACE_S:g} s of calls", raced)
        table.add("refusals that tell a path of the host", [str(n) for n in n_told])
        for era in ("legacy", "auto") if arguments.inspector else ():
            print(inspect(era, make_ground(next(folders))))


SERVERS = (RALPH, REFERENCE)


def install() -> None:
    """Has npm install the rival and the Inspector, unless they are there."""
    if not shutil.which("npm"):
        sys.exit("npm is needed, for the rival")
    WORK.mkdir(parents=True, exist_ok=True)
    if not (WORK / "node_modules").is_dir():
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", *PACKAGES], cwd=WORK, check=True)


def costs(server: Server, ground: Ground, n_calls: int) -> dict[str, str]:
    """What a session pays for the server, and waits for it."""
    starts, cpu_times = [], []
    for _ in range(5):
        connection = server.connect(ground)
        starts.append(connection.start_s)
        cpu_times.append(connection.cpu_s())
        connection.close()
    connection = server.connect(ground)
    tools = connection.request("tools/list", {})["result"]["tools"]
    size = len(json.dumps({"tools": tools}, separators=(",", ":"), ensure_ascii=False).encode())
    tool = server.tools.get("read_file", "read_file")
    times = []
    for _ in range(n_calls):
        started = time.perf_counter()
        connection.call(tool, {"path": "note.txt"})
        times.append(time.perf_counter() - started)
    memory = connection.rss_mib()
    connection.close()
    return {
        "tools": str(len(tools)),
        "tokens of their schemas (bytes / 3.5)": f"{size / 3.5:,.0f}",
        "start-up, best of 5 (s)": f"{min(starts):.2f}",
        "start-up, processor time of it (s)": f"{min(cpu_times):.2f}",
        "memory after the calls (MiB)": f"{memory:.0f}",
        "read_file, median (ms)": f"{statistics.median(times) * 1_000:.2f}",
    }


class Table:
    """Rows that are printed as they come."""

    def __init__(self, names: Sequence[str]) -> None:
        self.add("", names)

    def add(self, name: str, values: Sequence[str]) -> None:
        """Prints one row."""
        print(f"{name:40}" + "".join(f"{value:>32}" for value in values), flush=True)


def judge(server: Server, case: Case, ground: Ground) -> tuple[str, bool]:
    """How a case went, and whether a refusal told a path of the host that the client had not given."""
    try:
        case.prepare(ground)
    except PermissionError:
        return "not possible here", False
    root = case.root(ground) if case.root else None
    connection = server.connect(ground, root)
    try:
        arguments = filled(server.translated(dict(case.arguments)), ground)
        answer = connection.call(server.tools.get(case.tool, case.tool), arguments)
    except HungError:
        return "HANGS", False
    finally:
        connection.close()
    top = str(ground.root.parent)
    told = answer.is_error and top in answer.text and top not in json.dumps(arguments)
    if case.works:
        return ("works" if not answer.is_error and case.works(ground, answer) else "does not work"), told
    if SECRET in answer.text or (case.tool == "list_directory" and "secret" in answer.text):
        return "READS OUTSIDE", told
    if not (ground.outside_is_untouched() and (ground.root / "note.txt").is_file()):
        return "CHANGES WHAT IS OUTSIDE", told
    return ("refused" if answer.is_error else "DOES IT"), told


def filled(value: Any, ground: Ground) -> Any:
    """The arguments with the ground's own folders."""
    if isinstance(value, dict):
        return {key: filled(item, ground) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, ground) for item in value]
    for name, path in (
        ("root", ground.root),
        ("outside", ground.outside),
        ("linked", ground.root.with_name("linked")),
    ):
        value = value.replace(f"{{{name}}}", str(path)) if isinstance(value, str) else value
    return value


def race(server: Server, ground: Ground) -> str:
    """How often the secret was read and something was written outside, while a link was swapped."""
    read_file = server.tools.get("read_file", "read_file")
    n_read = n_calls = 0
    with closing(server.connect(ground)) as connection, swapped_link(ground.root):
        end = time.monotonic() + RACE_S
        while time.monotonic() < end:
            answer = connection.call(read_file, {"path": "door/secret.txt"})
            n_read += SECRET in answer.text
            connection.call("write_file", {"path": f"door/new{n_calls}", "content": "x"})
            n_calls += 1
    n_written = len(list(ground.outside.iterdir())) - 1
    if not (n_read or n_written):
        return f"refused ({n_calls * 2:,} calls)"
    return f"READ {n_read}, WROTE {n_written} OF {n_calls:,}"


def inspect(era: str, ground: Ground) -> str:
    """What the Inspector's command line says of our server: it lists the tools strictly, and calls each."""
    inspector = [str(WORK / "node_modules" / ".bin" / "mcp-inspector"), "--cli", "--protocol-era", era]
    variables = {
        **RALPH.environ(ground.root),
        "RAG_DB_PATH": str(ground.root.with_name("rag.db")),
        "RALPH_BUNDLE": str(BUNDLE),
    }
    environ = [f"-e{name}={value}" for name, value in variables.items()]
    command = [*inspector, *environ, *RALPH.command(ground.root), "--method"]

    def answer(*options: str) -> str | None:
        home = {"PATH": os.environ["PATH"], "HOME": str(ground.outside)}
        done = subprocess.run([*command, *options], env=home, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None

    listed = "lists strictly" if answer("tools/list", "--strict") else "DOES NOT LIST STRICTLY"
    calls = {**CALLS, **RAG_CALLS} if BUNDLE.exists() else CALLS
    n_called, found = 0, ""
    for tool, arguments in calls.items():
        words = json.dumps(arguments).replace('"ID"', json.dumps(found))
        text = answer("tools/call", "--tool-name", tool, "--tool-args-json", words)
        n_called += text is not None
        if tool == "rag_search" and (match := re.search(r"\bid ([0-9a-f]+:\d+)", text or "")):
            found = match[1]
    return f"MCP Inspector, {era}: {listed}, calls {n_called} of {len(calls)} tools"


if __name__ == "__main__":
    main()
