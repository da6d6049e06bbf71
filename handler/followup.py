"""What to search for when a question leans on an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from handler.bundle.search import SearchResult
from handler.generate.types import Turn

Search = Callable[[str], SearchResult]


def search_with_history(search: Search, question: str, history: Sequence[Turn]) -> SearchResult:
    """What is found for the question, or for it after the reader's last one."""
    found = search(question)
    if found.gate.accepted:
        return found
    earlier = next((turn.text for turn in reversed(history) if turn.role == "user"), None)
    return search(f"{earlier} {question}") if earlier else found
