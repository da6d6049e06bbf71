"""The local chat as a web application: a page, a stream of answers, and the conversations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.types import ASGIApp

from handler.answer import Question, answer_events_from
from handler.bundle.types import BundleError
from handler.events import Done, Error, Event
from handler.generate.types import Generator
from handler.local.conversations import MAX_TITLE_CHARS, AnswerSoFar, Conversation, Conversations
from handler.local.guard import Guard
from handler.local.library import Library
from handler.problem import problem
from handler.settings import MAX_QUESTION_CHARS
from handler.sse import EventStream

PAGE = Path(__file__).with_name("page")
# The number of a conversation: SQLite has no larger ones.
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]


class Chat(BaseModel):
    """The body of POST /api/chat. Without a `conversation` the question begins one."""

    model_config = ConfigDict(extra="forbid", strict=True)
    question: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION_CHARS)
    ]
    conversation: Number | None = None


class Rename(BaseModel):
    """The body of PATCH /api/conversations/N."""

    model_config = ConfigDict(extra="forbid", strict=True)
    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TITLE_CHARS)]


def create_app(
    library: Library,
    generator: Generator,
    conversations: Conversations,
    clock: Callable[[], float] = time.monotonic,
) -> ASGIApp:
    """The application. It trusts its Guard to let in nobody but its own page."""
    # No /docs: that page would load its scripts from elsewhere.
    app = FastAPI(title="Ralph, locally", docs_url=None, redoc_url=None, openapi_url=None)

    @app.exception_handler(RequestValidationError)
    def explain(_request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        return problem(422, "bad_request", f"{place}: {first['msg']}" if place else first["msg"])

    @app.get("/")
    def page() -> FileResponse:
        return _file("index.html")

    @app.get("/chat.css")
    def style() -> FileResponse:
        return _file("chat.css")

    @app.get("/chat.js")
    def script() -> FileResponse:
        return _file("chat.js")

    @app.get("/api/about")
    def about() -> dict[str, Any]:
        index = library.current().index
        return {
            "generator": generator.name,
            "model": generator.model,
            "bundle": library.version,
            "n_chunks": len(index),
            "collections": list(index.collections),
        }

    @app.post("/api/chat")
    async def chat(body: Chat) -> Response:
        # On the event loop: a row takes well under a millisecond, and one person is asking.
        if body.conversation is None:
            conversation: Conversation | None = conversations.start(body.question)
        else:
            conversation = conversations.get(body.conversation)
        if conversation is None:
            return _no_conversation()
        question = Question(body.question, conversations.history(conversation.id))
        events = kept(
            answer(library, generator, question, clock),
            conversations,
            conversations.ask(conversation.id, body.question),
        )
        stream = EventStream(events)
        stream.headers["X-Conversation-Id"] = str(conversation.id)
        return stream

    @app.get("/api/conversations")
    def list_all() -> dict[str, Any]:
        return {"conversations": [asdict(conversation) for conversation in conversations.all()]}

    @app.get("/api/conversations/{conversation_id}")
    def read(conversation_id: Number) -> Response:
        found = conversations.get(conversation_id)
        if found is None:
            return _no_conversation()
        messages = [asdict(message) for message in conversations.messages(conversation_id)]
        return JSONResponse({**asdict(found), "messages": messages})

    @app.patch("/api/conversations/{conversation_id}")
    def rename(conversation_id: Number, body: Rename) -> Response:
        found = conversations.rename(conversation_id, body.title)
        return JSONResponse(asdict(found)) if found else _no_conversation()

    @app.delete("/api/conversations/{conversation_id}")
    def delete(conversation_id: Number) -> Response:
        found = conversations.delete(conversation_id)
        return Response(status_code=204) if found else _no_conversation()

    return Guard(app)


async def answer(
    library: Library, generator: Generator, question: Question, clock: Callable[[], float]
) -> AsyncGenerator[Event]:
    """The events of an answer from all that the library has now."""
    try:
        # In a thread: an index that changed is read again first.
        search = await asyncio.to_thread(library.search)
    except BundleError as error:
        yield Error("internal", f"The index cannot be read: {error}")
        return
    events = answer_events_from(search, generator, question, library.version, clock)
    async with aclosing(events):
        async for event in events:
            yield event


async def kept(
    events: AsyncGenerator[Event], conversations: Conversations, message_id: int
) -> AsyncGenerator[Event]:
    """The same events, of which the conversation keeps what came, whatever ends them."""
    so_far = AnswerSoFar()
    is_kept = False
    try:
        async with aclosing(events):
            async for event in events:
                so_far.add(event)
                if isinstance(event, Done | Error):
                    # Before it is sent: who has read it finds the answer in the conversation.
                    conversations.keep(message_id, so_far)
                    is_kept = True
                yield event
    finally:
        if not is_kept:
            conversations.keep(message_id, so_far)


def _file(name: str) -> FileResponse:
    return FileResponse(PAGE / name, headers={"Cache-Control": "no-cache"})


def _no_conversation() -> Response:
    return problem(404, "bad_request", "There is no such conversation; it may have been deleted.")
