"""The files of the widget, as a browser gets them."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from handler.demo import demo_page
from handler.routes import PRIVACY, Service

FOLDER = Path(__file__).parent / "widget"

# Other sites embed it, and it must not be older than the server that it asks for long.
_SCRIPT_HEADERS = {
    "Cache-Control": "public, max-age=300",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Access-Control-Allow-Origin": "*",  # for <script crossorigin integrity=…>
}


class Assets:
    """Reads the widget's files: once, or with `fresh` each time, for whoever edits them."""

    def __init__(self, folder: Path = FOLDER, fresh: bool = False) -> None:
        self._folder = folder
        self._fresh = fresh
        self._loaded = {} if fresh else {name: self._load(name) for name in ("widget.js", "demo.html")}

    async def widget(self, request: Request) -> Response:
        """The widget's script."""
        body = self._read("widget.js")
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        headers = {**_SCRIPT_HEADERS, "ETag": etag}
        if self._fresh:
            headers["Cache-Control"] = "no-store"
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type="text/javascript")

    def demo(self, request: Request) -> Response:
        """A page that embeds the widget, under the strictest policy that it runs with."""
        service: Service = request.app.state.service
        serving, starters = service.current.serving, service.settings.starters
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
            "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
        )
        template, privacy = self._read("demo.html").decode(), PRIVACY[serving.generator.name]
        body = demo_page(template, nonce, serving.bundle, starters, privacy)
        return HTMLResponse(
            body, headers={"Content-Security-Policy": policy, "X-Frame-Options": "SAMEORIGIN"}
        )

    def _read(self, name: str) -> bytes:
        return self._load(name) if self._fresh else self._loaded[name]

    def _load(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()
