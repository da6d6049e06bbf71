"""Links from page to page of one site are told from all other text."""

from __future__ import annotations

import pytest

from handler.bundle.links import split_links

URL = "https://example.org/notes/garden/"


@pytest.mark.parametrize(
    "link",
    [
        "[the pond](/notes/pond)",
        "[the pond](../pond.md)",
        "[the pond](#pond)",
        "[the pond](?page=2)",
        "[the pond](https://example.org/pond/ 'A title')",
        "[the pond](http://example.org/pond.html)",
        "[the pond](<my pond>)",
        "[the pond](/pond_(water))",
        "[](/pond)",
        "[![a pond](/img/pond.jpg)](/pond)",
        "[`pond()`](/pond)",
        "[the\npond](/pond)",
    ],
)
def test_a_link_to_a_page_of_the_site_is_parted(link: str) -> None:
    assert split_links(f"See {link}, it has algae.", URL) == ("See  , it has algae.", link)


@pytest.mark.parametrize(
    "text",
    [
        "See [the pond](https://ponds.example/).",
        "See [the pond](https://www.example.org.evil/).",
        "See [the pond](mailto:pond@example.org).",
        "See [the pond](//ponds.example/x).",
        "Get [the plan](/files/plan.pdf).",
        "![the pond](/img/pond)",
        "![the pond](/notes/pond.md)",
        r"No \[link](/pond).",
        "A footnote[^1] and a [reference][pond].",
        "`[the pond](/pond)`",
        "```markdown\n[the pond](/pond)\n```",
        "[^1]: /pond",
        "[the pond](http://[::1)",
        "[the pond (/pond)",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert split_links(text, URL) == (text, "")


def test_all_links_are_kept_a_line_each_and_definitions_with_them() -> None:
    text = "- [Pond](/pond): deep\n- [Lake](lake)\n\n[pond]: /pond 'The pond'\n[far]: https://far.example/"
    own, links = split_links(text, URL)
    assert own.split() == ["-", ":", "deep", "-", "[far]:", "https://far.example/"]
    assert links == "[Pond](/pond)\n[Lake](lake)\n[pond]: /pond 'The pond'"


def test_pages_of_files_have_neighbours_too() -> None:
    assert split_links("[b](b.md) [c](mailto:c)", "file:///home/a.md") == ("  [c](mailto:c)", "[b](b.md)")


@pytest.mark.parametrize("text", ["[" * 50_000, "[a](" * 50_000, "![a](b)[" * 50_000, "`" * 50_000 + "]("])
def test_many_marks_take_little_time(text: str) -> None:
    own, links = split_links(text, URL)
    assert own == text or links
