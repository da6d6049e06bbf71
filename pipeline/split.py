"""Taking a block apart: between its children or rows, its sentences, its words, its graphemes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import regex

from pipeline.blocks import Block, Frame

# A sentence ends in a mark and white space; in Chinese and Japanese in the mark alone.
_AFTER_SENTENCE = r"""(?<=[.!?…]["'”’»)\]*_`]*)\s+|(?<=[。！？｡][」』）”’]*)(?<!\s)(?=[^\s」』）”’])"""
_LAST_SENTENCE_END = regex.compile(rf"(?r){_AFTER_SENTENCE}")
_LAST_SPACE = regex.compile(r"(?r)\s+")
_LINE_OR_SENTENCE_END = regex.compile(rf"\n\s*|{_AFTER_SENTENCE}")
_SPACE = regex.compile(r"\s+")
_GRAPHEME = regex.compile(r"\X")
_EXTENDER = regex.compile(r"[\p{Grapheme_Cluster_Break=Extend}\p{Grapheme_Cluster_Break=SpacingMark}\u200d]")
# Where a word begins or ends and no grapheme goes on; a joiner is none of a word's letters.
_LAST_WORD_BORDER = regex.compile(rf"(?r)(?:(?<=\w)(?=\W)|(?<=\W)(?=\w))(?<!\u200d)(?!{_EXTENDER.pattern})")


def split_block(block: Block, room: int, cap: int) -> list[Block]:
    """The block in parts: the first of at most `room` characters where that can be, no leaf over `cap`.

    A container gives its children, whatever their size: split those that are too long in turn.
    """
    if block.children:
        first, *others = block.children
        return [replace(first, gap=block.gap), *others]
    if block.frame:
        return _split_frame(block, block.frame, room, cap)
    return [
        Block(block.kind, text, gap if i else block.gap)
        for i, (gap, text) in enumerate(cut_text(block.text, room, cap))
    ]


def _split_frame(block: Block, frame: Frame, room: int, cap: int) -> list[Block]:
    if frame.overhead_chars > cap // 2:  # a head of that length is text like the rest
        frame = Frame("", tuple(block.text.split("\n")), "")
    kind = block.kind if frame.head else "lines"
    gap = "\n\n" if frame.head else "\n"
    parts = [replace(frame, rows=rows) for rows in _row_groups(frame, room, cap)]
    return [Block(kind, part.text, gap if i else block.gap, frame=part) for i, part in enumerate(parts)]


def _row_groups(frame: Frame, room: int, cap: int) -> Iterator[tuple[str, ...]]:
    """The rows in runs that fit; a row longer than all of a run's room is cut."""
    limit, whole = room - frame.overhead_chars, cap - frame.overhead_chars
    group: list[str] = []
    size = 0
    for row in frame.rows:
        for _, part in cut_text(row, whole, whole):
            if group and size + len(part) > limit:
                yield tuple(group)
                group, size, limit = [], 0, whole
            group.append(part)
            size += len(part) + 1
    yield tuple(group)


def cut_text(text: str, room: int, cap: int) -> Iterator[tuple[str, str]]:
    """Text in pieces of at most `cap` characters (the first: `room`), each with the gap before it.

    A piece ends after a sentence or a line where one ends in its second half, else at white space, else
    between words, else between graphemes; inside a grapheme only when that alone is longer than the piece
    may be. Gaps and pieces joined are the text, but for runs of white space as long as a piece.
    """
    start, limit, gap = 0, room, ""
    while len(text) - start > limit:
        indent = _space_end(text, start) - start
        if indent >= limit:
            start, gap = start + indent, " "
            continue
        stop = _last_border(text, start, limit, indent)
        yield gap, text[start:stop]
        start, limit = _gap_end(text, stop), cap
        gap = text[stop:start]
    if start < len(text) or not text:
        yield gap, text[start:]


def _last_border(text: str, start: int, limit: int, indent: int) -> int:
    """The best place, at most `limit` characters after `start`, to end a piece."""
    window = text[start : start + limit + 1]
    half = max(limit // 2, indent + 1)
    if match := _LAST_SENTENCE_END.search(window, half):
        return start + match.start()
    newline = window.rfind("\n", half)
    if newline > 0:
        return start + newline
    if match := _LAST_SPACE.search(window, indent + 1):
        return start + match.start()
    if match := _LAST_WORD_BORDER.search(window, indent + 1):
        return start + match.start()
    if window.isascii():
        return start + limit
    return start + (_last_grapheme_border(window, limit) or limit)


def _last_grapheme_border(window: str, limit: int) -> int:
    """The last border of graphemes up to `limit`; 0 when one grapheme reaches beyond it.

    The window is one character longer than the limit: that one tells whether the grapheme goes on.
    """
    border = 0
    for match in _GRAPHEME.finditer(window):
        if match.end() > limit:
            break
        border = match.end()
    return border


def _space_end(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _gap_end(text: str, position: int) -> int:
    """Where the white space at the position ends; a space that carries a mark belongs to what follows."""
    end = _space_end(text, position)
    if position < end < len(text) and _EXTENDER.match(text[end]):
        end -= 1
    return end


def tail_of(text: str, n_chars: int) -> str:
    """At most the last characters of a text, from the start of a sentence, line or word; may be empty."""
    if len(text) <= n_chars:
        return text
    start = len(text) - n_chars
    border = _LINE_OR_SENTENCE_END.search(text, start - 1)
    if border is None or border.end() > start + n_chars // 2:  # too little would be left
        border = _SPACE.search(text, start - 1) or border
    return text[border.end() :] if border else ""
