"""The widget for everybody: by keyboard, by ear, on small phones, without motion."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect

from tests.handler.widget.conftest import Visit
from tests.handler.widget.scripted_site import DONE, Gate, Reply, Site, answer, event, page, source

TEXT = "Pools `warm`.\n\n```\ncrabs --hide\n```\n\nKelp grows."
MARKS = [(1, "ten degrees", TEXT.index(".") + 1), (2, "grows", len(TEXT))]
ANSWER = answer(TEXT, MARKS, [source(1), source(2, title="Kelp", url="/kelp")])
ABOUT = {
    "name": "davo-bot 2000",
    "privacy": "Answers by Claude; your question is sent to Anthropic.",
    "starters": ["Who are you?", "Where do crabs go?"],
}
PHONE = {"width": 360, "height": 640}
INLINE = '<script src="/ask/widget.js" data-mode="inline" data-target="#here"></script>'


def violations(tab: Page) -> list[str]:
    found = Axe().run(tab).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}" for one in found for node in one["nodes"]
    ]


def answered(tab: Page) -> None:
    tab.get_by_role("textbox").fill("Where do crabs go?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".sources")).to_be_visible()


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_to_say(site: Site, visit: Visit, size: dict[str, int]) -> None:
    site.pages["/"] = page(), {}
    site.about = ABOUT
    site.replies = [Reply(ANSWER), Reply(answer("Cut", (), [source()])[:-1])]
    tab = visit(name=None, viewport=size)
    assert violations(tab) == []
    tab.locator(".launcher").click()
    expect(tab.get_by_text("What should I call you?")).to_be_visible()
    assert violations(tab) == []
    tab.keyboard.press("Enter")
    answered(tab)
    tab.get_by_role("link", name="[1]").focus()
    expect(tab.get_by_role("tooltip")).to_be_visible()
    assert violations(tab) == []
    tab.evaluate("ralph.ask('Again?')")
    expect(tab.locator(".problem")).to_be_visible()
    assert violations(tab) == []


def test_axe_finds_nothing_inline(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(INLINE, body='<div id="here"></div>'), {}
    site.about = ABOUT
    site.replies = [Reply(ANSWER)]
    tab = visit()
    answered(tab)
    assert violations(tab) == []
    tab.get_by_role("button", name="Close").click()
    assert violations(tab) == []


def test_everything_is_done_by_keyboard(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    site.about = ABOUT
    site.replies = [Reply(ANSWER)]
    tab = visit(name=None)
    for _ in range(3):  # a link and a button of the page come first
        tab.keyboard.press("Tab")
    expect(tab.locator(".launcher")).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("textbox", name="Your name")).to_be_focused()
    tab.keyboard.type("Ada")
    tab.keyboard.press("Enter")
    tab.keyboard.type("Where do")
    tab.keyboard.press("Shift+Enter")
    tab.keyboard.type("crabs go?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".sources")).to_be_visible()
    assert site.asked[0]["question"] == "Where do\ncrabs go?"

    back = ["copy answer", "Kelp", "Tide pools › Salt and sun", "[2]", "[1]"]
    for name in back:
        tab.keyboard.press("Shift+Tab")
        expect(tab.locator(":focus").last).to_have_accessible_name(re.compile("^" + re.escape(name)))
    expect(tab.get_by_role("tooltip")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("tooltip")).to_be_hidden()
    tab.keyboard.press("Escape")
    expect(tab.locator(".window")).to_be_hidden()
    expect(tab.locator(".launcher")).to_be_focused()


def test_the_focus_stays_in_the_window_and_goes_back_to_what_opened_it(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    site.replies = [Reply(ANSWER)]
    tab = visit()
    tab.evaluate("void (document.getElementById('host').onclick = () => ralph.open())")
    tab.locator("#host").click()
    answered(tab)
    seen = set()
    for _ in range(24):
        tab.keyboard.press("Tab")
        seen.add(tab.evaluate("document.activeElement.tagName"))
    assert seen <= {"RALPH-WIDGET", "BODY"}  # BODY: the browser's own controls have their turn
    tab.keyboard.press("Escape")
    expect(tab.locator("#host")).to_be_focused()


def test_every_control_is_large_enough_and_has_a_name(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    site.about = ABOUT
    site.replies = [Reply(ANSWER), Reply([event("sources", sources=[]), Gate()])]
    tab = visit(viewport=PHONE)
    tab.locator(".launcher").click()
    answered(tab)
    tab.get_by_role("textbox").fill("Again?")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("button", name="stop")).to_be_visible()
    controls = tab.locator("ralph-widget").locator("a, button, textarea").locator("visible=true")
    assert controls.count() >= 11
    for control in controls.all():
        box = control.bounding_box()
        assert box is not None
        expect(control).to_have_accessible_name(re.compile(r"\w"))
        assert box["width"] >= 24, control.inner_text()
        assert box["height"] >= 24, control.inner_text()


def test_on_a_phone_it_fills_the_screen_and_makes_room_for_the_keyboard(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    site.about = ABOUT
    long = "https://example.org/" + "very-long-word" * 20
    site.replies = [Reply(answer(f"{long}\n\n```\n{long}\n```", (), [source(url=long)]))]
    tab = visit(viewport=PHONE, has_touch=True, is_mobile=True)
    tab.locator(".launcher").tap()
    answered(tab)
    assert tab.locator(".window").bounding_box() == {"x": 0, "y": 0, "width": 360, "height": 640}
    assert tab.locator(".screen").evaluate("(screen) => screen.scrollWidth - screen.clientWidth") == 0
    assert tab.evaluate("document.documentElement.scrollWidth") == 360
    tab.set_viewport_size({"width": 360, "height": 380})
    expect(tab.get_by_role("textbox")).to_be_in_viewport()
    expect(tab.locator(".privacy")).to_be_in_viewport(ratio=1)


def test_a_finger_sees_the_quoted_words_first_and_follows_the_link_next(site: Site, visit: Visit) -> None:
    site.pages["/"] = site.pages["/pools"] = page(), {}
    site.replies = [Reply(ANSWER)]
    tab = visit(viewport=PHONE, has_touch=True, is_mobile=True)
    tab.locator(".launcher").tap()
    answered(tab)
    tab.get_by_role("link", name="[1]").tap()
    expect(tab.get_by_role("tooltip")).to_contain_text("ten degrees")
    tab.locator(".sources h4").tap()
    expect(tab.get_by_role("tooltip")).to_be_hidden()
    tab.get_by_role("link", name="[1]").tap()
    expect(tab.get_by_role("tooltip")).to_be_visible()
    assert len(tab.context.pages) == 1
    with tab.context.expect_page() as opened:
        tab.get_by_role("link", name="[1]").tap()
    assert opened.value.url.endswith("#salt-and-sun")


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_moves_for_who_wants_no_motion(site: Site, visit: Visit, motion: str) -> None:
    site.pages["/"] = page(), {}
    site.replies = [Reply([*ANSWER[:-1], Gate()])]
    tab = visit(reduced_motion=motion)
    tab.locator(".launcher").click()
    expect(tab.locator(".typed")).to_be_visible()
    expect(tab.locator(".coming")).to_have_count(0)
    tab.get_by_role("textbox").fill("?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".answer p")).to_have_count(2)
    # The document's own list has none of a shadow root's.
    moving = tab.locator(".shell").evaluate("(shell) => shell.getRootNode().getAnimations().length")
    assert (moving == 0) == (motion == "reduce")


def test_the_intro_is_typed_and_a_key_hurries_it(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(f'<script src="/ask/widget.js" data-intro="{"x" * 9000}" defer></script>'), {}
    tab = visit(reduced_motion="no-preference")
    tab.clock.install()
    tab.locator(".launcher").click()
    expect(tab.locator(".coming")).to_have_count(1)
    expect(tab.locator(".typed")).to_contain_text("x" * 9000)  # all of it is there for a screen reader
    tab.keyboard.press("Shift")
    tab.clock.run_for(100)
    expect(tab.locator(".coming")).to_have_count(0)


def test_a_screen_reader_hears_whole_answers_and_problems_not_pieces(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    gate = Gate()
    sources = [source(1), source(2)]
    start = [event("sources", sources=sources), event("text", text="Pools ")]
    mark = event("citation", source=1, quote="ten degrees", at=11)
    site.replies = [Reply([*start, gate, event("text", text="warm."), mark, DONE]), Reply([])]
    tab = visit()
    tab.locator(".launcher").click()
    heard = tab.get_by_role("status")
    tab.get_by_role("textbox").fill("?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".answer")).to_have_text("Pools")
    expect(heard).to_have_text("Looking for an answer.")
    gate.open()
    expect(heard).to_have_text("Pools warm. 1 source below.")
    tab.evaluate("ralph.ask('Again?')")
    expect(heard).to_have_text("The answer broke off before its end. You can retry.")


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_it_looks_the_same_on_dark_and_light_pages(site: Site, visit: Visit, scheme: str) -> None:
    site.pages["/"] = page(head="<style>:root { color-scheme: light dark }</style>"), {}
    tab = visit(color_scheme=scheme)
    tab.locator(".launcher").click()
    color = tab.get_by_role("textbox").evaluate("(input) => getComputedStyle(input).color")
    assert color == "rgb(234, 255, 241)"


def test_quoted_words_stay_with_a_focused_mark_that_is_scrolled_to(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    filler = "\n\n".join(["Pools warm."] * 40)
    site.replies = [Reply(answer(f"Kelp.\n\n{filler}", [(1, "ten degrees", 5)], [source(1)]))]
    tab = visit()
    tab.locator(".launcher").click()
    answered(tab)
    tab.get_by_role("link", name="[1]").focus()
    expect(tab.get_by_role("link", name="[1]")).to_be_in_viewport()
    expect(tab.get_by_role("tooltip")).to_contain_text("ten degrees")
    tab.locator(".screen").evaluate("(screen) => screen.scrollTo(0, screen.scrollHeight)")
    expect(tab.get_by_role("tooltip")).to_be_hidden()
