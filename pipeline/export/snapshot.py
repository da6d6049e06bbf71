"""Markdown made of what is no website, such as what somebody listens to: for its owner, and for no bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.export.pages import remove_others, write_if_changed
from pipeline.export.types import ExportWarning


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Files by name, and what its owner is told of them.

    `counts` says how much there is, `next_step` what can be done with it: `{folder}` in it is where the files
    are, `{index}` an index that the local chat alone is told of.
    """

    files: Mapping[str, str]
    counts: str
    next_step: str
    warnings: tuple[ExportWarning, ...] = ()


def write_snapshot(snapshot: Snapshot, folder: Path) -> None:
    """Writes a snapshot's files into a folder of its own, readable by its owner alone; earlier ones go.

    A file that has not changed is not written again. Same snapshot in, same bytes out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    for name, text in snapshot.files.items():
        write_if_changed(folder / name, text.encode("utf-8"))
    remove_others(folder, {folder / name for name in snapshot.files})
