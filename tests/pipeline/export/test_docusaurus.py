"""Docusaurus checkouts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from pipeline.export.exporters import export
from pipeline.site import Instance, Site, SiteError

TODAY = date(2026, 1, 1)

MakeSite = Callable[..., Site]

INSTANCES = (
    Instance("docs", "docs", "docs"),
    Instance("docs", "notes", ""),
    Instance("blog", "posts", "blog"),
)


def make(make_site: MakeSite, files: dict[str, str], **keys: Any) -> Site:
    folders = {f"{folder}/.keep": "" for folder in ("docs", "notes", "posts")}
    keys = {"base_url": "https://example.org/til/", "instances": INSTANCES} | keys
    return make_site("docusaurus", folders | files, **keys)


@pytest.mark.parametrize(
    ("path", "front", "trailing_slash", "url"),
    [
        ("docs/a.md", "", None, "docs/a"),
        ("docs/a.md", "", True, "docs/a/"),
        ("docs/a/index.md", "", None, "docs/a/"),
        ("docs/a/index.md", "", False, "docs/a"),
        ("docs/index.md", "slug: /", True, "docs/"),
        ("docs/01-a/02-b.mdx", "", None, "docs/a/b"),
        ("docs/a/A.md", "", None, "docs/a/"),
        ("docs/a/b.md", "id: c", None, "docs/a/c"),
        ("docs/a/b.md", "slug: c d", None, "docs/a/c%20d"),
        ("docs/db/MariaDB.md", "", None, "docs/db/MariaDB"),
        ("notes/a.md", "", None, "a"),
        ("posts/2024-05-01-hello.md", "", None, "blog/2024/05/01/hello"),
        ("posts/2024/2024-05-01-hello.md", "slug: françoise", True, "blog/françoise/"),
        ("posts/about.md", "", None, "blog/about"),
    ],
)
def test_routes(path: str, front: str, trailing_slash: bool | None, url: str, make_site: MakeSite) -> None:
    site = make(make_site, {path: f"---\n{front}\n---\nText"}, trailing_slash=trailing_slash)
    assert [page.url for page in export(site, TODAY).pages] == [f"https://example.org/til/{url}"]


def test_files_outside_of_the_instances_are_left_out(make_site: MakeSite) -> None:
    files = {"README.md": "x", "src/pages/about.md": "x", "docs/__tests__/a.md": "x", "docs/a.test.md": "x"}
    assert {e.path: e.reason for e in export(make(make_site, files), TODAY).exclusions} == {
        "README.md": "outside the docs and blog folders of site.toml",
        "src/pages/about.md": "outside the docs and blog folders of site.toml",
        "docs/__tests__/a.md": "a test",
        "docs/a.test.md": "a test",
    }


def test_the_instance_with_the_deepest_folder_owns_a_file(make_site: MakeSite) -> None:
    instances = (Instance("docs", "docs", "docs"), Instance("docs", "docs/api", "reference"))
    site = make(make_site, {"docs/api/a.md": "Text", "docs/b.md": "Text"}, instances=instances)
    assert [p.url.removeprefix(site.base_url) for p in export(site, TODAY).pages] == ["reference/a", "docs/b"]


@pytest.mark.parametrize("instances", [(), (Instance("docs", "nowhere", "docs"),)])
def test_missing_instances_are_an_error_that_names_the_key(
    instances: tuple[Instance, ...], make_site: MakeSite
) -> None:
    with pytest.raises(SiteError, match=r"site\.toml: instances: "):
        export(make(make_site, {}, instances=instances), TODAY)


def test_the_lines_around_an_admonition_go(make_site: MakeSite) -> None:
    text = "# A\n\n:::tip[Later]\nUse it once.\n:::\n"
    page = export(make(make_site, {"docs/a.md": text}), TODAY).pages[0]
    assert page.body.split() == ["#", "A", "Later", "Use", "it", "once."]


@pytest.mark.parametrize("title", ["Private Page", "DRAFT"])
def test_an_admonition_that_seems_to_hide_the_page_is_a_warning(make_site: MakeSite, title: str) -> None:
    fence = ":::tip[Prose]\n:::\n\n```md\n:::tip[Private]\n:::\n```\n\n"
    text = (
        f"---\ntitle: A\n---\n{fence}:::warning[{title}]\n\n:::\n\nCosts.\n\n:::tip[Privately owned]\n:::\n"
    )
    exported = export(make(make_site, {"docs/a.md": text}), TODAY)
    assert [page.path for page in exported.pages] == ["docs/a.md"]
    (warning,) = exported.warnings
    assert title in warning.message and "unlisted: true" in warning.message
    assert warning.line == 12


def test_mdx_is_stripped_and_heading_ids_stay(make_site: MakeSite) -> None:
    text = "import A from 'a';\n\n# Title\n\n<A label=\"Shown\">\n\n## Part {#custom-id}\n\n</A>\n"
    page = export(make(make_site, {"docs/a.mdx": text}), TODAY).pages[0]
    assert page.title == "Title"
    assert page.body.split() == ["#", "Title", "Shown", "##", "Part", "{#custom-id}"]
