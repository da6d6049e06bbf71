from __future__ import annotations

import pytest

from handler.bundle.gate import Verdict
from handler.bundle.search import SearchResult
from handler.followup import MAX_EARLIER, leans, search_in_context, search_texts
from handler.generate.types import PageRead, Turn

FIRST = "How do I install the bundle on Apache?"
HISTORY = (Turn("user", FIRST), Turn("assistant", "Copy it."))


@pytest.mark.parametrize(
    "question",
    [
        "why?", "Why not?", "how many?", "tell me more", "and then?", "How so?",
        "and on nginx?", "And a WordPress export?", "but is it safe?", "or with docker?", "what about hugo?",
        "How about Windows?", "with json output?", "on a raspberry pi", "which ones are free?",
        "so no cloud?", "how do I install it?", "how large is it", "does it work with nginx?",
        "can I turn them off?", "what is its licence?", "how do I install it on a raspberry pi?",
        "how do I do that?", "is that slow?",
        "can I use another one?", "how do I compare two of them?", "are those private?",
        "explain", "can you give me an example?", "please elaborate", "more details",
    ],
)  # fmt: skip
def test_a_question_that_leans_is_searched_with_the_earlier_one(question: str) -> None:
    assert leans(question)
    assert search_texts(question, HISTORY) == [f"{question}\n{FIRST}", question]


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of France?", "How does Ralph decide that it does not know?",
        "And how many old bundles are kept after a build?", "why is the build so slow?",
        "Why is only one text embedded at a time?", "What happens when I press ctrl-c during a build?",
        "How do I notice that a new bundle is worse than the old one?",
        "how can I check that a bundle is whole",
        "How many files does it take to make a whole site?", "Which embedding model is the default?",
        "what does RAG_MAX_DISTANCE do", "Is there a way to rename collections?",
        "who are you?", "what can you do", "thanks!", "hello",
        "In which folder do bundles stand?", "what does he do for a living?",
        "wie installiere ich das auf einem Server?",
    ],
)  # fmt: skip
def test_a_question_that_says_all_itself_is_searched_alone(question: str) -> None:
    assert search_texts(question, HISTORY) == [question]


@pytest.mark.parametrize("question", ["nginx?", "wordpress export", "old bundles"])
def test_a_fragment_is_searched_alone_first(question: str) -> None:
    assert search_texts(question, HISTORY) == [question, f"{question}\n{FIRST}"]


@pytest.mark.parametrize(
    "question",
    ["What is this?", "summarize this page", "who wrote this?", "what does it say here", "Explain this."],
)
def test_what_points_at_the_page_is_searched_with_its_title(question: str) -> None:
    page = PageRead("https://example.org/pond", "The pond ")
    assert search_texts(question, (), page) == [f"{question}\nThe pond", question]
    assert search_texts(question, HISTORY, page) == [f"{question}\nThe pond", question]


@pytest.mark.parametrize("page", [None, PageRead("https://example.org/pond", " ")])
def test_without_a_page_this_is_what_was_spoken_of(page: PageRead | None) -> None:
    assert search_texts("what is this?", HISTORY, page) == [f"what is this?\n{FIRST}", "what is this?"]
    assert search_texts("what is this?", (), page) == ["what is this?"]


@pytest.mark.parametrize("question", ["How do I install nginx here?", "why?", "Where is the piano?"])
def test_a_question_of_its_own_does_not_mean_the_page(question: str) -> None:
    assert search_texts(question, (), PageRead("https://example.org/pond", "The pond")) == [question]


@pytest.mark.parametrize("history", [(), (Turn("assistant", "Hello!"),)])
def test_without_an_earlier_question_there_is_nothing_to_lean_on(history: tuple[Turn, ...]) -> None:
    assert search_texts("why?", history) == ["why?"]


def test_a_chain_of_leaning_questions_reaches_back_to_the_one_that_names_the_topic() -> None:
    asked = ["What is a collection?", FIRST, "and on nginx?"]
    history = [turn for text in asked for turn in (Turn("user", text), Turn("assistant", "So."))]
    assert search_texts("why?", history)[0] == f"why?\n{FIRST}\nand on nginx?"


def test_a_chain_has_an_end() -> None:
    history = [Turn("user", "why?")] * 50
    assert search_texts("why?", history)[0].count("why?") == 1 + MAX_EARLIER


@pytest.mark.parametrize(
    ("question", "accepted", "found_by"),
    [
        ("why?", {f"why?\n{FIRST}"}, f"why?\n{FIRST}"),
        ("and nginx?", {"and nginx?"}, "and nginx?"),
        ("nginx?", {"nginx?", f"nginx?\n{FIRST}"}, "nginx?"),
        ("nginx?", {f"nginx?\n{FIRST}"}, f"nginx?\n{FIRST}"),
        ("Who won the world cup?", {FIRST, f"Who won the world cup?\n{FIRST}"}, None),
        ("why?", set(), None),
    ],
)
def test_the_first_text_that_the_gate_accepts_is_what_is_found(
    question: str, accepted: set[str], found_by: str | None
) -> None:
    found = search_in_context(
        lambda text: SearchResult(text, (), Verdict(text in accepted, "")), question, HISTORY
    )
    assert found.gate.accepted == (found_by is not None)
    assert found_by in (found.question, None)
