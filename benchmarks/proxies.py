"""What a web server in front of the handler does to the pace of an answer.

    python -m benchmarks.proxies [--bundle build/current] [--pieces 150] [--pause-ms 30] [--runs 3]

The server streams an answer in pieces at a fixed pace, and each piece says when it was written. A plain HTTP
client reads it directly, and through Apache and nginx with the snippets of infra/. Printed are, for each way,
how long a piece was under way, and by how much the gaps between pieces changed on it.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
from numpy.typing import NDArray

from benchmarks.streaming import QUESTION, Paced, make_parser, serve
from tests.fakes.web_server import PROGRAMS, web_server


def now() -> str:
    """What a piece of an answer says: when it was written, in nanoseconds of this machine's clock."""
    return f"{time.perf_counter_ns()} "


def main() -> None:
    """Prints one line for each way."""
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=int, default=3, help="how many answers are read each way")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        paced = Paced(arguments.pieces, arguments.pause_ms / 1000, now)
        url = stack.enter_context(serve(arguments.bundle, paced))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ways = {"directly": f"{url}/api/ask"}
        for name, program in PROGRAMS.items():
            if program:
                front = stack.enter_context(web_server(name, folder / name, url))
                ways[f"through {name}"] = f"{front}/ask/api/ask"
            else:
                print(f"{name} is not installed")
        answers: dict[str, list[NDArray[np.float64]]] = {way: [] for way in ways}
        for _ in range(arguments.runs):  # in turn, so that all ways have the same machine
            for way, address in ways.items():
                answers[way].append(times_ms(address))
    for way, times in answers.items():
        delays = np.concatenate([came - written for written, came in times])
        changes = np.concatenate([np.abs(np.diff(came) - np.diff(written)) for written, came in times])
        print(
            f"{way:16} {len(delays)} pieces: under way {spread(delays)}; gaps changed by {spread(changes)}",
            flush=True,
        )


def times_ms(address: str) -> NDArray[np.float64]:
    """(2, n) when each piece was written, and when it was there, in milliseconds of one clock."""
    times = []
    with httpx.stream("POST", address, json={"question": QUESTION}, timeout=60) as response:
        lines = response.iter_lines()
        for line in lines:
            if line == "event: text":
                data = next(lines)
                now = time.perf_counter_ns()
                written = int(json.loads(data.removeprefix("data: "))["text"])
                times.append((written / 1e6, now / 1e6))
    return np.array(times).T


def spread(values: NDArray[np.float64]) -> str:
    """The median and the 95th percentile."""
    return f"median {np.median(values):.2f} ms (p95 {np.percentile(values, 95):.2f})"


if __name__ == "__main__":
    main()
