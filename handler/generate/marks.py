"""The [n] that a model writes, told from the text around them, however its stream is cut."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handler.bundle.search import Hit
from handler.bundle.terms import query_phrases
from handler.events import Citation, Text
from handler.generate.sentences import quotable_spans

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


class MarkedText:
    """An answer as it grows, its marks turned into citations.

    A mark names a source and no words: the quote is the part of the source that says most of what the
    sentence before the mark says. Marks of what is no source are left out, and counted in `dropped`.
    """

    def __init__(self, hits: Sequence[Hit]) -> None:
        self.dropped = 0
        self._hits = hits
        self._written = ""
        self._reader = MarkReader()

    def add(self, piece: str) -> Iterator[Text | Citation]:
        """What is certain with the next piece."""
        return self._events(self._reader.feed(piece))

    def end(self) -> Iterator[Text | Citation]:
        """The rest, when no piece follows."""
        return self._events(self._reader.end())

    def _events(self, parts: Iterator[str | Mark]) -> Iterator[Text | Citation]:
        for part in parts:
            if isinstance(part, Mark):
                yield from self._citations(part)
            else:
                self._written += part
                yield Text(part)

    def _citations(self, mark: Mark) -> Iterator[Citation]:
        for number in mark.numbers:
            if not 1 <= number <= len(self._hits):
                self.dropped += 1
                continue
            quote = best_quote(_last_part(self._written), self._hits[number - 1].chunk.text)
            yield Citation(number, quote, len(self._written.rstrip()))


def best_quote(claim: str, text: str) -> str:
    """The quotable part of a chunk that shares most words with a claim; the first one when none does.

    It stands in the chunk word for word. The whole chunk when it has no such part.
    """
    words = set(query_phrases(claim))

    def shared(quote: str) -> float:
        """More words are better, and of two parts with the same words the shorter one."""
        found = set(query_phrases(quote))
        return len(words & found) / math.sqrt(len(found) + 8)

    quotes = [text[span.start : span.end] for span in quotable_spans(text)]
    return max(quotes, key=shared, default=text)


def _last_part(written: str) -> str:
    """The sentence, item or row that a mark behind the text belongs to."""
    spans = quotable_spans(written)
    return written[spans[-1].start : spans[-1].end] if spans else ""
