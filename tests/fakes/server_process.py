"""A `ralph` server as a process of its own, which a test talks to, signals, and reads the log of."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 30


class ServerProcess:
    """A running server. `urls` are those that it printed."""

    def __init__(self, process: subprocess.Popen[str], n_urls: int) -> None:
        assert process.stdout
        self._process = process
        self._log: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read_log)
        self._reader.start()
        self.urls = [process.stdout.readline().removesuffix("/ask/demo\n") for _ in range(n_urls)]
        self.url = self.urls[0]

    def wait_for_log(self, message: str) -> dict[str, Any]:
        """The next line of the log with this message."""
        while True:
            line = json.loads(self._log.get(timeout=PATIENCE_S))
            if line["message"] == message:
                return dict(line)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._process.send_signal(number)

    def wait_until_closed(self) -> bool:
        """Whether it takes no new connection any more, waiting for that."""
        host, port = self.url.removeprefix("http://").rsplit(":", 1)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                socket.create_connection((host, int(port)), PATIENCE_S).close()
            except ConnectionError:
                return True
        return False

    def wait(self) -> int:
        """The exit code, when it has ended."""
        return self._process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Ends it at once, if it has not ended."""
        self._process.kill()
        self._reader.join()

    def _read_log(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._log.put(line)


def command(bundle: Path, *options: str) -> list[str]:
    """The arguments that start a server on any free port."""
    return [sys.executable, "-m", "handler", "serve", "--bundle", str(bundle), "--port", "0", *options]


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a server of the tests finds in its environment: what it needs to run, and `environ`."""
    root = Path(__file__).resolve().parent.parent.parent
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(root), "PYTHONWARNINGS": "error", **environ}


@contextmanager
def serving(
    bundle: Path, folder: Path, environ: Mapping[str, str] | None = None, n_urls: int = 1
) -> Iterator[ServerProcess]:
    """A server, answering, that is started in `folder` and ended with the context."""
    process = subprocess.Popen(
        command(bundle),
        cwd=folder,
        env=environment(environ or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        server = ServerProcess(process, n_urls)
        try:
            yield server
        finally:
            server.kill()
