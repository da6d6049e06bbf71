"""How many tokens a day may cost, counted where every process of a host sees it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

DAY_S = 86_400
FILE = "tokens.db"
_BUSY_MS = 2_000

# A row a day, kept: what was spent when is worth knowing, and a year of it is 4 KB.
_CREATE = "CREATE TABLE IF NOT EXISTS spent (day INTEGER PRIMARY KEY, tokens INTEGER NOT NULL) STRICT"
# Asks and takes in one statement, so that two processes cannot both take the last tokens.
_RESERVE = """
    INSERT INTO spent VALUES (?1, ?2)
    ON CONFLICT (day) DO UPDATE SET tokens = tokens + ?2 WHERE tokens < ?3
    RETURNING tokens
"""
_SETTLE = "UPDATE spent SET tokens = tokens + ? WHERE day = ?"


class Budget:
    """The tokens of one UTC day. May be used from many threads; `clock` returns Unix seconds.

    A question reserves what it may cost before it is sent, and gives back what it did not cost: many that
    come at once cannot all pass on the same last tokens. `shared` is whether other processes count with
    this one; where nothing can be written, each counts for itself, until it ends.
    """

    def __init__(self, daily_tokens: int, state_dir: Path, clock: Callable[[], float]) -> None:
        self._daily_tokens = daily_tokens
        self._clock = clock
        self._lock = threading.Lock()
        try:
            self._connection = _open(state_dir)
        except (OSError, apsw.Error):
            self._connection = _in_memory()
        self.shared = bool(self._connection.filename)

    def reserve(self, tokens: int) -> Reservation | None:
        """The right to spend up to `tokens`, to be settled once; None when the day's are spent."""
        day = int(self._clock() // DAY_S)
        with self._lock:
            rows = self._connection.execute(_RESERVE, (day, tokens, self._daily_tokens)).fetchall()
        return Reservation(day, tokens) if rows else None

    def settle(self, reservation: Reservation, tokens: int) -> None:
        """Counts what a question really cost, to the day on which it was asked."""
        with self._lock:
            self._connection.execute(_SETTLE, (tokens - reservation.tokens, reservation.day))

    def seconds_left(self) -> int:
        """Whole seconds until the next budget, at midnight UTC."""
        return math.ceil(DAY_S - self._clock() % DAY_S)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Tokens set aside for a question. `day` counts from 1970."""

    day: int
    tokens: int


def _open(state_dir: Path) -> apsw.Connection:
    """The file that all processes count in. Raises OSError or apsw.Error where it cannot be written."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    connection = apsw.Connection(str(state_dir / FILE))
    connection.set_busy_timeout(_BUSY_MS)
    # A number that is lost with the power is no loss; waiting for the disk at every question is one.
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(_CREATE)
    connection.execute("BEGIN IMMEDIATE; COMMIT")  # fails now, not at the first question, if read-only
    return connection


def _in_memory() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(_CREATE)
    return connection
