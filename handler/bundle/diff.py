"""What changed from one bundle to another, for the person who is about to ship the second one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from handler.bundle.database import open_database
from handler.bundle.layout import DATABASE
from handler.bundle.manifest import Manifest, read_manifest
from handler.bundle.typed import typed
from handler.bundle.types import BundleError


@dataclass(frozen=True, slots=True)
class PageChange:
    """A page that is in both bundles with other text, title or address of its chunks."""

    url: str
    n_added: int
    n_removed: int


@dataclass(frozen=True, slots=True)
class BundleDiff:
    """The pages and chunks that two bundles do not share, by URL, and what got worse."""

    old: Manifest
    new: Manifest
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[PageChange, ...]
    n_chunks_added: int
    n_chunks_removed: int
    worse: tuple[str, ...]


def worse(old: Manifest, new: Manifest) -> tuple[str, ...]:
    """What the second bundle does worse on its questions, by the manifests; one sentence each, empty is good.

    Raises BundleError when a figure is no number.
    """
    before, after = old.evaluation, new.evaluation
    for evaluation in (before, after):
        typed(dict[str, dict[str, float]], evaluation.get("modes", {}), "evaluation.modes")
        for key in ("kept", "refused"):
            typed(float | None, evaluation.get(key), f"evaluation.{key}")
    pairs = [
        ("hybrid hit@1", _hybrid(before, "hit_at_1"), _hybrid(after, "hit_at_1")),
        ("hybrid hit@6", _hybrid(before, "hit_at_6"), _hybrid(after, "hit_at_6")),
        ("answerable questions kept", before.get("kept"), after.get("kept")),
        ("questions refused", before.get("refused"), after.get("refused")),
    ]
    return tuple(
        f"{name} fell from {was:.3f} to {now:.3f}" if now is not None else f"{name} is not measured any more"
        for name, was, now in pairs
        if was is not None and (now is None or now < was)
    )


def diff(old: Path, new: Path) -> BundleDiff:
    """The difference of two bundles' folders. Raises BundleError when one of them cannot be read."""
    old_manifest, new_manifest = read_manifest(old), read_manifest(new)
    got_worse = worse(old_manifest, new_manifest)
    before, after = _chunks_by_url(old / DATABASE), _chunks_by_url(new / DATABASE)
    changed = []
    for url in sorted(before.keys() & after.keys()):
        gone, come = before[url] - after[url], after[url] - before[url]
        if gone or come:
            changed.append(PageChange(url, come.total(), gone.total()))
    added, removed = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    return BundleDiff(
        old=old_manifest,
        new=new_manifest,
        added=tuple(added),
        removed=tuple(removed),
        changed=tuple(changed),
        n_chunks_added=sum(after[url].total() for url in added) + sum(page.n_added for page in changed),
        n_chunks_removed=sum(before[url].total() for url in removed)
        + sum(page.n_removed for page in changed),
        worse=got_worse,
    )


def format_diff(diff: BundleDiff) -> str:
    """The difference as text: pages, chunks, then the figures side by side."""
    lines = [
        f"{diff.old.version} -> {diff.new.version}",
        f"pages: {len(diff.added)} added, {len(diff.removed)} removed, {len(diff.changed)} changed",
        *(f"  + {url}" for url in diff.added),
        *(f"  - {url}" for url in diff.removed),
        *(f"  ~ {page.url} (chunks: +{page.n_added} -{page.n_removed})" for page in diff.changed),
        f"chunks: {diff.n_chunks_added} added, {diff.n_chunks_removed} removed",
    ]
    rows = _figures(diff.old), _figures(diff.new)
    for name in dict.fromkeys([*rows[0], *rows[1]]):
        lines.append(f"{name:36}{rows[0].get(name, '-'):>20}{rows[1].get(name, '-'):>20}")
    return "\n".join([*lines, *(f"worse: {sentence}" for sentence in diff.worse)])


def _chunks_by_url(database: Path) -> dict[str, Counter[tuple[str, ...]]]:
    """The chunks of each page as readers see them; equal ones count as often as they stand there."""
    sql = "SELECT url, collection, title, heading, anchor, text FROM chunk JOIN page ON page.id = chunk.page"
    pages: dict[str, Counter[tuple[str, ...]]] = {}
    try:
        for url, *chunk in open_database(database).execute(sql):
            pages.setdefault(url, Counter())[tuple(chunk)] += 1
    except apsw.Error as error:
        raise BundleError(f"{database} is no bundle's database: {error}") from error
    return pages


def _hybrid(evaluation: Any, figure: str) -> float | None:
    value = evaluation.get("modes", {}).get("hybrid", {}).get(figure)
    return float(value) if value is not None else None


def _figures(manifest: Manifest) -> dict[str, str]:
    """The figures worth comparing, by name, as text."""
    evaluation = manifest.evaluation
    figures = {"model": str(manifest.model.get("name", ""))}
    for mode, row in evaluation.get("modes", {}).items():
        figures |= {f"{mode} {name}": f"{value:.3f}" for name, value in row.items()}
    for name, key in (("answerable questions kept", "kept"), ("questions refused", "refused")):
        if evaluation.get(key) is not None:
            figures[name] = f"{evaluation[key]:.3f}"
    figures |= {
        f"gate {name}": f"{value:.3f}" if isinstance(value, float) else str(value)
        for name, value in manifest.gate.items()
        if isinstance(value, bool | int | float)
    }
    return figures
