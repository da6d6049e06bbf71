"""Addresses as each generator makes them."""

from __future__ import annotations

import pytest

from pipeline import urls

BASE = "https://example.org/til/"


@pytest.mark.parametrize(
    ("path", "trailing_slash", "url"),
    [
        ("docs/a", True, "https://example.org/til/docs/a/"),
        ("docs/a/", False, "https://example.org/til/docs/a"),
        ("docs/a/", None, "https://example.org/til/docs/a/"),
        ("/docs//a", None, "https://example.org/til/docs/a"),
        ("", True, "https://example.org/til/"),
        ("/", False, "https://example.org/til/"),
        ("a.html", True, "https://example.org/til/a.html"),
        ("wordpress-6.3", True, "https://example.org/til/wordpress-6.3/"),
        ("../../etc/passwd", None, "https://example.org/til/etc/passwd"),
        ("a?p=1", True, "https://example.org/til/a/?p=1"),
    ],
)
def test_join_stays_below_the_base_url(path: str, trailing_slash: bool | None, url: str) -> None:
    assert urls.join(BASE, path, trailing_slash) == url


def test_file_names_are_quoted_but_letters_of_any_script_stay() -> None:
    assert urls.quote_path("docs/C# 100%.md") == "docs/C%23%20100%25.md"
    assert urls.quote_path("françoise/折り紙") == "françoise/折り紙"


def test_addresses_that_are_already_quoted_are_not_quoted_twice() -> None:
    assert urls.quote_address("/a%20b/é c?x=1#d") == "/a%20b/é%20c?x=1#d"
    assert urls.quote_address("/100%/") == "/100%25/"


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "/a", "//host/a", "https://", "https://a b/", "ftp://h/", ""]
)
def test_what_is_no_http_address_is_told(url: str) -> None:
    assert not urls.is_http_url(url)


@pytest.mark.parametrize(
    ("name", "stripped"),
    [
        ("01-intro", "intro"),
        ("1. Guide", "Guide"),
        ("003 - my doc", "my doc"),
        ("2024-05-01-news", "2024-05-01-news"),
        ("2024-05-news", "2024-05-news"),
        ("8.0-rc", "8.0-rc"),
        ("7_2_1", "7_2_1"),
        ("404", "404"),
        ("2024-roundup", "roundup"),
        ("intro-01", "intro-01"),
    ],
)
def test_number_prefixes_are_stripped_but_dates_and_versions_stay(name: str, stripped: str) -> None:
    assert urls.strip_number_prefix(name) == stripped


@pytest.mark.parametrize(
    ("path", "doc_id", "slug", "expected"),
    [
        ("intro.md", None, None, "/intro"),
        ("index.md", None, None, "/"),
        ("guide/index.mdx", None, None, "/guide/"),
        ("guide/README.md", None, None, "/guide/"),
        ("guide/ReadMe.md", None, None, "/guide/"),
        ("guide/Guide.md", None, None, "/guide/"),
        ("01-guide/02-intro.md", None, None, "/guide/intro"),
        ("01-guide/01-guide.md", None, None, "/guide/"),
        ("01-guide/guide.md", None, None, "/guide/guide"),
        ("guide/intro.md", "start", None, "/guide/start"),
        ("guide/guide.md", "start", None, "/guide/"),
        ("guide/intro.md", "start", "begin", "/guide/begin"),
        ("guide/intro.md", None, "/top", "/top"),
        ("guide/intro.md", None, "/", "/"),
        ("guide/intro.md", None, "../up", "/up"),
        ("guide/intro.md", None, "./same/", "/guide/same/"),
        ("guide/index.md", None, "begin", "/guide/begin"),
        ("db/MariaDB.md", None, None, "/db/MariaDB"),
    ],
)
def test_docs_have_the_slugs_of_docusaurus(
    path: str, doc_id: str | None, slug: str | None, expected: str
) -> None:
    assert urls.docusaurus_doc_slug(path, doc_id, slug) == expected


@pytest.mark.parametrize(
    ("path", "slug", "expected"),
    [
        ("2024-05-01-hello.md", None, "/2024/05/01/hello"),
        ("2024-05-01-hello/index.mdx", None, "/2024/05/01/hello"),
        ("2024/05/01/hello.md", None, "/2024/05/01/hello"),
        ("2024/05-01-hello.md", None, "/2024/05/01/hello"),
        ("2024-05-01.md", None, "/2024/05/01/"),
        ("team/2024-05-01-hello.md", None, "/2024/05/01/team/hello"),
        ("2023/2023-05-01-posts.md", None, "/2023/05/01/2023/posts"),
        ("about-us.md", None, "/about-us"),
        ("about-us/index.md", None, "/about-us"),
        ("2024-05-01-hello.md", "greetings", "greetings"),
        ("2024-05-01-hello.md", "/greetings", "/greetings"),
    ],
)
def test_posts_have_the_slugs_of_docusaurus(path: str, slug: str | None, expected: str) -> None:
    assert urls.docusaurus_blog_slug(path, slug) == expected


def test_hugo_paths_are_lower_case_and_clean() -> None:
    assert urls.hugo_path("Posts/My First Post!") == "posts/my-first-post"
    assert urls.hugo_path("commands/hugo_mod_tidy") == "commands/hugo_mod_tidy"
    assert urls.hugo_path("über/折り紙") == "über/折り紙"


def test_zola_slugs_are_ascii() -> None:
    assert urls.zola_slug("Über C++ & Co.") == "uber-c-co"
    assert urls.zola_slug("折り紙") == "折り紙"


def test_permalink_patterns_are_filled_in() -> None:
    values = {"year": "2024", "slug": "a", "slugorfilename": "b", "categories": ""}
    assert (
        urls.expand_permalink("/:categories/:year/:slug/:slugorfilename/:unknown", values)
        == "/2024/a/b/:unknown"
    )
