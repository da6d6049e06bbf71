"""Which language pages say they are in, and those of others left out when site.toml names one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from pipeline.export.exporters import export
from pipeline.export.pages import format_report, make_report
from pipeline.export.types import Export
from pipeline.site import Site

TODAY = date(2026, 1, 1)

MakeSite = Callable[..., Site]


def exported(make_site: MakeSite, kind: str, files: dict[str, str], **keys: Any) -> Export:
    return export(make_site(kind, files, **keys), TODAY)


def lines(found: Export) -> list[str]:
    return format_report(make_report(found)).splitlines()


def markdown(meta: str) -> str:
    return f"---\ntitle: T\n{meta}\n---\nText\n"


@pytest.mark.parametrize(
    ("meta", "language"),
    [
        ("lang: de", "de"),
        ("language: de-AT", "de"),
        ("locale: de_DE", "de"),
        ("Lang: DE", "de"),
        ("lang: 'no'", "no"),
        ("lang: no", "no"),
        ("params: {lang: de}", "de"),
        ("extra:\n  language: de", "de"),
        ("lang: German\nlocale: de_DE", "de"),
        ("lang: German", None),
        ("language: python", None),
        ("lang: [de, en]", None),
        ("lang:", None),
        ("", None),
    ],
)
def test_front_matter_says_the_language_of_a_page(
    meta: str, language: str | None, make_site: MakeSite
) -> None:
    found = exported(make_site, "markdown", {"a.md": markdown(meta)})
    assert found.languages == ({"a.md": language} if language else {})


HTML = "<html{0}><head><title>T</title></head><body><p>Text of the page.</p></body></html>"
HUGO = "[languages.en]\n[languages.de]\n"
OWN_FOLDERS = '[languages.en]\ncontentDir = "content"\n[languages.de]\ncontentDir = "content/german"\n'


@pytest.mark.parametrize(
    ("kind", "files", "options", "languages"),
    [
        ("html", {"a.html": HTML.format(' lang="de-CH"'), "b.html": HTML.format("")}, {}, {"a.html": "de"}),
        ("html", {"a.html": HTML.format(' lang="{{ lang }}"')}, {}, {}),
        ("html", {"a.html": HTML.format(' xml:lang="de"')}, {}, {"a.html": "de"}),
        ("jekyll", {"_posts/2020-01-01-a.md": markdown("lang: de")}, {}, {"_posts/2020-01-01-a.md": "de"}),
        ("jekyll", {"a.html": f"---\nlayout: null\n---\n{HTML.format(' lang=de')}"}, {}, {"a.html": "de"}),
        ("jekyll", {"a.html": f"---\nlang: en\n---\n{HTML.format(' lang=de')}"}, {}, {"a.html": "en"}),
        (
            "jekyll",
            {
                "_config.yml": "defaults: [{scope: {path: de}, values: {lang: de}}]",
                "de/a.md": markdown(""),
                "a.md": markdown(""),
            },
            {},
            {"de/a.md": "de"},
        ),
        (
            "hugo",
            {"content/a.md": "Text", "content/a.fr.md": "Text", "content/v1.2.md": "Text"},
            {"languages": ["fr"]},
            {"content/a.md": "en", "content/a.fr.md": "fr", "content/v1.2.md": "en"},
        ),
        (
            "hugo",
            {"content/a.md": "Text", "content/b/index.en.md": "Text"},
            {"languages": ["en"], "default_language": "de"},
            {"content/a.md": "de", "content/b/index.en.md": "en"},
        ),
        (
            "hugo",
            {"hugo.toml": HUGO, "content/a.md": "Text", "content/a.de.md": "Text"},
            {},
            {"content/a.md": "en", "content/a.de.md": "de"},
        ),
        (
            "hugo",
            {"config/_default/languages.yaml": "en:\nde:\n", "content/a.de.md": "Text"},
            {},
            {"content/a.de.md": "de"},
        ),
        (
            "hugo",
            {"hugo.toml": OWN_FOLDERS, "content/a.md": "Text", "content/german/a.md": "Text"},
            {},
            {"content/a.md": "en", "content/german/a.md": "de"},
        ),
        ("hugo", {"content/a.md": "Text", "content/node.js.md": "Text"}, {}, {}),
        (
            "hugo",
            {"hugo.toml": "defaultContentLanguage = 'de'", "content/a.md": "T"},
            {},
            {"content/a.md": "de"},
        ),
        ("hugo", {"hugo.toml": HUGO, "content/a.md": markdown("lang: fr")}, {}, {"content/a.md": "fr"}),
        (
            "zola",
            {"content/a.md": "+++\n+++\nText", "content/a.fr.md": "+++\n+++\nText"},
            {"languages": ["fr"]},
            {"content/a.md": "en", "content/a.fr.md": "fr"},
        ),
        (
            "zola",
            {"config.toml": 'default_language = "de"\n[languages.en]', "content/a.md": "+++\n+++\nText"},
            {},
            {"content/a.md": "de"},
        ),
        ("wordpress", {"a.md": markdown("locale: de_DE")}, {}, {"a.md": "de"}),
    ],
)
def test_pages_say_their_language_in_the_way_of_their_kind(
    kind: str, files: dict[str, str], options: dict[str, Any], languages: dict[str, str], make_site: MakeSite
) -> None:
    assert exported(make_site, kind, files, options=options).languages == languages


@pytest.mark.parametrize(
    ("kind", "files", "paths"),
    [
        ("hugo", {"hugo.toml": HUGO, "content/a.md": "T", "content/a.de.md": "Text"}, {"a/", "de/a/"}),
        ("hugo", {"hugo.toml": HUGO, "content/a.en.md": "T", "content/b/index.de.md": "T"}, {"a/", "de/b/"}),
        (
            "hugo",
            {"hugo.toml": OWN_FOLDERS, "content/a.md": "T", "content/german/a.md": "T"},
            {"a/", "de/a/"},
        ),
        ("hugo", {"content/a.md": "T", "content/node.js.md": "T"}, {"a/", "node.js/"}),
        (
            "zola",
            {
                "config.toml": "[languages.fr]",
                "content/a.md": "+++\n+++\nT",
                "content/a.fr.md": "+++\n+++\nT",
            },
            {"a/", "fr/a/"},
        ),
    ],
)
def test_addresses_have_the_languages_that_the_configuration_names(
    kind: str, files: dict[str, str], paths: set[str], make_site: MakeSite
) -> None:
    pages = exported(make_site, kind, files).pages
    assert {page.url.split("/", 3)[3] for page in pages} == paths


TRANSLATED = {
    "a.md": markdown("lang: en-US"),
    "b.md": markdown(""),
    "c.md": markdown("lang: en_GB"),
    "de/a.md": markdown("lang: de"),
    "de/empty.md": "---\nlang: de\n---\n",
    "zh/a.md": markdown("lang: zh-hans"),
}


@pytest.mark.parametrize(
    ("language", "paths"),
    [
        ("", list(TRANSLATED)),
        ("en", ["a.md", "b.md", "c.md"]),
        ("EN-us", ["a.md", "b.md", "c.md"]),
        ("de", ["b.md", "de/a.md", "de/empty.md"]),
        ("fr", ["b.md"]),
    ],
)
def test_pages_of_other_languages_are_left_out_where_one_is_named(
    language: str, paths: list[str], make_site: MakeSite
) -> None:
    found = exported(make_site, "markdown", TRANSLATED, language=language)
    assert [page.path for page in found.pages] == paths
    assert found.n_pages_in == len(found.pages) + len(found.exclusions) == len(TRANSLATED)


def test_the_report_says_which_language_a_page_is_left_out_for(make_site: MakeSite) -> None:
    assert lines(exported(make_site, "markdown", TRANSLATED, language="en")) == [
        "example: 3 of 6 pages exported",
        "  left out, language de, not en: 2",
        "    de/a.md",
        "    de/empty.md",
        "  left out, language zh, not en: 1",
        "    zh/a.md",
    ]


def test_html_of_other_languages_is_left_out(make_site: MakeSite) -> None:
    files = {"a.html": HTML.format(' lang="en"'), "de/a.html": HTML.format(' lang="de"')}
    found = exported(make_site, "html", files, language="en")
    assert [page.path for page in found.pages] == ["a.html"]
    assert [(each.path, each.reason) for each in found.exclusions] == [("de/a.html", "language de, not en")]


def test_translations_at_one_address_are_no_error_once_the_others_are_left_out(make_site: MakeSite) -> None:
    files = {"a.md": markdown("lang: en\nurl: /a/"), "b.md": markdown("lang: de\nurl: /a/")}
    found = exported(make_site, "markdown", files, language="en")
    assert [page.url for page in found.pages] == ["https://example.org/a/"]


def test_pages_in_several_languages_are_told_in_one_line(make_site: MakeSite) -> None:
    told = [line for line in lines(exported(make_site, "markdown", TRANSLATED)) if "language" in line]
    assert told == [
        "  pages in 3 languages: de 2, en 2, zh 1, none said 1; the model reads English: "
        'language = "en" in site.toml leaves the others out'
    ]


@pytest.mark.parametrize(
    ("tags", "is_told"),
    [
        (["en", "en-GB"], False),
        (["en", ""], False),
        (["", ""], False),
        (["de", "de"], False),
        (["de", ""], True),
        (["de", "en"], True),
    ],
)
def test_nothing_is_told_of_pages_in_one_language(
    tags: list[str], is_told: bool, make_site: MakeSite
) -> None:
    files = {f"{n}.md": markdown(f"lang: {tag}") for n, tag in enumerate(tags)}
    found = exported(make_site, "markdown", files)
    assert any("pages in" in line for line in lines(found)) == is_told


def test_a_site_that_names_its_language_is_told_of_no_other(make_site: MakeSite) -> None:
    found = exported(make_site, "markdown", {"a.md": markdown("lang: de"), "b.md": "Text"}, language="de")
    assert lines(found) == ["example: 2 of 2 pages exported"]
