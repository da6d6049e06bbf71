"""Links from page to page of one site are told from all other text."""

from __future__ import annotations

import pytest

from handler.bundle.links import definitions_by_page, link_definitions, split_links
from handler.bundle.types import Chunk

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
        "[the pond][Pond]",
        "[pond][]",
        "[POND]",
    ],
)
def test_a_link_to_a_page_of_the_site_is_parted(link: str) -> None:
    one_line = link.replace("\n", " ")
    assert split_links(f"See {link}: it has algae.", URL, {"pond": "/pond"}) == (
        "See  : it has algae.",
        one_line,
    )


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
        r"No \[link](/pond) and no [link\](/pond).",
        "No [link] and no [link][to anything], but [far] and [far away][far].",
        "~~~\n[the pond](/pond)\n~~~",
        "`[pond]`",
        "[Note]: the pond has algae.",
        "[pond][^1]",
        "[1]: [A book](https://far.example/) - by somebody",
        "A footnote[^1] and a [reference][pond].",
        "`[the pond](/pond)`",
        "```markdown\n[the pond](/pond)\n```",
        "[^1]: /pond",
        "[the pond](http://[::1)",
        "[the pond (/pond)",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert split_links(text, URL, {"far": "https://far.example/"}) == (text, "")


def test_all_links_are_kept_a_line_each_and_definitions_with_them() -> None:
    text = "- [Pond](/pond): deep\n- [Lake](lake)\n\n[pond]: /pond 'The pond'\n[far]: https://far.example/"
    own, links = split_links(text, URL)
    assert own.split() == ["-", ":", "deep", "-", "[far]:", "https://far.example/"]
    assert links == "[Pond](/pond)\n[Lake](lake)\n[pond]: /pond 'The pond'"


def test_pages_of_files_have_neighbours_too() -> None:
    assert split_links("[b](b.md) [c](mailto:c)", "file:///home/a.md") == ("  [c](mailto:c)", "[b](b.md)")


def test_a_page_defines_its_links_anywhere_but_in_code() -> None:
    text = (
        "[a]: /first\n```\n[b]: /code\n```\n[A]: /second\n[^c]: A note.\n[D  e]: <f g> 'title'\r\n[h]: no one"
    )
    assert link_definitions(text) == {"a": "/first", "d e": "<f g>"}
    chunks = [
        Chunk(f"https://example.org/{name}", "", "", "", (), "", ordinal, text)
        for name, ordinal, text in (
            ("x", 0, "[a]"),
            ("x", 1, "[a]: /x"),
            ("y", 0, "[a]: /y"),
            ("x", 2, "[a]: /z"),
        )
    ]
    assert definitions_by_page((chunk.url, chunk.text) for chunk in chunks) == {
        "https://example.org/x": {"a": "/x"},
        "https://example.org/y": {"a": "/y"},
    }


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 50_000, "[a](" * 50_000, "![a](b)[" * 50_000, "`" * 50_000 + "](", "[a](" + " " * 50_000),
        *(
            "[a](b" + " " * 50_000,
            "[a]" * 50_000,
            "[a][" * 50_000,
            "[a]:\n" * 50_000,
            "~~~\n`" * 20_000 + "[",
        ),
    ],
)
def test_many_marks_take_little_time(text: str) -> None:
    own, links = split_links(text, URL)
    assert own == text or links
