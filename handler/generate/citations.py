"""A model's citations, each one checked against the chunk that it names."""

from __future__ import annotations

from collections.abc import Sequence

from handler.bundle.search import Hit
from handler.events import Citation, Text


class CitedText:
    """An answer as it grows, block by block.

    A citation belongs to its block, whether it comes before the block's text or after: it is given out when
    the block ends, with the end of the block's words for its place. One that quotes what does not stand in
    its chunk is dropped, and counted in `dropped`.
    """

    def __init__(self, hits: Sequence[Hit]) -> None:
        self.dropped = 0
        self._hits = hits
        self._length = 0
        self._length_without_end_space = 0
        self._open: dict[tuple[int, str], None] = {}

    def add(self, text: str) -> Text:
        """The next piece of the open block's text."""
        if words := text.rstrip():
            self._length_without_end_space = self._length + len(words)
        self._length += len(text)
        return Text(text)

    def cite(self, document_index: int, quote: str) -> None:
        """A citation of the open block: words of the hit of that index, from 0."""
        quote = quote.strip()
        is_hit = 0 <= document_index < len(self._hits)
        if quote and is_hit and quote in self._hits[document_index].chunk.text:
            self._open.setdefault((document_index + 1, quote))
        else:
            self.dropped += 1

    def drop(self) -> None:
        """Counts a citation of something that is no hit."""
        self.dropped += 1

    def end_block(self) -> list[Citation]:
        """The citations of the block that ends, each pair of source and quote once."""
        citations = [Citation(source, quote, self._length_without_end_space) for source, quote in self._open]
        self._open.clear()
        return citations
