"""Files as an answer holds them: text, all or some of its lines, or bytes; never more than it takes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from ralph_fs.opening import open_file, read_at
from ralph_fs.refusal import RefusedError, shown
from ralph_fs.roots import Place

# Claude Code cuts answers at 25,000 tokens, unless told otherwise; this much text is less.
MAX_ANSWER_BYTES = 64 * 1024
MAX_FILES = 50
# Lines are counted from an end of the file, so far and no further.
_MAX_SCAN_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines that are asked for, counted from 1; 0 stands for "not given". `tail` counts from the end."""

    first: int = 0
    last: int = 0
    tail: int = 0


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What was read, to the byte, and what a reader has to know of it: above all, what was left out."""

    text: str
    note: str = ""


def read_text(place: Place, lines: Lines, max_bytes: int = MAX_ANSWER_BYTES) -> Excerpt:
    """A file's text, or those of its lines, as many as fit into `max_bytes`. Raises RefusedError."""
    with open_file(place) as (fd, status):
        size = status.st_size
        if lines.tail:
            start = max(0, size - _MAX_SCAN_BYTES)
            return _last_lines(read_at(fd, start, _MAX_SCAN_BYTES), lines.tail, max_bytes, place)
        data = read_at(fd, 0, _MAX_SCAN_BYTES)
        return _first_lines(data, size, lines, max_bytes, place)


def read_text_from(place: Place, offset: int) -> Excerpt:
    """A file's text from a byte on, as much as fits. Raises RefusedError."""
    with open_file(place) as (fd, status):
        _refuse_beyond(offset, status.st_size, place)
        data = read_at(fd, offset, MAX_ANSWER_BYTES)
        # The offset of a careful client is that of a note; one inside of a character moves to its end.
        text = _from_a_character(data) if offset else data
        start = offset + len(data) - len(text)
        text = _whole_characters(text) if offset + len(data) < status.st_size else text
        return Excerpt(_decoded(text, place), _bytes_note(start, start + len(text), status.st_size))


def read_base64(place: Place, offset: int) -> Excerpt:
    """A file's bytes from one on, as many as fit, as base64 (RFC 4648, section 4). Raises RefusedError."""
    with open_file(place) as (fd, status):
        _refuse_beyond(offset, status.st_size, place)
        data = read_at(fd, offset, MAX_ANSWER_BYTES // 4 * 3)
        note = _bytes_note(offset, offset + len(data), status.st_size)
        return Excerpt(base64.b64encode(data).decode("ascii"), note)


def read_several(places: Sequence[Place | RefusedError]) -> list[str]:
    """A text for each, its path above it, or why it cannot be read; they share the room of one answer."""
    answers = []
    room = MAX_ANSWER_BYTES
    for n_done, place in enumerate(places):
        try:
            if isinstance(place, RefusedError):
                raise place
            excerpt = read_text(place, Lines(), max(room // (len(places) - n_done), 1))
        except RefusedError as refusal:
            answers.append(f"[{refusal}]")
        else:
            room -= len(excerpt.text.encode())
            note = f"\n[{excerpt.note}]" if excerpt.note else ""
            answers.append(f"[{shown(place.shown)}]\n{excerpt.text}{note}")
    return answers


def _first_lines(data: bytes, size: int, lines: Lines, max_bytes: int, place: Place) -> Excerpt:
    all_lines = _split(data)
    first = max(lines.first, 1)
    if lines.last and lines.last < first:
        raise RefusedError(f"line {lines.last} comes before line {first}")
    is_whole = len(data) >= size
    if first > max(len(all_lines), 1):
        where = f"has {len(all_lines):,} lines" if is_whole else "is large; read it from an offset"
        raise RefusedError(f"{shown(place.shown)}: {where}")
    wanted = all_lines[first - 1 : lines.last or None]
    kept = _fitting(wanted, max_bytes)
    if not kept and wanted:
        return _start_of_line(wanted[0], first, sum(map(len, all_lines[: first - 1])), max_bytes, place)
    text = b"".join(kept)
    last = first - 1 + len(kept)
    total = f"{len(all_lines):,}" if is_whole else f"more than {len(all_lines) - 1:,}"
    is_cut = len(kept) < len(wanted) or not (is_whole or lines.last)
    note = f"lines {first}-{last} of {total}; go on with from_line={last + 1}" if is_cut else ""
    if not size:
        note = "the file is empty"
    return Excerpt(_decoded(text, place), note)


def _start_of_line(line: bytes, number: int, start: int, max_bytes: int, place: Place) -> Excerpt:
    text = _whole_characters(line[:max_bytes])
    note = f"a part of line {number}, which is long; go on with offset={start + len(text)}"
    return Excerpt(_decoded(text, place), note)


def _last_lines(data: bytes, n_lines: int, max_bytes: int, place: Place) -> Excerpt:
    wanted = _split(data)[-n_lines:]
    kept = _fitting(wanted[::-1], max_bytes)[::-1]
    if kept:
        note = f"the last {len(kept):,} of {len(wanted):,} lines" if len(kept) < len(wanted) else ""
        return Excerpt(_decoded(b"".join(kept), place), note)
    # Not even the last line fits, or there is none.
    text = _from_a_character(data[-max_bytes:])
    note = "the end of the last line, which is long" if text else "the file is empty"
    return Excerpt(_decoded(text, place), note)


def _split(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _fitting(lines: Sequence[bytes], max_bytes: int) -> list[bytes]:
    kept = []
    for line in lines:
        max_bytes -= len(line)
        if max_bytes < 0:
            break
        kept.append(line)
    return kept


def _from_a_character(data: bytes) -> bytes:
    """The bytes from where a character of UTF-8 begins."""
    return data.lstrip(bytes(range(0x80, 0xC0)))


def _whole_characters(data: bytes) -> bytes:
    """The bytes up to the last character of UTF-8 that is whole."""
    for n_bytes in range(1, min(4, len(data)) + 1):
        if data[-n_bytes] >= 0xC0:  # the first byte of a longer character
            n_needed = 2 + (data[-n_bytes] >= 0xE0) + (data[-n_bytes] >= 0xF0)
            return data[:-n_bytes] if n_needed > n_bytes else data
        if data[-n_bytes] < 0x80:
            break
    return data


def _decoded(data: bytes, place: Place) -> str:
    try:
        if b"\0" in data:  # UTF-8, but not what anybody calls text
            raise UnicodeError
        return data.decode("utf-8")
    except UnicodeError:
        raise RefusedError(f"{shown(place.shown)}: is no UTF-8 text; read it with encoding base64") from None


def _refuse_beyond(offset: int, size: int, place: Place) -> None:
    if not 0 <= offset <= size:
        raise RefusedError(f"{shown(place.shown)}: has {size:,} bytes, none at offset {offset}")


def _bytes_note(start: int, end: int, size: int) -> str:
    if not size:
        return "the file is empty"
    if start == 0 and end >= size:
        return ""
    go_on = f"; go on with offset={end}" if end < size else ", its end"
    return f"bytes {start}-{end} of {size}{go_on}"
