"""What one change made of a text, in the format of `diff -u`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile

_N_CONTEXT = 3
# Comparing takes the square of the lines in the worst case. More than these are shown as replaced as a whole.
_MAX_COMPARED = 2_000

Opcode = tuple[str, int, int, int, int]


def hunks(before: str, after: str) -> list[str]:
    """The lines of the difference, headed by @@ lines and without the two of the file's name."""
    old, new = before.split("\n"), after.split("\n")
    n_same = _n_same(old, new)
    n_same_end = _n_same(old[n_same:][::-1], new[n_same:][::-1])
    skipped = max(n_same - _N_CONTEXT, 0)
    end = min(n_same_end, _N_CONTEXT) - n_same_end
    old, new = old[skipped : end or None], new[skipped : end or None]
    return [line for group in _groups(old, new) for line in _hunk(group, old, new, skipped)]


def _n_same(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _groups(old: Sequence[str], new: Sequence[str]) -> Iterator[list[Opcode]]:
    if len(old) + len(new) <= _MAX_COMPARED:
        yield from SequenceMatcher(None, old, new).get_grouped_opcodes(_N_CONTEXT)
    else:
        yield [("replace", 0, len(old), 0, len(new))]


def _hunk(group: Sequence[Opcode], old: Sequence[str], new: Sequence[str], skipped: int) -> Iterator[str]:
    (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
    yield f"@@ -{_range(old_start, old_end, skipped)} +{_range(new_start, new_end, skipped)} @@"
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            yield from (f" {line}" for line in old[i1:i2])
        else:
            yield from (f"-{line}" for line in old[i1:i2])
            yield from (f"+{line}" for line in new[j1:j2])


def _range(start: int, end: int, skipped: int) -> str:
    n_lines = end - start
    # "If a hunk contains no lines, its start is the line before it" (POSIX, diff, section Diff -u Output).
    return f"{start + skipped + (n_lines > 0)},{n_lines}"
