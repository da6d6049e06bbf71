from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from pipeline.graph import load_graph
from pipeline.settings import BuildSettings, read_settings
from pipeline.site import MissingSite
from pipeline.stages import report_export

SITE = 'kind = "markdown"\nbase_url = "https://example.org/"\ncollection = "docs"\nsource = "../pages/en"\n'


def settings_of(sites: Path, files: Iterable[str]) -> BuildSettings:
    for name in files:
        path = sites / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SITE if name.endswith("site.toml") else "Text")
    (sites / "collections.toml").write_text("[docs]\npublic = true\n")
    return read_settings({"RALPH_SITES": str(sites), "RALPH_BUILD": str(sites.parent / "build")})


def test_a_folder_of_pages_that_nobody_described_is_said_to_be_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = tmp_path / "my sites"
    settings = settings_of(sites, ["notes/deep/a.MD"])
    graph = load_graph(settings)
    reason = f"it has pages and no site.toml; `ralph add '{sites / 'notes'}'` writes one"
    assert graph.missing == (MissingSite("notes", reason),)
    report_export(settings, graph)
    assert capsys.readouterr().out == f"notes: skipped, {reason}\n"


def test_of_other_folders_without_a_description_nothing_is_said(tmp_path: Path) -> None:
    without_pages = ["images/a.png", ".trash/a.md", "tools/node_modules/a.md"]
    settings = settings_of(
        tmp_path / "sites", [*without_pages, "described/site.toml", "described/a.md", "pages/en/a.md"]
    )
    graph = load_graph(settings)
    assert (list(graph.sites), graph.missing) == (["described"], ())
