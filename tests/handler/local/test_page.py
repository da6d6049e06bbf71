"""The local chat's window in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from handler.local.conversations import AnswerSoFar
from tests.fakes.ollama_api import HOLD, row, rows
from tests.handler.local.conftest import Chat

QUESTION = "What does the pond have?"


@pytest.fixture
def page(browser: Browser, chat: Chat) -> Iterator[Page]:
    """The window, which must log no error: a broken policy is one."""
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(10_000)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(chat.url)
    expect(page.locator(".welcome")).to_contain_text("diary, notes")
    yield page
    context.close()
    assert errors == []


def ask(page: Page, question: str = QUESTION) -> None:
    page.get_by_label("you@ralph").fill(question)
    page.keyboard.press("Enter")


def is_answered(page: Page) -> None:
    expect(page.locator("#status")).to_have_text("The answer is complete.")


def test_an_answer_streams_with_its_citations_and_is_there_after_a_reload(page: Page, chat: Chat) -> None:
    chat.api.replies.append(
        [
            row("The 🐸 pond has **algae** "),
            row("[1]"),
            row(".\n\n```\ncode[1]\n```\n"),
            HOLD,
            *rows("Done [9]."),
        ]
    )
    ask(page)
    answer = page.locator(".answer")
    expect(answer).to_contain_text("The 🐸 pond has algae[1].")
    expect(page.get_by_role("button", name="stop")).to_be_visible()
    chat.api.go_on()
    is_answered(page)
    for _ in range(2):
        expect(answer).to_have_text(re.compile(r"The 🐸 pond has algae\[1\]\.\s*code\[1\]\s*Done\."))
        expect(answer.locator("strong")).to_have_text("algae")
        cite = answer.get_by_role("link", name="source 1: Garden")
        expect(cite).to_have_attribute("href", "https://example.org/notes/garden#pond")
        cite.focus()
        expect(page.get_by_role("tooltip")).to_have_text("“The pond has algae in summer.”")
        page.keyboard.press("Escape")
        expect(page.get_by_role("tooltip")).to_be_hidden()
        assert page.url == f"{chat.url}/#1"
        page.reload()


def test_an_answer_can_be_stopped_and_asked_again(page: Page, chat: Chat) -> None:
    chat.api.replies.append([row("Half "), row("an answer"), HOLD])
    ask(page)
    expect(page.locator(".answer")).to_contain_text("Half")
    page.keyboard.press("Escape")
    expect(page.locator(".cut")).to_have_text("Stopped.")
    assert chat.api.wait_for_aborted(1)
    page.get_by_role("button", name="ask again").click()
    is_answered(page)
    expect(page.locator(".asked")).to_have_text([QUESTION, QUESTION])
    expect(page.locator("#list li")).to_have_count(1)


def test_what_breaks_off_says_so(page: Page, chat: Chat) -> None:
    chat.api.replies.append([row("Half"), {"error": "the runner crashed"}])
    ask(page)
    expect(page.locator(".cut")).to_have_text("Ollama broke off: the runner crashed")
    page.reload()
    expect(page.locator(".answer")).to_have_text("Half")
    expect(page.locator(".cut")).to_have_text("Ollama broke off: the runner crashed")


def test_what_a_model_or_a_page_writes_stays_text(page: Page, chat: Chat) -> None:
    hostile = '<img src=x onerror="document.title=1"> [a](javascript:document.title=2) <script>1</script>'
    chat.api.replies.append(rows(hostile))
    ask(page, hostile)
    is_answered(page)
    expect(page.locator(".answer")).to_have_text(hostile)
    expect(page.locator(".asked")).to_have_text(hostile)
    assert page.locator("#log img, #log script").count() == 0
    started = chat.conversations.start("Links")
    source = {"number": 1, "title": "A", "heading": "", "url": "javascript:document.title=3", "snippet": ""}
    answer = AnswerSoFar("Here.", "whole", [source], [{"source": 1, "quote": "q", "at": 4}])
    chat.conversations.keep(chat.conversations.ask(started.id, "Links"), answer)
    page.goto(f"{chat.url}/#{started.id}")
    expect(page.locator(".answer")).to_have_text("Here[1].")
    assert page.locator("#log a[href]").count() == 0


def test_conversations_are_kept_apart_renamed_and_deleted_by_keyboard(page: Page, chat: Chat) -> None:
    ask(page)
    is_answered(page)
    page.get_by_role("button", name="new conversation").press("Enter")
    expect(page.locator(".welcome")).to_be_visible()
    ask(page, "Where is the piano?")
    expect(page.locator("#list a")).to_have_text(["Where is the piano?", QUESTION])
    is_answered(page)
    page.get_by_role("link", name=QUESTION).press("Enter")
    expect(page.locator(".asked")).to_have_text([QUESTION])
    page.get_by_role("button", name=f"rename: {QUESTION}").press("Enter")
    page.keyboard.type("Pond")
    page.keyboard.press("Enter")
    expect(page.locator("#list a")).to_have_text(["Where is the piano?", "Pond"])
    page.get_by_role("button", name="delete: Pond").press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Delete “Pond”?")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="delete: Pond").press("Enter")
    page.get_by_role("button", name="delete", exact=True).press("Enter")
    expect(page.locator("#list a")).to_have_text(["Where is the piano?"])
    assert [conversation.title for conversation in chat.conversations.all()] == ["Where is the piano?"]


def test_an_answer_streams_on_while_another_conversation_is_looked_at(page: Page, chat: Chat) -> None:
    ask(page, "Where is the piano?")
    is_answered(page)
    page.get_by_role("button", name="new conversation").click()
    chat.api.replies.append([row("One "), row("two"), HOLD, *rows(" three.")])
    ask(page)
    expect(page.locator(".answer")).to_contain_text("One")
    page.get_by_role("link", name="Where is the piano?").click()
    expect(page.locator(".asked")).to_have_text(["Where is the piano?"])
    page.get_by_role("link", name=QUESTION).click()
    chat.api.go_on()
    expect(page.locator(".answer")).to_have_text("One two three.")


@pytest.mark.parametrize("width", [1200, 320])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(page: Page, chat: Chat, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    axe = Axe()
    welcome = axe.run(page)
    chat.api.replies.append([*rows("The pond has `algae` [1].\n\n```\n" + "long " * 60 + "\n```\n")])
    ask(page)
    is_answered(page)
    chat.api.replies.append([row("Half"), {"error": "crashed"}])
    ask(page, "x" * 300)
    expect(page.locator(".cut")).to_be_visible()
    for results in (welcome, axe.run(page)):
        assert results.violations_count == 0, results.generate_report()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    if width < 700:
        page.get_by_role("button", name="conversations").click()
        expect(page.locator("#list a")).to_be_visible()
        results = axe.run(page)
        assert results.violations_count == 0, results.generate_report()
