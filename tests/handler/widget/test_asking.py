"""Questions and answers in a real browser, whatever way the bytes come."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.handler.widget.conftest import Visit
from tests.handler.widget.scripted_site import DONE, Gate, Reply, Site, answer, event, page, source

TEXT = "Pools warm in the sun. Crabs hide under weed."
SUN, WEED = len("Pools warm in the sun."), len(TEXT)
CITATIONS = [(1, "A shallow pool warms by ten degrees.", SUN), (2, "Small crabs go under the weed.", WEED)]
SOURCES = [
    source(1),
    source(2, title="Crabs", heading="Where > When", url="/crabs"),
    source(3, title="Kelp", url="/kelp"),
]

# Gives the page's fetch bodies in pieces of `size` bytes. What a server sends in pieces may arrive in one.
CUT_PACKETS = """(size) => {
  const whole = window.fetch;
  window.fetch = async (...request) => {
    const response = await whole(...request);
    const bytes = new Uint8Array(await response.arrayBuffer());
    let from = 0;
    const body = new ReadableStream({
      pull(controller) {
        if (from < bytes.length) controller.enqueue(bytes.slice(from, from += size));
        else controller.close();
      },
    });
    return new Response(body, response);
  };
}"""


@pytest.fixture
def tab(site: Site, visit: Visit) -> Page:
    """The widget, open, on a page of a visitor who gave their name."""
    site.pages["/"] = page(), {}
    tab = visit()
    tab.get_by_role("button", name="Ask davo-bot 2000").click()
    return tab


def ask(tab: Page, question: str) -> None:
    tab.get_by_role("textbox", name="Your question").fill(question)
    tab.keyboard.press("Enter")


def paragraphs(tab: Page) -> Locator:
    return tab.locator(".answer p")


def ended(tab: Page) -> None:
    expect(tab.locator(".streaming")).to_have_count(0)


def test_an_answer_shows_its_marks_in_place_and_the_cited_sources(site: Site, tab: Page) -> None:
    site.replies = [Reply(answer(TEXT, CITATIONS, SOURCES))]
    ask(tab, "Where do crabs go?")

    expect(tab.locator(".command")).to_have_text('Ada@davo-bot-2000 ~ % ask "Where do crabs go?"')
    expect(paragraphs(tab)).to_have_text("Pools warm in the sun.[1] Crabs hide under weed.[2]")
    links = tab.locator(".sources a")
    expect(links).to_have_text(["Tide pools › Salt and sun (new tab)", "Crabs › Where › When (new tab)"])
    expect(links.nth(0)).to_have_attribute("href", f"{site.url}/pools#salt-and-sun")
    expect(links.nth(0)).to_have_attribute("rel", "noopener")
    expect(tab.get_by_text("Answered by claude-haiku-4-5.")).to_be_visible()
    assert site.asked == [
        {
            "question": "Where do crabs go?",
            "history": [],
            "page": {"url": f"{site.url}/", "title": "Tide pools"},
        }
    ]


def test_a_whole_answer_ends_its_request_in_peace(site: Site, tab: Page) -> None:
    gate = Gate(silent=True)
    site.replies = [Reply([*answer(TEXT, CITATIONS, SOURCES), gate])]
    with tab.expect_event("requestfinished", lambda request: request.url.endswith("/api/ask")):
        ask(tab, "Where do crabs go?")
        ended(tab)
        gate.open()


def test_text_shows_while_the_answer_is_still_being_written(site: Site, tab: Page) -> None:
    first, second = Gate(), Gate()
    sources, text, *rest = answer("Pools warm.", (), SOURCES)
    site.replies = [Reply([sources, first, text, second, event("text", text=" Crabs hide."), *rest])]
    ask(tab, "?")

    expect(tab.locator(".progress")).to_have_text("reading 3 pages")
    first.open()
    expect(paragraphs(tab)).to_have_text("Pools warm.")
    expect(tab.locator(".progress")).to_be_empty()
    expect(tab.get_by_role("button", name="stop")).to_be_visible()
    second.open()
    expect(paragraphs(tab)).to_have_text("Pools warm. Crabs hide.")
    expect(tab.get_by_role("button", name="stop")).to_be_hidden()


@pytest.mark.parametrize(
    ("size", "line_end"), [(1, b"\n"), (1, b"\r\n"), (1, b"\r"), (7, b"\r\n"), (10_000, b"\r")]
)
def test_packets_may_be_cut_anywhere(site: Site, tab: Page, size: int, line_end: bytes) -> None:
    tab.evaluate(CUT_PACKETS, size)
    text = "🦀 Krebse – مرحبا – 蟹. Ende"
    stream = b": ping\n\n" + b"".join(answer(text, [(1, "Krebse", text.index(".") + 1)]))
    # One event's data on two lines, and a field that nobody knows: both are part of the format.
    stream = stream.replace(b'"text": ', b'"text":\ndata: ').replace(b"event: done", b"id: 7\nevent: done")
    stream = stream.replace(b"\n", line_end)
    site.replies = [Reply([stream])]
    ask(tab, "?")
    ended(tab)

    expect(paragraphs(tab)).to_have_text("🦀 Krebse – مرحبا – 蟹.[1] Ende")
    expect(tab.locator(".problem")).to_have_count(0)


def test_a_citation_may_come_after_later_text_and_before_its_own(site: Site, tab: Page) -> None:
    early, late = event("citation", source=1, quote="q", at=6), event("citation", source=2, quote="q", at=2)
    events = [
        event("sources", sources=SOURCES),
        early,
        event("text", text="Aa Bb"),
        event("text", text=". Cc"),
        late,
    ]
    site.replies = [Reply([*events, DONE])]
    ask(tab, "?")
    ended(tab)

    expect(paragraphs(tab)).to_have_text("Aa[2] Bb.[1] Cc")


def test_two_quotes_of_a_source_at_one_place_share_a_mark(site: Site, tab: Page) -> None:
    gate = Gate()
    first, second = (
        event("citation", source=1, quote=quote, at=11) for quote in ("ten degrees", "in the sun")
    )
    start = [event("sources", sources=SOURCES), event("text", text="Pools warm."), first]
    site.replies = [Reply([*start, gate, second, DONE])]
    ask(tab, "?")
    expect(paragraphs(tab)).to_have_text("Pools warm.[1]")
    gate.open()
    ended(tab)

    expect(paragraphs(tab)).to_have_text("Pools warm.[1]")
    tab.get_by_role("link", name="[1]").hover()
    expect(tab.get_by_role("tooltip").locator("q")).to_have_text(["ten degrees", "in the sun"])


def test_a_focused_mark_keeps_the_focus_while_text_comes_in(site: Site, tab: Page) -> None:
    gate = Gate()
    before = answer("Pools warm.", [(1, "ten degrees", 11)], SOURCES)[:-1]
    late = event("citation", source=2, quote="pools", at=5)
    site.replies = [Reply([*before, gate, event("text", text=" Crabs hide."), late, DONE])]
    ask(tab, "?")
    tab.get_by_role("link", name="[1]").focus()
    gate.open()
    ended(tab)

    expect(paragraphs(tab)).to_have_text("Pools[2] warm.[1] Crabs hide.")
    expect(tab.get_by_role("link", name="[1]")).to_be_focused()
    expect(tab.get_by_role("tooltip")).to_have_text(re.compile("ten degrees"))


def test_quoted_words_show_on_hover_and_stay_under_the_pointer(site: Site, tab: Page) -> None:
    site.replies = [Reply(answer(TEXT, CITATIONS, SOURCES))]
    ask(tab, "?")
    ended(tab)
    tip = tab.get_by_role("tooltip")

    tab.get_by_role("link", name="[2]").hover()
    expect(tip).to_have_text("Small crabs go under the weed.Crabs › Where › When")
    expect(tab.get_by_role("link", name="[2]")).to_have_accessible_description(
        re.compile("Small crabs go under")
    )
    tip.hover()
    expect(tip).to_be_visible()
    tab.mouse.move(1, 1)
    expect(tip).to_be_hidden()


def test_quoted_words_show_on_focus_and_escape_hides_them_alone(site: Site, tab: Page) -> None:
    site.replies = [Reply(answer(TEXT, CITATIONS, SOURCES))]
    ask(tab, "?")
    ended(tab)

    tab.get_by_role("link", name="[1]").focus()
    expect(tab.get_by_role("tooltip")).to_have_text(re.compile("warms by ten degrees"))
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("tooltip")).to_be_hidden()
    expect(tab.get_by_role("dialog")).to_be_visible()


def test_a_mark_and_a_source_lead_to_the_section(site: Site, tab: Page) -> None:
    site.pages["/pools"] = page(body='<h2 id="salt-and-sun">Salt and sun</h2>'), {}
    site.replies = [Reply(answer(TEXT, CITATIONS, SOURCES))]
    ask(tab, "?")
    for link in (tab.get_by_role("link", name="[1]"), tab.locator(".sources a").first):
        with tab.context.expect_page() as opened:
            link.click()
        opened.value.wait_for_load_state()
        assert opened.value.url == f"{site.url}/pools#salt-and-sun"


def test_escape_stops_the_answer_and_the_request_with_it(site: Site, tab: Page) -> None:
    site.replies = [Reply([*answer(TEXT, (), SOURCES)[:-1], Gate()]), Reply(answer("Kelp grows."))]
    ask(tab, "Crabs?")
    expect(paragraphs(tab)).to_have_text(TEXT)
    tab.keyboard.press("Escape")

    expect(tab.get_by_text("Stopped.").first).to_be_visible()
    assert site.cut_by_reader.wait(10)
    expect(tab.get_by_role("textbox")).to_be_focused()
    ask(tab, "Kelp?")
    expect(paragraphs(tab).last).to_have_text("Kelp grows.")
    assert site.asked[1]["history"] == [
        {"role": "user", "text": "Crabs?"},
        {"role": "assistant", "text": TEXT},
    ]


def test_the_stop_button_stops_and_gives_the_focus_back(site: Site, tab: Page) -> None:
    site.replies = [Reply([event("sources", sources=[]), Gate()])]
    ask(tab, "Crabs?")
    tab.get_by_role("button", name="stop").click()

    assert site.cut_by_reader.wait(10)
    expect(tab.get_by_role("textbox")).to_be_focused()
    expect(tab.get_by_role("button", name="retry")).to_be_visible()


def test_a_cut_stream_says_so_and_can_be_retried(site: Site, tab: Page) -> None:
    site.replies = [Reply(answer("Pools wa", (), SOURCES)[:-1]), Reply(answer(TEXT, CITATIONS, SOURCES))]
    ask(tab, "Crabs?")
    expect(tab.locator(".problem")).to_have_text("! The answer broke off before its end.")
    expect(paragraphs(tab)).to_have_text("Pools wa")
    tab.get_by_role("button", name="retry").click()

    expect(tab.locator(".problem")).to_have_count(0)
    expect(paragraphs(tab)).to_have_text("Pools warm in the sun.[1] Crabs hide under weed.[2]")
    assert [asked["question"] for asked in site.asked] == ["Crabs?", "Crabs?"]
    assert site.asked[1]["history"] == []
    expect(tab.get_by_role("textbox")).to_be_focused()


def test_a_broken_answer_is_not_told_to_the_next_question(site: Site, tab: Page) -> None:
    site.replies = [
        Reply(answer("Pools warm.")),
        Reply(answer("Crabs hi")[:-1]),
        Reply(answer("Kelp grows.")),
    ]
    for question in ("Pools?", "Crabs?", "Kelp?"):
        ask(tab, question)
        ended(tab)
    assert [turn["text"] for turn in site.asked[2]["history"]] == ["Pools?", "Pools warm."]


def test_an_event_cut_in_two_is_no_event(site: Site, tab: Page) -> None:
    stream = b"".join(answer("Pools warm."))
    site.replies = [Reply([stream[:-1]])]
    ask(tab, "?")
    expect(tab.locator(".problem")).to_have_text("! The answer broke off before its end.")


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            Reply([event("error", code="overloaded", message="Claude is busy.", retry_after_s=5)]),
            "Claude is busy.",
        ),
        (
            Reply(
                [json.dumps({"error": {"code": "rate_limited", "message": "Too many."}}).encode()], status=429
            ),
            "Too many.",
        ),
        (Reply([b"<h1>Bad gateway</h1>"], status=502), "The server answered with status 502."),
        (Reply([b"event: text\ndata: {oops\n\n"]), "The answer broke off before its end."),
        (Reply([event("sources", sources=[None]), DONE]), "The answer broke off before its end."),
        (
            Reply([event("text", text="Pools."), b"event: citation\ndata: null\n\n", DONE]),
            "The answer broke off before its end.",
        ),
    ],
)
def test_a_problem_is_a_sentence_and_a_retry(site: Site, tab: Page, reply: Reply, message: str) -> None:
    site.replies = [reply, Reply(answer(TEXT))]
    ask(tab, "?")
    expect(tab.locator(".problem")).to_have_text(f"! {message}")
    tab.get_by_role("button", name="retry").click()
    expect(paragraphs(tab)).to_have_text(TEXT)


def test_a_server_that_is_not_there_is_a_sentence_too(site: Site, tab: Page) -> None:
    tab.context.set_offline(True)
    ask(tab, "?")
    expect(tab.locator(".problem")).to_have_text("! The connection failed.")


def test_silence_ends_in_a_problem_not_in_waiting(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    tab = visit()
    tab.clock.install()
    tab.get_by_role("button", name="Ask davo-bot 2000").click()
    gate = Gate(silent=True)
    site.replies = [Reply([event("sources", sources=SOURCES), event("text", text="Pools"), gate])]
    ask(tab, "?")
    expect(paragraphs(tab)).to_have_text("Pools")
    tab.clock.fast_forward(46_000)

    expect(tab.locator(".problem")).to_have_text("! Nothing came from the server for 45 seconds.")
    expect(tab.get_by_role("button", name="retry")).to_be_visible()
    gate.open()


def test_the_last_six_turns_go_with_a_question(site: Site, tab: Page) -> None:
    site.replies = [Reply(answer(f"Answer {i}.")) for i in range(5)]
    for i in range(5):
        ask(tab, f"Question {i}")
        expect(paragraphs(tab).nth(i)).to_have_text(f"Answer {i}.")
        ended(tab)

    assert [turn["text"] for turn in site.asked[4]["history"]] == [
        text for i in (1, 2, 3) for text in (f"Question {i}", f"Answer {i}.")
    ]


def test_markup_and_script_links_are_text(site: Site, tab: Page) -> None:
    evil = (
        '<img src=x onerror="window.hacked=1"> [here](javascript:window.hacked=1) <script>hacked=1</script>'
    )
    sources = [
        source(1, title=evil, heading=evil, url="javascript:window.hacked=1"),
        source(2, title="Data", url="data:text/html,<script>1</script>"),
    ]
    site.replies = [Reply(answer(evil, [(1, evil, 5), (2, evil, 6)], sources))]
    ask(tab, evil)
    ended(tab)

    expect(paragraphs(tab)).to_have_text(f"{evil[:5]}[1]{evil[5]}[2]{evil[6:]}")
    expect(tab.locator("ralph-widget img, ralph-widget script, ralph-widget .exchange a")).to_have_count(0)
    tab.get_by_role("button", name="[1]").click()
    expect(tab.get_by_role("tooltip")).to_have_text(re.compile("onerror"))
    assert tab.evaluate("window.hacked") is None


def test_fences_and_inline_code_are_the_only_markup(site: Site, tab: Page) -> None:
    text = "Run `nginx -t`, **first**.\n\n```sh\nnginx -t\n\nreload `now`\n```\nThen *rest*."
    marks = [(1, "test", text.index(", **")), (1, "reload", text.index("now")), (2, "rest", len(text))]
    site.replies = [Reply(answer(text, marks, SOURCES))]
    ask(tab, "?")
    ended(tab)

    expect(paragraphs(tab)).to_have_text(["Run nginx -t[1], **first**.", "Then *rest*.[2]"])
    expect(tab.locator(".answer p code")).to_have_text("nginx -t")
    assert tab.locator(".answer pre").text_content() == "nginx -t\n\nreload `now`[1]"


def test_the_answer_is_copied_with_its_sources(site: Site, visit: Visit) -> None:
    site.pages["/"] = page(), {}
    tab = visit(permissions=["clipboard-read", "clipboard-write"])
    tab.get_by_role("button", name="Ask davo-bot 2000").click()
    site.replies = [Reply(answer(TEXT, CITATIONS, SOURCES))]
    ask(tab, "?")
    tab.get_by_role("button", name="copy answer").click()

    expect(tab.get_by_role("button", name="copied")).to_be_visible()
    assert tab.evaluate("navigator.clipboard.readText()") == (
        "Pools warm in the sun.[1] Crabs hide under weed.[2]\n\n"
        f"[1] Tide pools {site.url}/pools#salt-and-sun\n[2] Crabs {site.url}/crabs"
    )


def test_an_answer_without_a_model_and_a_shortened_one_say_so(site: Site, tab: Page) -> None:
    done = json.loads(DONE.split(b"data: ")[1])
    quoted = event("done", **(done | {"generator": "extractive", "model": None}))
    short = event("done", **(done | {"stop_reason": "max_tokens"}))
    site.replies = [
        Reply([*answer(TEXT, CITATIONS, SOURCES)[:-1], quoted]),
        Reply([*answer("Hello.")[:-1], quoted]),
        Reply([*answer(TEXT)[:-1], short]),
    ]
    ask(tab, "?")
    expect(
        tab.get_by_text("Quoted word for word from this site; no language model was asked.")
    ).to_be_visible()
    ended(tab)
    ask(tab, "Hello")
    expect(tab.get_by_text("No language model was asked.", exact=True)).to_be_visible()
    ended(tab)
    ask(tab, "?")
    expect(tab.get_by_text("ends here because it reached its longest length.")).to_be_visible()


def test_an_answer_that_cites_nothing_lists_the_nearest_pages(site: Site, tab: Page) -> None:
    sources = [source(i, url=f"/{i}") for i in range(1, 6)]
    site.replies = [Reply(answer("I do not know.", (), sources)), Reply(answer("Hello.", (), ())[1:])]
    ask(tab, "?")
    expect(tab.locator(".sources h4")).to_have_text("// nearest pages")
    expect(tab.locator(".sources a")).to_have_count(3)
    ask(tab, "Hello")
    expect(paragraphs(tab).last).to_have_text("Hello.")
    ended(tab)
    expect(tab.locator(".sources")).to_have_count(1)


def test_a_right_to_left_answer_reads_from_the_right(site: Site, tab: Page) -> None:
    site.replies = [Reply(answer("تدفأ البرك في الشمس.\n\nPools warm.", [(1, "الشمس", 20)]))]
    ask(tab, "أين تذهب السرطانات؟")
    ended(tab)

    directions = paragraphs(tab).evaluate_all("all => all.map((p) => getComputedStyle(p).direction)")
    assert directions == ["rtl", "ltr"]


def test_the_last_question_comes_back_with_arrow_up(site: Site, tab: Page) -> None:
    site.replies = [Reply(answer(TEXT))]
    ask(tab, "Crabs?")
    ended(tab)
    tab.keyboard.press("ArrowUp")
    expect(tab.get_by_role("textbox")).to_have_value("Crabs?")
