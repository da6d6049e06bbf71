"""How fast `ralph serve` starts and answers, and how much one process holds.

    python -m benchmarks.serve [--bundle build/current] [--starts 9] [--streams 50] [--requests 400]

Real processes, asked by a real client over loopback. Where it says Claude, the answers come from the stand-in
of the Messages API in tests/fakes, through Anthropic's SDK.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import httpx
import numpy as np

from tests.fakes.anthropic_api import anthropic_api

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "How do I build a bundle?"
UNLIMITED = {"ASK_RATE_LIMIT_PER_MIN": "0", "ANTHROPIC_API_KEY": ""}
BARE = """
import sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
class Hello(BaseModel):
    question: str
app = FastAPI()
@app.get("/hello")
def hello(q: str) -> Hello:
    return Hello(question=q)
uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_config=None, lifespan="off")
"""


@dataclass(frozen=True)
class Server:
    """A running process. `started` is when it was begun, by time.perf_counter."""

    process: subprocess.Popen[str]
    url: str
    started: float

    @property
    def memory_mb(self) -> float:
        """What the process holds in memory, in MB."""
        statm = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii")
        return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Prints one line for each thing that was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path, default=Path("build/current"))
    parser.add_argument("--starts", type=int, default=9, help="how many fresh processes")
    parser.add_argument("--streams", type=int, default=50, help="how many at the same time")
    parser.add_argument("--requests", type=int, default=400, help="how many of each other kind")
    arguments = parser.parse_args()
    bundle = arguments.bundle.resolve()
    with anthropic_api() as api:
        claude = {**UNLIMITED, "ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": api.url}
        time_starts("quotes", bundle, UNLIMITED, arguments.starts)
        time_starts("Claude", bundle, claude, arguments.starts)
        with serve(bundle, UNLIMITED) as server:
            time_sources(server, arguments.requests)
            asyncio.run(compare_throughput(server, arguments.requests))
        with serve(bundle, claude) as server:
            api.delay_s = 0.05  # so that all are there at once
            asyncio.run(hold_streams(server, arguments.streams))


@contextmanager
def serve(bundle: Path, environ: dict[str, str]) -> Iterator[Server]:
    """A server in a process of its own, ready when its first line is there."""
    argv = [sys.executable, "-m", "handler", "serve", "--bundle", str(bundle), "--port", "0"]
    environ = {**os.environ, **environ}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile("w+") as log:
        started = time.perf_counter()
        process = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout
            url = process.stdout.readline().strip().removesuffix("/ask/demo")
            if not url:
                log.seek(0)
                sys.exit(log.read())
            yield Server(process, url, started)
        finally:
            process.terminate()
            process.wait()


def time_starts(label: str, bundle: Path, environ: dict[str, str], n: int) -> None:
    """From the begin of a process to the first event that it sends. A start beforehand leaves .pyc files."""
    times_s = []
    for _ in range(1 + n):
        with serve(bundle, environ) as server, httpx.Client() as client:
            times_s.append(sources_at(client, server.url, QUESTION) - server.started)
    counted = times_s[1:]
    print(
        f"a fresh process to its first sources, {label}: "
        f"p50 {np.median(counted):.2f} s, most {max(counted):.2f} s ({n} starts)"
    )


def sources_at(client: httpx.Client, url: str, question: str) -> float:
    """When the first event was there. The rest is read too, or it would slow the next question down."""
    with client.stream("POST", f"{url}/api/ask", json={"question": question}) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: sources"
        found = time.perf_counter()
        assert "event: done" in lines
        for _ in lines:
            pass
    return found


def time_sources(server: Server, n: int) -> None:
    """From a question, each one new, to its sources."""
    times_ms = []
    with httpx.Client() as client:
        for question in questions(n):
            start = time.perf_counter()
            times_ms.append(1000 * (sources_at(client, server.url, question) - start))
    print(f"warm, question to sources: {percentiles(times_ms)} ({n} questions)")


async def hold_streams(server: Server, n: int) -> None:
    """Many questions at the same moment, whose answers take seconds."""
    before = server.memory_mb
    sources_ms: list[float] = []
    done_ms: list[float] = []
    most_mb = before

    async def ask(client: httpx.AsyncClient, question: str) -> None:
        start = time.perf_counter()
        nonlocal most_mb
        async with client.stream("POST", f"{server.url}/api/ask", json={"question": question}) as response:
            async for line in response.aiter_lines():
                if line == "event: sources":
                    sources_ms.append(1000 * (time.perf_counter() - start))
                    most_mb = max(most_mb, server.memory_mb)
                elif line == "event: done":
                    done_ms.append(1000 * (time.perf_counter() - start))

    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=n)) as client:
        await asyncio.gather(*(ask(client, question) for question in questions(n)))
    assert len(done_ms) == n
    print(f"{n} streams at once: sources {percentiles(sources_ms)}, done {percentiles(done_ms)}")
    print(f"memory: {before:.0f} MB before, {most_mb:.0f} MB at most")


async def compare_throughput(server: Server, n: int) -> None:
    """Searches a second, and requests a second of a route that does nothing, by the same client."""
    rates = [await rate(f"{server.url}/api/search", n)]
    port = 1 + int(server.url.rpartition(":")[2])
    process = subprocess.Popen([sys.executable, "-c", BARE, str(port)])
    try:
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=8)) as client:
            await client.get(f"http://127.0.0.1:{port}/hello?q=x")
        rates.append(await rate(f"http://127.0.0.1:{port}/hello", n))
    finally:
        process.terminate()
        process.wait()
    ratio = rates[0] / rates[1]
    print(f"/api/search {rates[0]:.0f} requests/s, a bare FastAPI route {rates[1]:.0f}, {ratio:.2f} of it")


async def rate(url: str, n: int, clients: int = 8) -> float:
    """Requests a second, of as many clients at the same time."""
    left = iter(questions(n))

    async def work(client: httpx.AsyncClient) -> None:
        for question in left:
            (await client.get(url, params={"q": question})).raise_for_status()

    async with httpx.AsyncClient(timeout=60) as client:
        start = time.perf_counter()
        await asyncio.gather(*(work(client) for _ in range(clients)))
    return n / (time.perf_counter() - start)


def questions(n: int) -> list[str]:
    """The questions of the sample, in turn, each time with another number."""
    lines = (ROOT / "sites" / "ralph" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    return [f"{text} {i}" for i, text in zip(range(n), cycle(texts), strict=False)]


def percentiles(times_ms: Sequence[float]) -> str:
    """The median and the 99th percentile."""
    return f"p50 {np.percentile(times_ms, 50):.1f} ms, p99 {np.percentile(times_ms, 99):.1f} ms"


if __name__ == "__main__":
    main()
