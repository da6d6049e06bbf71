"""What the server accepts and returns, as the OpenAPI description shows it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from handler.answer import Question
from handler.events import ErrorCode
from handler.generate.types import MAX_TURN_CHARS, MAX_TURNS, PageRead, Turn
from handler.settings import MAX_QUESTION_CHARS

Name = Annotated[str, Field(min_length=1, max_length=100)]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class TurnBody(_Model):
    """Something that was said before. `content`, as many APIs call it, is `text` too."""

    role: Literal["user", "assistant"]
    text: str = Field(max_length=20_000, validation_alias=AliasChoices("text", "content"))


class PageBody(_Model):
    """The page that the reader has open."""

    url: str = Field(max_length=4_000)
    title: str = Field("", max_length=1_000)


class AskBody(_Model):
    """A question. Of `history`, oldest first, the last 6 turns are looked at."""

    question: str = Field(
        min_length=1, max_length=MAX_QUESTION_CHARS, examples=["How do I restart the server?"]
    )
    history: list[TurnBody] = Field([], max_length=1_000)
    page: PageBody | None = None
    collections: list[Name] | None = Field(None, min_length=1, max_length=100)

    def as_question(self) -> Question:
        """The question, with as much of the history as is looked at."""
        turns = [Turn(turn.role, turn.text[:MAX_TURN_CHARS]) for turn in self.history[-MAX_TURNS:]]
        page = None
        # A file or an app has no address that could be one of the bundle's pages.
        if self.page and self.page.url.startswith(("https://", "http://")):
            page = PageRead(self.page.url, self.page.title)
        return Question(self.question, turns, page, self.collections)


class HitBody(BaseModel):
    """A part of a page. `url` ends in #section where it has one; `rank` counts from 1."""

    title: str
    heading: str
    url: str
    snippet: str
    rank: int
    collection: str


class SearchBody(BaseModel):
    """The hits, best first. `accepted` is whether any page is near enough, `reason` says why."""

    question: str
    hits: list[HitBody]
    accepted: bool
    reason: str


class AboutBody(BaseModel):
    """Who answers here. `privacy` is the sentence that says where a question goes."""

    name: str
    generator: str
    model: str | None
    privacy: str
    starters: list[str]


class HealthBody(BaseModel):
    """What answers now. `budget` says who counts tokens together, or that nobody does."""

    status: Literal["ok"]
    bundle: str
    generator: str
    model: str | None
    n_chunks: int
    budget: Literal["none", "per host", "per process"]


class ProblemDetail(BaseModel):
    """`message` is a sentence for people, `retry_after_s` when to try again."""

    code: ErrorCode
    message: str
    retry_after_s: int | None = None


class ProblemBody(BaseModel):
    """Why there is no answer."""

    error: ProblemDetail
