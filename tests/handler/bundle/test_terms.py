from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.bundle.terms import (
    MAX_TERMS,
    _parts,
    asks_a_service,
    fold,
    keyword_text,
    neighbours,
    points_at_site,
    query_phrases,
    running_words,
)


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ("multi-agent", ("multi agent", "multi", "agent")),
        ("2026.4.10", ("2026 4 10", "2026", "4", "10")),
        ("GB/s", ("gb s", "gb")),
        ("memory:safe", ("memory safe", "memory", "safe")),
        ('say "hi', ("say", "hi")),
        ("foo AND bar(", ("foo", "bar")),
        ("status: done", ("status", "done")),
        ("--error-on-warnings", ("error on warnings", "error", "warnings")),
        ("note%", ("note",)),
        ("the site's cat doesn't", ("site", "cat")),
        ("C++ or C#?", ("c", "cplusplus", "csharp")),
        (".NET", ("net", "dotnet")),
        ("東京の", ("東 京", "京 の")),
        ("金", ("金",)),
        ("iPhone充電", ("充 電", "iphone")),
        ("what is the", ()),
        ("", ()),
    ],
)
def test_a_question_becomes_its_literal_terms(question: str, phrases: tuple[str, ...]) -> None:
    assert query_phrases(question) == phrases


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("שָׁלוֹם", "שלום"),
        ("مُحَمَّد", "محمد"),
        ("Ｃａｆé", "cafe"),
        ("Straße", "STRASSE"),
        ("ﬁne", "fine"),
    ],
)
def test_marks_case_and_width_do_not_matter(written: str, asked: str) -> None:
    assert fold(written) == fold(asked)


@pytest.mark.parametrize(
    ("written", "indexed"),
    [
        ("hasSuffix", "hassuffix has suffix"),
        ("strings.HasSuffix.", "strings.hassuffix. has suffix"),
        ("`ByLinkTitle`", "`bylinktitle` by link title"),
        ("GaussianBlur()", "gaussianblur() gaussian blur"),
        ("getHTMLOf_id", "gethtmlof_id get html of"),
        ("toBase64 isV8Id", "tobase64 to base64 isv8id"),
        ("the Page.GitInfo.AuthorDate is", "the page.gitinfo.authordate git info author date is"),
        ("WordPress, GitHub.com and JavaScript", "wordpress, github.com and javascript"),
        ("iPhone eBay aB", "iphone ebay ab"),
        ("hasSuffixé éhasSuffix _AbÉ", "hassuffixe ehassuffix _abe"),
    ],
)
def test_names_in_code_are_followed_by_their_parts_and_other_names_are_not(
    written: str, indexed: str
) -> None:
    assert keyword_text(written) == indexed


@given(st.text("aAbB._`( é\u0301用ไ/-1", max_size=40))
def test_what_is_asked_is_found_however_names_are_written(text: str) -> None:
    """Its words and phrases stand as they are in front of the parts of names."""
    words = f" {' '.join(_parts(keyword_text(text)))} "
    for asked in (text, text.lower()):
        assert all(f" {phrase} " in words for phrase in query_phrases(asked))


def test_a_name_in_a_question_is_one_word_however_it_is_written() -> None:
    assert query_phrases("getElementById") == query_phrases("getelementbyid") == ("getelementbyid",)


@pytest.mark.parametrize("text", ["Ab", "aB", ".A", "A.", "`Ab", "ab_", "A", "aB1"])
def test_names_without_end_are_indexed_in_linear_time(text: str) -> None:
    """Written otherwise, the expression takes minutes: each of its two repetitions at each of the places."""
    assert len(keyword_text(f".{text * 200_000}é"))


def test_vowel_signs_of_indic_scripts_stay() -> None:
    assert fold("हिन्दी") != fold("हन्द")
    assert query_phrases("हिन्दी") == (fold("हिन्दी"),)


def test_a_long_question_has_a_bounded_number_of_terms() -> None:
    assert len(query_phrases(" ".join(f"word{i}" for i in range(100_000)))) == MAX_TERMS


@given(st.text())
def test_any_text_has_terms_of_letters_and_digits_only(question: str) -> None:
    for phrase in query_phrases(question):
        assert phrase
        assert '"' not in phrase
        assert "\0" not in phrase


def test_neighbours_are_words_and_an_empty_term_parts_them() -> None:
    assert neighbours(["garden", "multi agent", "pond", "", "algae", "bloom"]) == (
        "garden pond",
        "algae bloom",
    )
    assert neighbours(["garden"]) == ()


@pytest.mark.parametrize(
    ("question", "points"),
    [
        ("What is his rating?", True),
        ("Who writes this site?", True),
        ("What is the capital of France?", False),
        ("sheriff of Nottingham", False),
    ],
)
def test_a_question_that_speaks_of_the_site_or_its_author_is_told_apart(question: str, points: bool) -> None:
    assert points_at_site(question) is points


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("can you book a table for two", True),
        ("remind me of the dentist", True),
        ("Find a plumber nearby", True),
        ("How do I find my drafts?", False),
        ("where does the site show its home page", False),
    ],
)
def test_a_wish_is_told_from_a_question(question: str, asks: bool) -> None:
    assert asks_a_service(question) is asks


def test_running_words_are_folded_and_parted_from_all_else() -> None:
    assert running_words("Don't the `hasSuffix()` -- in C++?\n東京") == (
        " don t the hassuffix in c cplusplus 東 京 "
    )
    assert running_words("a\0b \ud800 ? ") == " a b "
    assert running_words(" ? ") == "  "
