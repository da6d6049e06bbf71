"""Real sites, where RALPH_CORPORA and RALPH_DATA say they are."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from benchmarks.urls import described_site, expected_dw_urls, expected_til_urls
from pipeline.export.exporters import export

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
