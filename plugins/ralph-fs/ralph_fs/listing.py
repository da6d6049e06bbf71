"""What is in a folder, as text: one folder, a tree, or all about one file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice

from ralph_fs.globs import Glob
from ralph_fs.opening import open_folder, open_parent, status_of
from ralph_fs.refusal import shown
from ralph_fs.roots import Place
from ralph_fs.walking import Entry, Walk, entries_in

MAX_LISTED = 1_000
MAX_TREE_LINES = 500
# A folder of a thousand pictures must not take the room of its neighbours.
MAX_TREE_LINES_A_FOLDER = 50

_MARKS = {"folder": "/", "link": "@", "other": "?", "file": ""}


def list_folder(place: Place) -> str:
    """A line for each thing in the folder, by name: `name/`, `name@` for a link, a file with its bytes."""
    with open_folder(place) as fd:
        entries = entries_in(fd)
        lines = [_line(fd, entry) for entry in entries[:MAX_LISTED]]
    if n_more := len(entries) - len(lines):
        lines.append(f"[{n_more:,} more of {len(entries):,}; search_files finds them by name]")
    return "\n".join(lines) or "[empty]"


def tree(place: Place, depth: int, exclude: Sequence[Glob]) -> str:
    """The folders and files beneath, indented, `depth` levels deep, without what a glob excludes."""

    def is_wanted(entry: Entry) -> bool:
        return not any(glob.matches(entry.names) for glob in exclude)

    walk = Walk(place, lambda entry: len(entry.names) < depth and is_wanted(entry))
    wanted = _few_of_each_folder(entry for entry in walk if is_wanted(entry))
    lines = list(islice(wanted, MAX_TREE_LINES + 1))
    notes = [note for note in (walk.note(),) if note]
    if len(lines) > MAX_TREE_LINES:
        notes.insert(0, f"cut after {MAX_TREE_LINES} lines; name a smaller folder or depth")
    return "\n".join([*lines[:MAX_TREE_LINES], *(f"[{note}]" for note in notes)]) or "[empty]"


def info(place: Place) -> str:
    """What there is at a path: its type, size, mode and dates. A link is told of, not followed."""
    if not place.parts:
        with open_folder(place) as fd:
            return _told(os.fstat(fd))
    with open_parent(place) as (fd, name):
        status = status_of(fd, name)
        if status is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return _told(status)


def _few_of_each_folder(entries: Iterable[Entry]) -> Iterable[str]:
    n_lines: dict[tuple[str, ...], int] = {}
    for entry in entries:
        folder = entry.names[:-1]
        n_lines[folder] = n_lines.get(folder, 0) + 1
        indent = "  " * len(folder)
        if n_lines[folder] == MAX_TREE_LINES_A_FOLDER:
            yield f"{indent}[more]"
        elif n_lines[folder] < MAX_TREE_LINES_A_FOLDER:
            yield f"{indent}{shown(entry.names[-1])}{_MARKS[entry.kind]}"


def _line(fd: int, entry: Entry) -> str:
    name = shown(entry.names[-1])
    if entry.kind != "file":
        return name + _MARKS[entry.kind]
    status = status_of(fd, entry.names[-1])
    return f"{name}\t{status.st_size}" if status else name


def _told(status: os.stat_result) -> str:
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "symbolic link"}
    facts: dict[str, str | int] = {
        "type": kinds.get(stat.S_IFMT(status.st_mode), "special file"),
        "bytes": status.st_size,
        "mode": f"{stat.S_IMODE(status.st_mode):04o}",
        "modified": _time(status.st_mtime),
        "changed": _time(status.st_ctime),
        "accessed": _time(status.st_atime),
    }
    # Only some systems keep when a file was made.
    if born := getattr(status, "st_birthtime", None):
        facts["created"] = _time(born)
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        facts["links"] = f"{status.st_nlink}, so that no tool reads it"
    return "\n".join(f"{name}: {fact}" for name, fact in facts.items())


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
