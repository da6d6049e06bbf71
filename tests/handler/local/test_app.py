"""The local chat by HTTP, with Ollama's stand-in behind it."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from handler.bundle.types import BundleError
from tests.conftest import MakeBundle
from tests.fakes.ollama_api import DROP, HOLD, row, rows
from tests.handler.local.conftest import Chat, StartChat


def ask(chat: Chat, question: str, conversation: int | None = None) -> list[tuple[str, dict[str, Any]]]:
    response = chat.client.post("/api/chat", json={"question": question, "conversation": conversation})
    assert response.status_code == 200, response.text
    return events_of(response.text)


def events_of(stream: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, json.loads(data)) for name, data in re.findall(r"event: (.+)\ndata: (.+)\n\n", stream)]


def messages_of(chat: Chat, conversation: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = chat.client.get(f"/api/conversations/{conversation}").json()["messages"]
    return messages


def test_a_question_is_answered_in_the_events_of_the_public_stream(chat: Chat) -> None:
    chat.api.replies.append(rows("Algae ", "[1]", "."))
    response = chat.client.post("/api/chat", json={"question": "What does the pond have?"})
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["x-conversation-id"] == "1"
    events = events_of(response.text)
    assert [name for name, _ in events] == ["sources", "text", "citation", "text", "done"]
    assert events[0][1]["sources"][0]["url"] == "https://example.org/notes/garden#pond"
    quote = "The pond has algae in summer."
    assert events[2][1] == {"source": 1, "quote": quote, "at": len("Algae"), "shown": quote}
    assert (events[-1][1]["generator"], events[-1][1]["model"]) == ("ollama", "llama3.2")


def test_private_collections_are_found(chat: Chat) -> None:
    found = {source["url"] for source in ask(chat, "secret diary")[0][1]["sources"]}
    assert "https://example.org/diary/secret" in found
    assert chat.client.get("/api/about").json()["collections"] == ["diary", "notes"]


def test_a_follow_up_is_searched_and_asked_with_what_was_said(chat: Chat) -> None:
    ask(chat, "What does the pond have?")
    ask(chat, "And why?", 1)
    assert [message["role"] for message in chat.api.chats[1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert [message["text"] for message in messages_of(chat, 1)][::2] == [
        "What does the pond have?",
        "And why?",
    ]


def test_an_answer_that_breaks_off_is_kept_and_says_so(chat: Chat) -> None:
    chat.api.replies.append([row("Half an "), row("answer "), DROP])
    events = ask(chat, "What does the pond have?")
    assert [name for name, _ in events][-1] == "error"
    answer = messages_of(chat, 1)[1]
    assert (answer["text"], answer["state"]) == ("Half an answer", "cut")
    assert answer["details"]["error"] == events[-1][1]["message"]
    assert len(answer["details"]["sources"]) > 0


def test_a_reader_who_leaves_ends_the_work_and_what_came_is_kept(chat: Chat) -> None:
    chat.api.replies.append([row("Half "), row("an answer"), HOLD])
    with chat.client.stream("POST", "/api/chat", json={"question": "What does the pond have?"}) as response:
        for line in response.iter_lines():
            if line == 'data: {"text":"Half"}':
                break
    assert chat.api.wait_for_aborted(1)
    # The next answer is given after the first one's end was kept: both take the event loop in turn.
    ask(chat, "And why?", 1)
    answer = messages_of(chat, 1)[1]
    assert answer["state"] == "cut"
    assert answer["text"].startswith("Half")
    assert chat.conversations.history(1)[0].text == "And why?"


def test_ollama_that_lacks_the_model_is_said_in_the_stream(start_chat: StartChat) -> None:
    chat = start_chat({"OLLAMA_CHAT_MODEL": "qwen3:8b"})
    events = ask(chat, "What does the pond have?")
    assert [name for name, _ in events] == ["sources", "error"]
    assert "`ollama pull qwen3:8b`" in events[-1][1]["message"]


def test_conversations_are_listed_read_renamed_and_deleted(chat: Chat) -> None:
    ask(chat, "What does the pond have?")
    ask(chat, "Where is the piano?")
    listed = chat.client.get("/api/conversations").json()["conversations"]
    assert [(row["id"], row["title"]) for row in listed] == [
        (2, "Where is the piano?"),
        (1, "What does the pond have?"),
    ]
    renamed = chat.client.patch("/api/conversations/1", json={"title": " Pond "})
    assert (renamed.status_code, renamed.json()["title"]) == (200, "Pond")
    assert chat.client.delete("/api/conversations/2").status_code == 204
    assert [row["title"] for row in chat.client.get("/api/conversations").json()["conversations"]] == ["Pond"]


@pytest.mark.parametrize("number", ["99", "0", "-1", str(2**63), "x"])
def test_a_conversation_that_is_not_there_is_no_server_error(chat: Chat, number: str) -> None:
    path = f"/api/conversations/{number}"
    responses = [
        chat.client.get(path),
        chat.client.patch(path, json={"title": "x"}),
        chat.client.delete(path),
        chat.client.post(
            "/api/chat",
            content=f'{{"question": "Why?", "conversation": {number}}}',
            headers={"Content-Type": "application/json"},
        ),
    ]
    for response in responses:
        assert response.status_code in (404, 422)
        assert response.json()["error"]["code"] == "bad_request"
    assert chat.conversations.all() == []


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"question": 1}',
        '{"question": " \\n "}',
        '{"question": "\\ud800"}',
        '{"question": "' + "x" * 4001 + '"}',
        '{"question": "Why?", "conversation": "1"}',
        '{"question": "Why?", "model": "other"}',
    ],
)
def test_a_body_that_is_no_question_is_refused(chat: Chat, body: str) -> None:
    response = chat.client.post("/api/chat", content=body, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "bad_request")
    assert chat.conversations.all() == []


def test_the_page_and_what_it_loads_are_there_and_nothing_is_inline(chat: Chat) -> None:
    page = chat.client.get("/").text
    assert re.findall(r'(?:src|href)="([^"#]+)"', page) == ["data:,", "chat.css", "chat.js"]
    assert "style=" not in page
    assert not re.search(r"\son\w+=", page)
    for name in ("chat.css", "chat.js"):
        assert chat.client.get(f"/{name}").status_code == 200


def test_there_is_no_page_that_loads_from_elsewhere(chat: Chat) -> None:
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert chat.client.get(path).status_code == 404


# ---- an index that is written to ----


@pytest.fixture
def database(make_bundle: MakeBundle, tmp_path: Path) -> Path:
    """An index with one page that the bundle does not have."""
    folder = make_bundle({"vault/key.md": "Key\n\nThe key hangs behind the piano.\n"})
    path = tmp_path / "live.db"
    path.write_bytes((folder / "rag.db").read_bytes())
    return path


def test_a_live_index_is_asked_together_with_the_bundles(start_chat: StartChat, database: Path) -> None:
    chat = start_chat({"RAG_DB_PATH": str(database)})
    events = ask(chat, "Which key hangs behind the piano?")
    titles = [source["title"] for source in events[0][1]["sources"]]
    assert (titles[0], "Music" in titles) == ("Key", True)
    assert events[-1][1]["bundle"] == "live"
    assert chat.client.get("/api/about").json()["collections"] == ["diary", "notes", "vault"]


def test_a_copy_of_the_bundles_index_is_asked_without_doubles(
    start_chat: StartChat, sample_bundle: Path, database: Path
) -> None:
    database.write_bytes((sample_bundle / "rag.db").read_bytes())
    question = "What does the pond have?"
    alone, both = (ask(start_chat(environ), question) for environ in ({}, {"RAG_DB_PATH": str(database)}))
    assert both[0] == alone[0]


def test_the_local_index_is_found_where_it_is_put_even_later(
    start_chat: StartChat, database: Path, tmp_path: Path
) -> None:
    chat = start_chat()
    assert "Key" not in str(ask(chat, "Where is the key?")[0])
    (tmp_path / "data" / "ralph").mkdir(parents=True)
    database.rename(tmp_path / "data" / "ralph" / "rag.db")
    assert "Key" in str(ask(chat, "Where is the key?")[0])


def test_a_named_index_that_is_not_there_is_refused(start_chat: StartChat, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"RAG_DB_PATH: .*none\.db cannot be read"):
        start_chat({"RAG_DB_PATH": str(tmp_path / "none.db")})


def test_a_question_sees_the_last_commit(start_chat: StartChat, database: Path) -> None:
    chat = start_chat({"RAG_DB_PATH": str(database)})
    ask(chat, "Where is the key?")
    with closing(apsw.Connection(str(database))) as writer:
        writer.execute("PRAGMA journal_mode = WAL; UPDATE page SET title = 'New'").fetchall()
    titles = [source["title"] for source in ask(chat, "Where is the key?")[0][1]["sources"]]
    assert ("New" in titles, "Key" in titles) == (True, False)


def test_a_live_index_that_breaks_is_an_error_event(start_chat: StartChat, database: Path) -> None:
    chat = start_chat({"RAG_DB_PATH": str(database)})
    database.unlink()
    ((name, error),) = ask(chat, "Where is the key?")
    assert name == "error"
    assert "live.db cannot be read" in error["message"]
    assert messages_of(chat, 1)[1]["state"] == "cut"


def test_an_index_of_another_model_is_refused(start_chat: StartChat, database: Path) -> None:
    with closing(apsw.Connection(str(database))) as writer:
        writer.execute("UPDATE meta SET value = 'other' WHERE key = 'model'")
    with pytest.raises(BundleError, match=r"RAG_DB_PATH: .*different embedding models"):
        start_chat({"RAG_DB_PATH": str(database)})


def test_answers_are_kept_side_by_side(chat: Chat) -> None:
    chat.api.replies.append([row("Slow "), row("one."), HOLD, *rows(" End.")])
    body = {"question": "What does the pond have?"}
    with (
        httpx.Client(base_url=chat.url, timeout=10) as other,
        other.stream("POST", "/api/chat", json=body) as slow,
    ):
        lines = slow.iter_lines()
        assert any(line == 'data: {"text":"Slow"}' for line in lines)
        ask(chat, "Where is the piano?")
        chat.api.go_on()
        assert any(line == "event: done" for line in lines)
    assert [messages_of(chat, number)[1]["state"] for number in (1, 2)] == ["whole", "whole"]
