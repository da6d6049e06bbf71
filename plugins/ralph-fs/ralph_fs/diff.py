"""What edits made of a text, in the format of `diff -u`.

Where a text was edited is known, so nothing else of it is compared, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import StringIO
from itertools import takewhile

_N_CONTEXT = 3
# Comparing takes the square of the lines in the worst case. More than these are shown as replaced as a whole.
_MAX_COMPARED = 2_000

Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Change:
    """A part of a text, characters `start` to `end`, and the part of the new text that is in its place."""

    start: int
    end: int
    new_start: int
    new_end: int


def with_edit(changes: Sequence[Change], start: int, end: int, n_new: int) -> list[Change]:
    """The changes since the first text, after characters `start` to `end` of the last one became `n_new`.

    They are in order, and none touches another: what does is one change.
    """
    before = [change for change in changes if change.new_end < start]
    touched = [change for change in changes if change.new_start <= end and change.new_end >= start]
    after = [change for change in changes if change.new_start > end]
    n_more = n_new - (end - start)
    first = min([start, *(change.new_start for change in touched)])
    last = max([end, *(change.new_end for change in touched)])
    merged = Change(first - _shift(before), last - _shift([*before, *touched]), first, last + n_more)
    moved = [
        Change(change.start, change.end, change.new_start + n_more, change.new_end + n_more)
        for change in after
    ]
    return [*before, merged, *moved]


def hunks(old: str, new: str, changes: Sequence[Change]) -> Iterator[str]:
    """The lines of the difference with their ends, headed by @@ lines, without the two of the file's name."""
    n_before = n_new_before = at = new_at = 0
    for part in _with_context(old, changes):
        n_before += old.count("\n", at, part.start)
        n_new_before += new.count("\n", new_at, part.new_start)
        at, new_at = part.start, part.new_start
        old_lines, new_lines = _lines(old[at : part.end]), _lines(new[new_at : part.new_end])
        yield from _hunks(old_lines, new_lines, n_before, n_new_before)


def _shift(changes: Sequence[Change]) -> int:
    """How much further what comes after the changes is in the new text."""
    return changes[-1].new_end - changes[-1].end if changes else 0


def _with_context(text: str, changes: Sequence[Change]) -> list[Change]:
    """The changes as whole lines with those around them; where these meet, they are one."""
    parts: list[Change] = []
    for number, change in enumerate(changes):
        start = _line_start(text, change.start)
        end = _line_end(text, change.end)
        new_start, new_end = start + _shift(changes[:number]), end + _shift(changes[: number + 1])
        if parts and start <= parts[-1].end:
            start, new_start = parts[-1].start, parts[-1].new_start
            parts.pop()
        parts.append(Change(start, end, new_start, new_end))
    return parts


def _line_start(text: str, at: int) -> int:
    """Where the line begins that is so many lines of context before the one with this character."""
    for _ in range(_N_CONTEXT + 1):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return at + 1


def _line_end(text: str, at: int) -> int:
    for _ in range(_N_CONTEXT + 1):
        at = text.find("\n", at) + 1
        if at == 0:
            return len(text)
    return at


def _lines(text: str) -> list[str]:
    """The lines with their ends. A carriage return ends none: it is a part of what is compared."""
    return list(StringIO(text, newline="\n"))


def _hunks(old: Sequence[str], new: Sequence[str], n_before: int, n_new_before: int) -> Iterator[str]:
    if old == new:  # one edit undid another
        return
    for group in _groups(old, new):
        (_, start, _, new_start, _), (_, _, end, _, new_end) = group[0], group[-1]
        old_range = _range(n_before + start, end - start)
        yield f"@@ -{old_range} +{_range(n_new_before + new_start, new_end - new_start)} @@\n"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_marked(" ", line) for line in old[i1:i2])
            else:
                yield from (_marked("-", line) for line in old[i1:i2])
                yield from (_marked("+", line) for line in new[j1:j2])


def _groups(old: Sequence[str], new: Sequence[str]) -> list[list[Opcode]]:
    """What to do, hunk by hunk.

    The context at the end stays out of the comparison: of lines that are all alike, the last would count as
    new, and a hunk without context after it is for the end of a file (git apply).
    """
    n_after = min(_N_CONTEXT, _n_same(old[::-1], new[::-1]))
    start = _n_same(old[: len(old) - n_after], new[: len(new) - n_after])
    n_after = _n_same(old[start:][::-1], new[start:][::-1])
    end, new_end = len(old) - n_after, len(new) - n_after
    if end + new_end - 2 * start <= _MAX_COMPARED:
        matcher = SequenceMatcher(None, old[start:end], new[start:new_end])
        groups = [
            [(tag, i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in group]
            for group in matcher.get_grouped_opcodes(_N_CONTEXT)
        ]
    else:
        groups = [[("replace", start, end, start, new_end)]]
    first = max(start - _N_CONTEXT, 0)
    n_after = min(n_after, _N_CONTEXT)
    groups[0].insert(0, ("equal", first, start, first, start))
    groups[-1].append(("equal", end, end + n_after, new_end, new_end + n_after))
    return groups


def _n_same(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _marked(mark: str, line: str) -> str:
    return f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _range(start: int, n_lines: int) -> str:
    # "If a hunk contains no lines, its start is the line before it" (POSIX, diff, section Diff -u Output).
    return f"{start + (n_lines > 0)},{n_lines}"
