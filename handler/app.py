"""The web side of a bundle: questions by HTTP, answers as a stream of events."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from typing import Annotated, Any

from aws_lambda_powertools.logging import Logger
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from handler.answer import answer_events, public_names
from handler.assets import Assets
from handler.body import BodyLimit
from handler.budget import Budget
from handler.current import Current
from handler.events import Citation, Done, Error, ErrorCode, Sources, Text
from handler.generate.persona import Persona
from handler.head import Head
from handler.headers import SecurityHeaders
from handler.limit import FixedWindow, RateLimit
from handler.log import FACTS, RequestLog
from handler.meter import Meter
from handler.models import AboutBody, AskBody, HealthBody, HitBody, Name, ProblemBody, SearchBody
from handler.origin import OriginCheck
from handler.problem import problem
from handler.settings import MAX_QUESTION_CHARS, ServeSettings
from handler.sources import sources_of
from handler.sse import PING_AFTER_S, EventStream

# 6 turns of 20,000 characters, in a script that takes 3 bytes for each, and the rest.
MAX_BODY_BYTES = 400_000
# What a question may cost beside its answer: the hits, each as long as the embedding model reads, the history
# and the rules. Only how many come at once depends on it; what is counted in the end is what it did cost.
QUESTION_TOKENS = 8_000
# A search box asks while its reader types, and a search costs no tokens.
SEARCHES_A_QUESTION = 10

PRIVACY = {
    "claude": "Answers by Claude; your question is sent to Anthropic.",
    "extractive": "Answers are quoted from this site; your question does not leave it.",
}

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
    """The ASGI app. It knows what is handed in; what answers is looked up in `current` at each request."""
    assets = assets or Assets(fresh=settings.dev)
    app = FastAPI(
        title="Ralph",
        summary="Asks a site, with a citation for every claim.",
        version="1",
        docs_url=None,
        redoc_url=None,
        exception_handlers={
            RequestValidationError: _invalid,
            HTTPException: _refused,
            Exception: _broken,
        },
    )
    _add_middleware(app, settings, logger, clock)
    app.add_route("/ask/widget.js", assets.widget, methods=["GET"], include_in_schema=False)
    app.add_route("/ask/demo", assets.demo, methods=["GET"], include_in_schema=False)
    app.add_route("/docs", _docs, methods=["GET"], include_in_schema=False)

    @app.post(
        "/api/ask",
        response_class=Response,
        status_code=200,
        responses={200: _STREAM, **_problems(400, 403, 413, 422, 429, 500)},
    )
    async def ask(body: AskBody, request: Request) -> Response:
        """Answers a question, as a stream of events: sources, then text and citation, then done or error."""
        serving = current.serving
        facts: dict[str, Any] = request.scope[FACTS]
        facts["generator"] = serving.generator.name
        if settings.log_questions:
            facts["question"] = body.question
        if len(body.question) > settings.max_question_chars:
            return problem(422, "bad_request", _at_most(settings))
        reservation = None
        if budget and serving.generator.model:
            reservation = await asyncio.to_thread(budget.reserve, QUESTION_TOKENS + settings.max_tokens)
            if reservation is None:
                message = "So much was asked today that the budget is spent. Please come back tomorrow."
                return problem(429, "budget_spent", message, budget.seconds_left())
        meter = Meter(facts, budget, reservation)
        events = answer_events(serving.bundle, serving.generator, body.as_question())
        return EventStream(meter.watch(events), ping_after_s, meter.settle)

    @app.get("/api/search", responses=_problems(403, 422, 429, 500))
    def search(
        request: Request,
        q: Annotated[str, Query(min_length=1, max_length=MAX_QUESTION_CHARS, description="What to look for")],
        limit: Annotated[int, Query(ge=1, le=20, description="How many hits at most")] = 6,
        collection: Annotated[list[Name] | None, Query(max_length=100, description="Only in these")] = None,
    ) -> SearchBody:
        """Finds the parts of pages that are about something, for a plain search box."""
        if len(q) > settings.max_question_chars:
            raise RequestValidationError([{"loc": ("query", "q"), "msg": _at_most(settings)}])
        bundle = current.serving.bundle
        found = bundle.search(q, collections=public_names(bundle, collection), top_k=limit)
        request.scope[FACTS]["hits"] = len(found.hits)
        return SearchBody(
            question=q,
            hits=[
                HitBody(
                    title=source.title,
                    heading=source.heading,
                    url=source.url,
                    snippet=source.snippet,
                    rank=source.rank,
                    collection=hit.chunk.collection,
                )
                for source, hit in zip(sources_of(found.hits), found.hits, strict=True)
            ],
            accepted=found.gate.accepted,
            reason=found.gate.reason,
        )

    @app.get("/api/about", responses=_problems(403))
    async def about() -> AboutBody:
        """Tells who answers, for the widget."""
        generator = current.serving.generator
        return AboutBody(
            name=persona().name,
            generator=generator.name,
            model=generator.model,
            privacy=PRIVACY[generator.name],
            starters=[*settings.starters],
        )

    @app.get("/healthz")
    async def healthz() -> HealthBody:
        """Tells that the server answers, and with what."""
        serving = current.serving
        return HealthBody(
            status="ok",
            bundle=serving.bundle.manifest.version,
            generator=serving.generator.name,
            model=serving.generator.model,
            n_chunks=len(serving.bundle.index),
            budget="none" if budget is None else "per host" if budget.shared else "per process",
        )

    return app


_STREAM = {
    "description": "Events, each with a JSON object as its data. The last one is `done` or `error`.",
    "content": {
        EventStream.media_type: {
            "itemSchema": {
                "type": "object",
                "properties": {
                    "event": {"enum": [kind.name for kind in (Sources, Text, Citation, Done, Error)]},
                    "data": {"type": "string", "contentMediaType": "application/json"},
                },
                "required": ["event", "data"],
            }
        }
    },
}


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ProblemBody} for status in statuses}


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


def _at_most(settings: ServeSettings) -> str:
    return f"A question has at most {settings.max_question_chars} characters here."


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
