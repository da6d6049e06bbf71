"""A stand-in for AWS Lambda's Runtime API on loopback, for a runtime client to ask.

    with runtime_api() as api:
        subprocess.Popen([sys.executable, "-m", "handler.lambda_stream"], env={..., **api.environ})
        answer = api.invoke(function_url_event("GET", "/healthz"))

It hands out one event after the other, and notes each chunk of an answer as it arrives.
"""

from __future__ import annotations

import base64
import json
import queue
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.loopback import LoopbackHandler, LoopbackServer, answering

VERSION = "/2018-06-01/runtime"
PATIENCE_S = 30
ERROR_TYPE = "lambda-runtime-function-error-type"
ERROR_BODY = "lambda-runtime-function-error-body"


@dataclass
class Post:
    """What the client sent: header names in lower case, `chunks` as they came, each with its time."""

    path: str
    headers: Mapping[str, str]
    chunks: list[bytes] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    trailers: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What of an invocation, the start or the restore it tells: "response" or "error"."""
        return self.path.rpartition("/")[2]

    @property
    def prelude(self) -> dict[str, Any]:
        """Status, headers and cookies of a streamed answer."""
        return dict(json.loads(b"".join(self.chunks).partition(bytes(8))[0]))

    @property
    def body(self) -> bytes:
        """The body of a streamed answer."""
        return b"".join(self.chunks).partition(bytes(8))[2]

    @property
    def json(self) -> Any:
        """All that was sent, where it is JSON."""
        return json.loads(b"".join(self.chunks))

    @property
    def trailing_error(self) -> dict[str, Any]:
        """The error that came after the answer."""
        return dict(json.loads(base64.b64decode(self.trailers[ERROR_BODY])))


class RuntimeApi:
    """The stand-in as a test sees it."""

    def __init__(self, address: str) -> None:
        self.address = address
        # How many functions went on from a snapshot.
        self.n_restored = 0
        # After so many chunks of an answer the connection is reset, as when Lambda has had enough.
        self.drop_after_chunks: int | None = None
        # What is replied when an answer has come.
        self.status = 202
        self.posts: queue.SimpleQueue[Post] = queue.SimpleQueue()
        # Each chunk of any answer when it has come, for whoever does not want to wait for the whole.
        self.chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[tuple[str, Any, float] | None] = queue.SimpleQueue()
        self._n_invocations = 0

    @property
    def environ(self) -> dict[str, str]:
        """What Lambda puts into a function's environment."""
        return {
            "AWS_LAMBDA_RUNTIME_API": self.address,
            "AWS_LAMBDA_FUNCTION_NAME": "ralph",
            "AWS_LAMBDA_FUNCTION_VERSION": "1",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
            "AWS_REGION": "eu-central-1",
            "AWS_DEFAULT_REGION": "eu-central-1",
        }

    def begin(self, event: Any, deadline_s: float = PATIENCE_S) -> str:
        """Hands out an event and returns its invocation's identifier."""
        self._n_invocations += 1
        invocation_id = f"invocation-{self._n_invocations}"
        self._events.put((invocation_id, event, time.time() + deadline_s))
        return invocation_id

    def take(self) -> Post:
        """The next thing that the client tells, when it is whole."""
        return self.posts.get(timeout=PATIENCE_S)

    def invoke(self, event: Any, deadline_s: float = PATIENCE_S) -> Post:
        """What the client tells of an event."""
        invocation_id = self.begin(event, deadline_s)
        post = self.take()
        assert f"/{invocation_id}/" in post.path, post
        return post

    def close(self) -> None:
        """Lets the client find nobody."""
        self._events.put(None)


def function_url_event(
    method: str = "POST",
    path: str = "/api/ask",
    body: Any = None,
    query: str = "",
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The event of a request to a Function URL, payload format 2.0; `body` is sent as JSON."""
    host = "abc.lambda-url.eu-central-1.on.aws"
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {
            "content-type": "application/json",
            "host": host,
            "x-forwarded-for": "203.0.113.7",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
            **(headers or {}),
        },
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "abc",
            "domainName": host,
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7",
                "userAgent": "test",
            },
            "requestId": "request",
            "routeKey": "$default",
            "stage": "$default",
            "timeEpoch": 1_583_348_638_390,
        },
        "body": None if body is None else base64.b64encode(json.dumps(body).encode()).decode(),
        "isBase64Encoded": body is not None,
    }


@contextmanager
def runtime_api() -> Iterator[RuntimeApi]:
    """The stand-in, listening on a free port while the context lasts."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.api = RuntimeApi(f"127.0.0.1:{server.server_address[1]}")
        with answering(server):
            try:
                yield server.api
            finally:
                server.api.close()


@contextmanager
def function_process(
    module: str, *arguments: str, environ: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A runtime client in a process of its own, ended with the context."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


class _Server(LoopbackServer):
    api: RuntimeApi

    def handle_error(self, request: object, client_address: object) -> None:
        """A function that is killed leaves its connections behind; all else is a fault here."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        """The next event, or the end of a snapshot."""
        if self.path == f"{VERSION}/restore/next":
            self.server.api.n_restored += 1
            self._reply(200, b"")
            return
        assert self.path == f"{VERSION}/invocation/next"
        taken = self.server.api._events.get()
        if taken is None:
            self.close_connection = True
            return
        invocation_id, event, deadline = taken
        self._reply(
            200,
            json.dumps(event).encode(),
            {
                "Lambda-Runtime-Aws-Request-Id": invocation_id,
                "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
                "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-central-1:123456789012:function:f",
                "Lambda-Runtime-Trace-Id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9;Sampled=1",
            },
        )

    def do_POST(self) -> None:
        """An answer or an error."""
        post = Post(self.path, {name.lower(): value for name, value in self.headers.items()})
        if self.headers.get("transfer-encoding") == "chunked":
            if not self._read_chunks(post):
                return
        else:
            post.chunks.append(self.rfile.read(int(self.headers["content-length"])))
            post.times.append(time.monotonic())
        self.server.api.posts.put(post)
        self._reply(self.server.api.status, b'{"status":"OK"}')

    def _read_chunks(self, post: Post) -> bool:
        while size := int(self.rfile.readline(), 16):
            post.chunks.append(self.rfile.read(size))
            post.times.append(time.monotonic())
            self.rfile.readline()
            self.server.api.chunks.put(post.chunks[-1])
            if len(post.chunks) == self.server.api.drop_after_chunks:
                # Reset rather than closed, so that the client notices at once.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                return False
        while line := self.rfile.readline().decode().strip():
            name, _, value = line.partition(":")
            post.trailers[name.lower()] = value.strip()
        return True

    def _reply(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        # Without a type Lambda's own client crashes.
        self.reply(status, body, {**(headers or {}), "Content-Type": "application/json"})
