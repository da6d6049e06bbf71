"""Names of files on one line of a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text, with what would break the line, colour it or turn it around escaped as in Python."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
