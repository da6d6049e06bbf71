"""Everything beneath a folder, in order; links are not followed, and no tree is too deep or too large."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from ralph_fs.opening import open_folder
from ralph_fs.refusal import RefusedError
from ralph_fs.roots import MAX_DEPTH, Place

Kind = Literal["file", "folder", "link", "other"]
MAX_ENTRIES = 100_000
# Folders that programs fill; what a person looks for is never there, and they hold most of the files.
FILLED_BY_PROGRAMS = frozenset(
    (
        ".cache",
        ".git",
        ".hg",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        "__pycache__",
        "node_modules",
    )
)


@dataclass(frozen=True, slots=True)
class Entry:
    """Something beneath the folder that is walked. `names` lead to it from there."""

    names: tuple[str, ...]
    kind: Kind


@dataclass(slots=True)
class Walk:
    """A walk of `place`, each folder before what is in it, names in order.

    A folder is entered if `enters` says so of it. While it goes on and afterwards, `skipped` are the names of
    folders that programs fill and that it therefore did not enter, `n_unreadable` how many could not be
    opened, and `is_cut` whether it stopped at `max_entries`.
    """

    place: Place
    enters: Callable[[Entry], bool] = lambda _: True
    max_entries: int = MAX_ENTRIES
    skipped: set[str] = field(default_factory=set)
    n_unreadable: int = 0
    is_cut: bool = False

    def __iter__(self) -> Iterator[Entry]:
        """The entries. Raises RefusedError when the folder itself cannot be opened."""
        n_left = self.max_entries
        # The folders are opened one by one, each from the root on: a deep tree needs no more descriptors, and
        # one that is moved away meanwhile is not followed.
        todo = entries_of(self.place)[::-1]
        while todo:
            if not n_left:
                self.is_cut = True
                return
            n_left -= 1
            entry = todo.pop()
            yield entry
            if entry.kind != "folder" or not self.enters(entry):
                continue
            if entry.names[-1] in FILLED_BY_PROGRAMS:
                self.skipped.add(entry.names[-1])
                continue
            if len(entry.names) >= MAX_DEPTH:
                self.n_unreadable += 1
                continue
            try:
                todo += entries_of(self.place, entry.names)[::-1]
            except RefusedError:
                self.n_unreadable += 1

    def note(self) -> str:
        """What it left out, for an answer; empty if nothing."""
        notes = []
        if self.is_cut:
            notes.append(f"stopped after {self.max_entries:,} files and folders; name a smaller folder")
        if self.skipped:
            notes.append(f"not entered: {', '.join(sorted(self.skipped))}")
        if self.n_unreadable:
            notes.append(f"{self.n_unreadable:,} folders cannot be read")
        return "; ".join(notes)


def entries_of(place: Place, names: tuple[str, ...] = ()) -> list[Entry]:
    """What is in a folder, at `names` beneath `place`, by name. Raises RefusedError."""
    with open_folder(place.beneath(*names) if names else place) as fd:
        return entries_in(fd, names)


def entries_in(folder_fd: int, names: tuple[str, ...] = ()) -> list[Entry]:
    """What is in the folder of a descriptor, by name; `names` lead to it. Raises OSError."""
    with os.scandir(folder_fd) as found:
        entries = [Entry((*names, entry.name), _kind(entry)) for entry in found]
    return sorted(entries, key=lambda entry: entry.names)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
