"""What Ollama says, and what to do about it where that is no answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from handler.events import Usage
from handler.generate.types import Finished, GeneratorError


async def rows(reply: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    """The objects of a stream of lines. Raises GeneratorError for the one that reports an error.

    Lines end at a line feed alone: what else Python takes for a line's end may stand in a JSON string.
    """
    unfinished = b""
    async for piece in reply.aiter_bytes():
        *lines, unfinished = (unfinished + piece).split(b"\n")
        for line in lines:
            if line.strip():
                yield _checked(object_of(line))
    if unfinished.strip():
        yield _checked(object_of(unfinished))


def _checked(row: dict[str, Any]) -> dict[str, Any]:
    if error := row.get("error"):
        raise GeneratorError("cut_off", f"Ollama broke off: {error}")
    return row


def object_of(text: bytes) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise GeneratorError("internal", "What answers at OLLAMA_HOST does not speak Ollama's language.")
    return row


def content(row: dict[str, Any]) -> str:
    """The next piece of the answer; what a model thinks before it answers is not part of it."""
    message = row.get("message")
    text = str(message.get("content") or "") if isinstance(message, dict) else ""
    return text.encode(errors="replace").decode()  # half a surrogate pair can be neither sent nor kept


def finished(row: dict[str, Any], dropped: int) -> Finished:
    # A prompt that Ollama still had in its cache is not counted.
    usage = Usage(row.get("prompt_eval_count") or 0, row.get("eval_count") or 0)
    reason = "max_tokens" if row.get("done_reason") == "length" else "end"
    return Finished(reason, usage, dropped)


def refusal(reply: httpx2.Response, model: str) -> GeneratorError:
    """What an HTTP status of Ollama means for the person who runs it."""
    if reply.status_code == 404:
        return GeneratorError("internal", f"Ollama does not have the model yet: run `ollama pull {model}`.")
    try:
        error = object_of(reply.content).get("error")
    except GeneratorError as unknown:
        return unknown
    if reply.status_code == 503:
        return GeneratorError("overloaded", f"Ollama is busy: {error}", retry_after_s=5)
    return GeneratorError("internal", f"Ollama could not answer: {error}")


@contextmanager
def explained(url: str, timeout_s: float) -> Iterator[None]:
    """Turns what the network says into what to do about it."""
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout):
        raise GeneratorError(
            "internal", f"Ollama is not running at {url}: start it with `ollama serve`."
        ) from None
    except httpx2.TimeoutException:
        raise GeneratorError(
            "timeout",
            f"Ollama said nothing for {timeout_s:g} s. A large model may need longer: "
            "set OLLAMA_TIMEOUT_S, or take a smaller OLLAMA_CHAT_MODEL.",
        ) from None
    except httpx2.TransportError:
        raise GeneratorError("cut_off", "The connection to Ollama broke. Ask again.") from None
