from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from pipeline.console import disk_refusal

BUILD = Path("build")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_what_the_disk_refuses_is_one_sentence_that_names_the_file(number: int) -> None:
    sentence = disk_refusal(OSError(number, "no", "from.db", None, "build/to.db"), BUILD)
    assert sentence is not None
    assert sentence.startswith("build/to.db: ")
    assert "RALPH_BUILD" in sentence


def test_a_database_that_does_not_fit_is_a_refusal_of_the_disk() -> None:
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA max_page_count = 2")
    with pytest.raises(sqlite3.OperationalError) as error:
        database.executescript("CREATE TABLE a (x); CREATE TABLE b (x);")
    database.close()
    assert disk_refusal(error.value, BUILD) == (
        "build: database or disk is full; make room or allow it, or point RALPH_BUILD elsewhere"
    )


def test_a_fault_of_the_program_is_no_refusal_and_keeps_its_traceback() -> None:
    assert disk_refusal(FileNotFoundError(errno.ENOENT, "no", "x"), BUILD) is None
