"""Counting tokens quickly: texts share their words, so each word is tokenised once."""

from __future__ import annotations

import string
from collections.abc import Callable
from functools import lru_cache

import regex

from handler.bundle.encoder import Encoder

_SPACE = regex.compile(r"[ \t\r]+")
_WITHOUT_MARKS = str.maketrans("", "", string.punctuation)
# Each mark is a word of its own, and a token of its own. BERT drops control characters, also those that
# Python takes for white space: another one in their place keeps the word whole.
_WORDS = str.maketrans(dict.fromkeys(string.punctuation, " ") | dict.fromkeys("\v\f\x1c\x1d\x1e\x1f", "\1"))

# The words of some languages; a page of random letters takes no more memory than they. With these bounds,
# 10 MB of English are chunked in 4 s, and 10 MB in many languages in 11 s (before: 17 and 19 s).
_MAX_WORDS = 100_000
# Where no spaces stand between words, as in Chinese, "words" are long, and not seen again.
_MAX_WORD_CHARS = 30
# A chunk is counted up to four times, alone and behind its overlap, as markdown and as plain text.
_MAX_LINES = 1_000


def token_counter(encoder: Encoder) -> Callable[[str], int]:
    """What counts as `encoder.count_tokens` does, several times as fast where the tokenizer is BERT's.

    BERT's goes word by word, so that a text has as many tokens as its words have together.
    """
    if not encoder.goes_word_by_word:
        return encoder.count_tokens
    n_around = encoder.count_tokens("")
    special = [token.lower() for token in encoder.special_tokens]

    @lru_cache(maxsize=_MAX_WORDS)
    def n_of_word(word: str) -> int:
        return encoder.count_tokens(word) - n_around

    @lru_cache(maxsize=_MAX_LINES)
    def n_of_line(line: str) -> int:
        lowered = line.lower()
        if any(token in lowered for token in special):
            return encoder.count_tokens(line) - n_around
        if line.isascii():
            n_marks = len(line) - len(line.translate(_WITHOUT_MARKS))
            return n_marks + sum(map(n_of_word, line.translate(_WORDS).split()))
        words = _SPACE.split(line)
        whole = " ".join(word for word in words if len(word) > _MAX_WORD_CHARS)
        n_short = sum(n_of_word(word) for word in words if len(word) <= _MAX_WORD_CHARS)
        return n_short + (encoder.count_tokens(whole) - n_around if whole else 0)

    def count(text: str) -> int:
        return n_around + sum(map(n_of_line, text.split("\n")))

    return count
