"""Which sites a bundle is made of, and whether the build may go on with them."""

from __future__ import annotations

import json
from collections.abc import Collection as AbstractCollection
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from handler.bundle.counted import counted
from handler.bundle.manifest import Manifest, SiteSummary
from pipeline.site import Collection, SiteError


@dataclass(frozen=True, slots=True)
class ExportedSite:
    """One site after export: its collection, and (public URL, source file) of each of its pages."""

    name: str
    collection: str
    pages: tuple[tuple[str, str], ...]


def gather(
    sites: Sequence[ExportedSite],
    collections: Mapping[str, Collection],
    previous: Manifest | None,
    accept_shrink: AbstractCollection[str] = (),
) -> dict[str, SiteSummary]:
    """The sites of the next bundle by name, those without pages left out.

    Raises SiteError when no site has pages, when two pages share an address, or when a site of the
    previous bundle vanished or lost half of its pages and nobody said that it may: publishing what is
    left of a folder that was moved or not mounted would delete a site from its readers.
    """
    chosen = chosen_sites(sites, collections)
    _check_unique_urls(chosen)
    summaries = {site.name: SiteSummary(site.collection, len(site.pages)) for site in chosen}
    if previous is not None:
        _check_not_shrunk(summaries, collections, previous, accept_shrink)
    if not summaries:
        raise SiteError(
            "no site has a page to publish; `ralph add PATH` adds one, `doit export` lists why not"
        )
    return summaries


def chosen_sites(
    sites: Sequence[ExportedSite], collections: Mapping[str, Collection]
) -> Sequence[ExportedSite]:
    """The sites that have pages; those of sample collections only where no other site has any."""
    with_pages = [site for site in sites if site.pages]
    return [site for site in with_pages if not collections[site.collection].sample] or with_pages


def write_gathered(summaries: Mapping[str, SiteSummary], path: Path) -> None:
    """Writes the chosen sites as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {name: asdict(summary) for name, summary in sorted(summaries.items())}
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def read_gathered(path: Path) -> dict[str, SiteSummary]:
    """The chosen sites as write_gathered left them."""
    return {name: SiteSummary(**row) for name, row in json.loads(path.read_text(encoding="utf-8")).items()}


def _check_unique_urls(sites: Sequence[ExportedSite]) -> None:
    owners: dict[str, str] = {}
    for site in sites:
        for url, source_file in site.pages:
            owner = owners.setdefault(url, f"{site.name}: {source_file}")
            if owner != f"{site.name}: {source_file}":
                raise SiteError(
                    f"{url} is the address of two pages, {owner} and {site.name}: {source_file}; "
                    "give one of them another slug, or exclude it in its site.toml"
                )


def _check_not_shrunk(
    summaries: Mapping[str, SiteSummary],
    collections: Mapping[str, Collection],
    previous: Manifest,
    accept_shrink: AbstractCollection[str],
) -> None:
    for name, before in sorted(previous.sites.items()):
        collection = collections.get(before.collection)
        if name in accept_shrink or (collection is not None and collection.sample):
            continue
        n_pages = summaries[name].n_pages if name in summaries else 0
        if 2 * n_pages <= before.n_pages:
            raise SiteError(
                f"{name} has {counted(n_pages, 'page')} and had {before.n_pages} in the bundle before: its "
                "source may be missing or half copied. If it is meant, say so: "
                f"RALPH_ACCEPT_SHRINK={name} doit build"
            )
