"""A site's export copied into sites/, for a person to edit and commit. Never part of a build."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from pipeline.export.pages import file_name, page_files, page_text, read_pages
from pipeline.site import Site, SiteError

# The digests of what was written here, by file: what differs from them is a person's work.
RECORD = ".curated.json"


@dataclass(frozen=True, slots=True)
class Curation:
    """What a run of curate did, each a list of files below the site's folder.

    `edited` pages were changed or deleted by a person and stay so; `outdated` ones are in sites/ but no
    longer in the export, and stay too.
    """

    folder: Path
    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    edited: tuple[str, ...]
    outdated: tuple[str, ...]


def curate(site: Site, pages_dir: Path, sites_dir: Path) -> Curation:
    """Copy the site's exported pages into its folder below sites_dir, but over no edited page.

    Raises SiteError when the site was not exported, or is the curated folder already.
    """
    folder = sites_dir / site.name
    if site.source_path.resolve() == folder.resolve():
        raise SiteError(
            f"{site.toml}: source: is the curated folder itself; to copy again, name the original"
        )
    record = _read_record(folder)
    pages = read_pages(pages_dir, site.name)
    files = page_files((page.path for page in pages), name=_visible_name)
    done: dict[str, list[str]] = {"written": [], "unchanged": [], "edited": []}
    for page in pages:
        file = files[page.path]
        data = page_text(page).encode("utf-8")
        outcome = _outcome(folder / file, record.get(file), data)
        if outcome == "written":
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(data)
        if outcome != "edited":
            record[file] = _digest(data)
        done[outcome].append(file)
    outdated = sorted(
        file for file in record if file not in set(files.values()) and (folder / file).is_file()
    )
    _write_record(folder, record)
    return Curation(
        folder, tuple(done["written"]), tuple(done["unchanged"]), tuple(done["edited"]), tuple(outdated)
    )


def format_curation(site: Site, curation: Curation) -> str:
    """What was done and what is left to do, as a person reads it."""
    lines = [
        f"{curation.folder}: {len(curation.written)} written, {len(curation.unchanged)} unchanged, "
        f"{len(curation.edited)} edited by a person and left"
    ]
    lines += [f"  edited, left as it is: {file}" for file in curation.edited]
    lines += [f"  no longer in the export, left as it is: {file}" for file in curation.outdated]
    lines += [
        f"The build still reads {site.source}. To publish the edited pages, set in {site.toml}:",
        '  kind = "markdown"',
        '  source = "."',
        "and remove include, exclude, instances and options. Each page keeps its address: it is in its "
        "front matter.",
    ]
    return "\n".join(lines)


def _visible_name(path: str) -> str:
    """A page's file name without leading underscores: in a markdown tree they would make it a partial."""
    return "/".join(part.lstrip("_") or part for part in file_name(path).split("/"))


def _outcome(path: Path, recorded: str | None, data: bytes) -> str:
    if not path.exists():
        return "written" if recorded is None else "edited"  # a page that somebody deleted stays deleted
    present = path.read_bytes()
    if present == data:
        return "unchanged"
    return "written" if recorded == _digest(present) else "edited"


def _read_record(folder: Path) -> dict[str, str]:
    path = folder / RECORD
    if not path.is_file():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}  # with no record every page counts as a person's: nothing is overwritten
    return {str(file): str(digest) for file, digest in record.items()} if isinstance(record, dict) else {}


def _write_record(folder: Path, record: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
