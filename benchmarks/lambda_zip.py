"""How large the zip for AWS Lambda is, and how fast a function of it starts and answers.

    python -m benchmarks.lambda_zip [--package build/package] [--starts 5]

Both zips are made as `doit deploy:lambda` makes them; needs Python 3.13, uv and bubblewrap. The one for this
machine's processor then runs in a sandbox that holds it and an interpreter, under a stand-in of Lambda's
Runtime API. Beside it run the same zip without bytecode, and Mangum under Lambda's own client, which buffers,
each in turn. Where it says Claude, answers come from the stand-in of the Messages API in tests/fakes, an
event every 20 ms.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.process_status import innermost_status, peak_mb
from pipeline.deploy.lambda_wheels import PLATFORMS, install_step, network_options
from pipeline.deploy.lambda_zip import PYTHON, build_zip, find_python
from pipeline.deploy.step import run
from pipeline.package import REQUIREMENTS
from tests.fakes.anthropic_api import anthropic_api
from tests.fakes.lambda_machine import BUFFERED, RUNTIME, STREAMED, Machine, machine
from tests.fakes.runtime_api import RuntimeApi, function_url_event, runtime_api

ROOT = Path(__file__).resolve().parent.parent
HERE = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
HEALTH = function_url_event("GET", "/healthz")
ASK = function_url_event(body={"question": "How do I build a bundle?"})
EVENT_PAUSE_S = 0.02


@dataclass(frozen=True)
class Run:
    """One life of a function: until it answers, and until an answer's first and last bytes are there."""

    ready_s: float
    first_ms: float
    last_ms: float
    memory_mb: float


def main() -> None:
    """Prints one line for each thing that was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--package", type=Path, default=ROOT / "build" / "package")
    parser.add_argument("--starts", type=int, default=5, help="how many fresh processes of each kind")
    arguments = parser.parse_args()
    compiler = find_python(PYTHON)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name, anthropic_api() as claude:
        folder = Path(name)
        for architecture in PLATFORMS:
            archive = folder / f"{architecture}.zip"
            print(f"{architecture}: {build_zip(arguments.package, archive, architecture, PYTHON, compiler)}")
        print(f"{HERE}, the wheels alone and whole: {whole_wheels_mb(arguments.package, folder):.1f} MB")
        function = machine(folder, folder / f"{HERE}.zip", compiler, HERE)
        if not function.is_possible:
            sys.exit("bubblewrap is not there, or may not make namespaces")
        claude.delay_s = EVENT_PAUSE_S
        key = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": claude.url}
        slow = without_bytecode(function, folder)
        kinds: dict[str, Callable[[], Run]] = {
            "quotes, streamed": lambda: live(function, STREAMED, {}),
            "quotes, without bytecode": lambda: live(slow, STREAMED, {}),
            "Claude, streamed": lambda: live(function, STREAMED, key),
            "Claude, buffered by Mangum": lambda: live(function, BUFFERED, {**key, "PYTHONPATH": RUNTIME}),
        }
        # In turn, so that what else the machine does falls on all of them; the first of each warms its files.
        lives = [{label: start() for label, start in kinds.items()} for _ in range(1 + arguments.starts)]
        for label in kinds:
            print(f"{label}: {medians([each[label] for each in lives[1:]])}")


def whole_wheels_mb(package: Path, folder: Path) -> float:
    """What the wheels have before anything of them is left out."""
    wheels = folder / "wheels"
    run(install_step(package / REQUIREMENTS, wheels, HERE, PYTHON, network_options()))
    return sum(path.stat().st_size for path in wheels.rglob("*") if path.is_file()) / 1e6


def without_bytecode(function: Machine, folder: Path) -> Machine:
    """The same machine with a zip that has sources alone."""
    task = folder / "sources"
    shutil.copytree(function.task, task, ignore=shutil.ignore_patterns("__pycache__"))
    return replace(function, task=task)


def medians(runs: Sequence[Run]) -> str:
    """What the lives of a function have in common."""
    ready, first, last, memory = np.median([astuple(each) for each in runs], axis=0)
    return (
        f"ready after {ready:.2f} s, first event of an answer after {first:.0f} ms, last {last:.0f} ms, "
        f"{memory:.0f} MB at most ({len(runs)} starts)"
    )


def live(function: Machine, argv: tuple[str, ...], environ: Mapping[str, str]) -> Run:
    """Starts a function, asks it how it is and a question, and ends it."""
    with runtime_api() as api:
        started = time.monotonic()
        with function.running(argv, {**api.environ, **environ}) as process:
            api.invoke(HEALTH)
            ready_s = time.monotonic() - started
            first_ms, last_ms = ask(api)
            return Run(ready_s, first_ms, last_ms, peak_mb(innermost_status(process.pid)))


def ask(api: RuntimeApi) -> tuple[float, float]:
    """Milliseconds to the first bytes of an answer's body, and to its last."""
    asked = time.monotonic()
    post = api.invoke(ASK)
    # A streamed answer's first chunk is its status and headers.
    body = post.times[1:] or post.times
    return 1000 * (body[0] - asked), 1000 * (body[-1] - asked)


if __name__ == "__main__":
    main()
