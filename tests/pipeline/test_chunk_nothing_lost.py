"""What holds of the chunks of any page, tried on pages made up of all kinds of blocks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.coverage import measure, missing_words, pages_of
from handler.bundle.encoder import Encoder
from handler.bundle.passage import passage_text
from pipeline.chunk import MIN_TOKEN_LIMIT, chunk_page
from pipeline.page import AnchorStyle, Page


def count_tokens(text: str) -> int:
    """The most tokens that a tokenizer makes of a text: one a byte, and two special ones."""
    return len("".join(text.split()).encode()) + 2


def count_words(text: str) -> int:
    return len(text.split()) + 2


def page(body: str, style: AnchorStyle, title: str) -> Page:
    return Page("site", "docs", "page.md", "https://example.org/page", title, "", body, style, "0")


LETTERS = st.sampled_from([*"aZ09_éßя東京あ한ไท", "\u0301", "e\u0301", "👍🏽", "👨‍👩‍👧", "न", "ि"])
MARKS = st.sampled_from([*".!?,:;-–…。'\"`*_#|\\<>[](){}~&/=+$%^@", "\u200d", "\ufe0f", "🎉"])
SPACES = st.sampled_from([" ", " ", " ", "  ", "\t", "\n", "\u00a0", "\u2028", "\x0c", "\x85"])
WORD = st.lists(LETTERS, min_size=1, max_size=12).map("".join)
LINE = st.lists(st.one_of(WORD, WORD, MARKS, SPACES, st.just(" ")), max_size=60).map("".join)
ENDLESS = st.builds(lambda unit, n: unit * n, st.one_of(WORD, MARKS, LINE), st.integers(1, 400))
TEXT = st.one_of(LINE, LINE, ENDLESS)
ROW = st.lists(WORD, min_size=1, max_size=6).map(lambda cells: "| " + " | ".join(cells) + " |")


def lines(prefix: str, items: list[str]) -> str:
    return "\n".join(prefix + item for item in items)


BLOCK = st.one_of(
    TEXT,
    st.builds(lambda level, text: "#" * level + " " + text, st.integers(1, 6), LINE),
    st.builds(lambda text, mark: f"{text}\n{mark * 3}", WORD, st.sampled_from("=-")),
    st.builds(
        lambda mark, n, info, code, closed: f"{mark * n}{info}\n{code}\n" + mark * n * closed,
        st.sampled_from("`~"),
        st.integers(3, 5),
        st.sampled_from(["", "py", ' js title="a"']),
        st.lists(TEXT, max_size=30).map("\n".join),
        st.booleans(),
    ),
    st.builds(
        lambda header, rows: "\n".join([header, regex.sub(r"[^|]+", "---", header), *rows]),
        ROW,
        st.lists(ROW, max_size=60),
    ),
    st.builds(
        lines, st.sampled_from(["- ", "1. ", "> ", "  - ", "    ", "> - ", "\t"]), st.lists(TEXT, max_size=30)
    ),
    st.builds(
        lambda head, cells: (
            "<table>" + head + "".join(f"\n<tr><td>{c}</td></tr>" for c in cells) + "\n</table>"
        ),
        st.sampled_from(["", "<thead><tr><th>h</th></tr></thead>", "<tr><th>h</th></tr>"]),
        st.lists(LINE, max_size=40),
    ),
    st.builds(
        lambda text, tag: f"<{tag}>\n{text}\n</{tag}>", TEXT, st.sampled_from(["div", "pre", "h2", "!--"])
    ),
    st.sampled_from(["---", "", "[a]: https://example.org 'title'", "\r", "\r\n", "<!-- open", "```"]),
)
BODY = st.lists(BLOCK, max_size=8).flatmap(
    lambda blocks: st.sampled_from(["\n\n", "\n", "\r\n\r\n", "\r"]).map(lambda end: end.join(blocks))
)
STYLE = st.sampled_from(["github", "hugo", "kramdown", "zola", "none"])


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    body=BODY,
    style=STYLE,
    title=TEXT,
    limit=st.sampled_from([(count_tokens, 384), (count_tokens, 512), (count_words, MIN_TOKEN_LIMIT)]),
)
def test_all_words_are_in_chunks_that_keep_the_limits(
    body: str, style: AnchorStyle, title: str, limit: tuple[Callable[[str], int], int]
) -> None:
    made = page(body, style, title)
    count, max_tokens = limit
    chunks = chunk_page(made, count, max_tokens)
    assert missing_words(body, chunks) == []
    assert bool(chunks) or not regex.search(r"\w", body)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert chunk.text.strip()
        assert len(chunk.text) <= 1500
        assert count(chunk.text) <= max_tokens
        assert count(passage_text(title, chunk.heading, chunk.text)) <= max_tokens
    assert chunk_page(made, count, max_tokens) == chunks


def test_all_words_of_real_sites_are_in_chunks(tiny_encoder: Encoder) -> None:
    corpora = os.environ.get("RALPH_CORPORA")
    if not corpora:
        pytest.skip("RALPH_CORPORA names no folder of sites")
    for folder in sorted(path for path in Path(corpora).iterdir() if path.is_dir()):
        counts = measure(pages_of(folder), tiny_encoder.count_tokens, tiny_encoder.spec.max_tokens)
        assert (counts["missing words"], counts["too long"]) == (0, 0)
