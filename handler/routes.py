"""What can be asked by HTTP: a question, a search, who answers, and whether anybody does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError

from handler.answer import Question, answer_events, public_names
from handler.budget import Budget
from handler.bundle.search import Hit
from handler.current import Current
from handler.events import Citation, Done, Error, Source, Sources, Text
from handler.generate.persona import Persona
from handler.log import FACTS
from handler.meter import Meter
from handler.models import AboutBody, AskBody, HealthBody, HitBody, Name, ProblemBody, SearchBody
from handler.problem import problem
from handler.settings import MAX_QUESTION_CHARS, ServeSettings
from handler.sources import sources_of
from handler.sse import EventStream

# What a question may cost beside its answer and what was said: the hits, each as long as the embedding model
# reads, and the rules. How many come at once depends on it, and what one counts that is left before its end.
QUESTION_TOKENS = 8_000
# English has 4 bytes a token, and scripts that cost most for each sign some 2.
BYTES_PER_TOKEN = 2

PRIVACY = {
    "claude": "Answers by Claude; your question is sent to Anthropic.",
    "extractive": "Answers are quoted from this site; your question does not leave it.",
}

# True on any page of a site that is in the bundle.
STARTERS = ("What is this page about?", "Who are you?")

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

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Service:
    """All that the routes work with. An app has one, in `app.state.service`."""

    current: Current
    settings: ServeSettings
    persona: Callable[[], Persona]
    budget: Budget | None
    ping_after_s: float


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Wanted = Annotated[Service, Depends(_service)]


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ProblemBody} for status in statuses}


@router.post(
    "/api/ask",
    response_class=Response,
    status_code=200,
    responses={200: _STREAM, **_problems(400, 403, 413, 422, 429, 500)},
)
async def ask(body: AskBody, request: Request, service: Wanted) -> Response:
    """Answers a question, as a stream of events: sources, then text and citation, then done or error."""
    serving, settings, budget = service.current.serving, service.settings, service.budget
    facts: dict[str, Any] = request.scope[FACTS]
    facts["generator"] = serving.generator.name
    if settings.log_questions:
        facts["question"] = body.question
    if len(body.question) > settings.max_question_chars:
        raise _too_long(settings, "body", "question")
    question, reservation = body.as_question(), None
    if budget and serving.generator.model:
        most = _most_tokens(question, settings.max_tokens)
        reservation = await asyncio.to_thread(budget.reserve, most)
        if reservation is None:
            message = "So much was asked today that the budget is spent. Please come back tomorrow."
            return problem(429, "budget_spent", message, budget.seconds_left())
    meter = Meter(facts, budget, reservation)
    events = answer_events(serving.bundle, serving.generator, question)
    return EventStream(meter.watch(events), service.ping_after_s, meter.settle)


@router.get("/api/search", responses=_problems(403, 422, 429, 500))
def search(
    request: Request,
    service: Wanted,
    q: Annotated[str, Query(min_length=1, max_length=MAX_QUESTION_CHARS, description="What to look for")],
    limit: Annotated[int, Query(ge=1, le=20, description="How many hits at most")] = 6,
    collection: Annotated[list[Name] | None, Query(max_length=100, description="Only in these")] = None,
) -> SearchBody:
    """Finds the parts of pages that are about something, for a plain search box."""
    if len(q) > service.settings.max_question_chars:
        raise _too_long(service.settings, "query", "q")
    bundle = service.current.serving.bundle
    found = bundle.search(q, collections=public_names(bundle, collection), top_k=limit)
    request.scope[FACTS]["hits"] = len(found.hits)
    return SearchBody(
        question=q,
        hits=[*map(_hit, sources_of(found.hits), found.hits)],
        accepted=found.gate.accepted,
        reason=found.gate.reason,
    )


# The widget asks for it beside the API. Behind a proxy with one rule for /ask/ and one for /ask/api/ask, that
# is here.
@router.get("/ask/api/about", include_in_schema=False)
@router.get("/api/about", responses=_problems(403))
async def about(service: Wanted) -> AboutBody:
    """Tells who answers, for the widget."""
    generator = service.current.serving.generator
    return AboutBody(
        name=service.persona().name,
        generator=generator.name,
        model=generator.model,
        privacy=PRIVACY[generator.name],
        starters=[*(service.settings.starters or STARTERS)],
    )


@router.get("/healthz")
async def healthz(service: Wanted) -> HealthBody:
    """Tells that the server answers, and with what."""
    serving, budget = service.current.serving, service.budget
    return HealthBody(
        status="ok",
        bundle=serving.bundle.manifest.version,
        generator=serving.generator.name,
        model=serving.generator.model,
        n_chunks=len(serving.bundle.index),
        budget="none" if budget is None else "per host" if budget.shared else "per process",
    )


def _most_tokens(question: Question, max_tokens: int) -> int:
    """What an answer may cost, with all that is sent for it."""
    said = [question.text, *(turn.text for turn in question.history)]
    n_bytes = sum(len(text.encode()) for text in said)
    return QUESTION_TOKENS + n_bytes // BYTES_PER_TOKEN + max_tokens


def _too_long(settings: ServeSettings, *where: str) -> RequestValidationError:
    message = f"a question has at most {settings.max_question_chars} characters here"
    return RequestValidationError([{"loc": where, "msg": message}])


def _hit(source: Source, hit: Hit) -> HitBody:
    return HitBody(
        title=source.title,
        heading=source.heading,
        url=source.url,
        snippet=source.snippet,
        rank=source.rank,
        collection=hit.chunk.collection,
    )
