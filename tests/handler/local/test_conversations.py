"""Conversations in their file."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import apsw
import pytest

from handler.events import Citation, Done, Error, Source, Sources, Text, Timing, Usage
from handler.generate.types import Turn
from handler.local.conversations import MIGRATIONS, AnswerSoFar, Conversations
from handler.settings import SettingsError

DONE = Done("ollama", "llama3.2", "end", Usage(), Timing(1.0, 2.0, 3.0), "live")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "conversations.db"


@pytest.fixture
def conversations(path: Path) -> Iterator[Conversations]:
    ticks = count(1)
    yield Conversations.open(path, lambda: float(next(ticks)))


def say(conversations: Conversations, conversation_id: int, question: str, *events: object) -> None:
    message_id = conversations.ask(conversation_id, question)
    answer = AnswerSoFar()
    for event in events:
        answer.add(event)  # type: ignore[arg-type]
    conversations.keep(message_id, answer)


def test_an_answer_is_kept_with_all_that_it_rests_on(conversations: Conversations, path: Path) -> None:
    source = Source(1, "Pond", "", "https://example.org/pond", "Algae.", 1)
    started = conversations.start("  What \n grows? ")
    say(
        conversations,
        started.id,
        "What grows?",
        Sources((source,)),
        Text("Al"),
        Text("gae"),
        Citation(1, "A", 5, "A"),
        DONE,
    )
    again = Conversations.open(path)
    assert [conversation.title for conversation in again.all()] == ["What grows?"]
    question, answer = again.messages(started.id)
    assert (question.role, question.text, question.state) == ("user", "What grows?", "whole")
    assert (answer.role, answer.text, answer.state) == ("assistant", "Algae", "whole")
    assert answer.details["sources"][0]["url"] == "https://example.org/pond"
    assert answer.details["citations"] == [{"source": 1, "quote": "A", "at": 5, "shown": "A"}]
    assert (answer.details["model"], answer.details["error"]) == ("llama3.2", None)


def test_an_answer_that_broke_off_is_kept_as_cut(conversations: Conversations) -> None:
    one = conversations.start("One?")
    say(conversations, one.id, "One?", Text("Half"), Error("cut_off", "It broke."))
    conversations.ask(one.id, "And two?")  # and then the process was killed
    messages = conversations.messages(one.id)
    assert [(message.text, message.state) for message in messages] == [
        ("One?", "whole"),
        ("Half", "cut"),
        ("And two?", "whole"),
        ("", "cut"),
    ]
    assert messages[1].details["error"] == "It broke."


def test_the_history_has_whole_answers_alone_and_the_last_of_them(conversations: Conversations) -> None:
    one = conversations.start("0?")
    for number in range(5):
        say(conversations, one.id, f"{number}?", Text(f"{number}."), DONE)
        say(conversations, one.id, f"cut {number}?", Text("Half"))
    assert conversations.history(one.id) == [
        turn for number in (2, 3, 4) for turn in (Turn("user", f"{number}?"), Turn("assistant", f"{number}."))
    ]
    assert conversations.history(99) == []


def test_the_last_spoken_in_comes_first(conversations: Conversations) -> None:
    one, two = conversations.start("One?"), conversations.start("Two?")
    assert [conversation.id for conversation in conversations.all()] == [two.id, one.id]
    conversations.ask(one.id, "And?")
    assert [conversation.id for conversation in conversations.all()] == [one.id, two.id]


def test_a_long_question_makes_a_short_title(conversations: Conversations) -> None:
    title = conversations.start("x" * 200).title
    assert (len(title), title[-1]) == (80, "…")


def test_a_conversation_can_be_renamed(conversations: Conversations) -> None:
    one = conversations.start("One?")
    renamed = conversations.rename(one.id, "Uno")
    assert renamed is not None
    assert renamed.title == "Uno"
    assert conversations.get(one.id) == renamed
    assert conversations.rename(99, "None") is None


def test_what_is_deleted_is_not_in_the_files_any_more(conversations: Conversations, path: Path) -> None:
    kept, gone = conversations.start("Keep?"), conversations.start("xylophone?")
    say(conversations, gone.id, "xylophone?", Text("xylophone " * 2000), DONE)
    assert conversations.delete(gone.id)
    assert not conversations.delete(gone.id)
    assert [conversation.id for conversation in conversations.all()] == [kept.id]
    assert conversations.messages(gone.id) == []
    assert [file.name for file in path.parent.iterdir() if b"xylophone" in file.read_bytes()] == []


def test_an_answer_to_a_deleted_conversation_is_let_go(conversations: Conversations) -> None:
    one = conversations.start("One?")
    message_id = conversations.ask(one.id, "One?")
    conversations.delete(one.id)
    conversations.keep(message_id, AnswerSoFar("late"))
    assert conversations.messages(one.id) == []
    assert conversations.start("Two?").id > one.id


def test_the_files_are_for_their_owner_alone(conversations: Conversations, path: Path) -> None:
    conversations.start("One?")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("conversations.db", "conversations.db-wal", "conversations.db-shm"), 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_of_a_newer_program_is_left_alone(conversations: Conversations, path: Path) -> None:
    connection = apsw.Connection(str(path))
    assert connection.pragma("user_version") == len(MIGRATIONS)
    connection.pragma("user_version", 99)
    with pytest.raises(SettingsError, match="newer Ralph"):
        Conversations.open(path)
    assert connection.pragma("user_version") == 99


def test_a_place_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(SettingsError, match="STATE_DIR"):
        Conversations.open(tmp_path / "file" / "conversations.db")
    (tmp_path / "conversations.db").write_bytes(b"no database at all, but long enough to be read")
    with pytest.raises(SettingsError, match="STATE_DIR"):
        Conversations.open(tmp_path / "conversations.db")
