"""The widget in pages of all kinds: hostile, strict, swapped by scripts, and with options."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.handler.widget.conftest import Visit
from tests.handler.widget.scripted_site import DONE, Gate, Reply, Site, answer, event, page, source

CITED = answer("Pools warm.", [(1, "ten degrees", 11)], [source(1), source(2, url="/kelp")])

HOSTILE = """<style>
* { font: 31px/3 fantasy !important; letter-spacing: 9px !important; color: red !important;
    margin: 7px !important; background: yellow !important; border: 5px solid red !important;
    text-transform: uppercase !important; direction: rtl !important; }
body, ralph-widget { zoom: 1.5 !important; }
button { padding: 40px !important; border-radius: 50% !important; transform: rotate(9deg) !important; }
ralph-widget, dialog, [popover] { display: none !important; visibility: hidden !important;
    opacity: 0 !important; filter: blur(9px) !important;
    pointer-events: none !important; position: absolute !important; }
.message, .window, .answer, .launcher, .tip { background: pink !important; position: static !important; }
html { font-size: 60px; } body { transform: translateZ(0); opacity: .5; filter: invert(1); }
.overlay { position: fixed !important; inset: 0 !important; z-index: 2147483647 !important; }
</style>"""
OVERLAY = '<div class="overlay">Everything is below this.</div>'

# The computed style of elements, one text each.
STYLES = """(elements) => elements.map((element) => {
  const style = getComputedStyle(element);
  const names = Array.from(style).filter((name) => !name.startsWith('--'));
  return [element.tagName, ...names.map((name) => name + ': ' + style.getPropertyValue(name))].join('\\n');
})"""


def opened(tab: Page) -> Page:
    tab.get_by_role("button", name="Ask ").and_(tab.locator(".launcher")).click()
    return tab


def ask(tab: Page, question: str) -> None:
    tab.get_by_role("textbox").fill(question)
    tab.keyboard.press("Enter")
    expect(tab.locator(".sources").last).to_be_visible()


def test_a_hostile_page_changes_nothing_of_the_widget(site: Site, visit: Visit) -> None:
    site.pages["/kind"] = page(), {}
    site.pages["/hostile"] = page(head=HOSTILE, body=OVERLAY), {}
    styles = []
    for path in ("/kind", "/hostile"):
        site.replies = [Reply(CITED)]
        tab = opened(visit(path))
        ask(tab, "?")
        tab.get_by_role("link", name="[1]").focus()
        styles.append(tab.locator("ralph-widget .shell *").evaluate_all(STYLES))
    kind, hostile = styles
    assert len(kind) > 40
    for one, other in zip(hostile, kind, strict=True):
        assert set(one.split("\n")) ^ set(other.split("\n")) == set()


def test_the_launcher_is_above_an_opaque_sheet_of_the_highest_z_index(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(head=HOSTILE, body=OVERLAY), {}
    tab = visit()
    # The last of its kind within the root element: in the same layer it would win.
    tab.evaluate("document.documentElement.append(document.querySelector('.overlay'))")
    on_top = tab.evaluate("document.elementFromPoint(innerWidth - 48, innerHeight - 48).tagName")
    assert on_top == "RALPH-WIDGET"


def test_the_widget_changes_nothing_of_the_page(site: Site, visit: Visit) -> None:
    css = "<style>.message, .window { color: teal } h1 { font-size: 50px } dialog { color: red }</style>"
    body = '<div class="message window bar">Mine</div><button class="launcher">Mine</button>'
    site.pages["/without"] = page(script="", head=css, body=body), {}
    site.pages["/with"] = page(head=css, body=body), {}
    before = visit("/without").locator("html, body, main, main *").evaluate_all(STYLES)
    site.replies = [Reply(CITED)]
    tab = opened(visit("/with"))
    ask(tab, "?")
    assert tab.locator("html, body, main, main *").evaluate_all(STYLES) == before


def test_a_strict_policy_is_not_violated(site: Site, visit: Visit) -> None:
    policy = (
        f"default-src 'none'; script-src {site.url}/ask/widget.js; connect-src {site.url}/api/; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    site.pages["/"] = page(), {"Content-Security-Policy": policy}
    site.about = {"starters": ["Who are you?"], "privacy": "Nothing leaves this site."}
    site.replies = [Reply(CITED)]
    tab = visit()
    problems: list[str] = []
    tab.on("console", lambda message: problems.append(message.text))
    tab.reload()
    opened(tab)
    ask(tab, "?")
    tab.get_by_role("link", name="[1]").hover()
    expect(tab.get_by_role("tooltip")).to_be_visible()
    assert tab.locator(".window").evaluate("(window) => getComputedStyle(window).position") == "fixed"
    assert problems == []


def test_a_page_of_a_hostile_site_with_navigation_by_script_is_asked_about(site: Site, visit: Visit) -> None:
    site.pages["/hostile"] = Path(__file__).with_name("hostile.html").read_text(encoding="utf-8"), {}
    site.replies = [Reply(CITED)]
    tab = visit("/hostile")
    tab.get_by_role("button", name="Kelp").click()
    tab.get_by_role("button", name="Ask who answers").click()
    expect(tab.locator(".sources")).to_be_visible()
    assert site.asked[0]["page"] == {
        "url": f"{site.url}/hostile?page=kelp",
        "title": "Why kelp grows half a metre a day",
    }
    background = tab.locator("#ask").evaluate("(button) => getComputedStyle(button).backgroundColor")
    assert background == "rgb(122, 29, 0)"


def test_the_canonical_address_is_the_pages(site: Site, visit: Visit) -> None:
    site.pages["/pools"] = page(head='<link rel="canonical" href="https://example.org/pools">'), {}
    site.replies = [Reply(CITED), Reply(CITED), Reply(CITED)]
    tab = opened(visit("/pools?utm=1#salt"))
    ask(tab, "?")

    # A site that navigates by script, and forgets its canonical link, and then one that remembers it.
    tab.evaluate("history.pushState(null, '', '/kelp#top'); document.title = 'Kelp'")
    tab.get_by_role("textbox").fill("?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".sources")).to_have_count(2)
    tab.evaluate("document.querySelector('link[rel=canonical]').href = 'https://example.org/kelp'")
    tab.get_by_role("textbox").fill("?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".sources")).to_have_count(3)

    assert [asked["page"] for asked in site.asked] == [
        {"url": "https://example.org/pools", "title": "Tide pools"},
        {"url": f"{site.url}/kelp", "title": "Kelp"},
        {"url": "https://example.org/kelp", "title": "Kelp"},
    ]


def test_a_page_that_loads_the_widget_twice_has_one(site: Site, visit: Visit) -> None:
    site.pages["/"] = page('<script src="/ask/widget.js" defer></script>' * 2), {}
    site.replies = [Reply(CITED)]
    tab = opened(visit())
    ask(tab, "?")
    tab.keyboard.press("Escape")
    # What a client-side navigation of the rough kind does: a new body, and its scripts once more.
    tab.evaluate("""new Promise((resolve) => {
      const body = document.createElement('body');
      const script = document.createElement('script');
      script.src = '/ask/widget.js?again';
      script.onload = resolve;
      body.append(script);
      document.body.replaceWith(body);
    })""")
    expect(tab.locator("ralph-widget")).to_have_count(1)
    opened(tab)
    expect(tab.locator(".answer")).to_have_text("Pools warm.[1]")


def test_a_widget_that_was_thrown_out_comes_back_with_the_script(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    tab = visit()
    tab.evaluate("document.querySelector('ralph-widget').remove()")
    tab.add_script_tag(url="/ask/widget.js?again")
    expect(tab.locator(".launcher")).to_be_visible()


def test_the_name_is_asked_for_once_and_kept_in_a_cookie(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    tab = opened(visit(name=None))
    expect(tab.get_by_text("What should I call you?")).to_be_visible()
    tab.get_by_role("textbox", name="Your name").fill("  <b>Zoë; O'Hara=</b>  ")
    tab.keyboard.press("Enter")
    expect(tab.locator(".line .prompt")).to_have_text("bZoë-O'Harab@davo-bot-2000 ~ %")

    (cookie,) = tab.context.cookies()
    assert (cookie["name"], cookie["sameSite"], cookie["path"]) == ("dawask_name", "Lax", "/")
    assert 364 < (cookie["expires"] - time.time()) / 86400 < 366
    tab.reload()
    opened(tab)
    expect(tab.locator(".typed")).to_contain_text("Welcome back, bZoë O'Harab.")
    expect(tab.get_by_text("What should I call you?")).to_have_count(0)


@pytest.mark.parametrize("way", ["enter", "button"])
def test_who_skips_the_name_is_not_asked_again(site: Site, visit: Visit, way: str) -> None:
    site.pages["/"] = page(), {}
    tab = opened(visit(name=None))
    if way == "enter":
        tab.keyboard.press("Enter")
    else:
        tab.get_by_role("button", name="skip").click()
    expect(tab.locator(".line .prompt")).to_have_text("guest@davo-bot-2000 ~ %")
    tab.reload()
    opened(tab)
    expect(tab.get_by_role("textbox", name="Your question")).to_be_focused()


def test_a_question_in_place_of_a_name_is_answered(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    site.replies = [Reply(CITED)]
    tab = opened(visit(name=None))
    ask(tab, "What is this?")
    assert site.asked[0]["question"] == "What is this?"
    expect(tab.locator(".command")).to_have_text('guest@davo-bot-2000 ~ % ask "What is this?"')


def test_a_cookie_that_another_script_spoiled_does_no_harm(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    tab = opened(visit(name="%E0%A4%A"))
    expect(tab.get_by_role("textbox", name="Your name")).to_be_visible()


def test_what_the_server_says_of_itself_is_shown(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    site.about = {
        "name": "shore-bot 7",
        "privacy": "Answers by Claude; your question is sent to Anthropic.",
        "starters": ["Who are you?", "Where do crabs go?"],
    }
    site.replies = [Reply(CITED)]
    tab = opened(visit())
    expect(tab.get_by_role("dialog", name="shore-bot 7")).to_be_visible()
    expect(tab.locator(".line .prompt")).to_have_text("Ada@shore-bot-7 ~ %")
    expect(tab.get_by_text("your question is sent to Anthropic")).to_be_visible()
    expect(tab.locator(".banner")).to_contain_text("█")
    tab.get_by_role("button", name="Where do crabs go?").click()
    expect(tab.locator(".sources")).to_be_visible()
    assert site.asked[0]["question"] == "Where do crabs go?"


def test_every_option_of_the_script_tag_is_heard(site: Site, visit: Visit) -> None:
    script = (
        '<script src="/ask/widget.js" defer data-api-url="/elsewhere/ask" data-title="Shore"'
        ' data-prompt-user="you" data-prompt-host="shore" data-placeholder="what now?"'
        ' data-intro="Hi there." data-starters=" Where do crabs go? | "></script>'
    )
    site.pages["/"] = page(script), {}
    site.replies = [Reply(CITED)]
    tab = opened(visit(name=""))
    expect(tab.get_by_role("dialog", name="Shore")).to_be_visible()
    expect(tab.locator(".line .prompt")).to_have_text("you@shore ~ %")
    expect(tab.get_by_placeholder("what now?")).to_be_visible()
    expect(tab.locator(".typed")).to_have_text("Hi there.")
    expect(tab.locator(".starters button")).to_have_text(["Where do crabs go?"])
    with tab.expect_request("**/elsewhere/ask"):
        ask(tab, "?")


def test_inline_it_stands_in_its_target_and_leaves_the_focus_alone(site: Site, visit: Visit) -> None:
    script = '<script src="/ask/widget.js" data-mode="inline" data-target="#here"></script>'
    site.pages["/"] = page(script, body='<div id="here"></div>'), {}
    site.replies = [Reply(CITED)]
    tab = visit()
    expect(tab.locator("#here ralph-widget .window")).to_be_visible()
    assert tab.evaluate("document.activeElement.tagName") == "BODY"
    ask(tab, "?")
    tab.get_by_role("button", name="Maximise").click()
    expect(tab.locator(".window:modal")).to_be_visible()
    tab.get_by_role("button", name="Restore").click()
    expect(tab.locator(".window:modal")).to_have_count(0)
    expect(tab.locator("#here .window")).to_be_visible()
    tab.get_by_role("button", name="Close").click()
    expect(tab.locator("#here .window")).to_be_hidden()
    opened(tab)
    expect(tab.locator("#here .answer")).to_have_text("Pools warm.[1]")


def test_a_page_can_open_ask_and_close_and_hears_what_happens(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    site.replies = [Reply(CITED), Reply(answer("Cut")[:-1])]
    tab = visit()
    tab.evaluate("""
      window.heard = [];
      for (const name of ['open', 'close', 'ask', 'answer', 'error'])
        addEventListener('ralph:' + name, ({ detail: { question, text, code } }) =>
          heard.push([name, question, text, code]));
      ralph.ask('  Crabs?  ');
    """)
    expect(tab.locator(".sources")).to_be_visible()
    tab.evaluate("ralph.ask('Kelp?')")
    expect(tab.locator(".problem")).to_be_visible()
    tab.evaluate("ralph.close()")
    expect(tab.locator(".window")).to_be_hidden()
    tab.evaluate("ralph.open()")
    expect(tab.locator(".window")).to_be_visible()
    assert tab.evaluate("heard") == [
        ["open", None, None, None],
        ["ask", "Crabs?", None, None],
        ["answer", "Crabs?", "Pools warm.", None],
        ["ask", "Kelp?", None, None],
        ["error", "Kelp?", None, "cut_off"],
        ["close", None, None, None],
        ["open", None, None, None],
    ]


def test_a_minimised_window_goes_on_and_tells_when_the_answer_is_there(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    gate = Gate()
    site.replies = [
        Reply([event("sources", sources=[source()]), gate, event("text", text="Pools warm."), DONE])
    ]
    tab = opened(visit())
    tab.get_by_role("textbox").fill("?")
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="Minimise").click()
    expect(tab.locator(".window")).to_be_hidden()
    gate.open()
    expect(tab.get_by_role("button", name="your answer is there")).to_be_visible()
    opened(tab)
    expect(tab.locator(".answer")).to_have_text("Pools warm.")


def test_closing_stops_the_answer(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    site.replies = [Reply([event("sources", sources=[source()]), Gate()])]
    tab = opened(visit())
    tab.get_by_role("textbox").fill("?")
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="Close").click()
    assert site.cut_by_reader.wait(10)


def test_keys_typed_into_the_widget_are_no_shortcuts_of_the_page(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    site.replies = [Reply(CITED)]
    tab = visit()
    tab.evaluate("window.keys = ''; void document.addEventListener('keydown', ({ key }) => { keys += key; })")
    opened(tab)
    tab.keyboard.type("s/?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".sources")).to_be_visible()
    assert tab.evaluate("keys") == ""
