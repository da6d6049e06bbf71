"""A stand-in for Anthropic's Messages API on loopback, for the real SDK to talk to.

    with anthropic_api() as api:
        ClaudeGenerator(ClaudeSettings(api_key="key", base_url=api.url))

It answers from the request's own documents: for each that shares a word with the question, its first such
sentence, cited. `api.replies` takes other answers, one a request. It refuses what the real one refuses.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fakes.loopback import LoopbackHandler, LoopbackServer, answering

API_VERSION = "2026-10-21"

ApiEvent = Mapping[str, Any]
# HOLD is silence until the test calls go_on(), DROP a connection that breaks; bytes go out as they are.
HOLD: Literal["hold"] = "hold"
DROP: Literal["drop"] = "drop"
Step = ApiEvent | bytes | Literal["hold", "drop"]


@dataclass(frozen=True)
class Refusal:
    """A reply that is an error from the start."""

    status: int
    type: str
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """A content block: pieces of text, and the citations of it, which come after the text or before."""

    pieces: Sequence[str]
    citations: Sequence[ApiEvent] = ()
    citations_first: bool = False


@dataclass(frozen=True)
class Request:
    """What was asked: the header names in lower case, the body as JSON. `client` is the connection's port."""

    headers: Mapping[str, str]
    body: Mapping[str, Any]
    client: int

    @property
    def documents(self) -> list[Mapping[str, Any]]:
        """The document blocks, in order."""
        blocks = (block for message in self.body["messages"] for block in _blocks(message))
        return [block for block in blocks if block["type"] == "document"]

    @property
    def question(self) -> str:
        """The last text that the user wrote."""
        texts = [block["text"] for block in _blocks(self.body["messages"][-1]) if block["type"] == "text"]
        return str(texts[-1])


Reply = Refusal | Sequence[Step]


class AnthropicApi:
    """The stand-in as a test sees it, from any thread."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Request] = []
        # What is answered next, one a request: a reply, or a function that makes it.
        self.replies: deque[Reply | Callable[[Request], Reply]] = deque()
        # How many connections the client has closed in mid-answer.
        self.n_aborted = 0
        # Seconds between two events, for whoever looks at streaming.
        self.delay_s = 0.0
        # How many bytes go out at a time; 1 cuts every character of many bytes.
        self.packet_bytes = 65536
        self._changed = threading.Condition()
        self._held: list[socket.socket] = []
        self._permits = 0

    def go_on(self) -> None:
        """Ends one HOLD, that has begun or is to come."""
        with self._changed:
            if self._held:
                self._held.pop(0).send(b"!")
            else:
                self._permits += 1

    def wait_for_requests(self, count: int, timeout_s: float = 10) -> bool:
        """Whether so many requests have come, waiting for them."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s)

    def wait_for_aborted(self, count: int, timeout_s: float = 10) -> bool:
        """Whether the client has closed so many connections, waiting for it."""
        with self._changed:
            return self._changed.wait_for(lambda: self.n_aborted >= count, timeout_s)

    def _take(self, request: Request) -> Reply:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            reply = self.replies.popleft() if self.replies else answer_from_documents
        return reply(request) if callable(reply) else reply

    def _count_aborted(self) -> None:
        with self._changed:
            self.n_aborted += 1
            self._changed.notify_all()

    @contextmanager
    def _hold(self) -> Iterator[socket.socket]:
        """A socket that can be read when the hold is over."""
        theirs, ours = socket.socketpair()
        with theirs, ours:
            with self._changed:
                self._held.append(ours)
                if self._permits:
                    self._permits -= 1
                    self._held.pop().send(b"!")
            try:
                yield theirs
            finally:
                with self._changed:
                    if ours in self._held:
                        self._held.remove(ours)


@contextmanager
def anthropic_api() -> Iterator[AnthropicApi]:
    """The stand-in, listening on a free port while the context lasts."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.api = AnthropicApi(f"http://127.0.0.1:{server.server_address[1]}")
        with answering(server):
            yield server.api


def stream(
    *blocks: Block, stop_reason: str = "end_turn", usage: Mapping[str, int] | None = None
) -> list[Step]:
    """A whole answer as events, for a test to cut, or to put HOLD and DROP into."""
    steps: list[Step] = [message_start(usage or {})]
    for index, block in enumerate(blocks):
        texts = [text_delta(index, piece) for piece in block.pieces]
        citations = [citations_delta(index, citation) for citation in block.citations]
        steps += [
            block_start(index),
            *(citations if block.citations_first else []),
            *texts,
            *([] if block.citations_first else citations),
            {"type": "content_block_stop", "index": index},
        ]
    return [*steps, message_delta(stop_reason), {"type": "message_stop"}]


def message_start(usage: Mapping[str, int]) -> ApiEvent:
    """The first event. `usage` is beside that of an ordinary answer."""
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 1, **usage},
    }
    return {"type": "message_start", "message": message}


def message_delta(stop_reason: str) -> ApiEvent:
    """The event that says why the answer ends and what it cost."""
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}


def block_start(index: int) -> ApiEvent:
    """The event that begins a block of text."""
    block = {"type": "text", "text": "", "citations": None}
    return {"type": "content_block_start", "index": index, "content_block": block}


def text_delta(index: int, text: str) -> ApiEvent:
    """The event with the next piece of a block's text."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def citations_delta(index: int, citation: ApiEvent) -> ApiEvent:
    """The event with a citation of a block."""
    delta = {"type": "citations_delta", "citation": citation}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def error_event(kind: str) -> ApiEvent:
    """The event of an error in mid-answer, such as overloaded_error."""
    return {"type": "error", "error": {"type": kind, "message": kind}}


def char_location(document_index: int, text: str, start: int) -> ApiEvent:
    """A citation of so many characters of a document from `start` on."""
    return {
        "type": "char_location",
        "cited_text": text,
        "document_index": document_index,
        "document_title": None,
        "file_id": None,
        "start_char_index": start,
        "end_char_index": start + len(text),
    }


def answer_from_documents(request: Request) -> list[Step]:
    """The answer where no other was scripted: "I looked." and a cited sentence of each document that fits."""
    words = set(re.findall(r"\w{4,}", request.question.lower()))
    blocks = [Block(["I looked. "])]
    for index, document in enumerate(request.documents):
        sentences = re.finditer(r"[^.\n]+\.?", document["source"]["data"])
        fitting = (s for s in sentences if words.intersection(re.findall(r"\w{4,}", s[0].lower())))
        if sentence := next(fitting, None):
            text = f"{sentence[0].strip()} "
            pieces = [text[i : i + 12] for i in range(0, len(text), 12)]
            blocks.append(Block(pieces, [char_location(index, sentence[0], sentence.start())]))
    return stream(*blocks)


class _Server(LoopbackServer):
    api: AnthropicApi


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        """POST /v1/messages, always streamed."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        port = self.client_address[1]
        request = Request({name.lower(): value for name, value in self.headers.items()}, body, port)
        reply = self.server.api._take(request)
        fault = _fault(self.path, request)
        if fault or isinstance(reply, Refusal):
            self._refuse(fault or reply)  # type: ignore[arg-type]
            return
        try:
            self._stream(reply)
        except (BrokenPipeError, ConnectionResetError):
            self.server.api._count_aborted()
            self.close_connection = True

    def _refuse(self, refusal: Refusal) -> None:
        error = {"type": "error", "error": {"type": refusal.type, "message": refusal.message}}
        headers = {"content-type": "application/json", **refusal.headers}
        self.reply(refusal.status, json.dumps(error).encode(), headers)

    def _stream(self, steps: Sequence[Step]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for step in steps:
            if step == DROP:
                # Reset rather than closed: what a network that fails looks like.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                return
            if step == HOLD:
                with self.server.api._hold() as held:
                    self._watch(held, None)
            else:
                self._send(step if isinstance(step, bytes) else _encoded(step))
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, content: bytes) -> None:
        for start in range(0, len(content), self.server.api.packet_bytes):
            packet = content[start : start + self.server.api.packet_bytes]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(packet), packet))
        if self.server.api.delay_s:
            self._watch(None, self.server.api.delay_s)

    def _watch(self, held: socket.socket | None, timeout_s: float | None) -> None:
        """Waits for the end of a hold, or so long. Raises ConnectionResetError when the client leaves."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            if held is not None:
                selector.register(held, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select(timeout_s)]
        if self.connection in ready and held not in ready:
            raise ConnectionResetError


def _encoded(event: ApiEvent) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _fault(path: str, request: Request) -> Refusal | None:
    """What the real API refuses of a request."""
    body, messages = request.body, request.body["messages"]
    if request.headers.get("authorization") == "Bearer wrong":
        return Refusal(401, "authentication_error", "invalid bearer token")
    in_assistant_turns = [
        block["type"] for message in messages if message["role"] == "assistant" for block in _blocks(message)
    ]
    cited = [document.get("citations", {}).get("enabled", False) for document in request.documents]
    texts = [block for message in messages for block in _blocks(message) if block["type"] == "text"]
    rules = {
        f"POST {path}": path == "/v1/messages" and body.get("stream") is True,
        "authorization": request.headers.get("authorization", "").startswith("Bearer "),
        "anthropic-version": request.headers.get("anthropic-version") == API_VERSION,
        "not permitted in this API version": not body.keys() & {"temperature", "top_p", "top_k"},
        "documents in an assistant message": set(in_assistant_turns) <= {"text"},
        "citations on user text": not any("citations" in text for text in texts),
        "citations must be enabled on all or none of the documents": len(set(cited)) <= 1,
        "thinking and output_config": not body.keys() & {"thinking", "output_config"},
        "the first message must be the user's": messages[0]["role"] == "user",
        "the last message must be the user's": messages[-1]["role"] == "user",
        "empty text": all(text["text"].strip() for text in texts),
        "max_tokens": isinstance(body.get("max_tokens"), int),
    }
    broken = [rule for rule, holds in rules.items() if not holds]
    return Refusal(400, "invalid_request_error", "; ".join(broken)) if broken else None
