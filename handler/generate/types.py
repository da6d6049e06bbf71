"""What an answer generator is given and gives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from handler.bundle.encoder import Vector
from handler.bundle.search import Hit
from handler.events import Citation, ErrorCode, Text, Usage

# What was said before is context, not the question: more of it costs tokens and changes little.
MAX_TURNS = 6
MAX_TURN_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that was said before."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class PageRead:
    """The page that the reader has open, as their browser names it: not to be trusted."""

    url: str
    title: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question with all that an answer may rest on. `hits` are the sources, number 1 first.

    `search_text` is what they were found by: the question, or more where that leans on an earlier one.
    `vector` is its, None when it was not embedded.
    """

    question: str
    hits: Sequence[Hit]
    history: Sequence[Turn] = ()
    page: PageRead | None = None
    search_text: str = ""
    vector: Vector | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Finished:
    """The last thing a generator yields. Fields as in Done."""

    stop_reason: str
    usage: Usage = field(default_factory=Usage)
    dropped_citations: int = 0


class GeneratorError(Exception):
    """No answer could be made, or it broke off. The message is a sentence for people."""

    def __init__(self, code: ErrorCode, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.retry_after_s = retry_after_s


class Generator(Protocol):
    """Makes answers. `name` and `model` are those of Done.

    Closing the iterator early ends all work, upstream too.
    """

    name: str
    model: str | None

    def generate(self, prompt: Prompt) -> AsyncGenerator[Text | Citation | Finished, None]:
        """The answer, piece by piece, Finished last. Raises GeneratorError."""
        ...
