"""What the task graph is made of: the sites of this build, and the files that each stage depends on.

Imported at every run of doit, so it imports nothing slow.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from pipeline.settings import ROOT, BuildSettings
from pipeline.site import SNAPSHOTS, Collection, MissingSite, Site, load_collections, load_sites

# Folders below a source that no exporter reads, and that may hold more files than the site itself.
_PRUNED = frozenset({"node_modules", "__pycache__", "_site", ".git"})
_PAGES = (".md", ".mdx", ".markdown", ".html", ".htm")


@dataclass(frozen=True, slots=True)
class Graph:
    """The sites and collections of one build, and the sites that are skipped: elsewhere, or not described.

    `snapshots` are made when they are asked for by name, and nothing of the build depends on them.
    """

    collections: Mapping[str, Collection]
    sites: Mapping[str, Site]
    missing: tuple[MissingSite, ...]
    snapshots: Mapping[str, Site] = field(default_factory=dict)


def load_graph(settings: BuildSettings) -> Graph:
    """The sites that this machine can build. Raises SiteError for whatever is written down wrong."""
    collections = load_collections(settings.sites)
    found, missing = load_sites(settings.sites, collections, settings.environ)
    sites = {site.name: site for site in found if site.kind not in SNAPSHOTS}
    snapshots = {site.name: site for site in found if site.kind in SNAPSHOTS}
    return Graph(collections, sites, (*missing, *_undescribed(settings.sites, found)), snapshots)


def source_files(site: Site) -> list[str]:
    """Every file that the site's export may read, sorted, with site.toml first.

    A live address has none: it is fetched once, and again when asked for by name
    (`doit forget export:SITE`), so that an unchanged build needs no network.
    """
    files = [str(site.toml)]
    if site.kind == "url":
        return files
    source = site.source_path
    if source.is_file():
        return [*files, str(source)]
    roots = [source / instance.folder for instance in site.instances] or [source]
    return files + sorted({file for root in roots for file in _walk(root)} - set(files))


def holds_on(report: Path, site: Site, today: date) -> bool:
    """Whether what the site's export wrote, by its report, is what it would write today.

    Only Hugo and Jekyll hold pages back by their dates; other reports are not opened, however long.
    """
    if site.kind not in ("hugo", "jekyll"):
        return True
    try:
        table = json.loads(report.read_text(encoding="utf-8"))
        return bool(table["first_day"] <= today.isoformat() < table["end_day"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def map_files(spec: Path) -> list[str]:
    """The description of a map and the images that it shows; of one that cannot be read, itself alone."""
    try:
        nodes = json.loads(spec.read_text(encoding="utf-8"))["nodes"]
        images = [str(spec.parent / node["image"]) for node in nodes if "image" in node]
    except (OSError, ValueError, KeyError, TypeError):
        images = []
    return [str(spec), *images]


def code_files(*names: str) -> list[str]:
    """The program's own files among `names`, a folder standing for all that is in it, sorted."""
    paths = [ROOT / name for name in names]
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return sorted(str(file) for file in files if file.suffix in {".py", ".sql", ".toml", ".jsonl", ".txt"})


def _undescribed(sites: Path, described: Iterable[Site]) -> Iterable[MissingSite]:
    """The folders with pages that are no site's: without a word they would seem to be published."""
    sources = [site.source_path for site in described]
    for folder in sorted(sites.resolve().glob("*/")):
        if folder.name.startswith(".") or (folder / "site.toml").exists():
            continue
        if any(source.is_relative_to(folder) for source in sources):
            continue
        if any(file.lower().endswith(_PAGES) for file in _walk(folder)):
            remedy = f"`ralph add {shlex.quote(str(folder))}` writes one"
            yield MissingSite(folder.name, f"it has pages and no site.toml; {remedy}")


def _walk(root: Path) -> Iterable[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _PRUNED]
        for name in files:
            path = os.path.join(folder, name)  # noqa: PTH118 - pathlib is three times slower here
            if os.path.isfile(path):  # noqa: PTH113 - leaves out FIFOs and dangling links
                yield path
