"""Curating copies pages for a person, and never takes a person's work away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from pipeline.curate import curate, format_curation
from pipeline.export.exporters import export
from pipeline.export.pages import write_export
from pipeline.site import Site, SiteError

TODAY = date(2026, 1, 1)

MakeSite = Callable[..., Site]


def run(site: Site, tmp_path: Path) -> dict[str, list[str]]:
    write_export(export(site, TODAY), tmp_path / "pages")
    done = curate(site, tmp_path / "pages", tmp_path / "sites")
    return {
        key: list(getattr(done, key))
        for key in ("written", "unchanged", "edited", "outdated")
        if getattr(done, key)
    }


def test_pages_are_copied_once_and_followed_while_nobody_edits_them(
    make_site: MakeSite, tmp_path: Path
) -> None:
    site = make_site("markdown", {"a.md": "One", "b/c.md": "Two"})
    assert run(site, tmp_path) == {"written": ["a.md", "b/c.md"]}
    assert run(site, tmp_path) == {"unchanged": ["a.md", "b/c.md"]}
    (site.source_path / "a.md").write_text("One, changed at its source")
    assert run(site, tmp_path) == {"written": ["a.md"], "unchanged": ["b/c.md"]}


def test_an_edited_page_is_never_written_over(make_site: MakeSite, tmp_path: Path) -> None:
    site = make_site("markdown", {"a.md": "One", "b.md": "Two"})
    run(site, tmp_path)
    edited = tmp_path / "sites" / "example" / "a.md"
    edited.write_text("A person's words")
    (site.source_path / "a.md").write_text("Changed")
    assert run(site, tmp_path) == {"edited": ["a.md"], "unchanged": ["b.md"]}
    assert run(site, tmp_path) == {"edited": ["a.md"], "unchanged": ["b.md"]}
    assert edited.read_text() == "A person's words"


def test_a_file_that_was_there_before_is_a_persons(make_site: MakeSite, tmp_path: Path) -> None:
    site = make_site("markdown", {"a.md": "One"})
    (tmp_path / "sites" / "example").mkdir(parents=True)
    (tmp_path / "sites" / "example" / "a.md").write_text("Mine")
    assert run(site, tmp_path) == {"edited": ["a.md"]}


def test_a_lost_record_loses_no_edit(make_site: MakeSite, tmp_path: Path) -> None:
    site = make_site("markdown", {"a.md": "One"})
    run(site, tmp_path)
    (tmp_path / "sites" / "example" / "a.md").write_text("Mine")
    (tmp_path / "sites" / "example" / ".curated.json").write_text("{")
    assert run(site, tmp_path) == {"edited": ["a.md"]}


def test_a_page_that_a_person_deleted_stays_deleted(make_site: MakeSite, tmp_path: Path) -> None:
    site = make_site("markdown", {"a.md": "One", "b.md": "Two"})
    run(site, tmp_path)
    (tmp_path / "sites" / "example" / "a.md").unlink()
    assert run(site, tmp_path) == {"edited": ["a.md"], "unchanged": ["b.md"]}
    assert not (tmp_path / "sites" / "example" / "a.md").exists()


def test_a_page_that_left_the_source_is_said_and_stays(make_site: MakeSite, tmp_path: Path) -> None:
    site = make_site("markdown", {"a.md": "One", "b.md": "Two"})
    run(site, tmp_path)
    (site.source_path / "b.md").unlink()
    assert run(site, tmp_path) == {"unchanged": ["a.md"], "outdated": ["b.md"]}


def test_curated_pages_publish_at_the_same_addresses(make_site: MakeSite, tmp_path: Path) -> None:
    files = {
        "_posts/2024-05-01-a.md": "---\ntitle: 'A: B'\n---\n# Heading\n",
        "about.md": "---\ntitle: x\n---\nText",
    }
    site = make_site("jekyll", files)
    run(site, tmp_path)
    curated = make_site("markdown", {}, source=str(tmp_path / "sites" / "example"))
    told = {(page.url, page.title, page.anchor_style, page.body) for page in export(site, TODAY).pages}
    assert {
        (page.url, page.title, page.anchor_style, page.body) for page in export(curated, TODAY).pages
    } == told


def test_the_report_says_what_to_change(make_site: MakeSite, tmp_path: Path) -> None:
    site = make_site("markdown", {"a.md": "One"})
    write_export(export(site, TODAY), tmp_path / "pages")
    text = format_curation(site, curate(site, tmp_path / "pages", tmp_path / "sites"))
    assert "1 written" in text
    assert 'source = "."' in text


def test_a_site_that_was_not_exported_is_an_error(make_site: MakeSite, tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="doit export:example"):
        curate(make_site("markdown", {}), tmp_path / "pages", tmp_path / "sites")


def test_the_curated_folder_is_not_copied_over_itself(make_site: MakeSite, tmp_path: Path) -> None:
    run(make_site("markdown", {"a.md": "One"}), tmp_path)
    page = tmp_path / "sites" / "example" / "a.md"
    before = page.read_bytes()
    curated = make_site("markdown", {}, source=str(tmp_path / "sites" / "example"))
    with pytest.raises(SiteError, match="is the curated folder itself"):
        run(curated, tmp_path)
    assert page.read_bytes() == before
