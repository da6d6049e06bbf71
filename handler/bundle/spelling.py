"""The words of a bundle, to find the one that was meant when a question has a word that is none of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from handler.bundle.terms import TOKENIZER

# Shorter words have too many neighbours: `cell` would become `call`.
MIN_LENGTH = 5
# Words from this length on may have two mistakes.
TWO_MISTAKES_LENGTH = 8
_MAX_LENGTH = 24


class Vocabulary:
    """The stems of a keyword index that a misspelt word may have meant."""

    def __init__(self, connection: apsw.Connection) -> None:
        connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.stems USING fts5vocab(main, chunk_fts, row)"
        )
        rows: list[Any] = connection.execute("SELECT term, doc FROM temp.stems ORDER BY term").fetchall()
        # Latin letters alone: a letter more or less in another script is mostly another word.
        known = [row for row in rows if len(row[0]) <= _MAX_LENGTH and row[0].isascii() and row[0].isalpha()]
        self._stems = [stem for stem, _ in known]
        self._counts = np.array([count for _, count in known], dtype=np.int64)
        self._lengths = np.array([len(stem) for stem in self._stems], dtype=np.int64)
        self._letters = _as_matrix(self._stems)
        self._letter_sets = np.array([_letter_set(stem) for stem in self._stems], dtype=np.uint32)

    def nearest(self, word: str, connection: apsw.Connection) -> str | None:
        """The stem fewest mistakes away from a folded word, the most frequent of them, or None.

        One mistake is a letter too many, missing, wrong, or swapped with its neighbour; the first letter
        must be right. A word of MIN_LENGTH letters may have one, of TWO_MISTAKES_LENGTH two.
        """
        if len(word) < MIN_LENGTH or not (word.isascii() and word.isalpha()) or len(word) > _MAX_LENGTH:
            return None
        stem = _stem(word, connection)
        limit = 1 if len(stem) < TWO_MISTAKES_LENGTH else 2
        # Each mistake changes the set of letters by two at most: most stems are told apart by that alone.
        different = np.bitwise_count(self._letter_sets ^ np.uint32(_letter_set(stem)))
        near = (different <= 2 * limit) & (np.abs(self._lengths - len(stem)) <= limit)
        candidates = np.flatnonzero(near & (self._letters[:, 0] == ord(stem[0])))
        if not len(candidates):
            return None
        distances = _edit_distances(stem, self._letters[candidates], self._lengths[candidates])
        nearest = candidates[distances == distances.min()]
        return self._stems[nearest[self._counts[nearest].argmax()]] if distances.min() <= limit else None


def _edit_distances(word: str, letters: NDArray[np.uint8], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) optimal string alignment distances of a word to n others at once, a row of `letters` each."""
    n, width = letters.shape
    table = np.zeros((len(word) + 1, width + 1, n), dtype=np.int64)
    table[:, 0] = np.arange(len(word) + 1)[:, None]
    table[0] = np.arange(width + 1)[:, None]
    codes = word.encode()
    for i in range(1, len(word) + 1):
        for j in range(1, width + 1):
            wrong = letters[:, j - 1] != codes[i - 1]
            best = np.minimum(table[i - 1, j] + 1, table[i, j - 1] + 1)
            best = np.minimum(best, table[i - 1, j - 1] + wrong)
            if i > 1 and j > 1:
                swapped = (letters[:, j - 1] == codes[i - 2]) & (letters[:, j - 2] == codes[i - 1])
                best = np.where(swapped, np.minimum(best, table[i - 2, j - 2] + 1), best)
            table[i, j] = best
    distances: NDArray[np.int64] = table[len(word), lengths, np.arange(n)]
    return distances


def _as_matrix(stems: Sequence[str]) -> NDArray[np.uint8]:
    """(n, _MAX_LENGTH) the stems' letters, 0 after the end."""
    padded = np.array([stem.encode() for stem in stems] or [b""], dtype=f"S{_MAX_LENGTH}")
    return padded.view(np.uint8).reshape(-1, _MAX_LENGTH)[: len(stems)]


def _letter_set(stem: str) -> int:
    """Which of the letters a to z stand in a stem, a bit each."""
    return sum(1 << (ord(letter) - ord("a")) for letter in set(stem))


def _stem(word: str, connection: apsw.Connection) -> str:
    name, *arguments = TOKENIZER
    tokenize = connection.fts5_tokenizer(name, arguments)
    stems: Any = tokenize(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False)
    return str(stems[0][0])
