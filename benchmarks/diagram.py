"""Whether drawings by chance are what the real Excalidraw would have made of them.

    python -m benchmarks.diagram [--specs 200] [--screenshots DIR]

Draws specs by chance: every shape and kind of arrow, groups, frames, labels in several scripts. Opens each in
a browser, in the current release of Excalidraw and in the newest whole build of its master branch, and counts
files in which opening changes anything, texts that the editor would cut off or break otherwise, and pictures
that do not open as the drawing that they show. Then drags the node with the most arrows, and counts what of
them and of its label stays behind.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.plugins.diagram.browser.editor import BUILDS, Editor, clipped_texts, left_behind
from tests.plugins.diagram.drawing import drawing, svg_of
from tests.plugins.diagram.random_specs import random_spec

CHROMIUM = Path("/usr/bin/chromium")
COLUMNS = (
    "files",
    "changed",
    "texts",
    "cut off",
    "pictures unread",
    "dragged",
    "left behind",
    "errors",
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Open drawings by chance in the real Excalidraw")
    parser.add_argument("--specs", type=int, default=200, help="how many")
    parser.add_argument("--screenshots", type=Path, help="keep a picture of the editor for each")
    args = parser.parse_args()
    start = time.perf_counter()
    drawings = {seed: drawing(random_spec(seed)) for seed in range(args.specs)}
    n_elements = sum(len(json.loads(text)["elements"]) for text in drawings.values())
    print(f"{args.specs} specs, {n_elements} elements, drawn in {time.perf_counter() - start:.0f} s\n")
    if args.screenshots:
        args.screenshots.mkdir(parents=True, exist_ok=True)
    print("| build | " + " | ".join(COLUMNS) + " | s |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for build in BUILDS:
            start = time.perf_counter()
            counts = opened(browser, build, drawings, args.screenshots)
            cells = [str(counts[column]) for column in COLUMNS]
            print(f"| {build} | {' | '.join(cells)} | {time.perf_counter() - start:.0f} |", flush=True)
        browser.close()


def opened(browser: Browser, build: str, drawings: dict[int, str], folder: Path | None) -> Counter[str]:
    """What one build of the editor says about all drawings, by column."""
    counts: Counter[str] = Counter()
    editor = Editor(browser, build)
    for seed, text in drawings.items():
        counts["files"] += 1
        changes = editor.changes(text)
        counts["changed"] += bool(changes)
        counts["pictures unread"] += editor.read(svg_of(text)) != editor.read(text)
        cut = clipped_texts(editor, text)
        counts["cut off"] += len(cut)
        counts["texts"] += sum(element["type"] == "text" for element in json.loads(text)["elements"])
        if folder:
            editor.screenshot(folder / f"{build}-{seed}.png")
        behind = left_behind(editor)
        counts["dragged"] += behind is not None
        counts["left behind"] += len(behind or ())
        for problem in [*changes, *cut, *(behind or ())]:
            print(f"{build}, spec {seed}: {problem}")
    for problem in editor.problems:
        print(f"{build}: {problem}")
    counts["errors"] = len(editor.problems)
    editor.close()
    return counts


if __name__ == "__main__":
    main()
