"""Text as the keyword index sees it, and a question as the literal terms to look for in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise

# FTS5's tokenizer for what `keyword_text` returns. Marks (Mn, Mc) belong to words, or Devanagari and Thai
# would be cut at every vowel sign.
TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc")

# A question has at most so many terms: a whole page pasted as a question costs no more than a long sentence.
MAX_TERMS = 48
# What is looked at of a question; far more text than MAX_TERMS terms take.
MAX_QUESTION_CHARS = 4_000

# Scripts written without spaces, and Hangul, whose particles are glued to their words: each character is
# a token, so that any substring is a phrase.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]"
)
# The same after `fold` has set them apart; two spaces are what is left of something else.
_UNSPACED_RUN = re.compile(f" {_UNSPACED.pattern}(?:  {_UNSPACED.pattern})* ")

# Names told apart by signs that no tokenizer keeps: `C++` and `C#` get the word's spoken form beside
# them, `.NET` and `.env` a word that says there is a dot.
_SIGNED = re.compile(r"(?<!\w)([^\W\d_]{1,2})(\+\+|#)(?![\w+#])")
_SPOKEN = {"++": "plusplus", "#": "sharp"}
_DOTTED = re.compile(r"(?<![\w.)\]/])\.([^\W_][\w-]*)")

# Names in code are found by the words that they are made of: `hasSuffix`, `strings.HasSuffix`, `HasSuffix()`.
# Not those in prose: who looks for a press does not mean WordPress, nor who looks for a bay eBay.
_CAMEL = re.compile(
    r"(?<![^\W_])(?:(?=[a-z]{2})|(?<=[._`])|(?=[A-Za-z]*+\d*+[(_`]))"
    r"(?>[A-Za-z]*?[a-z][A-Z][A-Za-z]*\d*)(?![^\W_])"
)
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*")
# What has no white space inside stays whole in front of the parts: it is looked for as one phrase.
_CAMEL_PIECE = re.compile(r"(?<!\S)\S*?[a-z][A-Z]\S*+")

# What English glues to a word with an apostrophe: `site's` and `don't` are no names with a sign inside.
_CONTRACTION = re.compile(r"n?['’](?:s|t|re|ve|ll|d|m)(?!\w)", re.IGNORECASE)
_TATWEEL = "\u0640"

_ENGLISH = """
a about above after again all also am an and any are aren as at be because been before being below between
both but by can cannot could couldn d did didn do does doesn doing don down during each ever few for from
further get gets give given gives had hadn has hasn have haven having he her here hers him his how i if in
into is isn it its just know ll m many me might more most much must my myself no nor not now of off on
once one only or other our ours out over own please re s same shall she should shouldn so some such t tell
than that the their theirs them then there these they this those through to too under until up us use used
using ve very was wasn we were weren what when where which while who whom whose why will with won would
wouldn you your yours
"""
STOPWORDS = frozenset(_ENGLISH.split())


def keyword_text(text: str) -> str:
    """The text as it goes into FTS5: folded, each name in code followed by its parts.

    A question is only folded: parted too, a name in it were many words, most of which a page lacks that
    writes it in small letters, and the gate would take the question for one that is not answered.
    """
    return fold(_CAMEL_PIECE.sub(lambda piece: " ".join((piece[0], *_camel_parts(piece[0]))), text))


def fold(text: str) -> str:
    """The text without what makes no difference between words, on the build's side and on the question's.

    Compatibility forms, case and the marks of Latin, Greek, Cyrillic, Hebrew and Arabic are folded away
    (canonical combining classes 10-35 and 200-240, Unicode Standard 3.11); the marks that are letters in
    Indic and Thai stay. Characters of scripts without spaces stand alone.
    """
    if text.isascii():
        folded = text.lower()
    else:
        decomposed = unicodedata.normalize("NFKD", text).casefold()
        kept = "".join(char for char in decomposed if not _is_folded_away(char))
        folded = _UNSPACED.sub(r" \g<0> ", unicodedata.normalize("NFC", kept))
    return _name_signs(folded).replace("\0", " ")


def query_phrases(question: str) -> tuple[str, ...]:
    """The question's distinct terms, in order: each one folded word, or several in a row. None to MAX_TERMS.

    Stopwords are left out. A word with signs inside (`multi-agent`, `2026.4.10`, `GB/s`) gives the row of
    its parts and each part that is no stopword; a run of a script without spaces gives its neighbouring
    pairs. No term has a meaning to FTS5 beyond its letters once it is quoted.
    """
    phrases: dict[str, None] = {}
    for piece in question[:MAX_QUESTION_CHARS].split():
        for phrase in _piece_phrases(piece):
            phrases.setdefault(phrase)
    return tuple(phrases)[:MAX_TERMS]


def running_words(text: str) -> str:
    """The text's words one after the other, folded, with a space before, between and behind them."""
    words = " ".join(part for word in fold(text).split() for part in _parts(word))
    return f" {words} "


# Words that have no meaning without somebody or something at hand: the site, or whoever writes it. Not "you":
# the world's questions have it more often, of people in general or of an assistant.
_POINTING = re.compile(
    r"\b(?:he|his|him|himself|she|her|hers|authors?|owner|site|website|blog|here)\b", re.IGNORECASE
)
# How assistants are spoken to that set alarms and find restaurants.
_ASKING = re.compile(
    r"\b(?:(?:can|could|would|will) you|me|please)\b"
    r"|^(?:tell|find|look|show|give|set|play|make|write|order|book|check|remind|help|turn|let)\b",
    re.IGNORECASE,
)


def points_at_site(question: str) -> bool:
    """Whether a question speaks of the site or its author, as readers of a site do and others hardly ever."""
    return _POINTING.search(question[:MAX_QUESTION_CHARS]) is not None


def asks_a_service(question: str) -> bool:
    """Whether a question asks for something to be done, rather than for what pages say."""
    return _ASKING.search(question[:MAX_QUESTION_CHARS].lstrip()) is not None


def neighbours(phrases: Sequence[str]) -> tuple[str, ...]:
    """The pairs of words that follow each other in a question's terms, each as one phrase.

    Terms of several words are passed over; an empty term parts its neighbours.
    """
    words = [phrase for phrase in phrases if " " not in phrase]
    return tuple(f"{first} {second}" for first, second in pairwise(words) if first and second)


def _piece_phrases(piece: str) -> list[str]:
    """The terms of a piece of the question that has no white space inside."""
    folded = fold(_CONTRACTION.sub("", piece))
    phrases: list[str] = []
    for run in _UNSPACED_RUN.findall(folded):
        characters = run.split()
        phrases += [" ".join(pair) for pair in pairwise(characters)] or characters
    for word in _UNSPACED.sub(" ", folded).split():
        parts = _parts(word)
        if len(parts) > 1 and not STOPWORDS.issuperset(parts):
            phrases.append(" ".join(parts))
        phrases += [part for part in parts if part not in STOPWORDS]
    return phrases


def _parts(word: str) -> list[str]:
    """The tokens that FTS5 makes of a folded word, before stemming."""
    return "".join(char if _is_letter(char) else " " for char in word).split()


def _is_letter(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char) in ("Mn", "Mc")


def _is_folded_away(char: str) -> bool:
    combining = unicodedata.combining(char)
    return 10 <= combining <= 35 or 200 <= combining <= 240 or char == _TATWEEL


def _camel_parts(piece: str) -> Iterable[str]:
    for name in _CAMEL.findall(piece):
        yield from _CAMEL_PART.findall(name)


def _name_signs(text: str) -> str:
    if "+" in text or "#" in text:
        text = _SIGNED.sub(lambda match: f"{match[0]} {match[1]}{_SPOKEN[match[2]]}", text)
    if "." in text:
        text = _DOTTED.sub(r"\g<0> dot\1", text)
    return text
