"""Whether an answer reaches the reader's eye as evenly as it is written.

    python -m benchmarks.streaming [--bundle build/current] [--pieces 150] [--pause-ms 30]

The server streams an answer in pieces at a fixed pace, once to a plain HTTP client and once to the widget in
chromium. For each piece the time since the one before is taken: when the client has its line, and when the
widget has put it into the page. Printed are the differences of the two.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import uvicorn
from playwright.sync_api import sync_playwright

from handler.app import create_app
from handler.bundle.bundle import Bundle
from handler.current import Current, Serving
from handler.events import Citation, Text
from handler.generate.persona import read_persona
from handler.generate.types import Finished, Generator, Prompt
from handler.settings import read_serve_settings

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "What is a bundle?"
# Notes in `shown` when each piece is first seen in the page.
WATCH = """() => {
  window.shown = [];
  const root = document.querySelector('ralph-widget').shadowRoot;
  new MutationObserver(() => {
    const pieces = (root.querySelector('.answer')?.textContent.match(/piece /g) ?? []).length;
    while (shown.length < pieces) shown.push(performance.now());
  }).observe(root, { subtree: true, childList: true, characterData: true });
}"""


class Paced:
    """A generator that pauses, writes what `piece` returns, and so on."""

    name = "extractive"
    model: str | None = None

    def __init__(self, n_pieces: int, pause_s: float, piece: Callable[[], str]) -> None:
        self._n_pieces = n_pieces
        self._pause_s = pause_s
        self._piece = piece

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Text | Citation | Finished, None]:  # noqa: ARG002
        """The pieces, whatever was asked."""
        for _ in range(self._n_pieces):
            await asyncio.sleep(self._pause_s)
            yield Text(self._piece())
        yield Finished("end")


def main() -> None:
    """Prints one line a run."""
    arguments = make_parser(__doc__).parse_args()
    paced = Paced(arguments.pieces, arguments.pause_ms / 1000, lambda: "piece ")
    with serve(arguments.bundle, paced) as url:
        for _ in range(3):
            client, widget = np.diff(times_at_client(url)), np.diff(times_in_widget(url))
            apart = np.abs(client - widget)
            print(
                f"{len(apart)} gaps: median {np.median(client):.1f} ms at the client, "
                f"{np.median(widget):.1f} ms in the widget; median difference {np.median(apart):.1f} ms "
                f"(p95 {np.percentile(apart, 95):.1f})"
            )


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser of what is served, and at which pace."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path, default=ROOT / "build" / "current", help="what is served")
    parser.add_argument("--pieces", type=int, default=150, help="how many pieces an answer has")
    parser.add_argument("--pause-ms", type=float, default=30, help="the pause before each")
    return parser


@contextmanager
def serve(bundle: Path, generator: Generator) -> Iterator[str]:
    """The address of a server of the bundle, in a thread of its own."""
    current = Current(Serving(Bundle.open(bundle), generator))
    settings = read_serve_settings({"ASK_RATE_LIMIT_PER_MIN": "0"})
    app = create_app(current, settings, logging.Logger("streaming"), persona=read_persona)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def times_at_client(url: str) -> list[float]:
    """When each piece arrived, in milliseconds."""
    with httpx.stream("POST", f"{url}/api/ask", json={"question": QUESTION}, timeout=60) as response:
        return [time.perf_counter() * 1000 for line in response.iter_lines() if line == "event: text"]


def times_in_widget(url: str) -> list[float]:
    """When each piece stood in the page, in milliseconds."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(reduced_motion="reduce")
        page.goto(f"{url}/ask/demo")
        page.evaluate(WATCH)
        page.evaluate("(question) => ralph.ask(question)", QUESTION)
        page.locator(".answer ~ .after .actions").wait_for(timeout=120_000)
        times: list[float] = page.evaluate("shown")
        browser.close()
    return times


if __name__ == "__main__":
    main()
