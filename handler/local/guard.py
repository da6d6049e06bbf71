"""Lets in what comes from this machine's own page, or from no page at all."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handler.problem import problem

# A page on the web can name any of these too, but not have its own name among them: DNS rebinding makes
# evil.example resolve to 127.0.0.1, and the browser then sends "Host: evil.example:3002".
NAMES = ("127.0.0.1", "localhost", "[::1]")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Guard:
    """Wraps an application. There is no CORS: no other origin has business here."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers what must not come in, and passes on the rest."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                # Nothing of a conversation stays in the browser's cache.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = refusal(scope) or self._app
        await answer(scope, receive, send_with_headers)


def refusal(scope: Scope) -> Response | None:
    """The answer to a request that must not come in."""
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    if host.lower() not in _own_hosts(scope):
        return problem(403, "refused", "This chat answers at http://127.0.0.1 and http://localhost only.")
    if headers.get("origin", f"http://{host}").lower() != f"http://{host}".lower():
        return problem(403, "refused", "Another site's page asked; this chat answers its own page only.")
    is_page = scope["method"] == "GET" and scope["path"] == "/"
    # "none" is an address that somebody typed. Following a link to the page itself harms nobody.
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not is_page:
        return problem(403, "refused", "Another site's page asked; this chat answers its own page only.")
    # Forms and beacons of other sites can send everything but this without being asked about CORS.
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if scope["method"] in ("POST", "PUT", "PATCH") and kind != "application/json":
        return problem(415, "bad_request", "Write JSON, with Content-Type: application/json.")
    return None


def _own_hosts(scope: Scope) -> set[str]:
    """What a browser that opened this socket's address writes as Host."""
    _, port = scope["server"]
    return {f"{name}:{port}" for name in NAMES} | (set(NAMES) if port == 80 else set())
