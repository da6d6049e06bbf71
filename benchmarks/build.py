"""How long a build takes when nothing or one page changed, and whether two builds are byte-equal.

    python -m benchmarks.build --til DIR

DIR is a checkout of the site that sites/til/site.toml describes. It is copied, built twice in two folders
from nothing (some minutes each), and edited in the copy.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from handler.bundle.layout import FILES, SUMS

ROOT = Path(__file__).resolve().parent.parent
N_RUNS = 5


def main() -> None:
    """Runs the builds and prints one figure a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--til", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ralph-build-") as folder:
        source = Path(folder) / "til"
        shutil.copytree(arguments.til, source)
        first, second = Path(folder) / "one" / "build", Path(folder) / "another" / "place"
        seconds, _ = build(source, first)
        print(f"from nothing: {seconds:.1f} s", flush=True)
        build(source, second)
        for name in (*FILES, SUMS):
            one, other = (place / "current" / name for place in (first, second))
            verdict = "byte-equal" if one.read_bytes() == other.read_bytes() else "DIFFERENT"
            print(f"{name}: {verdict} in both builds, {one.stat().st_size:,} bytes")

        times = [build(source, first)[0] for _ in range(N_RUNS)]
        print(
            f"nothing to do: {statistics.median(times):.2f} s (median of {N_RUNS}; {max(times):.2f} at most)"
        )

        page = max(source.glob("docs/**/*.md"), key=lambda path: path.stat().st_size)
        text = page.read_text(encoding="utf-8")
        page.write_text(
            text + "\n\nA sentence about marmalade that was not there before.\n", encoding="utf-8"
        )
        seconds, output = build(source, first)
        print(f"one page of {len(text):,} characters edited: {seconds:.1f} s, {new_chunks(output)}")
        page.write_text(text, encoding="utf-8")
        seconds, output = build(source, first)
        print(f"the edit taken back: {seconds:.1f} s, {new_chunks(output)}")


def build(source: Path, folder: Path) -> tuple[float, str]:
    """Seconds that `doit build` took, and what it said."""
    environ = {**os.environ, "RALPH_TIL": str(source), "RALPH_BUILD": str(folder)}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "doit", "build"],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return time.perf_counter() - start, done.stdout


def new_chunks(output: str) -> str:
    """What the embed stage said of its work."""
    found = re.search(r"[\d,]+ of [\d,]+ chunks? new", output)
    return found[0] if found else "nothing embedded"


if __name__ == "__main__":
    main()
