from __future__ import annotations

import pytest

from handler.bundle.search import Hit
from handler.bundle.types import Chunk
from handler.events import Source
from handler.sources import SNIPPET_CHARS, as_read, link, snippet, source_numbers, sources_of


def chunk(text: str = "Text.", title: str = "Pond", heading: tuple[str, ...] = (), anchor: str = "") -> Chunk:
    return Chunk("https://example.org/pond", title, "pond.md", "notes", heading, anchor, 0, text)


def test_a_source_has_its_number_and_its_place_down_to_the_section() -> None:
    hits = [
        Hit(each, 1.0, 0.9, 1.0, 1, 1, "")
        for each in (
            chunk("## Algae\n\nThey are *green*.", heading=("Water", "Algae"), anchor="algae"),
            chunk(),
        )
    ]
    assert sources_of(hits) == (
        Source(1, "Pond", "Water > Algae", "https://example.org/pond#algae", "They are green.", 1),
        Source(2, "Pond", "", "https://example.org/pond", "Text.", 2),
    )


def test_what_has_one_address_is_one_source() -> None:
    chunks = [chunk("First."), chunk("Green.", heading=("Algae",), anchor="algae"), chunk("Second.")]
    hits = [Hit(each, 1.0, 0.9, 1.0, 1, 1, "") for each in (*chunks, chunk("Deep.", anchor="depth"))]
    assert source_numbers(hits) == [1, 2, 1, 3]
    found = [(source.number, source.snippet, source.rank) for source in sources_of(hits)]
    assert found == [(1, "First.", 1), (2, "Green.", 2), (3, "Deep.", 4)]


@pytest.mark.parametrize(
    ("heading", "shown"),
    [(("pond ", "Algae"), "Algae"), (("Pond",), ""), (("Algae", "Pond"), "Algae > Pond")],
)
def test_the_title_is_not_said_again_as_the_first_heading(heading: tuple[str, ...], shown: str) -> None:
    (source,) = sources_of([Hit(chunk(heading=heading), 1.0, 0.9, 1.0, 1, 1, "")])
    assert (source.title, source.heading) == ("Pond", shown)


def test_the_top_of_a_page_has_no_fragment() -> None:
    assert link(chunk()) == "https://example.org/pond"


@pytest.mark.parametrize("text", ["word " * 100, "水" * 500, "A " + "水" * 500])
def test_a_long_snippet_is_cut_where_its_script_allows(text: str) -> None:
    words = snippet(chunk(text))
    assert SNIPPET_CHARS / 2 < len(words) <= SNIPPET_CHARS
    assert words.endswith(" …")
    assert text.startswith(words.removesuffix(" …"))


def test_names_and_snippets_are_one_line_without_control_characters() -> None:
    hits = [Hit(chunk("Green\n\x1b[31mred.\x9b", "A\x00\nB", ("C\u0085",)), 1.0, 0.9, 1.0, 1, 1, "")]
    (source,) = sources_of(hits)
    assert (source.title, source.heading, source.snippet) == ("A B", "C", "Green [31mred.")


def test_quoted_code_is_shown_as_it_stands_and_prose_without_its_markup() -> None:
    text = "Run **it** so:\n\n```sh\nrm *_old_*\n```\n"
    assert as_read(chunk(text), "Run **it** so:") == "Run it so:"
    assert as_read(chunk(text), "rm *_old_*") == "rm *_old_*"
