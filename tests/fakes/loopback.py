"""What the stand-ins of servers have in common: a free port, and an end with the test."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler


class LoopbackServer(socketserver.ThreadingTCPServer):
    """A server with a thread for each connection, none of which outlives the test."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128


class LoopbackHandler(BaseHTTPRequestHandler):
    """A request to a stand-in, which is in no log."""

    def reply(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """A whole answer."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Tests read the answers."""


@contextmanager
def answering(server: LoopbackServer) -> Iterator[None]:
    """Has the server answer while the context lasts."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def free_port() -> int:
    """A port that nobody listens on, for a program that cannot choose one itself."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
