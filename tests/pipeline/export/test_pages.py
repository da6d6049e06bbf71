"""Pages written to files and read back are the same pages, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.export.pages import (
    format_report,
    page_files,
    read_pages,
    read_report,
    write_export,
)
from pipeline.export.types import Exclusion, Export, ExportWarning
from pipeline.page import Page
from pipeline.site import SiteError


def page(path: str, body: str = "Text\n", title: str = "A", description: str = "") -> Page:
    return Page(
        "site", "docs", path, f"https://example.org/{path}", title, description, body, "github", "0" * 64
    )


def export_of(*pages: Page) -> Export:
    return Export("site", len(pages), pages)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    "body",
    [
        "",
        "---\nx: y\n---\n",
        "\n\n---\n\nText",
        "no newline",
        "a\r\nb\r\n",
        "a\0b",
        "\ufeffa",
        "\x85\u2028\x0c",
        "…\n---",
    ],
)
def test_bodies_come_back_exactly(body: str, tmp_path: Path) -> None:
    pages = [page("a.md", body)]
    write_export(export_of(*pages), tmp_path)
    assert read_pages(tmp_path, "site") == pages


TEXT = st.text(st.characters(codec="utf-8"), max_size=60)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(title=TEXT, description=TEXT, body=TEXT)
def test_any_text_comes_back_exactly(title: str, description: str, body: str, tmp_path: Path) -> None:
    pages = [page("a.md", body, title, description)]
    write_export(export_of(*pages), tmp_path)
    assert read_pages(tmp_path, "site") == pages


@pytest.mark.parametrize("title", ["2024", "null", "yes", "a: b", "# x", "'", "- a\n---\n\nb", "---"])
def test_titles_that_look_like_yaml_stay_text(title: str, tmp_path: Path) -> None:
    write_export(export_of(page("a.md", title=title)), tmp_path)
    assert read_pages(tmp_path, "site")[0].title == title


def test_names_that_meet_on_some_disks_stay_apart() -> None:
    paths = [
        "README.md",
        "readme.md",
        "a.md",
        "a.mdx",
        "a.mdx.md",
        "caf\u00e9.md",
        "cafe\u0301.md",
        "b/" + "x" * 250 + ".md",
    ]
    files = page_files(paths)
    assert len({file.casefold() for file in files.values()}) == len(paths)
    assert all(len(part.encode()) <= 255 for file in files.values() for part in file.split("/"))
    assert files["README.md"] == "README.md"
    assert page_files(reversed(paths)) == files


def test_the_same_export_is_the_same_bytes_and_writes_nothing_again(tmp_path: Path) -> None:
    export = export_of(page("a.md"), page("b/c.mdx"))
    write_export(export, tmp_path / "one")
    write_export(export, tmp_path / "two")
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "one").rglob("*")}
    write_export(export, tmp_path / "one")
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "one").rglob("*")} == before


def test_files_that_are_no_pages_any_more_are_removed(tmp_path: Path) -> None:
    write_export(export_of(page("a.md"), page("b/c.md"), page("Case.md")), tmp_path)
    write_export(export_of(page("a.md"), page("case.md")), tmp_path)
    assert sorted(snapshot(tmp_path)) == ["site.json", "site/a.md", "site/case.md"]
    assert not (tmp_path / "site" / "b").exists()


def test_the_report_says_what_is_left_out_and_why(tmp_path: Path) -> None:
    export = Export(
        "site",
        4,
        (page("a.md"),),
        (Exclusion("b.md", "draft"), Exclusion("_c.md", "a partial"), Exclusion("d.md", "draft")),
        (ExportWarning("a.md", 3, "malformed"), ExportWarning("a.md", 0, "no text")),
    )
    write_export(export, tmp_path)
    report = read_report(tmp_path / "site.json")
    assert report.pages[0].url == "https://example.org/a.md"
    assert format_report(report).splitlines() == [
        "site: 1 of 4 pages exported",
        "  left out, a partial: 1",
        "    _c.md",
        "  left out, draft: 2",
        "    b.md",
        "    d.md",
        "  warning: a.md:3: malformed",
        "  warning: a.md: no text",
    ]
    assert json.loads((tmp_path / "site.json").read_text(encoding="utf-8"))["n_pages_out"] == 1


def test_warnings_that_say_the_same_are_one_line_and_all_of_them_in_the_file(tmp_path: Path) -> None:
    empty = tuple(ExportWarning(f"{name}.md", 0, "no text") for name in "abcd")
    odd = (ExportWarning("b.md", 3, "malformed"), ExportWarning("c.md", 7, "not UTF-8"))
    twice = (ExportWarning("e.md", 2, "malformed"),)
    write_export(Export("site", 0, (), (), (*empty[:2], *odd, *empty[2:], *twice)), tmp_path)
    report = read_report(tmp_path / "site.json")
    assert format_report(report).splitlines()[1:] == [
        "  warning: no text (4 times: a.md, b.md, c.md, …)",
        "  warning: malformed (2 times: b.md:3, e.md:2)",
        "  warning: c.md:7: not UTF-8",
    ]
    assert format_report(report, most=1).splitlines()[-1] == "  … and 2 more warnings"
    assert len(report.warnings) == 7


def test_a_missing_or_damaged_export_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="doit export:site"):
        read_pages(tmp_path, "site")
    write_export(export_of(page("a.md")), tmp_path)
    (tmp_path / "site" / "a.md").write_text("damaged")
    with pytest.raises(SiteError, match="doit export:site"):
        read_pages(tmp_path, "site")
    (tmp_path / "site.json").write_text("{")
    with pytest.raises(SiteError, match="damaged"):
        read_report(tmp_path / "site.json")
