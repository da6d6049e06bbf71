from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.export.pages import write_export
from pipeline.export.types import Export
from pipeline.graph import Graph
from pipeline.layout import Layout
from pipeline.page import Page
from pipeline.settings import BuildSettings, read_settings
from pipeline.site import Collection, MissingSite, Site
from pipeline.stages import gather_sites, remove_forgotten, report_export


@pytest.fixture
def settings(tmp_path: Path) -> BuildSettings:
    return read_settings({"RALPH_BUILD": str(tmp_path / "build"), "RALPH_SITES": str(tmp_path / "sites")})


def graph(names: Iterable[str], missing: Iterable[str] = ()) -> Graph:
    sites = {
        name: Site(name, "markdown", "/", "https://example.org/", "docs", Path("sites", name))
        for name in names
    }
    return Graph({}, sites, tuple(MissingSite(name, "not there") for name in missing))


def build_site(settings: BuildSettings, name: str) -> None:
    page = Page(name, "docs", "deep/a.md", "https://example.org/a", "A", "", "Text", "github", "0")
    write_export(Export(name, 1, (page,)), Layout(settings.build).pages_folder)
    chunks = Layout(settings.build).chunks(name)
    chunks.parent.mkdir(exist_ok=True)
    chunks.touch()
    chunks.with_name(f"{chunks.name}.partial").touch()


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_of_a_site_that_is_taken_out_nothing_stays(settings: BuildSettings) -> None:
    for name in ("kept.org", "skipped", "gone.org"):
        build_site(settings, name)
    remove_forgotten(settings, graph(["kept.org"], missing=["skipped"]))
    assert files(settings.build) == [
        "chunks", "chunks/kept.org.jsonl", "chunks/kept.org.jsonl.partial",
        "chunks/skipped.jsonl", "chunks/skipped.jsonl.partial",
        "pages", "pages/kept.org", "pages/kept.org.json", "pages/kept.org/deep", "pages/kept.org/deep/a.md",
        "pages/skipped", "pages/skipped.json", "pages/skipped/deep", "pages/skipped/deep/a.md",
    ]  # fmt: skip


def test_the_build_says_that_a_sample_is_left_out(
    settings: BuildSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("sample", "own"):
        build_site(settings, name)
    sites = dict(graph(["sample", "own"]).sites)
    sites["sample"] = replace(sites["sample"], collection="sample")
    collections = {
        "docs": Collection("docs", "Docs", public=True),
        "sample": Collection("sample", "Sample", public=True, sample=True),
    }
    gather_sites(settings, Graph(collections, sites, ()))
    left_out = "left out of the bundle: a sample, and other sites have pages"
    assert capsys.readouterr().out == f"  sample: {left_out}\n"
    report_export(settings, Graph(collections, sites, ()))
    assert capsys.readouterr().out.splitlines() == [
        "sample: 1 of 1 page exported",
        f"  {left_out}",
        "own: 1 of 1 page exported",
    ]


def test_what_no_build_wrote_stays_and_nothing_is_followed_out_of_the_build(
    settings: BuildSettings, tmp_path: Path
) -> None:
    build_site(settings, "gone")
    pages = Layout(settings.build).pages_folder
    for name in ("mine.json", "list.json", "text.json", "notes.txt", "own/a.md"):
        (pages / name).parent.mkdir(exist_ok=True)
        (pages / name).write_text(json.dumps({"site": "other", "n_pages_in": 1}))
    (pages / "list.json").write_text("[]")
    (pages / "text.json").write_text("no JSON")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("Text")
    (pages / "gone" / "link").symlink_to(tmp_path / "outside")
    remove_forgotten(settings, graph([]))
    assert files(pages) == ["list.json", "mine.json", "notes.txt", "own", "own/a.md", "text.json"]
    assert files(tmp_path / "outside") == ["a.md"]


def test_a_folder_in_place_of_which_a_link_stands_is_not_emptied(
    settings: BuildSettings, tmp_path: Path
) -> None:
    build_site(settings, "gone")
    folder = Layout(settings.build).pages_folder / "gone"
    folder.rename(tmp_path / "outside")
    folder.symlink_to(tmp_path / "outside")
    remove_forgotten(settings, graph([]))
    assert files(tmp_path / "outside") == ["deep", "deep/a.md"]


def test_before_the_first_build_there_is_nothing_to_remove(settings: BuildSettings) -> None:
    remove_forgotten(settings, graph([]))
    assert not settings.build.exists()
