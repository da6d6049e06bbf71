"""What a reader gets for a question, one event after the other: always `done` or `error` last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

ErrorCode = Literal[
    "bad_request", "rate_limited", "budget_spent", "overloaded", "timeout", "cut_off", "refused", "internal"
]


@dataclass(frozen=True, slots=True)
class Source:
    """A part of a page that an answer may rest on. `number` counts from 1 and is what [n] means.

    `url` ends in #section where the part has one. `snippet` is plain text. `rank` is the place of its first
    hit among all, from 1.
    """

    number: int
    title: str
    heading: str
    url: str
    snippet: str
    rank: int


@dataclass(frozen=True, slots=True)
class Sources:
    """What was found, best first; nothing when no page is near enough."""

    name: ClassVar[str] = "sources"
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """The next piece of the answer."""

    name: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Citation:
    """Words of a source that the answer rests on.

    `source` is its number. `quote` stands word for word in the source's chunk, and `shown` is the same as
    readers of the page see it, without markup. `at` is the offset in the answer's text, in Unicode code
    points, where its [n] belongs; the text up to there has been sent.
    """

    name: ClassVar[str] = "citation"
    source: int
    quote: str
    at: int
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the answer cost. All 0 where no model was asked."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total(self) -> int:
        """What counts against the daily budget."""
        return self.input_tokens + self.output_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds from the question to the sources, the first text and the end."""

    sources_ms: float
    first_text_ms: float | None
    total_ms: float


@dataclass(frozen=True, slots=True)
class Done:
    """The answer is whole.

    `generator` is "claude", "extractive" or "ollama", `model` the language model's name, None without one.
    `stop_reason` is "end", "max_tokens" or "refusal". `bundle` is the bundle's version. `dropped_citations`
    counts those that quoted what is not there.
    """

    name: ClassVar[str] = "done"
    generator: str
    model: str | None
    stop_reason: str
    usage: Usage
    timing: Timing
    bundle: str
    dropped_citations: int = 0


@dataclass(frozen=True, slots=True)
class Error:
    """The answer ends here. `message` is a sentence for people, `retry_after_s` when to try again."""

    name: ClassVar[str] = "error"
    code: ErrorCode
    message: str
    retry_after_s: int | None = None


Event = Sources | Text | Citation | Done | Error


def event_data(event: Event) -> Mapping[str, Any]:
    """The event as a JSON object."""
    return asdict(event)
