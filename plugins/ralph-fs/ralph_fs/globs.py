"""Glob patterns over paths: `*`, `?` and `[…]` within a name, `**` for any folders, `{a,b}` for either."""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from ralph_fs.refusal import RefusedError, shown

_MAX_CHARS = 500
_MAX_ALTERNATIVES = 100
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern. Each of its `alternatives` is a row of patterns, one a name; None stands for `**`."""

    alternatives: tuple[tuple[re.Pattern[str] | None, ...], ...]

    def matches(self, names: Sequence[str]) -> bool:
        """Whether a path, from the folder that is searched, fits the pattern as a whole."""
        return any(len(row) in _states(row, names) for row in self.alternatives)

    def may_match_beneath(self, names: Sequence[str]) -> bool:
        """Whether anything in that folder can fit; a walk need not enter it otherwise."""
        return any(min(_states(row, names), default=len(row)) < len(row) for row in self.alternatives)


def read_glob(pattern: str) -> Glob:
    """The pattern; one without `/` is for names in any folder. Raises RefusedError when it is none."""
    if len(pattern) > _MAX_CHARS:
        raise RefusedError(f"{shown(pattern)}: the pattern has more than {_MAX_CHARS} characters")
    return Glob(tuple(_row(alternative) for alternative in _expanded(pattern)))


def _row(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if not names:
        raise RefusedError(f"{shown(pattern) or 'the pattern'}: names no file; write one such as *.md")
    if "/" not in pattern:
        names.insert(0, "**")
    elif pattern.endswith("/"):
        names.append("**")
    # Of several `**` in a row one says it all, and each would be tried with every name.
    names = [name for name, after in zip(names, [*names[1:], ""], strict=True) if {name, after} != {"**"}]
    return tuple(None if name == "**" else re.compile(fnmatch.translate(_folded(name))) for name in names)


def _states(row: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> set[int]:
    """How much of the row a path can have used up: the states of its automaton, so never slow."""
    states = _with_skips(row, {0})
    for name in map(_folded, names):
        after = set()
        for state in states:
            if state < len(row):
                part = row[state]
                if part is None:
                    after.add(state)
                elif part.match(name):
                    after.add(state + 1)
        states = _with_skips(row, after)
    return states


def _with_skips(row: Sequence[re.Pattern[str] | None], states: set[int]) -> set[int]:
    reached = set(states)
    for state in states:
        while state < len(row) and row[state] is None:
            state += 1
            reached.add(state)
    return reached


def _expanded(pattern: str) -> list[str]:
    expanded, todo = [], [pattern]
    while todo:
        text = todo.pop()
        if not (braces := _BRACES.search(text)):
            expanded.append(text)
            continue
        before, after = text[: braces.start()], text[braces.end() :]
        todo += [before + choice + after for choice in braces[1].split(",")]
        if len(todo) + len(expanded) > _MAX_ALTERNATIVES:
            raise RefusedError(
                f"{shown(pattern)}: the pattern has more than {_MAX_ALTERNATIVES} alternatives"
            )
    return expanded


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name)
