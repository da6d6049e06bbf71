"""The [n] that a model writes, told from the text around them, however its stream is cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# What models write when they are asked for [n]: [1], [1, 2], [1-3], [^1], [Source 1] and 【1】. Years and
# other longer numbers in brackets are text.
_NUMBER = r"(?:sources?\s*)?\^?\d{1,3}"
_MARK = rf"[ \t]*[\[【]\s*{_NUMBER}(?:\s*[,;–-]\s*{_NUMBER})*\s*[\]】]"
_TOKEN = re.compile(rf"(?P<ticks>`+)|(?P<blank>\n[ \t]*\n)|(?P<mark>{_MARK})", re.IGNORECASE)
_RANGE = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
# The end of a piece that the next one may turn into a token: backticks, white space, an open bracket.
_UNFINISHED = re.compile(r"(?:`+|\s*(?:[\[【][\w\s,;^–-]{0,60})?)$")
# From so many backticks on they fence a block, which an empty line does not end (CommonMark 0.31, 4.5).
_FENCE = 3


@dataclass(frozen=True, slots=True)
class Mark:
    """The numbers of the sources that are cited here, as the model wrote them."""

    numbers: tuple[int, ...]


class MarkReader:
    """Splits a text that comes in pieces. Brackets in code are code: `argv[1]` cites nothing."""

    def __init__(self) -> None:
        self._unfinished = ""
        self._code = 0  # how many backticks opened the code that is open

    def feed(self, piece: str) -> Iterator[str | Mark]:
        """What is certain now; text is never empty."""
        text = self._unfinished + piece
        unfinished = _UNFINISHED.search(text)
        end = unfinished.start() if unfinished else len(text)
        self._unfinished = text[end:]
        return self._split(text[:end])

    def end(self) -> Iterator[str | Mark]:
        """What was held back, when no piece follows."""
        rest, self._unfinished = self._unfinished, ""
        return self._split(rest)

    def _split(self, text: str) -> Iterator[str | Mark]:
        start = 0
        for token in _TOKEN.finditer(text):
            if token["ticks"]:
                self._see_ticks(len(token["ticks"]))
            elif token["blank"]:
                self._code = self._code if self._code >= _FENCE else 0
            elif not self._code:
                if start < token.start():
                    yield text[start : token.start()]
                yield Mark(_numbers(token["mark"]))
                start = token.end()
        if start < len(text):
            yield text[start:]

    def _see_ticks(self, count: int) -> None:
        if not self._code:
            self._code = count
        elif count == self._code or count > self._code >= _FENCE:
            self._code = 0


def _numbers(mark: str) -> tuple[int, ...]:
    """Every number once, in order; those between the ends of a range too."""
    numbers: dict[int, None] = {}
    for first, last in _RANGE.findall(mark):
        numbers.update(dict.fromkeys(range(int(first), int(last or first) + 1)))
    return tuple(numbers)
