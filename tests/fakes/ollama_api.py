"""A stand-in for Ollama's HTTP API on loopback.

    with ollama_api() as api:
        OllamaGenerator(OllamaSettings(api.url, "llama3.2", 8192, 5.0))

It answers with the first source that a question comes with, and cites it. `api.replies` takes other answers,
one a request to /api/chat. What it has of models is in `api.models`.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fakes.loopback import LoopbackHandler, LoopbackServer, answering

# HOLD is silence until the test calls go_on() or the client leaves, DROP a connection that breaks.
HOLD: Literal["hold"] = "hold"
DROP: Literal["drop"] = "drop"
# A row of the stream as an object, or bytes as they go over the wire.
Step = Mapping[str, Any] | bytes | Literal["hold", "drop"]


@dataclass(frozen=True)
class Refusal:
    """A reply that is an error from the start."""

    status: int
    error: str
    headers: Mapping[str, str] = field(default_factory=dict)


class OllamaApi:
    """The stand-in as a test sees it, from any thread."""

    def __init__(self, url: str) -> None:
        self.url = url
        # What POST /api/show says of each model.
        self.models: dict[str, Mapping[str, Any]] = {"llama3.2": {"details": {"family": "llama"}}}
        self.replies: deque[Refusal | Sequence[Step]] = deque()
        # The bodies of the questions, and the headers of the last request, names in lower case.
        self.chats: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self._n_aborted = 0
        self._changed = threading.Condition()
        self._go_on, self._held = socket.socketpair()

    def go_on(self) -> None:
        """Ends the HOLD that has begun, or the next one."""
        self._go_on.send(b"!")

    def wait_for_aborted(self, count: int, timeout_s: float = 10) -> bool:
        """Whether clients have closed so many connections in mid-answer, waiting for it."""
        with self._changed:
            return self._changed.wait_for(lambda: self._n_aborted >= count, timeout_s)

    def _close(self) -> None:
        self._go_on.close()
        self._held.close()

    def _count_aborted(self) -> None:
        with self._changed:
            self._n_aborted += 1
            self._changed.notify_all()


@contextmanager
def ollama_api() -> Iterator[OllamaApi]:
    """The stand-in, listening on a free port while the context lasts."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.api = OllamaApi(f"http://127.0.0.1:{server.server_address[1]}")
        try:
            with answering(server):
                yield server.api
        finally:
            server.api._close()


def rows(*pieces: str, done_reason: str = "stop") -> list[Step]:
    """A whole answer as rows, for a test to cut, or to put HOLD and DROP into."""
    return [*map(row, pieces), last_row(done_reason)]


def row(piece: str, **others: str) -> Step:
    """The next piece of an answer. `others` are fields of the message beside its content."""
    return {"model": "llama3.2", "message": {"role": "assistant", "content": piece, **others}, "done": False}


def last_row(done_reason: str = "stop") -> Step:
    """The row that ends an answer and says what it cost."""
    return {
        "model": "llama3.2",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": done_reason,
        "prompt_eval_count": 120,
        "eval_count": 12,
    }


def answer_from_sources(chat: Mapping[str, Any]) -> list[Step]:
    """The answer where no other was scripted: the last line of the first source, in pieces, with its [1]."""
    source = re.search(r"<source number=1>\n(.*?)\n</source>", chat["messages"][-1]["content"], re.DOTALL)
    if source is None:
        return rows("I don't ", "know.")
    text = f"{source[1].splitlines()[-1].rstrip('.')} [1]."
    return rows(*(text[i : i + 7] for i in range(0, len(text), 7)))


class _Server(LoopbackServer):
    api: OllamaApi


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # each row is sent when it is written
    server: _Server

    def do_POST(self) -> None:
        """POST /api/show and /api/chat, the latter always streamed."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        api = self.server.api
        api.headers = {name.lower(): value for name, value in self.headers.items()}
        if body["model"] not in api.models:
            self._send_json(404, {"error": f"model '{body['model']}' not found"})
        elif self.path == "/api/show":
            self._send_json(200, api.models[body["model"]])
        elif self.path == "/api/chat":
            api.chats.append(body)
            reply = api.replies.popleft() if api.replies else answer_from_sources(body)
            if isinstance(reply, Refusal):
                self._send_json(reply.status, {"error": reply.error}, reply.headers)
            else:
                self._stream(reply)
        else:
            self._send_json(404, {"error": "404 page not found"})

    def _send_json(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        self.reply(status, json.dumps(body).encode(), {"content-type": "application/json", **(headers or {})})

    def _stream(self, steps: Sequence[Step]) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for step in steps:
                if step == DROP:
                    # Reset rather than closed: what a process that is killed looks like.
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
                    return
                if step == HOLD:
                    self._hold()
                else:
                    content = step if isinstance(step, bytes) else _line(step)
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.server.api._count_aborted()
            self.close_connection = True

    def _hold(self) -> None:
        """Waits for the test. Raises ConnectionResetError when the client leaves first."""
        held = self.server.api._held
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            selector.register(held, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select()]
        if held not in ready:
            raise ConnectionResetError
        held.recv(1)


def _line(step: object) -> bytes:
    """As Go writes it: characters as they are, U+2028 and U+2029 escaped."""
    text = json.dumps(step, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode() + b"\n"
