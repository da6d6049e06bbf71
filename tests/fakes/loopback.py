"""What the stand-ins of servers have in common: a free port, and an end with the test."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class LoopbackServer(socketserver.ThreadingTCPServer):
    """A server with a thread for each connection, none of which outlives the test."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128


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
