"""Real sites, where RALPH_CORPORA and RALPH_DATA say they are."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from benchmarks.urls import described_site, expected_dw_urls, expected_til_urls
from pipeline.export.exporters import export
from pipeline.export.pages import format_report, make_report
from pipeline.export.types import Export
from pipeline.site import Site, SiteKind

TODAY = date(2026, 1, 1)


def folder(variable: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set")
    return Path(value)


def test_every_route_of_til_comes_out_exactly_and_nothing_more() -> None:
    corpora = folder("RALPH_CORPORA")
    expected = expected_til_urls(corpora, folder("RALPH_DATA"))
    exported = export(described_site("til", corpora), TODAY)
    assert {page.path: page.url for page in exported.pages} == expected
    told = [warning.message for warning in exported.warnings if "no text" not in warning.message]
    # Five pages say to their readers that they are private or a draft, and are published all the same.
    assert [message for message in told if "hides nothing" not in message] == []
    assert len(told) == 5


def test_every_permalink_of_dw_posts_comes_out_exactly() -> None:
    corpora = folder("RALPH_CORPORA")
    exported = export(described_site("davidawindham.com", corpora), TODAY)
    assert {page.path: page.url for page in exported.pages} == expected_dw_urls(corpora)


def exported(name: str, kind: SiteKind, tmp_path: Path, **keys: Any) -> Export:
    source = folder("RALPH_CORPORA") / name
    return export(Site(name, kind, str(source), "https://example.org/", "docs", tmp_path, **keys), TODAY)


def test_translations_of_the_open_source_guide_are_left_out_where_english_is_named(tmp_path: Path) -> None:
    options = {"collections": {"articles": {"permalink": "/:path/"}}}
    everything = exported("opensource-guide", "jekyll", tmp_path, options=options)
    assert "pages in 8 languages: en 14, ar 12," in format_report(make_report(everything))
    english = exported("opensource-guide", "jekyll", tmp_path, options=options, language="en")
    assert (len(everything.pages), len(english.pages)) == (99, 15)


def test_what_is_odd_of_the_hugo_documentation_is_one_line(tmp_path: Path) -> None:
    found = exported("hugoDocs", "hugo", tmp_path, options={"content": "content/en"})
    assert len(found.warnings) > 70
    assert format_report(make_report(found)).count("warning: ") == 1
    assert not any(exclusion.path.startswith("archetypes/") for exclusion in found.exclusions)
