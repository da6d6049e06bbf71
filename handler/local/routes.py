"""What the local chat's page asks for: answers, and the conversations."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from handler.answer import Question
from handler.generate.types import Generator
from handler.local.answers import answer, kept
from handler.local.conversations import MAX_TITLE_CHARS, Conversations
from handler.local.library import Library
from handler.problem import problem
from handler.settings import MAX_QUESTION_CHARS
from handler.sse import EventStream

# The number of a conversation: SQLite has no larger ones.
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Service:
    """All that the routes work with. An app has one, in `app.state.service`."""

    library: Library
    generator: Generator
    conversations: Conversations


class ChatBody(BaseModel):
    """The body of POST /api/chat. Without a `conversation` the question begins one."""

    model_config = ConfigDict(extra="forbid", strict=True)
    question: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION_CHARS)
    ]
    conversation: Number | None = None


class RenameBody(BaseModel):
    """The body of PATCH /api/conversations/N."""

    model_config = ConfigDict(extra="forbid", strict=True)
    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TITLE_CHARS)]


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Wanted = Annotated[Service, Depends(_service)]


@router.get("/api/about")
def about(service: Wanted) -> dict[str, Any]:
    """Who answers, and from what."""
    index = service.library.current().index
    return {
        "generator": service.generator.name,
        "model": service.generator.model,
        "bundle": service.library.version,
        "n_chunks": len(index),
        "collections": list(index.collections),
    }


@router.post("/api/chat")
async def chat(body: ChatBody, service: Wanted) -> Response:
    """The events of an answer; the header X-Conversation-Id says where it is kept."""
    conversations = service.conversations
    # On the event loop: a row takes well under a millisecond, and one person is asking.
    conversation = (
        conversations.start(body.question)
        if body.conversation is None
        else conversations.get(body.conversation)
    )
    if conversation is None:
        return _no_conversation()
    question = Question(body.question, conversations.history(conversation.id))
    message_id = conversations.ask(conversation.id, body.question)
    events = answer(service.library, service.generator, question)
    stream = EventStream(kept(events, conversations, message_id))
    stream.headers["X-Conversation-Id"] = str(conversation.id)
    return stream


@router.get("/api/conversations")
def list_all(service: Wanted) -> dict[str, Any]:
    """All conversations, the one that was last spoken in first."""
    return {"conversations": [asdict(conversation) for conversation in service.conversations.all()]}


@router.get("/api/conversations/{number}")
def read(number: Number, service: Wanted) -> Response:
    """A conversation with what was said in it."""
    found = service.conversations.get(number)
    if found is None:
        return _no_conversation()
    messages = [asdict(message) for message in service.conversations.messages(number)]
    return JSONResponse({**asdict(found), "messages": messages})


@router.patch("/api/conversations/{number}")
def rename(number: Number, body: RenameBody, service: Wanted) -> Response:
    """The conversation under its new name."""
    found = service.conversations.rename(number, body.title)
    return JSONResponse(asdict(found)) if found else _no_conversation()


@router.delete("/api/conversations/{number}")
def delete(number: Number, service: Wanted) -> Response:
    """Nothing, once the conversation is gone."""
    return Response(status_code=204) if service.conversations.delete(number) else _no_conversation()


def _no_conversation() -> Response:
    return problem(404, "bad_request", "There is no such conversation; it may have been deleted.")
