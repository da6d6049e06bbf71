"""AWS Lambda's Runtime API: what a function is asked next, and its answer, sent piece by piece.

AWS streams natively from Node.js alone. The wire format is public, and here is as much of it as is needed:
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html and, on streaming,
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-custom.html
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import h11

VERSION = "/2018-06-01/runtime"
ERROR_TYPE = "Lambda-Runtime-Function-Error-Type"
ERROR_BODY = "Lambda-Runtime-Function-Error-Body"
# Between the JSON of status and headers, and the body.
PRELUDE_END = bytes(8)

_STREAMED = (
    ("Lambda-Runtime-Function-Response-Mode", "streaming"),
    ("Content-Type", "application/vnd.awslambda.http-integration-response"),
    ("Transfer-Encoding", "chunked"),
    ("Trailer", f"{ERROR_TYPE}, {ERROR_BODY}"),
)
# Those of the connection to the reader, which is not ours to describe.
_HOP_BY_HOP = frozenset((b"connection", b"content-length", b"transfer-encoding"))

Headers = Iterable[tuple[bytes, bytes]]


class RuntimeApiError(Exception):
    """The Runtime API said no. The message names the request and the status."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """A request to the function. `deadline_s`, in Unix seconds, is when Lambda ends it."""

    id: str
    event: dict[str, Any]
    deadline_s: float
    trace_id: str | None


class RuntimeApi:
    """The API at an address, "host:port". Each call has a connection of its own: a snapshot holds none."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def next(self) -> Invocation:
        """The next request, waiting for it."""
        reply = await self._call("GET", "/invocation/next")
        return Invocation(
            id=reply.headers["lambda-runtime-aws-request-id"],
            event=json.loads(reply.body),
            deadline_s=int(reply.headers["lambda-runtime-deadline-ms"]) / 1000,
            trace_id=reply.headers.get("lambda-runtime-trace-id"),
        )

    async def wait_for_restore(self) -> None:
        """Lets the snapshot be taken. It returns in each function that goes on from there."""
        await self._call("GET", "/restore/next")

    async def fail(self, path: str, error: BaseException) -> None:
        """Tells that the start, the restore or an invocation failed: /init, /restore or /invocation/ID."""
        await self._call("POST", f"{path}/error", ((ERROR_TYPE, _error_type(error)),), _error_body(error))

    async def respond(self, invocation_id: str, status: int, headers: Headers) -> Exchange:
        """Begins the answer to an invocation; its body goes into what is returned."""
        path = f"{VERSION}/invocation/{invocation_id}/response"
        exchange = await Exchange.open(self._address, "POST", path, _STREAMED)
        try:
            await exchange.send(_prelude(status, headers) + PRELUDE_END)
        except OSError:
            exchange.close()
            raise
        return exchange

    async def _call(
        self, method: str, path: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b""
    ) -> Reply:
        length = ("Content-Length", str(len(body)))
        exchange = await Exchange.open(self._address, method, VERSION + path, (*headers, length))
        try:
            if body:
                await exchange.send(body)
            return await exchange.end()
        finally:
            exchange.close()


@dataclass(frozen=True, slots=True)
class Reply:
    """What the Runtime API replied. Header names are in lower case."""

    headers: dict[str, str]
    body: bytes


class Exchange:
    """One HTTP request and its reply."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        self._reader = reader
        self._writer = writer
        self._name = name
        self._http = h11.Connection(h11.CLIENT)

    @classmethod
    async def open(cls, address: str, method: str, path: str, headers: Sequence[tuple[str, str]]) -> Self:
        """The exchange, its headers sent."""
        host, _, port = address.rpartition(":")
        exchange = cls(*await asyncio.open_connection(host, int(port)), f"{method} {path}")
        headers = [("Host", address), ("Connection", "close"), *headers]
        await exchange._write(h11.Request(method=method, target=path, headers=headers))
        return exchange

    async def send(self, data: bytes) -> None:
        """Sends a piece of the body. Raises OSError when the other side is gone."""
        await self._write(h11.Data(data=data))

    async def end(self, error: BaseException | None = None) -> Reply:
        """Ends the body, with trailers that tell of an error if there was one, and takes the reply.

        Raises RuntimeApiError for a reply that is a refusal, OSError for none.
        """
        trailers = []
        if error is not None:
            body = base64.b64encode(_error_body(error)).decode()
            trailers = [(ERROR_TYPE, _error_type(error)), (ERROR_BODY, body)]
        await self._write(h11.EndOfMessage(headers=trailers))
        return await self._reply()

    def close(self) -> None:
        """Closes the connection."""
        self._writer.close()

    async def _write(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()

    async def _reply(self) -> Reply:
        headers: dict[str, str] = {}
        body = bytearray()
        try:
            while not isinstance(event := self._http.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    self._http.receive_data(await self._reader.read(65_536))
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.Response):
                    if event.status_code >= 300:
                        raise RuntimeApiError(f"{self._name}: status {event.status_code}")
                    headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
        except h11.RemoteProtocolError as error:
            raise ConnectionError(f"{self._name}: {error}") from None
        return Reply(headers, bytes(body))


def _prelude(status: int, headers: Headers) -> bytes:
    """Status and headers of an answer, as JSON; cookies, of which each is a header, are beside the others."""
    joined: dict[str, str] = {}
    cookies = []
    for raw_name, raw_value in headers:
        name, value = raw_name.lower().decode("latin-1"), raw_value.decode("latin-1")
        if name == "set-cookie":
            cookies.append(value)
        elif raw_name.lower() not in _HOP_BY_HOP:
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return json.dumps({"statusCode": status, "headers": joined, "cookies": cookies}).encode()


def _error_type(error: BaseException) -> str:
    return f"Runtime.{type(error).__name__}"


def _error_body(error: BaseException) -> bytes:
    """An error as Lambda shows it. Its traceback is in the log, and is nobody else's business."""
    kind = type(error).__name__
    return json.dumps({"errorType": kind, "errorMessage": str(error), "stackTrace": []}).encode()
