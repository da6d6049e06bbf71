"""Words of others in markdown, of any kind that can be thought of."""

from __future__ import annotations

import unicodedata
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipeline import urls
from pipeline.export.escape import escape, link
from pipeline.export.reminder_files import read_file
from pipeline.site import SiteError

PARTS = st.sampled_from(
    ["[", "](", ")", "<", ">", "`", "*", "_", "{", "}", "|", "\\", "~", "&lt;", "!", "#", "-", "+", "1.",
     "1)", " ", "\n", "\t", ":::", "=", "https://a.example/", "http://", "javascript:x", "www.a.example",
     "<b>", "<!--", "$", "a", "@", "é", "א", "\u202e", "\x00", "\u00a0", "\u2028"]
)  # fmt: skip
WORDS = st.one_of(st.text(max_size=60), st.lists(PARTS, max_size=30).map("".join))
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def inline(text: str) -> list[Token]:
    """What is in the one paragraph of the one item that the text is."""
    tokens = PARSER.parse(f"- {text}\n")
    assert [token.type.removesuffix("_open") for token in tokens[:4]] == [
        "bullet_list", "list_item", "paragraph", "inline",
    ]  # fmt: skip
    assert len(tokens) == 7
    return tokens[3].children or []


# The marks, embeddings, overrides and isolates of UAX 9.
BIDI = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
MARKS = dict.fromkeys(map(ord, "\u061c\u200e\u200f"))


def visible(text: str) -> str:
    """What is seen of a text, but for its spaces."""
    shown = (c for c in text.translate(MARKS) if unicodedata.category(c) not in ("Cc", "Cs"))
    return "".join("".join(c for c in shown if unicodedata.bidirectional(c) not in BIDI).split())


@given(WORDS)
@example("!https://a.example/x.png")
@example("\x00 # a")
@settings(max_examples=500, deadline=None)
def test_any_text_is_one_line_of_text_and_links_to_the_web(text: str) -> None:
    written = escape(text)
    if not written.strip():
        return
    assert "<" not in written
    assert written.replace("\\{", "").count("{") == 0
    children = inline(written)
    assert {child.type for child in children} <= {"text", "text_special", "link_open", "link_close"}
    assert all(urls.is_http_url(str(child.attrs["href"])) for child in children if child.type == "link_open")
    shown = "".join(child.content for child in children)
    assert "".join(shown.split()) == visible(text)


@given(WORDS, st.one_of(WORDS, WORDS.map("https://a.example/{}".format)))
@settings(max_examples=300, deadline=None)
def test_a_link_leads_to_the_web_or_nowhere(text: str, address: str) -> None:
    written = link(text, address)
    if not written.strip():
        return
    links = [child for child in inline(written) if child.type == "link_open"]
    assert len(links) == urls.is_http_url(address)
    assert all(urls.is_http_url(str(found.attrs["href"])) for found in links)


LINES = st.sampled_from(
    ["BEGIN:VCALENDAR", "END:VCALENDAR", "BEGIN:VTODO", "END:VTODO", "BEGIN:VEVENT", "END:VEVENT",
     "BEGIN:VALARM", "END:VALARM", "UID:1", "SUMMARY:x", "DUE:20261201", "DUE;TZID=A:20269901T990000",
     "COMPLETED:x", "PRIORITY:99", "RRULE:FREQ=DAILY;INTERVAL=0", "CATEGORIES:,,", " folded", "\tfolded", "",
     ":", "X-WR-CALNAME:a", "\ufeff"]
)  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "a.ics"


@given(
    st.one_of(st.lists(LINES, max_size=40).map("\n".join), st.text()).map(str.encode)
    | st.binary(max_size=200)
)
@settings(max_examples=300, deadline=None)
def test_any_file_is_lists_or_one_sentence(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    try:
        for found in read_file(file, UTC, []):
            assert all(isinstance(reminder.title, str) for reminder in found.reminders)
    except SiteError as error:
        assert str(error).startswith(str(file))
