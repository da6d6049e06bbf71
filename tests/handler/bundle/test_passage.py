from __future__ import annotations

import pytest

from handler.bundle.passage import PREFIX_BYTES, passage_prefix, passage_text, plain_text


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("a **b** *c* __d__ _e_ ~~f~~", "a b c d e f"),
        ("snake_case 5 * 6 2_000", "snake_case 5 * 6 2_000"),
        ("[text](https://example.org/a_(b) 'title') [two][ref] [three][]", "text two three"),
        ("![an image](a.png) [![badge](b.svg)](https://example.org)", "an image badge"),
        ('<img src="a.png" alt="A logo"/> <b class="x">bold</b><br>', "A logo bold"),
        ("<https://example.org/a> <me@example.org>", "https://example.org/a me@example.org"),
        ("`a *b* <c> [d](e)` ``x ` y``", "a *b* <c> [d](e) x ` y"),
        ("1 < 2 & 3 > 2, a<b", "1 < 2 & 3 > 2, a<b"),
        ("&lt;b&gt; &amp; caf&eacute;", "<b> & café"),
        (r"\*no\* \_emphasis\_ \# \[x\](y)", "*no* _emphasis_ # [x](y)"),
        ("<!-- a\ncomment -->text{/* another */}", "text"),
        ("## C# and F#\n\n### A title {#id} \n\nA\n===\n\n## B ##", "C# and F#\nA title\nA\nB"),
        ("> - [x] done\n> - [ ] to do\n\n* * *\n\n1. one", "done\nto do\n1. one"),
        ("| a | b |\n|:--|--:|\n| 1 \\| 2 | `x` |", "a b\n1 | 2 x"),
        ("[ref]: https://example.org 'title'\n[^1]: A note.", "[^1]: A note."),
        ("```py\nif a < b: # **x**\n    pass\n```\nend", "py\nif a < b: # **x**\npass\nend"),
        ("~~~~\n```\n~~~\n~~~~\n*end*", "```\n~~~\nend"),
        ("", ""),
        ("---\n\n***", ""),
    ],
)
def test_markdown_becomes_what_a_reader_sees(markdown: str, plain: str) -> None:
    assert plain_text(markdown) == plain


def test_a_passage_begins_with_its_title_and_headings() -> None:
    assert passage_text("Guide", ("Install", "On *nix"), "Run it.") == "Guide > Install > On *nix\nRun it."


def test_a_title_that_the_page_repeats_stands_once() -> None:
    assert passage_text("Guide", ("guide", "Install"), "Run it.") == "guide > Install\nRun it."


def test_a_heading_that_begins_the_text_stands_once() -> None:
    assert passage_text("Guide", ("Install",), "## Install\n\nRun *it*.") == "Guide > Install\nRun it."


def test_a_passage_without_title_or_words_is_what_is_left() -> None:
    assert passage_text("", (), "*Text*") == "Text"
    assert passage_text("Guide", (), "---") == "Guide"
    assert passage_text("", (), "---") == ""


@pytest.mark.parametrize("word", ["word", "題", "🎉", "!"])
def test_a_prefix_is_clipped_and_keeps_title_and_innermost_heading(word: str) -> None:
    for sep in (" ", ""):
        long = sep.join([word] * 300)
        prefix = passage_prefix(f"T{long}", ("outer", f"I{long}"))
        assert len(prefix.encode()) <= PREFIX_BYTES
        title, innermost = prefix.split(" > ")
        assert title.startswith("T" + word)
        assert innermost.startswith("I" + word)


def test_the_middle_of_a_long_heading_path_is_left_out_first() -> None:
    assert passage_prefix("Title", ("outer " * 40, "inner")) == "Title > inner"


@pytest.mark.parametrize(
    "unit", ["[", "<a ", "![", "*", "`", "> ", "([", "_a", "[a](", "a\\", "| ", '<a alt="']
)
def test_unfinished_markup_is_text(unit: str) -> None:
    assert plain_text(unit * 1500 + "\nend").endswith("end")


def test_a_sign_that_marks_what_is_kept_means_nothing_in_a_text() -> None:
    assert plain_text("a\0b `c` \x00 0 \x00") == "a b c 0"
