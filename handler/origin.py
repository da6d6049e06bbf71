"""Which pages of the web may ask: those of this host, and those of the origins that were allowed."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from handler.log import FACTS
from handler.problem import problem

MAX_LOGGED_CHARS = 200


class OriginCheck:
    """Middleware that answers 403 below /api/ to a page of an origin that is not allowed.

    CORS headers alone would only keep the answer from the page: it would have been made, and paid for.
    """

    def __init__(self, app: ASGIApp, allowed: Collection[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what no browser sent, and what a page sent that may."""
        if scope["type"] == "http" and scope["path"].startswith("/api/"):
            headers = Headers(scope=scope)
            if not may_ask(headers, self._allowed):
                message = (
                    f"{headers['origin']} may not ask here: the server's ALLOWED_ORIGINS does not name it."
                )
                # Browsers keep the answer from the page, and so from all who could tell the owner.
                scope.get(FACTS, {})["refused_origin"] = headers["origin"][:MAX_LOGGED_CHARS]
                await problem(403, "bad_request", message)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def may_ask(headers: Headers, allowed: Collection[str]) -> bool:
    """Whether the page behind a request may ask. A request without Origin is of no page of another host.

    "null" is what sandboxed frames and local files send: anyone can have it, so it is nobody's. Browsers
    say in Sec-Fetch-Site, which pages cannot forge, what is same-origin, however proxies rename the host;
    older ones are taken by the Host header (as Go's net/http.CrossOriginProtection does it).
    """
    origin = headers.get("origin")
    if origin is None:
        return True
    if origin == "null":
        return False
    if origin in allowed or "*" in allowed:
        return True
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    try:
        return urlsplit(origin).netloc == headers.get("host")
    except ValueError:
        return False
