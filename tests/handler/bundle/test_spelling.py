from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest

from handler.bundle.database import create_tables, insert_keywords
from handler.bundle.spelling import Vocabulary
from handler.bundle.types import Chunk

TEXT = "figma browser challenge vesuvius installation installed call cafeteria browse browse"


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    create_tables(connection, 8)
    insert_keywords(connection, 1, Chunk("https://x.org/", "", "x.md", "x", (), "", 0, TEXT), {})
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("broswer", "browser"),
        ("chalenge", "challeng"),
        ("challlenge", "challeng"),
        ("vesuvias", "vesuviu"),
        ("cell", None),
        ("wesuvius", None),
        ("zebra", None),
        ("naïve", None),
        ("x" * 1000, None),
    ],
)
def test_a_misspelt_word_finds_the_one_that_was_meant(
    connection: apsw.Connection, word: str, meant: str | None
) -> None:
    assert Vocabulary(connection).nearest(word, connection) == meant


def test_an_empty_index_has_nothing_to_offer() -> None:
    connection = apsw.Connection(":memory:")
    create_tables(connection, 8)
    assert Vocabulary(connection).nearest("broswer", connection) is None
