"""The web side of a bundle as one ASGI app, which knows nothing but what it is handed."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable

from aws_lambda_powertools.logging import Logger
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse, RedirectResponse
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from handler.assets import Assets
from handler.body import BodyLimit
from handler.budget import Budget
from handler.current import Current
from handler.events import ErrorCode
from handler.generate.persona import Persona
from handler.head import Head
from handler.headers import SecurityHeaders
from handler.limit import FixedWindow, RateLimit
from handler.log import RequestLog
from handler.origin import OriginCheck
from handler.problem import problem
from handler.routes import Service, router
from handler.settings import ServeSettings
from handler.sse import PING_AFTER_S

# Six turns of 20,000 characters in a script that takes 3 bytes for each, and the rest.
MAX_BODY_BYTES = 400_000
# A search box asks while its reader types, and a search costs no tokens.
SEARCHES_A_QUESTION = 10

_CODES: dict[int, ErrorCode] = {429: "rate_limited", 500: "internal"}


def create_app(
    current: Current,
    settings: ServeSettings,
    logger: logging.Logger | Logger,
    *,
    persona: Callable[[], Persona],
    budget: Budget | None = None,
    assets: Assets | None = None,
    clock: Callable[[], float] = time.time,
    ping_after_s: float = PING_AFTER_S,
) -> FastAPI:
    """The app. What answers is looked up in `current` at each request; `clock` returns Unix seconds."""
    app = FastAPI(
        title="Ralph",
        summary="Asks a site, with a citation for every claim.",
        version="1",
        # Spans carry queries and errors to wherever the environment says; the log has what is needed.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
        docs_url=None,
        redoc_url=None,
        exception_handlers={
            RequestValidationError: _invalid,
            HTTPException: _refused,
            Exception: _broken,
        },
    )
    app.state.service = Service(current, settings, persona, budget, ping_after_s)
    app.include_router(router)
    assets = assets or Assets(fresh=settings.dev)
    app.add_route("/ask/widget.js", assets.widget, methods=["GET"], include_in_schema=False)
    app.add_route("/ask/demo", assets.demo, methods=["GET"], include_in_schema=False)
    app.add_route("/", _to_demo, methods=["GET"], include_in_schema=False)
    app.add_route("/docs", _docs, methods=["GET"], include_in_schema=False)
    _add_middleware(app, settings, logger, clock)
    return app


def _add_middleware(
    app: FastAPI, settings: ServeSettings, logger: logging.Logger | Logger, clock: Callable[[], float]
) -> None:
    """All that a request passes on its way in; what is added last comes first."""
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES)
    if settings.rate_limit_per_min:
        per_min = settings.rate_limit_per_min
        windows = {
            "/api/ask": FixedWindow(per_min, clock),
            "/api/search": FixedWindow(SEARCHES_A_QUESTION * per_min, clock),
        }
        app.add_middleware(RateLimit, windows=windows)
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allowed_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["content-type"],
            expose_headers=["retry-after"],
        )
    app.add_middleware(OriginCheck, allowed=settings.allowed_origins)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Head)
    app.add_middleware(RequestLog, logger=logger)
    if settings.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=[*settings.trusted_proxies])


async def _invalid(_request: Request, error: Exception) -> Response:
    """What is wrong with a request, without repeating it."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])[:200].encode("ascii", "backslashreplace").decode()
    return problem(422, "bad_request", f"{where}: {first['msg']}")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405 and request.method == "OPTIONS":
        return Response(status_code=204, headers=error.headers)
    response = problem(error.status_code, _CODES.get(error.status_code, "bad_request"), error.detail)
    response.headers.update(error.headers or {})
    return response


async def _broken(_request: Request, _error: Exception) -> Response:
    """The server logs the exception."""
    return problem(500, "internal", "Something went wrong here. Please try again.")


async def _to_demo(_request: Request) -> Response:
    """Who opens the bare address finds something to try; relative, as a proxy may add a folder."""
    return RedirectResponse("ask/demo")


async def _docs(_request: Request) -> Response:
    """Swagger's page for the OpenAPI description, which loads its script from a public CDN."""
    nonce = secrets.token_urlsafe(16)
    page = get_swagger_ui_html(openapi_url="openapi.json", title="Ralph")
    body = bytes(page.body).replace(b"<script", f'<script nonce="{nonce}"'.encode())
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; connect-src 'self'; frame-ancestors 'none'; "
        "style-src https://cdn.jsdelivr.net 'unsafe-inline'; img-src https://fastapi.tiangolo.com data:"
    )
    return HTMLResponse(body, headers={"Content-Security-Policy": policy})
