from __future__ import annotations

import numpy as np
import pytest

from handler.bundle.manifest import Manifest, Probe, SiteSummary
from pipeline.gather import ExportedSite, gather
from pipeline.site import Collection, SiteError

COLLECTIONS = {
    "notes": Collection("notes", "Notes", public=True),
    "sample": Collection("sample", "Sample", public=True, sample=True),
}


def exported(name: str, n_pages: int, collection: str = "notes") -> ExportedSite:
    pages = tuple((f"https://example.org/{name}/{i}", f"{i}.md") for i in range(n_pages))
    return ExportedSite(name, collection, pages)


def bundle_with(**n_pages: int) -> Manifest:
    return Manifest(
        version="",
        model={},
        chunker={},
        collections={},
        sites={name: SiteSummary("notes", n) for name, n in n_pages.items()},
        gate={},
        evaluation={},
        probe=Probe("", np.zeros(1, np.float32)),
    )


def test_the_sample_is_published_only_while_it_is_alone() -> None:
    sample = exported("ralph", 2, "sample")
    assert set(gather([sample], COLLECTIONS, None)) == {"ralph"}
    assert set(gather([sample, exported("blog", 0)], COLLECTIONS, None)) == {"ralph"}
    assert set(gather([sample, exported("blog", 1)], COLLECTIONS, None)) == {"blog"}


def test_one_address_in_two_sites_is_an_error_that_names_both() -> None:
    one = ExportedSite("one", "notes", (("https://example.org/a", "a.md"),))
    two = ExportedSite("two", "notes", (("https://example.org/a", "b.md"),))
    with pytest.raises(SiteError, match=r"https://example\.org/a .* one: a\.md and two: b\.md"):
        gather([one, two], COLLECTIONS, None)


@pytest.mark.parametrize("n_pages", [0, 1, 5])
def test_a_site_that_vanished_or_halved_stops_the_build(n_pages: int) -> None:
    with pytest.raises(SiteError, match=f"blog has {n_pages} pages? and had 10 .* RALPH_ACCEPT_SHRINK=blog"):
        gather([exported("blog", n_pages), exported("other", 3)], COLLECTIONS, bundle_with(blog=10))


def test_a_site_may_shrink_a_little_or_when_it_is_said_by_name() -> None:
    assert gather([exported("blog", 6)], COLLECTIONS, bundle_with(blog=10))["blog"].n_pages == 6
    assert gather([exported("blog", 1)], COLLECTIONS, bundle_with(blog=10), {"blog"})["blog"].n_pages == 1


def test_nothing_to_publish_is_an_error() -> None:
    with pytest.raises(SiteError, match="no site has a page"):
        gather([exported("blog", 0)], COLLECTIONS, None)
