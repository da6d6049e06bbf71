"""Conversations in an SQLite file of their own, for their owner alone."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import apsw

from handler.events import Citation, Done, Error, Event, Sources, Text
from handler.generate.types import Turn
from handler.settings import SettingsError

FILE = "conversations.db"
MAX_TITLE_CHARS = 80
# What a model is told of what was said before: the same as on the public path.
HISTORY_TURNS = 6

# Each entry takes a file from the version before it to the next; PRAGMA user_version counts them.
MIGRATIONS = (
    """
    CREATE TABLE conversation (
        id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: an old number leads nowhere
        title TEXT NOT NULL,
        created_at REAL NOT NULL,              -- seconds since 1970
        updated_at REAL NOT NULL
    );
    CREATE TABLE message (
        id INTEGER PRIMARY KEY,
        conversation INTEGER NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
        text TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('whole', 'cut')),
        details TEXT NOT NULL,                 -- JSON: sources, citations, model, error
        created_at REAL NOT NULL
    );
    CREATE INDEX message_conversation ON message(conversation);
    """,
)

State = Literal["whole", "cut"]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without what was said. Times are seconds since 1970."""

    id: int
    title: str
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was said. An answer that broke off is "cut"; `details` are those of AnswerSoFar."""

    role: Literal["user", "assistant"]
    text: str
    state: State
    created_at: float
    details: Mapping[str, Any]


@dataclass(slots=True)
class AnswerSoFar:
    """What has come of an answer."""

    text: str = ""
    state: State = "cut"
    sources: Sequence[Mapping[str, Any]] = ()
    citations: list[Mapping[str, Any]] = field(default_factory=list)
    model: str | None = None
    error: str | None = None

    def add(self, event: Event) -> None:
        """Takes in the next event."""
        match event:
            case Sources(sources):
                self.sources = [asdict(source) for source in sources]
            case Text(text):
                self.text += text
            case Citation():
                self.citations.append(asdict(event))
            case Done(model=model):
                self.state, self.model = "whole", model
            case Error(message=message):
                self.error = message

    @property
    def details(self) -> Mapping[str, Any]:
        """What is kept beside text and state."""
        return {
            "sources": self.sources,
            "citations": self.citations,
            "model": self.model,
            "error": self.error,
        }


class Conversations:
    """The conversations of one file. Threads take turns."""

    def __init__(self, connection: apsw.Connection, clock: Callable[[], float] = time.time) -> None:
        self._connection = connection
        self._clock = clock
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path, clock: Callable[[], float] = time.time) -> Self:
        """The conversations of a file, which is made when missing and brought to the newest version.

        Raises SettingsError when it cannot be, or was written by a newer program.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Before SQLite opens it: what SQLite makes beside the file takes over its mode.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            path.chmod(0o600)
            connection = apsw.Connection(str(path))
            connection.set_busy_timeout(5_000)
            connection.pragma("journal_mode", "wal")
            connection.pragma("foreign_keys", True)
            # What is deleted is overwritten, not just forgotten.
            connection.pragma("secure_delete", True)
            _migrate(connection, path)
        except (OSError, apsw.Error) as error:
            raise SettingsError(
                f"STATE_DIR: the conversations cannot be kept in {path}: {error}; name another folder"
            ) from None
        return cls(connection, clock)

    def all(self) -> list[Conversation]:
        """All conversations, the one that was last spoken in first."""
        rows = self._rows("SELECT * FROM conversation ORDER BY updated_at DESC, id DESC")
        return [Conversation(*row) for row in rows]

    def get(self, conversation_id: int) -> Conversation | None:
        """The conversation with this number."""
        rows = self._rows("SELECT * FROM conversation WHERE id = ?", conversation_id)
        return Conversation(*rows[0]) if rows else None

    def messages(self, conversation_id: int) -> list[Message]:
        """What was said in it, oldest first."""
        sql = """
            SELECT role, text, state, created_at, details FROM message WHERE conversation = ? ORDER BY id
        """
        return [
            Message(role, text, state, created_at, json.loads(details))
            for role, text, state, created_at, details in self._rows(sql, conversation_id)
        ]

    def history(self, conversation_id: int) -> list[Turn]:
        """The last HISTORY_TURNS turns, oldest first, without questions whose answer broke off."""
        turns: list[Turn] = []
        question: Message | None = None
        for message in self.messages(conversation_id):
            if message.role == "user":
                question = message
            elif question and message.state == "whole":
                turns += [Turn("user", question.text), Turn("assistant", message.text)]
        return turns[-HISTORY_TURNS:]

    def start(self, question: str) -> Conversation:
        """A new conversation, named after its first question."""
        words = " ".join(question.split())
        title = words if len(words) <= MAX_TITLE_CHARS else f"{words[: MAX_TITLE_CHARS - 1].rstrip()}…"
        now = self._clock()
        sql = "INSERT INTO conversation (title, created_at, updated_at) VALUES (?, ?, ?) RETURNING *"
        return Conversation(*self._rows(sql, title, now, now)[0])

    def rename(self, conversation_id: int, title: str) -> Conversation | None:
        """The conversation under its new name, None when there is none."""
        sql = "UPDATE conversation SET title = ? WHERE id = ? RETURNING *"
        rows = self._rows(sql, title, conversation_id)
        return Conversation(*rows[0]) if rows else None

    def delete(self, conversation_id: int) -> bool:
        """Whether it was there. Nothing of it stays in the file, or in the log beside it."""
        rows = self._rows("DELETE FROM conversation WHERE id = ? RETURNING id", conversation_id)
        self._rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return bool(rows)

    def ask(self, conversation_id: int, question: str) -> int:
        """Keeps a question, and the place of its answer, cut until it is whole. Gives that place's number."""
        now, nothing = self._clock(), json.dumps({})
        sql = """
            INSERT INTO message (conversation, role, text, state, details, created_at)
            VALUES (?, ?, ?, ?, ?, ?) RETURNING id
        """
        with self._lock, self._connection:
            self._rows(sql, conversation_id, "user", question, "whole", nothing, now)
            details = json.dumps(AnswerSoFar().details)
            (row,) = self._rows(sql, conversation_id, "assistant", "", "cut", details, now)
            self._rows("UPDATE conversation SET updated_at = ? WHERE id = ?", now, conversation_id)
        return int(row[0])

    def keep(self, message_id: int, answer: AnswerSoFar) -> None:
        """Keeps what has come of an answer; its conversation may have been deleted meanwhile."""
        sql = "UPDATE message SET text = ?, state = ?, details = ? WHERE id = ?"
        self._rows(sql, answer.text, answer.state, json.dumps(answer.details), message_id)

    def _rows(self, sql: str, *values: str | float) -> list[Any]:
        with self._lock:
            return self._connection.execute(sql, values).fetchall()


def _migrate(connection: apsw.Connection, path: Path) -> None:
    with connection:
        version = int(connection.pragma("user_version"))
        if version > len(MIGRATIONS):
            raise SettingsError(
                f"STATE_DIR: {path} was written by a newer Ralph (version {version}, this one knows "
                f"{len(MIGRATIONS)}): update Ralph"
            )
        for migration in MIGRATIONS[version:]:
            connection.execute(migration)
        connection.pragma("user_version", len(MIGRATIONS))
