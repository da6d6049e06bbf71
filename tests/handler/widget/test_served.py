"""The whole path: a browser, the real server, the real SDK, and a stand-in for Anthropic's API."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import expect

from handler.app import create_app
from handler.bundle.bundle import Bundle
from handler.current import Current, Serving
from handler.generate.claude import ClaudeGenerator, ClaudeSettings
from handler.generate.extractive import ExtractiveGenerator
from handler.generate.persona import Persona
from handler.generate.types import Generator
from handler.settings import read_serve_settings
from tests.fakes.anthropic_api import DROP, HOLD, AnthropicApi, Block, anthropic_api, stream
from tests.handler.widget.conftest import Visit

PERSONA = Persona("davo-bot 2000", "You are davo-bot 2000.")

Serve = Callable[[Callable[[Bundle], Generator]], str]


@pytest.fixture
def serve(make_bundle: Callable[..., Path]) -> Iterator[Serve]:
    """Serves a bundle with a generator until the test is over; gives the address."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def serve(make_generator: Callable[[Bundle], Generator]) -> str:
        bundle = Bundle.open(make_bundle())
        generator = make_generator(bundle)
        app = create_app(
            Current(Serving(bundle, generator)),
            read_serve_settings({"ASK_STARTERS": ""}),
            logging.Logger("test"),
            persona=lambda: PERSONA,
        )
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none")
        server = uvicorn.Server(config)

        async def run() -> None:
            await server.serve([listener])
            if isinstance(generator, ClaudeGenerator):
                await generator.close()

        thread = threading.Thread(target=asyncio.run, args=(run(),))
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield serve
    for server, thread in running:
        server.should_exit = True
        thread.join()


@pytest.fixture
def api() -> Iterator[AnthropicApi]:
    with anthropic_api() as api:
        yield api


def claude(api: AnthropicApi) -> Callable[[Bundle], Generator]:
    return lambda _bundle: ClaudeGenerator(ClaudeSettings("key", api.url), lambda: PERSONA.text)


def test_a_question_becomes_a_cited_answer_with_a_link_to_its_section(
    serve: Serve, api: AnthropicApi, visit: Visit
) -> None:
    tab = visit("/ask/demo", base_url=serve(claude(api)))
    tab.locator(".launcher").click()
    expect(tab.locator(".window").get_by_text("sent to Anthropic")).to_be_visible()
    tab.get_by_role("textbox").fill("Are there algae in summer?")
    tab.keyboard.press("Enter")

    expect(tab.locator(".sources")).to_be_visible()
    expect(tab.locator(".answer")).to_contain_text("The pond has algae in summer.")
    mark = tab.locator(".answer .mark[href$='garden#pond']")
    mark.hover()
    expect(tab.get_by_role("tooltip")).to_contain_text("The pond has algae in summer.")
    link = tab.locator(".sources a[href='https://example.org/notes/garden#pond']")
    expect(link).to_contain_text("Garden › Pond")
    expect(tab.get_by_text("Answered by claude-haiku-4-5.")).to_be_visible()


def test_stopping_in_the_browser_stops_the_model(serve: Serve, api: AnthropicApi, visit: Visit) -> None:
    api.replies.append([*stream(Block(["The pond"]))[:3], HOLD])
    tab = visit("/ask/demo", base_url=serve(claude(api)))
    tab.evaluate("ralph.ask('Are there algae in summer?')")
    expect(tab.locator(".answer")).to_have_text("The pond")
    tab.keyboard.press("Escape")
    expect(tab.get_by_text("Stopped.").first).to_be_visible()
    assert api.wait_for_aborted(1)


def test_an_answer_that_breaks_off_is_retried(serve: Serve, api: AnthropicApi, visit: Visit) -> None:
    api.replies.append([*stream(Block(["The pond"]))[:3], DROP])
    tab = visit("/ask/demo", base_url=serve(claude(api)))
    tab.evaluate("ralph.ask('Are there algae in summer?')")
    expect(tab.locator(".problem")).to_be_visible()
    tab.get_by_role("button", name="retry").click()
    expect(tab.locator(".answer")).to_contain_text("The pond has algae in summer.")


def test_the_demo_page_asks_about_pages_that_there_are_and_shows_the_tag(serve: Serve, visit: Visit) -> None:
    url = serve(lambda bundle: ExtractiveGenerator(bundle.encoder))
    tab = visit("/", base_url=url, viewport={"width": 360, "height": 640})
    expect(tab).to_have_url(f"{url}/ask/demo")
    expect(tab.get_by_role("heading", level=1)).to_have_text("Ask Notes")
    expect(tab.locator("#tag")).to_have_text(f'<script src="{url}/ask/widget.js" defer></script>')
    assert tab.evaluate("document.documentElement.scrollWidth") == 360
    tab.get_by_role("button", name="What is “Garden” about?").click()
    expect(tab.locator(".sources a").first).to_contain_text("Garden")
    expect(tab.locator(".starters button").first).to_have_text("What is “Garden” about?")


def test_without_a_model_the_site_is_quoted_and_the_window_says_so(serve: Serve, visit: Visit) -> None:
    tab = visit("/ask/demo", base_url=serve(lambda bundle: ExtractiveGenerator(bundle.encoder)))
    problems: list[str] = []
    tab.on("console", lambda message: problems.append(message.text))
    tab.reload()
    tab.evaluate("ralph.ask('Are there algae in summer?')")
    expect(tab.get_by_text("Quoted word for word from this site")).to_be_visible()
    assert problems == []  # as strict a policy as the demo page's is enough
