"""A site on loopback that embeds the widget, and an answering server whose every byte a test chooses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.fakes.loopback import LoopbackHandler

WIDGET = Path(__file__).parents[3] / "handler" / "widget"
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html; charset=utf-8"}


@dataclass
class Gate:
    """A place in a stream where it stands still until the test opens it, or the reader leaves.

    Comments are sent meanwhile, as the real server's pings; a `silent` one sends nothing.
    """

    silent: bool = False
    opened: threading.Event = field(default_factory=threading.Event)

    def open(self) -> None:
        self.opened.set()


@dataclass
class Reply:
    """What the server answers to one question: bytes packet by packet, and gates between them."""

    packets: Iterable[bytes | Gate] = ()
    status: int = 200
    content_type: str = "text/event-stream; charset=utf-8"


class Site:
    """Pages by path, replies in the order of the questions, and what was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, Mapping[str, str]]] = {}
        self.replies: list[Reply] = []
        self.asked: list[dict[str, Any]] = []
        self.about: dict[str, Any] | None = None
        self.cut_by_reader = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reset(self) -> None:
        self.pages, self.replies, self.asked, self.about = {}, [], [], None
        self.cut_by_reader = threading.Event()

    def _handler(site) -> type[BaseHTTPRequestHandler]:  # inside, self is the request
        class Handler(LoopbackHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.split("?")[0]
                if path in site.pages:
                    html, headers = site.pages[path]
                    self._send(200, TYPES[".html"], html.encode(), headers)
                elif path == "/api/about" and site.about is not None:
                    self._send(200, "application/json", json.dumps(site.about).encode(), {})
                elif path.startswith("/ask/") and (file := WIDGET / Path(path).name).is_file():
                    self._send(200, TYPES[file.suffix], file.read_bytes(), {})
                else:
                    self._send(404, "text/plain", b"", {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                site.asked.append(json.loads(body))
                reply = site.replies.pop(0)
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.content_type)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    for packet in reply.packets:
                        if isinstance(packet, Gate):
                            self._stand_still(packet)
                        else:
                            self.wfile.write(b"%x\r\n%s\r\n" % (len(packet), packet))
                            self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                except ConnectionError:
                    site.cut_by_reader.set()
                    self.close_connection = True

            def _stand_still(self, gate: Gate) -> None:
                # A closed socket fails the second write at the latest: so it shows that the reader left.
                while not gate.opened.wait(None if gate.silent else 0.05):
                    self.wfile.write(b"2\r\n:\n\r\n")
                    self.wfile.flush()

            def _send(self, status: int, kind: str, body: bytes, headers: Mapping[str, str]) -> None:
                self.reply(status, body, {"Content-Type": kind, **headers})

        return Handler


def event(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def source(number: int = 1, **values: Any) -> dict[str, Any]:
    given = {
        "number": number,
        "title": "Tide pools",
        "heading": "Salt and sun",
        "url": "/pools#salt-and-sun",
        "snippet": "A shallow pool warms by ten degrees.",
        "rank": number,
    }
    return given | values


DONE = event(
    "done",
    generator="claude",
    model="claude-haiku-4-5",
    stop_reason="end",
    usage={"input_tokens": 900, "output_tokens": 60, "cache_read_tokens": 0, "cache_write_tokens": 0},
    timing={"sources_ms": 9.0, "first_text_ms": 400.0, "total_ms": 1500.0},
    bundle="3f2a",
    dropped_citations=0,
)


def answer(
    text: str, citations: Sequence[tuple[int, str, int]] = (), sources: Sequence[dict[str, Any]] = ()
) -> list[bytes]:
    """A whole answer, an event a packet; citations are (source, quote, at)."""
    marks = [event("citation", source=number, quote=quote, at=at) for number, quote, at in citations]
    return [event("sources", sources=list(sources or [source()])), event("text", text=text), *marks, DONE]


def page(script: str = '<script src="/ask/widget.js" defer></script>', head: str = "", body: str = "") -> str:
    """A small page that embeds the widget and passes axe by itself."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tide pools</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{head}{script}</head><body><main><h1>Tide pools</h1>"
        '<p>Words. <a href="/other">Another page</a> <button id="host">A button</button></p>'
        f"{body}</main></body></html>"
    )
