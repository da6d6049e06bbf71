"""Changes to a file's text: which characters an edit means, and what it makes of them."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ralph_fs.diff import Change, hunks, with_edit
from ralph_fs.opening import open_parent, refuse_unless_plain, status_of
from ralph_fs.reading import MAX_ANSWER_BYTES
from ralph_fs.refusal import RefusedError, shown
from ralph_fs.roots import Place
from ralph_fs.writing import changing, refuse_unless_writable, replace, take_turn

MAX_EDITED_BYTES = 8 * 1024 * 1024
MAX_EDITS = 100
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_INDENT = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class Edit:
    """A text that is there once, and the text that is to be there."""

    old_text: str
    new_text: str


class _NoMatchError(Exception):
    """An edit means nothing, or more than one thing. The message says which."""


def edit_file(place: Place, edits: Sequence[Edit], *, dry_run: bool) -> str:
    """Does the edits one after the other, all or none, and returns them as a unified diff.

    Raises RefusedError when one of them does not fit in one place alone.
    """
    if not 1 <= len(edits) <= MAX_EDITS:
        raise RefusedError(f"{shown(place.shown)}: give 1 to {MAX_EDITS} edits")
    with changing, open_parent(place) as (folder_fd, name):
        take_turn(folder_fd, place.shown)
        before, text = _read(folder_fd, name, place.shown)
        edited = text
        changes: list[Change] = []
        for number, edit in enumerate(edits, start=1):
            try:
                start, end, new = replacement(edited, edit)
            except _NoMatchError as error:
                raise RefusedError(
                    f"{shown(place.shown)}: edit {number} {error}; nothing was changed"
                ) from None
            changes = with_edit(changes, start, end, len(new))
            edited = edited[:start] + new + edited[end:]
        if edited == text:
            return "[no change]"
        if not dry_run:
            refuse_unless_writable(folder_fd, name, before, place.shown)

            def refuse_if_changed() -> None:
                if (now := status_of(folder_fd, name)) is None or _version(now) != _version(before):
                    raise RefusedError(f"{shown(place.shown)}: was changed by another program; read it again")

            replace(folder_fd, name, edited.encode("utf-8"), before, refuse_if_changed)
    # Nobody has to wait any longer for what the client reads.
    head = ["[dry run: nothing is written]\n"] if dry_run else []
    names = [f"--- {shown(place.shown)}\n", f"+++ {shown(place.shown)}\n"]
    return _cut("".join([*head, *names, *hunks(text, edited, changes)]))


def replacement(text: str, edit: Edit) -> tuple[int, int, str]:
    """The start and end of what an edit means, and what comes there, with the line endings of the text."""
    plain = _lf(text)
    start, end, new = _where(plain, _lf(edit.old_text), _lf(edit.new_text))
    # Where the line feeds of the plain text are that have a carriage return before them.
    returns = [match.start() - n for n, match in enumerate(re.finditer("\r\n", text))]
    start, end = start + bisect_left(returns, start), end + bisect_left(returns, end)
    # What is replaced says how lines end; where it is within a line, the whole file does.
    sample = text[start:end] if "\n" in text[start:end] else text
    if sample.count("\r\n") * 2 > sample.count("\n"):
        new = new.replace("\n", "\r\n")
    return start, end, new


def _where(text: str, old: str, new: str) -> tuple[int, int, str]:
    """The start and end of what is meant, and what comes there."""
    if not old:
        raise _NoMatchError("has no old_text")
    start = text.find(old)
    if start < 0:
        return _where_but_for_indents(text, old, new)
    if text.find(old, start + 1) >= 0:
        raise _NoMatchError(f"fits in more than one place: lines {_line_numbers(text, old)}")
    return start, start + len(old), new


def _where_but_for_indents(text: str, old: str, new: str) -> tuple[int, int, str]:
    """As _where, for whole lines that differ in the spaces around them; the new lines are indented alike."""
    lines, old_lines = text.split("\n"), old.removesuffix("\n").split("\n")
    wanted = "\n".join(["", *(line.strip() for line in old_lines), ""])
    stripped = "\n".join(["", *(line.strip() for line in lines), ""])
    at = stripped.find(wanted) if wanted.strip() else -1
    if at < 0:
        raise _NoMatchError("fits nowhere")
    if stripped.find(wanted, at + 1) >= 0:
        raise _NoMatchError(f"fits in more than one place: lines {_line_numbers(stripped[1:], wanted[1:])}")
    first = stripped.count("\n", 0, at)
    found = lines[first : first + len(old_lines)]
    start = sum(len(line) + 1 for line in lines[:first])
    end = start + len("\n".join(found))
    if old.endswith("\n"):
        end = min(end + 1, len(text))
    return start, end, _indented(new, _first_indent(old_lines), _first_indent(found))


def _indented(text: str, given: str, actual: str) -> str:
    return "\n".join(
        actual + line.removeprefix(given) if line and line.startswith(given) else line
        for line in text.split("\n")
    )


def _first_indent(lines: Sequence[str]) -> str:
    first = next(line for line in lines if line.strip())
    match = _INDENT.match(first)
    assert match
    return match[0]


def _line_numbers(text: str, old: str) -> str:
    numbers: list[str] = []
    start = text.find(old)
    while start >= 0 and len(numbers) < 5:
        numbers.append(str(text.count("\n", 0, start) + 1))
        start = text.find(old, start + 1)
    return ", ".join(numbers) + (" …" if start >= 0 else "")


def _read(folder_fd: int, name: str, path: str) -> tuple[os.stat_result, str]:
    """What the file is, and its text."""
    status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    refuse_unless_plain(status, path)
    with os.fdopen(os.open(name, _READ, dir_fd=folder_fd), "rb") as file:
        # Again, of what was opened: the name may have come to mean something else.
        status = os.fstat(file.fileno())
        refuse_unless_plain(status, path)
        if status.st_size > MAX_EDITED_BYTES:
            raise RefusedError(f"{shown(path)}: has {status.st_size:,} bytes, too many to edit")
        data = file.read(MAX_EDITED_BYTES)
    try:
        return status, data.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError(f"{shown(path)}: is no UTF-8 text, which alone can be edited") from None


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_mtime_ns, status.st_size


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _cut(answer: str) -> str:
    if len(answer) <= MAX_ANSWER_BYTES:
        return answer
    n_more = len(answer) - MAX_ANSWER_BYTES
    return f"{answer[:MAX_ANSWER_BYTES]}\n[the diff goes on for {n_more:,} characters]"
