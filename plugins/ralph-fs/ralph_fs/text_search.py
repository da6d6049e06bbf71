"""Lines of files in which a text stands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from ralph_fs.globs import Glob
from ralph_fs.opening import is_folder, open_file, read_at
from ralph_fs.refusal import RefusedError, shown
from ralph_fs.roots import Place
from ralph_fs.walking import Walk

if TYPE_CHECKING:
    import regex

MAX_MATCHES = 200
MAX_LINE_CHARS = 300
MAX_FILE_BYTES = 8 * 1024 * 1024
MAX_QUERY_CHARS = 1_000
# An expression can be made to take for ever; clients wait a minute for an answer.
MAX_TIME_S = 20.0


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for, line by line: a text as it stands, or a regular expression."""

    text: str
    is_regex: bool = False
    ignores_case: bool = False


def search_text(
    place: Place,
    query: Query,
    glob: Glob,
    max_time_s: float = MAX_TIME_S,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """`path:line: text` for each line that the query is found in, in one file or in all beneath a folder.

    Raises RefusedError when the query is wrong or the place cannot be read.
    """
    pattern = _compiled(query)
    end = clock() + max_time_s
    walk = Walk(place, lambda entry: glob.may_match_beneath(entry.names))
    left_out: list[Place] = []
    lines: list[str] = []
    notes: list[str] = []
    try:
        for file, text in _texts(place, walk, glob, left_out):
            path = shown(file.shown)
            matching = _matching_lines(pattern, text, end - clock())
            lines += (f"{path}:{number}: {line}" for number, line in islice(matching, MAX_MATCHES + 1))
            if len(lines) > MAX_MATCHES:
                notes.append(f"[only the first {MAX_MATCHES}; narrow the query, the path or the glob]")
                break
    except MemoryError:  # an expression that calls itself, such as (?R)
        raise RefusedError(f"{shown(query.text)}: takes more memory than there is for it") from None
    except TimeoutError:
        notes.append(f"[stopped after {max_time_s:g} s; name a smaller folder or a simpler query]")
    if left_out:
        notes.append(f"[{len(left_out):,} files are no text, too large, linked twice or not readable]")
    if note := walk.note():
        notes.append(f"[{note}]")
    return "\n".join([*(lines[:MAX_MATCHES] or ["[no line fits]"]), *notes])


def _texts(place: Place, walk: Walk, glob: Glob, left_out: list[Place]) -> Iterator[tuple[Place, str]]:
    """The files to search and their texts; those that have none are added to `left_out`."""
    for file in _files(place, walk, glob):
        try:
            text = _text(file)
        except RefusedError:
            if file is place:
                raise
            text = None
        if text is None:
            left_out.append(file)
        else:
            yield file, text


def _files(place: Place, walk: Walk, glob: Glob) -> Iterator[Place]:
    if not is_folder(place):
        yield place
        return
    for entry in walk:
        if entry.kind == "file" and glob.matches(entry.names):
            yield place.beneath(*entry.names)


def _text(place: Place) -> str | None:
    """The file's text; None where it is none, or too much."""
    with open_file(place) as (fd, status):
        if status.st_size > MAX_FILE_BYTES:
            return None
        data = read_at(fd, 0, MAX_FILE_BYTES)
    # As git does: a file with a NUL near its beginning is no text.
    return None if b"\0" in data[:8_000] else data.decode("utf-8", "replace")


def _compiled(query: Query) -> regex.Pattern[str]:
    # Not `re`: it knows no time limit, and nobody else gets a turn while it looks. Imported here because
    # most sessions search no text.
    import regex

    if not query.text or len(query.text) > MAX_QUERY_CHARS:
        raise RefusedError(f"write a query of 1 to {MAX_QUERY_CHARS:,} characters")
    source = query.text if query.is_regex else regex.escape(query.text)
    try:
        return regex.compile(source, regex.MULTILINE | (regex.IGNORECASE if query.ignores_case else 0))
    except (regex.error, RecursionError, OverflowError) as error:
        raise RefusedError(f"{shown(query.text)}: is no regular expression: {shown(str(error))}") from None


def _matching_lines(pattern: regex.Pattern[str], text: str, time_s: float) -> Iterator[tuple[int, str]]:
    """The number, from 1, and the text of each line in which a match begins. Raises TimeoutError."""
    if time_s <= 0:
        raise TimeoutError
    number, counted, end = 1, 0, -1
    for match in pattern.finditer(text, concurrent=True, timeout=time_s):
        if match.start() <= end:
            continue  # another match in the same line
        start = text.rfind("\n", 0, match.start()) + 1
        if start == len(text) > 0:
            return  # what matches nothing matches after the last line, too
        end = text.find("\n", match.start())
        end = end if end >= 0 else len(text)
        number += text.count("\n", counted, start)
        counted = start
        yield number, _around(text[start:end], match.start() - start)


def _around(line: str, position: int) -> str:
    """The line on one line, or what stands around a position of a long one."""
    if len(line) <= MAX_LINE_CHARS:
        return line.rstrip("\r")
    start = max(0, min(position - MAX_LINE_CHARS // 4, len(line) - MAX_LINE_CHARS))
    end = start + MAX_LINE_CHARS
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")
