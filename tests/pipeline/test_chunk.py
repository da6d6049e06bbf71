from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import regex

from benchmarks.coverage import missing_words
from handler.bundle.passage import passage_text
from handler.bundle.types import Chunk
from pipeline.chunk import chunk_page, chunk_pages, read_chunks, write_chunks
from pipeline.page import AnchorStyle, Page

MAX_TOKENS = 512


def count_tokens(text: str) -> int:
    """Pieces of words of up to four characters, single marks, and two special tokens."""
    return len(regex.findall(r"\w{1,4}|[^\w\s]", text)) + 2


def page(body: str, *, style: AnchorStyle = "github", path: str = "page.md", title: str = "Title") -> Page:
    return Page("site", "docs", path, f"https://example.org/{path}", title, "", body, style, "0")


def chunks_of(body: str, *, max_tokens: int = MAX_TOKENS, title: str = "Title") -> list[Chunk]:
    """The chunks, after the checks that hold for those of every page."""
    chunks = chunk_page(page(body, title=title), count_tokens, max_tokens)
    assert missing_words(body, chunks) == []
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert chunk.text.strip()
        assert len(chunk.text) <= 1500
        assert count_tokens(chunk.text) <= max_tokens
        assert count_tokens(passage_text(title, chunk.heading, chunk.text)) <= max_tokens
    return chunks


def words(n: int, stem: str = "word") -> str:
    return " ".join(f"{stem}{i}" for i in range(n))


PROSE = "This is a paragraph that is long enough to stand for itself."


# Sections


def test_a_page_is_split_on_its_headings_and_each_chunk_begins_with_its_own() -> None:
    chunks = chunks_of(f"# A\n\n{PROSE}\n\n## B\n\n{PROSE}\n\n### C\n\n{PROSE}\n\n## D\n\n{PROSE}")
    assert [(chunk.heading, chunk.anchor) for chunk in chunks] == [
        (("A",), "a"), (("A", "B"), "b"), (("A", "B", "C"), "c"), (("A", "D"), "d"),
    ]  # fmt: skip
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["# A", "## B", "### C", "## D"]


def test_prose_before_the_first_heading_is_the_first_chunk() -> None:
    first, second = chunks_of(f"{PROSE}\n\n# A\n\n{PROSE}")
    assert (first.ordinal, first.heading, first.anchor, first.text) == (0, (), "", PROSE)
    assert second.heading == ("A",)


def test_headings_without_text_go_with_the_next_section() -> None:
    (chunk,) = chunks_of(f"# A\n\n## B\n\n### C\n\n{PROSE}")
    assert chunk.text == f"# A\n\n## B\n\n### C\n\n{PROSE}"
    assert (chunk.heading, chunk.anchor) == (("A", "B", "C"), "c")


def test_a_heading_at_the_end_of_the_page_is_kept() -> None:
    (chunk,) = chunks_of(f"# A\n\n{PROSE}\n\n## See also")
    assert chunk.text.endswith("## See also")


def test_headings_keep_their_hashes_and_lose_their_markup() -> None:
    (chunk,) = chunks_of(f"## C# and `F#` *now* [here](https://example.org) {{#sharp}}\n\n{PROSE}")
    assert (chunk.heading, chunk.anchor) == (("C# and F# now here",), "sharp")


def test_an_empty_heading_ends_the_section_before() -> None:
    first, second = chunks_of(f"# A\n\n## B\n\n{PROSE}\n\n##\n\n{PROSE}")
    assert first.heading == ("A", "B")
    assert (second.heading, second.anchor) == (("A",), "a")


def test_setext_headings_are_headings() -> None:
    first, second = chunks_of(f"A\n===\n\n{PROSE}\n\nB\n---\n\n{PROSE}")
    assert (first.heading, second.heading) == (("A",), ("A", "B"))
    assert second.text.startswith("B\n---\n")


def test_raw_html_headings_are_headings() -> None:
    first, second = chunks_of(
        f'<h2 id="x">One &amp; <b>two</b></h2>\n<p>{PROSE}</p>\n<h3>Three</h3>\n\n{PROSE}'
    )
    assert (first.heading, first.anchor) == (("One & two",), "x")
    assert (second.heading, second.anchor) == (("One & two", "Three"), "x")


def test_headings_never_closed_are_text_and_take_linear_time() -> None:
    text = "<h1>" * 20_000
    assert "".join(chunk.text for chunk in chunks_of(text)) == text


def test_small_fragments_join_a_neighbour() -> None:
    assert len(chunks_of(f"# A\n\n{PROSE}\n\n## Licence\n\nMIT\n\n## B\n\n{PROSE}")) == 2
    assert len(chunks_of(f"Hello.\n\n# A\n\n{PROSE}")) == 1
    assert len(chunks_of("# A\n\nx\n\n# B\n\ny\n\n# C\n\nz")) == 1


def test_a_chunk_of_two_sections_goes_by_the_place_of_the_longer() -> None:
    (chunk,) = chunks_of(f"Hello.\n\n# A\n\n{PROSE}")
    assert chunk.anchor == "a"
    (chunk,) = chunks_of(f"# A\n\n{PROSE}\n\n# B\n\nShort.")
    assert chunk.anchor == "a"


def test_every_page_that_is_not_blank_has_a_chunk() -> None:
    assert [chunk.text for chunk in chunks_of("🎉")] == ["🎉"]
    assert [chunk.text for chunk in chunks_of("# Title only")] == ["# Title only"]
    assert [chunk.text for chunk in chunks_of("[a]: https://example.org")] == ["[a]: https://example.org"]
    assert chunks_of("") == chunks_of(" \n\n\t\n") == []


# Code


@pytest.mark.parametrize(
    "code",
    [
        "```sh\n# comment\n```",
        "~~~\n# comment\n```\n# comment\n~~~",
        "````md\n```\n# comment\n```\n````",
        "```\n# comment\n``````",
        "   ```\n   # comment\n   ```",
        "- item\n\n  ```\n  # comment\n  ```",
        "> ```\n> # comment\n> ```",
        "    # comment",
        "\t# comment",
        "```\n# comment\n\n# comment",
        "<pre>\n# comment\n\n</pre>",
        "<!--\n# comment\n-->",
        "\\# comment",
    ],
)
def test_a_comment_in_code_is_not_a_heading(code: str) -> None:
    chunks = chunks_of(f"# A\n\n{PROSE}\n\n{code}")
    assert {chunk.heading for chunk in chunks} == {("A",)}


@pytest.mark.parametrize("body", [">\n>```", ">\n> ```js\n> x = 1\n> ```\n", "-\n  ~~~\n  x = 1\n  ~~~\n"])
def test_a_fence_may_stand_below_an_empty_line_of_its_quote_or_item(body: str) -> None:
    assert [chunk.text for chunk in chunks_of(body)] == [body.strip()]


def test_a_long_fence_below_an_empty_line_of_its_quote_is_split() -> None:
    chunks = chunks_of(">\n> ```js\n" + "> a line of code\n" * 200 + "> ```\n")
    assert len(chunks) > 1
    for chunk in chunks:
        assert chunk.text.startswith("> ```js\n> a line of code\n")
        assert chunk.text.endswith("\n> ```")


def test_a_heading_after_a_closed_fence_is_a_heading() -> None:
    chunks = chunks_of(f"# A\n\n{PROSE}\n\n```\n# comment\n```\n# B\n\n{PROSE}")
    assert [chunk.heading for chunk in chunks] == [("A",), ("B",)]


def test_a_fence_that_fits_is_whole() -> None:
    code = "\n".join(f"line{i} = {i}" for i in range(50))
    chunks = chunks_of(f"# A\n\n{words(150)}\n\n```py\n{code}\n```\n\n{words(150)}")
    assert any(f"```py\n{code}\n```" in chunk.text for chunk in chunks)


@pytest.mark.parametrize("closing", ["~~~~", "~~~~~~", ""])
def test_a_long_fence_is_split_at_line_ends_and_fenced_again(closing: str) -> None:
    code = [f"line_{i} = {i}  # comment" for i in range(200)]
    chunks = chunks_of('# A\n\n~~~~py title="a.py"\n' + "\n".join(code) + f"\n{closing}")
    assert len(chunks) > 3
    kept = []
    for chunk in chunks:
        head, *rows, tail = chunk.text.removeprefix("# A\n\n").split("\n")
        assert head == '~~~~py title="a.py"'
        assert tail == (closing or "~~~~")
        kept += rows
    assert kept == code


def test_a_long_fence_in_a_list_keeps_its_place() -> None:
    code = "\n".join(f"  line_{i} = {i}" for i in range(300))
    chunks = chunks_of(f"- ```py\n{code}\n  ```\n- {PROSE}")
    assert all(chunk.text.startswith("- ```py\n  line") for chunk in chunks[:-1])


def test_code_that_is_one_endless_line_is_split() -> None:
    line = "x=1;" * 2000
    chunks = chunks_of(f"```js\n{line}\n```")
    assert all(chunk.text.startswith("```js\n") and chunk.text.endswith("\n```") for chunk in chunks)
    assert "".join(chunk.text[6:-4] for chunk in chunks) == line


# Tables and lists


HEADER = "| Name | Value |\n|:-----|------:|"


def test_a_long_table_is_split_between_rows_and_repeats_its_header() -> None:
    rows = [f"| name {i} | a \\| b {i} |" for i in range(200)]
    chunks = chunks_of("# A\n\n" + HEADER + "\n" + "\n".join(rows))
    assert len(chunks) > 3
    kept = []
    for chunk in chunks:
        text = chunk.text.removeprefix("# A\n\n")
        assert text.startswith(HEADER + "\n")
        kept += text.split("\n")[2:]
    assert kept == rows


def test_a_row_longer_than_a_chunk_is_split_and_nothing_of_it_lost() -> None:
    chunks = chunks_of(f"{HEADER}\n| a | {words(800)} |\n| b | c |")
    assert len(chunks) > 3
    assert all(chunk.text.startswith(HEADER) for chunk in chunks)


def test_a_table_whose_header_is_longer_than_a_chunk_is_split_as_text() -> None:
    header = "|" + "|".join(f" column{i} " for i in range(300)) + "|\n|" + "---|" * 300
    chunks_of(f"{header}\n" + "|" + "|".join(f" cell{i} " for i in range(300)) + "|")


def test_an_html_table_is_split_between_rows_and_repeats_all_its_header_rows() -> None:
    head = "<table>\n<thead>\n<tr><th>Name</th></tr>\n<tr><th>Unit</th></tr>\n</thead>\n<tbody>"
    rows = "\n".join(f"<tr><td>name {i}</td></tr>" for i in range(150))
    chunks = chunks_of(f"{head}\n{rows}\n</tbody>\n</table>")
    assert len(chunks) > 3
    for chunk in chunks:
        assert chunk.text.startswith(
            "<table>\n<thead>\n<tr><th>Name</th></tr>\n<tr><th>Unit</th></tr>\n</thead>"
        )
        assert chunk.text.endswith("</table>")


def test_a_list_that_fits_stays_in_one_piece() -> None:
    items = "\n".join(f"- item {i}" for i in range(60))
    chunks = chunks_of(f"# A\n\n{words(140)}\n\n{items}\n\n{words(140)}")
    assert sum(items in chunk.text for chunk in chunks) == 1


def test_a_long_list_is_split_between_items() -> None:
    chunks = chunks_of("\n".join(f"- item {i}: {PROSE}" for i in range(100)))
    assert len(chunks) > 3
    for before, after in pairwise(chunks):
        assert before.text.endswith("for itself.")
        assert after.text.startswith("- item")


# Long text


def test_an_overlap_of_at_most_150_characters_begins_at_a_border() -> None:
    body = " ".join(f"This is sentence number {i} of them." for i in range(200))
    chunks = chunks_of(body)
    assert len(chunks) > 3
    for before, after in pairwise(chunks):
        overlap = next(n for n in range(len(after.text), -1, -1) if before.text.endswith(after.text[:n]))
        assert 0 < overlap <= 150
        assert after.text.startswith("This is")


def test_there_is_no_overlap_between_sections_nor_out_of_code_or_tables() -> None:
    code = "\n".join(f"line_{i} = {i}" for i in range(300))
    for chunk in chunks_of(f"# A\n\n{words(100, 'first')}\n\n# B\n\n```\n{code}\n```\n\n{PROSE}")[1:]:
        assert "first" not in chunk.text
        assert chunk.text.startswith(("# B", "```\nline", PROSE))


def test_text_is_split_after_sentences_where_it_can_be() -> None:
    for chunk in chunks_of(" ".join(f"Sentence {words(12)} {i}." for i in range(100))):
        assert chunk.text.endswith(".")


def test_chinese_and_japanese_are_split_after_sentences_too() -> None:
    chunks = chunks_of("これは長い文章です。" * 500)
    assert len(chunks) > 3
    assert all(chunk.text.endswith("。") and chunk.text.startswith("これ") for chunk in chunks)


@pytest.mark.parametrize(
    "line",
    [
        "x" * 65_000,
        "lorem ipsum " * 5_500,
        "aGVsbG8gd29ybGQ/+" * 4_000,
        "function(a){return a.b&&c[d]};" * 2_200,
        "ภาษาไทย" * 9_000,
        "# " + "x " * 32_000,
        "> " * 2_000 + "deep",
        "[" * 20_000 + "x",
        "*a **b " * 5_000,
        " " * 65_000 + "x",
        "|" * 20_000 + "x",
    ],
    ids=range(11),
)
def test_an_endless_line_is_split(line: str) -> None:
    chunks_of(line)


@pytest.mark.parametrize("grapheme", ["👨‍👩‍👧‍👦", "e\u0301", "🇩🇪", "\u1100\u1161\u11a8", "क्षि", "👍🏽", "नि"])
def test_no_grapheme_is_split(grapheme: str) -> None:
    for shift in range(3):
        chunks = chunks_of("a" * shift + (grapheme * 9 + "b") * 300)
        assert len(chunks) > 1
        parts = {part for chunk in chunks for part in regex.findall(r"\X", chunk.text)}
        assert parts <= {"a", "b", *regex.findall(r"\X", grapheme)}


def test_a_single_grapheme_longer_than_a_chunk_is_split_all_the_same() -> None:
    chunks = chunks_of("a" + "\u0301" * 5000)
    assert sum(len(chunk.text) for chunk in chunks) == 5001


def test_only_newlines_and_carriage_returns_end_lines() -> None:
    body = f"# A\x0c# B\u2028# C\x85# D\n\n{PROSE}\r\r# E\r\n\r\n{PROSE}"
    first, second = chunks_of(body)
    assert first.text.startswith("# A\x0c# B\u2028# C\x85# D\n\n")
    assert (second.heading, second.text) == (("E",), f"# E\n\n{PROSE}")


def test_a_nul_is_replaced() -> None:
    assert chunks_of(f"a\0b {PROSE}")[0].text.startswith("a\ufffdb")


@pytest.mark.parametrize("max_tokens", [192, 256, 512])
def test_long_titles_and_headings_leave_room_for_the_text(max_tokens: int) -> None:
    heading = words(200, "heading")
    for title in (words(500, "title"), "題" * 3000, "!" * 3000):
        chunks = chunks_of(
            f"# {heading}\n\n## {heading}\n\n{words(2000)}", max_tokens=max_tokens, title=title
        )
        assert len(chunks) < 150


def test_a_token_limit_too_small_for_any_text_is_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens: 64 is too few"):
        chunk_page(page(PROSE), count_tokens, 64)


def test_a_huge_page_is_parsed_in_slabs_without_a_seam() -> None:
    section = f"## Part\n\n{PROSE}\n\n- one\n- two\n\n```\n# comment\n\n# comment\n```\n\n"
    chunks = chunk_page(page(section * 5000), lambda _: 1, MAX_TOKENS)
    assert len(chunks) == 5000
    assert {chunk.text for chunk in chunks} == {section.strip()}


def test_a_fence_longer_than_a_slab_is_one_fence() -> None:
    code = "# comment\n\n" * 100_000
    chunks = chunk_page(page(f"# A\n\n````\n{code}````\n\n# B\n\n{PROSE}"), lambda _: 1, MAX_TOKENS)
    assert {chunk.heading for chunk in chunks} == {("A",), ("B",)}
    assert all(chunk.text.endswith("\n````") for chunk in chunks[:-1])


# Pages and files


def test_chunks_carry_where_they_are_from() -> None:
    (chunk,) = chunk_page(page(PROSE, path="a/b.md"), count_tokens, MAX_TOKENS)
    assert (chunk.url, chunk.title, chunk.path, chunk.collection) == (
        "https://example.org/a/b.md", "Title", "a/b.md", "docs",
    )  # fmt: skip


def test_written_chunks_are_the_same_bytes_in_any_order_and_read_back_equal(tmp_path: Path) -> None:
    pages = [page(f"# A\u2028B\n\n{words(600)} 🎉", path=path) for path in ("b.md", "a.md")]
    chunks = list(chunk_pages(pages, count_tokens, MAX_TOKENS))
    write_chunks(chunks, tmp_path / "one.jsonl")
    write_chunks(reversed(chunks), tmp_path / "two.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    read = read_chunks(tmp_path / "one.jsonl")
    assert read == sorted(chunks, key=lambda chunk: (chunk.path, chunk.ordinal))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.jsonl", "two.jsonl"]
