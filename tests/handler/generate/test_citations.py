from __future__ import annotations

import pytest

from handler.bundle.search import Hit
from handler.bundle.types import Chunk
from handler.events import Citation
from handler.generate.citations import CitedText


def hit(text: str) -> Hit:
    return Hit(Chunk("https://example.org/a", "A", "a.md", "notes", (), "", 0, text), 1.0, 0.9, 1.0, 1, 1, "")


@pytest.fixture
def answer() -> CitedText:
    return CitedText([hit("Tomatoes want sun. Water helps."), hit("Der Weiher 🐸 ist grün.")])


def test_a_citation_may_come_before_its_text(answer: CitedText) -> None:
    answer.cite(0, "Tomatoes want sun.")
    answer.add("They want ")
    answer.add("sun.")
    assert answer.end_block() == [Citation(1, "Tomatoes want sun.", len("They want sun."))]


def test_a_citation_stands_behind_the_words_of_its_block_and_before_white_space(answer: CitedText) -> None:
    answer.add("Sun. \n")
    answer.cite(0, "Tomatoes want sun.")
    (first,) = answer.end_block()
    answer.add("\n")
    answer.add("Frösche 🐸. ")
    answer.cite(1, "Der Weiher 🐸 ist grün.")
    (second,) = answer.end_block()
    assert (first.at, second.at) == (4, len("Sun. \n\nFrösche 🐸."))


def test_the_same_words_of_the_same_source_are_cited_once_a_block(answer: CitedText) -> None:
    answer.add("Sun.")
    for quote in ("Tomatoes want sun.", "Tomatoes want sun. ", "Water helps."):
        answer.cite(0, quote)
    assert [citation.quote for citation in answer.end_block()] == ["Tomatoes want sun.", "Water helps."]
    answer.add(" Again.")
    answer.cite(0, "Tomatoes want sun.")
    assert len(answer.end_block()) == 1


@pytest.mark.parametrize(
    ("index", "quote"),
    [
        (0, "Tomatoes want shade."),
        (1, "Tomatoes want sun."),
        (2, "Tomatoes want sun."),
        (-1, "Der"),
        (0, " "),
    ],
)
def test_a_citation_of_what_is_not_there_is_dropped_and_counted(
    answer: CitedText, index: int, quote: str
) -> None:
    answer.add("Sun.")
    answer.cite(index, quote)
    assert answer.end_block() == []
    assert answer.dropped == 1
