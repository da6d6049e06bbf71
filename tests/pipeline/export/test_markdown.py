"""Plain markdown trees."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from pipeline.export.exporters import export
from pipeline.site import Site

TODAY = date(2026, 1, 1)

MakeSite = Callable[..., Site]


@pytest.mark.parametrize(
    ("path", "front", "keys", "url"),
    [
        ("a.md", "", {}, "https://example.org/a"),
        ("index.md", "", {}, "https://example.org/"),
        ("guide/index.md", "", {}, "https://example.org/guide/"),
        ("guide/README.md", "", {}, "https://example.org/guide/"),
        ("a.md", "", {"trailing_slash": True}, "https://example.org/a/"),
        ("guide/index.md", "", {"trailing_slash": False}, "https://example.org/guide"),
        ("guide/a.md", "", {"keep_extension": True}, "https://example.org/guide/a.md"),
        ("guide/index.md", "", {"keep_extension": True}, "https://example.org/guide/index.md"),
        ("C# notes.md", "", {}, "https://example.org/C%23%20notes"),
        ("guide/a.md", "slug: other", {}, "https://example.org/guide/other"),
        ("guide/a.md", "slug: /top", {}, "https://example.org/top"),
        ("guide/a.md", "url: /exact.html", {}, "https://example.org/exact.html"),
        ("guide/a.md", "url: https://other.org/a?b=1", {}, "https://other.org/a?b=1"),
        ("guide/a.md", "url: 2024", {}, "https://example.org/2024"),
    ],
)
def test_the_address_of_a_page(
    path: str, front: str, keys: dict[str, Any], url: str, make_site: MakeSite
) -> None:
    text = f"---\n{front}\n---\nText" if front else "Text"
    assert [page.url for page in export(make_site("markdown", {path: text}, **keys), TODAY).pages] == [url]


def test_a_readme_beside_an_index_keeps_its_name(make_site: MakeSite) -> None:
    exported = export(make_site("markdown", {"index.md": "Text", "README.md": "Text"}), TODAY)
    assert [page.url for page in exported.pages] == ["https://example.org/README", "https://example.org/"]


def test_the_body_stays_as_it_is_written(make_site: MakeSite) -> None:
    body = "# Title {#custom}\r\n\r\n<b>raw</b> &amp; **bold**  \r\n---\r\n| a | b |"
    assert (
        export(make_site("markdown", {"a.md": f"---\r\ntitle: A\r\n---\r\n{body}"}), TODAY).pages[0].body
        == body
    )
