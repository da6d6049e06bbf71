"""HTML pages: the main part as markdown, nothing of it lost, nothing of the site's furniture kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from pipeline.export.exporters import export
from pipeline.export.html_text import decode_html, html_to_markdown, main_markdown
from pipeline.site import Site, SiteError

TODAY = date(2026, 1, 1)

MakeSite = Callable[..., Site]
PAGE = Path(__file__).parents[2] / "data" / "sites" / "page.html"

MAIN = """\
# Setting up nginx

How to set up nginx on a small server, with `ufw_rules` and a [certificate](/certs). It takes
an afternoon to do this well.

## Install it {#install-it}

```bash
sudo apt-get update
sudo apt-get install nginx   # two spaces
if true; then
    echo "<b>"
fi
```

## Ports {#ports}

| Name | Port |
| --- | --- |
| ssh | 22 |
| http | 80 |

### Steps {#steps}

3. third
   - nested
4. fourth

> A quoted sentence stands here.

**upstream**
the server behind

A callout inside of the article.
More about it

Folded words are words too.

![a diagram of it](diagram.png)

The second tab has words.

Short.
"""


def html(body: str, head: str = "") -> str:
    return f"<html><head><title>T</title>{head}</head><body>{body}</body></html>"


def test_the_main_part_of_a_page_is_kept_whole_and_its_furniture_goes() -> None:
    assert main_markdown(PAGE.read_text(encoding="utf-8")) == MAIN


def test_title_description_and_canonical_address_are_taken_from_the_page(make_site: MakeSite) -> None:
    page = export(make_site("html", {"nginx.html": PAGE.read_bytes()}), TODAY).pages[0]
    assert page.title == "Setting up nginx"
    assert page.description == "How nginx is set up."
    assert page.url == "https://example.org/guides/nginx/"


@pytest.mark.parametrize(
    ("path", "trailing_slash", "url"),
    [
        ("about.html", None, "https://example.org/about.html"),
        ("about.html", True, "https://example.org/about/"),
        ("about.htm", False, "https://example.org/about"),
        ("guide/index.html", None, "https://example.org/guide/"),
        ("a b.html", None, "https://example.org/a%20b.html"),
    ],
)
def test_the_address_of_a_file(path: str, trailing_slash: bool | None, url: str, make_site: MakeSite) -> None:
    site = make_site("html", {path: html("<p>Text</p>")}, trailing_slash=trailing_slash)
    assert [page.url for page in export(site, TODAY).pages] == [url]


def test_noindex_redirects_and_empty_pages_are_left_out(make_site: MakeSite) -> None:
    files = {
        "a.html": html("<p>secret</p>", '<meta name="ROBOTS" content="NOINDEX, follow">'),
        "b.html": html("", '<meta http-equiv="Refresh" content="0; url=/a.html">'),
        "c.html": "",
    }
    assert {e.path: e.reason for e in export(make_site("html", files), TODAY).exclusions} == {
        "a.html": "noindex",
        "b.html": "a redirect",
        "c.html": "empty",
    }


def test_copies_of_a_canonical_page_are_one_page(make_site: MakeSite) -> None:
    link = '<link rel="canonical" href="https://example.org/a.html">'
    files = {"a.html": html("<p>Text</p>", link), "print/a.html": html("<p>Text</p>", link)}
    exported = export(make_site("html", files), TODAY)
    assert [page.path for page in exported.pages] == ["a.html"]
    assert [e.reason for e in exported.exclusions] == ["its canonical page is https://example.org/a.html"]


def test_two_pages_that_claim_one_address_are_an_error(make_site: MakeSite) -> None:
    link = '<link rel="canonical" href="https://example.org/c.html">'
    with pytest.raises(SiteError, match=r"a\.html and b\.html have one URL"):
        export(make_site("html", {"a.html": html("<p>A</p>", link), "b.html": html("<p>B</p>", link)}), TODAY)


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("<p>café</p>".encode(), None),
        ('<meta charset="iso-8859-1"><p>café</p>'.encode("latin-1"), None),
        ("<p>café</p>".encode("utf-16"), None),
        ("<p>café</p>".encode("cp1252"), "windows-1252"),
    ],
)
def test_charsets_are_told_by_header_mark_and_meta(data: bytes, charset: str | None) -> None:
    assert "café" in decode_html(data, charset)


def test_a_page_without_main_or_headings_keeps_its_text() -> None:
    text = "".join(f"<p>Paragraph {n} has a few plain words in it.</p>" for n in range(9))
    markdown = main_markdown(html(f'<form><div class="has-toc">{text}</div></form>'))
    assert all(f"Paragraph {n} has" in markdown for n in range(9))


def test_words_with_underscores_and_stars_are_not_escaped() -> None:
    assert html_to_markdown("<p>snake_case and 2*3</p>") == "snake_case and 2*3\n"


@pytest.mark.parametrize(
    "meta",
    [
        '<META NAME=" Robots " CONTENT="NOFOLLOW, NOINDEX">',
        '<meta name="bingbot" content="none">',
        '<meta property="robots" content="noindex">',
        '<meta http-equiv="X-Robots-Tag" content="noindex">',
        '<meta name="robots" content="all"><meta name="googlebot" content="noindex">',
    ],
)
def test_every_way_to_say_noindex_leaves_a_page_out(meta: str, make_site: MakeSite) -> None:
    site = make_site(
        "html", {"a.html": f"<html><head>{meta}<title>A</title></head><body>secret</body></html>"}
    )
    assert export(site, TODAY).pages == ()


def test_a_page_is_called_after_the_heading_of_its_main_part_where_the_site_has_one_too(
    make_site: MakeSite,
) -> None:
    html = (
        "<title>Glazes | Pottery</title><header><h1>Pottery</h1></header>"
        "<main><h1>Glazes</h1><p>Celadon is fired at 1280 degrees.</p></main>"
    )
    (page,) = export(make_site("html", {"glazes.html": html}), TODAY).pages
    assert page.title == "Glazes"


def test_the_page_that_stands_for_missing_ones_is_no_page(make_site: MakeSite) -> None:
    exported = export(make_site("html", {"404.html": "<p>Nothing here</p>"}), TODAY)
    assert [(each.path, each.reason) for each in exported.exclusions] == [("404.html", "an error page")]


def test_partials_are_no_pages(make_site: MakeSite) -> None:
    files = dict.fromkeys(["_part.html", "_parts/a.html", "b.html"], "<title>A</title><p>Text</p>")
    assert [page.path for page in export(make_site("html", files), TODAY).pages] == ["b.html"]


@pytest.mark.parametrize("tags", [("div",), ("ul", "li"), ("b",), ("blockquote",)])
def test_elements_nested_a_thousand_deep_keep_every_word(tags: tuple[str, ...]) -> None:
    opening = "".join(f"<{tag}>" for tag in tags)
    text = "".join(f"{opening}word{i} " for i in range(1000))
    markdown = main_markdown(f"<title>T</title><main><p>Before.</p>{text}</main>")
    assert sorted(re.findall(r"word\d+", markdown)) == sorted(f"word{i}" for i in range(1000))


def test_a_short_paragraph_beside_the_body_of_an_article_is_kept() -> None:
    body = "".join(
        f"<p>Sentence number {i} of a long text about the garden and its pond.</p>" for i in range(99)
    )
    html = f"<body><article><p>Before it all.</p><div>{body}</div><p>After it all.</p></article></body>"
    markdown = main_markdown(html)
    assert markdown.startswith("Before it all.")
    assert markdown.endswith("After it all.\n")
