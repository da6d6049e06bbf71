"""Answers by Claude, streamed, with citations of the chunks that they rest on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handler.events import Citation, Text, Usage
from handler.generate import claude_request
from handler.generate.citations import CitedText
from handler.generate.types import Finished, Prompt

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import MessageDeltaUsage, RawMessageStreamEvent
    from anthropic.types import Usage as ApiUsage

CONNECT_TIMEOUT_S = 3.0
MAX_RETRIES = 1
# Slower than any model writes. An API that only pings is never silent: this bounds what it can hold open.
MIN_TOKENS_PER_S = 10

DECLINED = "I can't help with that one. Ask me something else about this site."
BROKEN_OFF = "I have to stop here."
_STOP_REASONS = {
    "refusal": "refusal",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
}


@dataclass(frozen=True, slots=True)
class ClaudeSettings:
    """How Claude is asked. `timeout_s` bounds each silence; `base_url` None is Anthropic's own."""

    api_key: str = field(repr=False)
    base_url: str | None = None
    model: str = "claude-haiku-4-5"
    max_tokens: int = 1024
    timeout_s: float = 30.0

    @property
    def total_s(self) -> float:
        """How long an answer may take: both tries may be silent first, then it is as long as it can be."""
        return (1 + MAX_RETRIES) * self.timeout_s + self.max_tokens / MIN_TOKENS_PER_S


class ClaudeGenerator:
    """Asks Claude to answer from the hits. `persona` gives the text that says who the bot is.

    A refusal by the model is an answer: it ends in Finished("refusal"), with a sentence of our own, so that
    what it cost is counted. Whatever goes wrong on the way is a GeneratorError.
    """

    name = "claude"

    def __init__(self, settings: ClaudeSettings, persona: Callable[[], str]) -> None:
        self.model: str | None = settings.model
        self._settings = settings
        self._persona = persona
        self._client: AsyncAnthropic | None = None

    def warm_up(self) -> None:
        """Loads the SDK, which takes more than a second. May be called in a thread."""
        import handler.generate.claude_errors  # noqa: F401 - slow, and no sources wait for it

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Text | Citation | Finished, None]:
        """The answer, piece by piece, Finished last. Raises GeneratorError."""
        answer, usage, stop_reason = CitedText(prompt.hits), Usage(), "end"
        is_empty = True
        async with aclosing(self._stream(prompt)) as events:
            async for event in events:
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    if event.delta.text:
                        is_empty = False
                        yield answer.add(event.delta.text)
                elif event.type == "content_block_delta" and event.delta.type == "citations_delta":
                    if event.delta.citation.type == "char_location":
                        answer.cite(event.delta.citation.document_index, event.delta.citation.cited_text)
                    else:
                        answer.drop()
                elif event.type == "content_block_stop":
                    for citation in answer.end_block():
                        yield citation
                elif event.type == "message_start":
                    usage = _usage(usage, event.message.usage)
                elif event.type == "message_delta":
                    usage = _usage(usage, event.usage)
                    stop_reason = _STOP_REASONS.get(event.delta.stop_reason or "", "end")
        if stop_reason == "refusal":
            yield answer.add(DECLINED if is_empty else f"\n\n{BROKEN_OFF}")
        yield Finished(stop_reason, usage, answer.dropped)

    async def close(self) -> None:
        """Closes the connections that are kept for the next question."""
        if self._client is not None:
            await self._client.close()

    async def _stream(self, prompt: Prompt) -> AsyncGenerator[RawMessageStreamEvent, None]:
        """The API's events, message_stop the last. Raises GeneratorError. Closing it aborts upstream."""
        if self._client is None:
            await asyncio.to_thread(self.warm_up)
        import httpx2
        from anthropic import AnthropicError

        from handler.generate.claude_errors import cut_off, explained

        self._client = self._client or self._connect()
        system = claude_request.system_blocks(self._persona(), prompt)
        messages = claude_request.messages(prompt)
        is_begun = is_whole = False
        end = asyncio.get_running_loop().time() + self._settings.total_s
        try:
            async with asyncio.timeout_at(end):
                response = await self._client.messages.create(
                    model=self._settings.model,
                    max_tokens=self._settings.max_tokens,
                    system=system,
                    messages=messages,
                    stream=True,
                )
            async with response as stream, aclosing(_until(end, stream)) as events:
                is_begun = True
                async for event in events:
                    yield event
                    # Reading on to the end keeps the connection for the next question.
                    is_whole = event.type == "message_stop"
        # ValueError: what came is not UTF-8 or not JSON, and the SDK does not say so in an error of its own.
        except (AnthropicError, httpx2.HTTPError, ValueError, TimeoutError) as error:
            raise explained(error, is_begun=is_begun) from error
        if not is_whole:
            raise cut_off()

    def _connect(self) -> AsyncAnthropic:
        import httpx2
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        from handler.generate.claude_errors import refuse_long_waits

        return AsyncAnthropic(
            api_key=self._settings.api_key,
            base_url=self._settings.base_url,
            timeout=httpx2.Timeout(self._settings.timeout_s, connect=CONNECT_TIMEOUT_S),
            max_retries=MAX_RETRIES,
            # A redirect would take the question elsewhere, and the key with it.
            http_client=DefaultAsyncHttpxClient(
                event_hooks={"response": [refuse_long_waits]}, follow_redirects=False
            ),
        )


async def _until(
    end: float, events: AsyncIterator[RawMessageStreamEvent]
) -> AsyncGenerator[RawMessageStreamEvent, None]:
    """The same events. Raises TimeoutError when the next is not there by `end`, in the loop's time."""
    while True:
        # Around each event alone: a timeout must not be open while this waits for who takes them.
        async with asyncio.timeout_at(end):
            try:
                event = await anext(events)
            except StopAsyncIteration:
                return
        yield event


def _usage(known: Usage, more: ApiUsage | MessageDeltaUsage) -> Usage:
    """The usage so far. What an event does not say stays as it was: its numbers are totals."""
    return Usage(
        input_tokens=more.input_tokens or known.input_tokens,
        output_tokens=more.output_tokens or known.output_tokens,
        cache_read_tokens=more.cache_read_input_tokens or known.cache_read_tokens,
        cache_write_tokens=more.cache_creation_input_tokens or known.cache_write_tokens,
    )
