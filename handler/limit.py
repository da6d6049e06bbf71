"""How many requests a client may make in a minute, counted in memory that cannot grow without end."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from handler.problem import problem

WINDOW_S = 60
# Some 10 MB. Who has more addresses than this is not stopped by counting addresses.
MAX_CLIENTS = 100_000


class FixedWindow:
    """Counts requests of each client within the minute of the clock. `clock` returns Unix seconds."""

    def __init__(self, limit: int, clock: Callable[[], float], max_clients: int = MAX_CLIENTS) -> None:
        self._limit = limit
        self._clock = clock
        self._max_clients = max_clients
        self._minute = 0
        self._counts: dict[str, int] = {}

    def take(self, client: str) -> int | None:
        """None when the client may go on, else after how many whole seconds it may."""
        now = self._clock()
        minute = int(now // WINDOW_S)
        if minute != self._minute:
            self._minute, self._counts = minute, {}
        count = self._counts.get(client, 0)
        if count >= self._limit:
            return max(1, math.ceil((minute + 1) * WINDOW_S - now))
        if client not in self._counts and len(self._counts) >= self._max_clients:
            del self._counts[next(iter(self._counts))]
        self._counts[client] = count + 1
        return None


class RateLimit:
    """Middleware that answers 429 before a body is read. `windows` has those of the limited paths."""

    def __init__(self, app: ASGIApp, windows: Mapping[str, FixedWindow]) -> None:
        self._app = app
        self._windows = windows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on while its client's minute is not used up."""
        window = self._windows.get(scope["path"]) if scope["type"] == "http" else None
        retry_after_s = None if window is None else window.take(client_key(scope))
        if retry_after_s is None:
            await self._app(scope, receive, send)
            return
        response = problem(
            429, "rate_limited", "That was a lot of questions. Please wait a moment.", retry_after_s
        )
        await response(scope, receive, send)


def client_key(scope: Scope) -> str:
    """What counts as one client: an IPv4 address, or the /64 that one IPv6 subscriber has."""
    address = _address(scope)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address.packed[:8] + bytes(8), 64)))
    return str(address)


def short_client(scope: Scope) -> str:
    """The client's network, /24 or /48, which a log may keep: it tells no two neighbours apart."""
    address = _address(scope)
    if address is None:
        return "unknown"
    prefix = 24 if address.version == 4 else 48
    return str(ipaddress.ip_network((address, prefix), strict=False))


def _address(scope: Scope) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The client's address; None for a Unix socket, and for what a proxy wrote that is no address."""
    try:
        address = ipaddress.ip_address((scope.get("client") or ("", 0))[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address
