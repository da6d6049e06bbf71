"""Counts as people write them."""

from __future__ import annotations


def counted(n: int, noun: str, plural: str = "") -> str:
    """The number with its noun: "1 page", "2 pages", "12,345 entries" of ("entry", "entries")."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"
