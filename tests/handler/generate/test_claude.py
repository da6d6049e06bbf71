"""The real SDK against a stand-in for the API on loopback."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager

import pytest

from handler.bundle.search import Hit
from handler.bundle.types import Chunk
from handler.events import Citation, Text, Usage
from handler.generate.claude import BROKEN_OFF, DECLINED, ClaudeGenerator, ClaudeSettings
from handler.generate.types import Finished, GeneratorError, Prompt, Turn
from tests.fakes.anthropic_api import (
    DROP,
    HOLD,
    AnthropicApi,
    Block,
    Refusal,
    anthropic_api,
    char_location,
    error_event,
    stream,
)

KEY = "sk-ant-secret"
POND = "The pond is green. Algae grow in it — 水 and light. 🐸"


def hit(text: str) -> Hit:
    return Hit(Chunk("https://example.org/a", "A", "a.md", "notes", (), "", 0, text), 1.0, 0.9, 1.0, 1, 1, "")


PROMPT = Prompt("What grows in the pond?", [hit("Tomatoes want sun."), hit(POND)])


@pytest.fixture
def api() -> Iterator[AnthropicApi]:
    with anthropic_api() as stand_in:
        yield stand_in


@asynccontextmanager
async def claude(
    api: AnthropicApi, timeout_s: float = 30.0, key: str = KEY, max_tokens: int = 1024
) -> AsyncIterator[ClaudeGenerator]:
    settings = ClaudeSettings(key, api.url, max_tokens=max_tokens, timeout_s=timeout_s)
    generator = ClaudeGenerator(settings, lambda: "You are a frog.")
    try:
        yield generator
    finally:
        await generator.close()


def answer(
    api: AnthropicApi,
    prompt: Prompt = PROMPT,
    *,
    timeout_s: float = 30.0,
    key: str = KEY,
    max_tokens: int = 1024,
) -> tuple[list[Text | Citation | Finished], GeneratorError | None]:
    """All that is yielded, and the error at the end."""

    async def run() -> tuple[list[Text | Citation | Finished], GeneratorError | None]:
        pieces: list[Text | Citation | Finished] = []
        async with claude(api, timeout_s, key, max_tokens) as generator:
            try:
                async for piece in generator.generate(prompt):
                    pieces.append(piece)
            except GeneratorError as error:
                return pieces, error
        return pieces, None

    return asyncio.run(run())


def text_of(pieces: list[Text | Citation | Finished]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def citations_of(pieces: list[Text | Citation | Finished]) -> list[Citation]:
    return [piece for piece in pieces if isinstance(piece, Citation)]


def test_an_answer_streams_with_citations_that_stand_in_their_sources(api: AnthropicApi) -> None:
    pieces, error = answer(api)
    assert error is None
    assert text_of(pieces) == "I looked. The pond is green. "
    assert citations_of(pieces) == [Citation(2, "The pond is green.", len("I looked. The pond is green."))]
    assert pieces[-1] == Finished("end", Usage(input_tokens=100, output_tokens=20))


def test_the_text_up_to_a_citation_has_been_sent_before_it(api: AnthropicApi) -> None:
    location = char_location(1, "The pond is green.", 0)
    api.replies.append(stream(Block(["Gre", "en. "], [location], citations_first=True), Block(["Yes."])))
    pieces, _ = answer(api)
    assert pieces[:-1] == [Text("Gre"), Text("en. "), Citation(2, "The pond is green.", 6), Text("Yes.")]


def test_citations_of_what_is_not_there_are_dropped_and_counted(api: AnthropicApi) -> None:
    wrong = [
        char_location(1, "The pond is blue.", 0),
        char_location(0, "The pond is green.", 0),
        char_location(7, "The pond is green.", 0),
        {
            "type": "web_search_result_location",
            "cited_text": "The pond is green.",
            "url": "https://example.com/",
            "title": "Pond",
            "encrypted_index": "",
        },
    ]
    right = char_location(1, "Algae grow in it", 19)
    api.replies.append(stream(Block(["Green."], [*wrong, right, right])))
    pieces, _ = answer(api)
    assert citations_of(pieces) == [Citation(2, "Algae grow in it", 6)]
    assert pieces[-1] == Finished("end", Usage(100, 20), dropped_citations=len(wrong))


def test_characters_of_several_bytes_may_come_in_several_packets(api: AnthropicApi) -> None:
    api.packet_bytes = 1
    quote = "Algae grow in it — 水 and light. 🐸"
    api.replies.append(stream(Block(["水 — ", "🐸!"], [char_location(1, quote, 19)])))
    pieces, _ = answer(api)
    assert text_of(pieces) == "水 — 🐸!"
    assert citations_of(pieces) == [Citation(2, quote, 6)]


def test_what_is_asked_is_accepted_by_the_api_and_carries_no_setting_that_is_not(api: AnthropicApi) -> None:
    history = [Turn("assistant", "Hello!"), Turn("user", "Hi"), Turn("assistant", "Hello again")]
    _, error = answer(api, Prompt("And the pond?", PROMPT.hits, history))
    assert error is None
    body = api.requests[0].body
    assert set(body) == {"model", "max_tokens", "system", "messages", "stream"}
    assert (body["model"], body["max_tokens"]) == ("claude-haiku-4-5", 1024)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert api.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("upstream", "reason"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
    ],
)
def test_the_stop_reason_is_told(api: AnthropicApi, upstream: str, reason: str) -> None:
    api.replies.append(stream(Block(["Green."]), stop_reason=upstream))
    pieces, _ = answer(api)
    assert pieces == [Text("Green."), Finished(reason, Usage(100, 20))]


def test_usage_counts_what_the_cache_gave_and_took(api: AnthropicApi) -> None:
    usage = {"cache_read_input_tokens": 30, "cache_creation_input_tokens": 40}
    api.replies.append(stream(Block(["Green."]), usage=usage))
    pieces, _ = answer(api)
    assert pieces[-1] == Finished("end", Usage(100, 20, 30, 40))


def test_a_refusal_without_a_word_gets_a_sentence(api: AnthropicApi) -> None:
    api.replies.append(stream(stop_reason="refusal"))
    pieces, error = answer(api)
    assert (text_of(pieces), error) == (DECLINED, None)
    assert pieces[-1] == Finished("refusal", Usage(100, 20))


def test_a_refusal_in_the_middle_says_that_it_stops(api: AnthropicApi) -> None:
    api.replies.append(stream(Block(["First, take"]), stop_reason="refusal"))
    pieces, _ = answer(api)
    assert text_of(pieces) == f"First, take\n\n{BROKEN_OFF}"
    assert pieces[-1] == Finished("refusal", Usage(100, 20))


@pytest.mark.parametrize(
    ("refusals", "code", "retry_after_s"),
    [
        ([Refusal(429, "rate_limit_error", headers={"retry-after": "17"})], "rate_limited", 17),
        ([Refusal(529, "overloaded_error", headers={"retry-after": "2.5"})], "overloaded", 3),
        ([Refusal(529, "overloaded_error", headers={"x-should-retry": "false"})], "overloaded", 10),
        ([Refusal(503, "new_error", headers={"x-should-retry": "false"})], "overloaded", 10),
        ([Refusal(504, "timeout_error", headers={"x-should-retry": "false"})], "timeout", None),
        ([Refusal(400, "invalid_request_error")], "refused", None),
        ([Refusal(401, "authentication_error")], "refused", None),
        ([Refusal(402, "billing_error")], "refused", None),
        ([Refusal(403, "permission_error")], "refused", None),
        ([Refusal(404, "not_found_error")], "refused", None),
        ([Refusal(413, "request_too_large")], "refused", None),
        ([Refusal(500, "api_error", headers={"retry-after": "0.001"})] * 2, "overloaded", 1),
    ],
)
def test_an_error_of_the_api_becomes_a_sentence_for_people(
    api: AnthropicApi,
    caplog: pytest.LogCaptureFixture,
    refusals: list[Refusal],
    code: str,
    retry_after_s: int | None,
) -> None:
    account = "organization 1234"
    for refusal in refusals:
        api.replies.append(Refusal(refusal.status, refusal.type, account, refusal.headers))
    with caplog.at_level(logging.WARNING):
        pieces, error = answer(api)
    assert pieces == []
    assert error is not None
    assert (error.code, error.retry_after_s) == (code, retry_after_s)
    assert str(error).endswith(".")
    assert len(api.requests) == len(refusals)
    assert account not in str(error)
    assert account in caplog.text
    assert KEY not in str(error) + caplog.text


def test_one_failure_that_passes_is_not_noticed(api: AnthropicApi) -> None:
    api.replies.append(Refusal(529, "overloaded_error", headers={"retry-after": "0.001"}))
    pieces, error = answer(api)
    assert error is None
    assert text_of(pieces).startswith("I looked.")
    assert len(api.requests) == 2


def test_a_wrong_key_is_for_the_owner_to_see(api: AnthropicApi, caplog: pytest.LogCaptureFixture) -> None:
    _, error = answer(api, key="wrong")
    assert error is not None
    assert error.code == "refused"
    assert "401 authentication_error" in caplog.text


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("overloaded_error", "overloaded"),
        ("rate_limit_error", "rate_limited"),
        ("api_error", "overloaded"),
        ("unheard_of_error", "cut_off"),
    ],
)
def test_an_error_in_the_middle_ends_the_answer_after_what_came(
    api: AnthropicApi, kind: str, code: str
) -> None:
    api.replies.append([*stream(Block(["The pond"]))[:3], error_event(kind)])
    pieces, error = answer(api)
    assert pieces == [Text("The pond")]
    assert error is not None
    assert error.code == code


def test_a_connection_that_drops_is_an_answer_cut_off(api: AnthropicApi) -> None:
    api.replies.append([*stream(Block(["The pond"]))[:3], DROP])
    pieces, error = answer(api)
    assert pieces == [Text("The pond")]
    assert error is not None
    assert error.code == "cut_off"


def test_a_stream_that_ends_before_its_answer_is_cut_off(api: AnthropicApi) -> None:
    api.replies.append(stream(Block(["The pond is green."]))[:-1])
    pieces, error = answer(api)
    assert text_of(pieces) == "The pond is green."
    assert error is not None
    assert error.code == "cut_off"


@pytest.mark.parametrize("garbage", [b"event: x\ndata: {no\n\n", b"event: x\ndata: \xff\n\n", b"<html>"])
def test_what_is_no_stream_of_events_is_cut_off(api: AnthropicApi, garbage: bytes) -> None:
    api.replies.append([*stream(Block(["The pond"]))[:3], garbage])
    pieces, error = answer(api)
    assert pieces == [Text("The pond")]
    assert error is not None
    assert error.code == "cut_off"


@pytest.mark.parametrize("n_events", [0, 3])
def test_silence_has_an_end(api: AnthropicApi, n_events: int) -> None:
    api.replies.append([*stream(Block(["The pond"]))[:n_events], HOLD])
    _, error = answer(api, timeout_s=0.2)
    assert error is not None
    assert error.code == "timeout"


def test_pings_without_an_answer_have_an_end(api: AnthropicApi) -> None:
    api.delay_s = 0.05
    api.replies.append([*stream(Block(["The pond"]))[:3], *[b"event: ping\ndata: {}\n\n"] * 1_000])
    pieces, error = answer(api, timeout_s=0.2, max_tokens=1)
    assert pieces == [Text("The pond")]
    assert error is not None
    assert error.code == "timeout"
    assert api.wait_for_aborted(1)


def test_how_long_an_answer_may_take_grows_with_its_longest_length() -> None:
    assert ClaudeSettings(KEY).total_s < 200
    assert ClaudeSettings(KEY, max_tokens=64_000).total_s > 64_000 / 20


def test_neither_question_nor_key_follows_a_redirect(api: AnthropicApi) -> None:
    with anthropic_api() as elsewhere:
        api.replies.append(Refusal(307, "api_error", headers={"location": elsewhere.url}))
        pieces, error = answer(api)
        assert elsewhere.requests == []
    assert pieces == []
    assert error is not None


def test_an_api_that_is_not_there_is_an_error_like_others() -> None:
    with anthropic_api() as api:
        pass
    _, error = answer(api)
    assert error is not None
    assert error.code == "overloaded"


def test_closing_the_answer_closes_the_connection(api: AnthropicApi) -> None:
    api.replies.append([*stream(Block(["The pond"]))[:3], HOLD])

    async def run() -> None:
        async with claude(api) as generator, aclosing(generator.generate(PROMPT)) as pieces:
            assert await anext(pieces) == Text("The pond")
            await pieces.aclose()
            assert await asyncio.to_thread(api.wait_for_aborted, 1)

    asyncio.run(run())


@pytest.mark.parametrize("n_events", [0, 3])
def test_cancelling_the_task_closes_the_connection(api: AnthropicApi, n_events: int) -> None:
    api.replies.append([*stream(Block(["The pond"]))[:n_events], HOLD])

    async def run() -> None:
        async with claude(api) as generator:
            pieces = generator.generate(PROMPT)
            if n_events:
                await anext(pieces)
            silence = asyncio.create_task(anext(pieces))
            assert await asyncio.to_thread(api.wait_for_requests, 1)
            silence.cancel()
            with pytest.raises(asyncio.CancelledError):
                await silence
            assert await asyncio.to_thread(api.wait_for_aborted, 1)

    asyncio.run(run())


def test_text_comes_as_it_is_made(api: AnthropicApi) -> None:
    steps = stream(Block(["The pond", " is green."]))
    api.replies.append([*steps[:3], HOLD, *steps[3:]])

    async def run() -> None:
        async with claude(api) as generator, aclosing(generator.generate(PROMPT)) as pieces:
            assert await anext(pieces) == Text("The pond")
            api.go_on()
            assert await anext(pieces) == Text(" is green.")
            assert isinstance(await anext(pieces), Finished)
        assert api.n_aborted == 0

    asyncio.run(run())


def test_nothing_slow_is_loaded_before_the_first_answer() -> None:
    program = (
        "import sys, handler.answer, handler.generate.claude; print({'anthropic', 'httpx2'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_the_connection_is_kept_for_the_next_question(api: AnthropicApi) -> None:
    async def run() -> None:
        async with claude(api) as generator:
            for _ in range(3):
                assert [piece async for piece in generator.generate(PROMPT)]

    asyncio.run(run())
    assert len({request.client for request in api.requests}) == 1
    assert api.n_aborted == 0


def test_the_key_does_not_show_in_the_settings() -> None:
    assert KEY not in repr(ClaudeSettings(KEY))
