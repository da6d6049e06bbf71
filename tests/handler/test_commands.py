from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handler.__main__ import main
from handler.bundle.gate import N_EVIDENCE, Gate
from handler.generate.extractive import ABOUT_ME

MakeBundle = Callable[..., Path]
REFUSE_ALL = Gate(threshold=9.0, weights=(0.0,) * N_EVIDENCE)


@pytest.fixture
def bundle(make_bundle: MakeBundle) -> Path:
    return make_bundle()


def output(capsys: pytest.CaptureFixture[str], *argv: object) -> str:
    assert main([str(each) for each in argv]) == 0
    return capsys.readouterr().out


def test_search_prints_one_json_object(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "search", "--json", "--bundle", bundle, "nginx server"))
    assert found["question"] == "nginx server"
    assert found["gate"]["accepted"] is True
    hit = found["hits"][0]
    assert hit["url"] == "https://example.org/notes/server"
    assert hit["path"] == "server.md"
    assert (hit["vector_rank"], hit["keyword_rank"]) == (1, 1)
    assert set(hit) >= {"url", "title", "heading", "path", "collection", "text", "score", "cosine", "bm25"}


def test_a_batch_answers_every_line_with_its_id(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = tmp_path / "questions.jsonl"
    batch.write_text(
        '{"id": 7, "text": "pond algae"}\n\n{"id": "b", "text": "", "page": "https://example.org/"}\n'
    )
    rows = [
        json.loads(line)
        for line in output(capsys, "search", "--batch", batch, "--bundle", bundle).splitlines()
    ]
    assert [row["id"] for row in rows] == [7, "b"]
    assert rows[0]["hits"][0]["title"] == "Garden"
    assert rows[1]["hits"] == []


def test_a_batch_may_come_with_a_byte_order_mark_odd_ids_and_odd_texts(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, object]] = [
        {"id": None, "text": "garden", "page": None},
        {"id": {"a": [1.5]}, "text": "a\0b \ud800 garden", "page": "\ud800"},
        {"id": "\ud800\u2028", "text": "garden " * 20_000},
        {"id": True, "text": "\u0085\v\f"},
        {"id": 10**30, "text": "\u202eשלום\u2028🙂\u200d🔥 caf\u00e9 cafe\u0301 ?!"},
    ]
    batch = tmp_path / "questions.jsonl"
    lines = [*map(json.dumps, rows), json.dumps(rows[-1], ensure_ascii=False)]
    batch.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    printed = output(capsys, "search", "--batch", batch, "--bundle", bundle)
    found = [json.loads(line) for line in printed.splitlines()]
    assert [row["id"] for row in found] == [row["id"] for row in [*rows, rows[-1]]]
    assert [row["question"] for row in found] == [row["text"] for row in [*rows, rows[-1]]]


def test_a_batch_comes_through_standard_input_too(bundle: Path) -> None:
    command = [sys.executable, "-m", "handler", "search", "--batch", "-", "--bundle", str(bundle)]
    done = subprocess.run(
        command, input='{"id": 1, "text": "piano"}\n', capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["hits"][0]["title"] == "Music"


def test_an_interrupt_ends_a_batch_without_a_word(bundle: Path) -> None:
    command = [sys.executable, "-m", "handler", "search", "--batch", "-", "--bundle", str(bundle)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    ) as batch:
        assert batch.stdin
        assert batch.stdout
        assert batch.stderr
        batch.stdin.write('{"id": 1, "text": "piano"}\n')
        assert json.loads(batch.stdout.readline())["id"] == 1
        batch.send_signal(signal.SIGINT)
        assert batch.wait() == 130
        assert batch.stderr.read() == ""


def test_an_answer_needs_neither_a_home_nor_a_bundle_beside_the_program(bundle: Path, tmp_path: Path) -> None:
    environ = {"RALPH_BUNDLE": str(bundle), "HOME": str(tmp_path / "nowhere")}
    command = [sys.executable, "-m", "handler", "ask", "--json", "tomatoes sun"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["citations"][0]["quote"] == "Tomatoes want sun and water."


def test_a_terminal_that_lacks_a_sign_gets_the_answer_all_the_same(bundle: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "handler", "ask", "piano song", "--bundle", str(bundle)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "The piano is in the studio.? [1]" in done.stdout


@pytest.mark.parametrize("number", ["0", "-1", "many", "1.5"])
def test_a_number_of_hits_is_one_or_more(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["search", f"--top-k={number}", "pond"])
    assert f"--top-k: '{number}' is not a number from 1 on" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["hybrid", "rrf", "keyword", "vector"])
def test_every_mode_ranks_the_page_that_has_the_words_first(
    bundle: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    found = json.loads(output(capsys, "search", "--json", "--mode", mode, "--bundle", bundle, "piano song"))
    assert found["hits"][0]["title"] == "Music"


def test_explain_shows_ranks_scores_and_the_gates_reason(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(capsys, "search", "--explain", "--bundle", bundle, "piano")
    assert "cosine" in text
    assert "bm25" in text
    assert "rank 1" in text
    assert "gate: accepted: " in text


def test_top_k_and_all_chunks_say_how_many_hits(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "search", "--json", "--top-k", "2", "--bundle", bundle, "server"))
    assert len(found["hits"]) == 2


def test_ask_quotes_the_page_word_for_word_with_its_link(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(capsys, "ask", "--bundle", bundle, "How do I restart the server?")
    assert "“Restart the server with systemctl.” [1]" in text
    assert "https://example.org/notes/server" in text


def test_the_citations_of_ask_stand_in_the_hits(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "ask", "--json", "--bundle", bundle, "tomatoes sun water"))
    assert found["generator"] == "extractive"
    assert found["citations"]
    for citation in found["citations"]:
        hit = found["hits"][citation["source"] - 1]
        assert citation["quote"] in hit["text"]
        assert citation["url"] == hit["url"]
        assert f"[{citation['source']}]" in found["answer"]


def test_ask_answers_a_greeting_without_pages(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, "ask", "--bundle", bundle, "Hello there!") == f"{ABOUT_ME}\n"
    answer = json.loads(output(capsys, "ask", "--json", "--bundle", bundle, "--no-gate", "hi"))
    assert (answer["answer"], answer["citations"], answer["hits"]) == (ABOUT_ME, [], [])
    assert answer["gate"] == {"accepted": False, "reason": "small talk"}


@pytest.mark.parametrize("command", ["ask", "search"])
def test_a_page_that_the_bundle_does_not_have_is_said_beside_the_answer(
    bundle: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    argv = [command, "--json", "tomatoes", "--bundle", str(bundle)]
    plain = output(capsys, *argv)
    assert main([*argv, "--page", "https://example.org/notes/garden#pond"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*argv, "--page", "garden"]) == 0
    printed = capsys.readouterr()
    assert printed.out == plain
    assert printed.err == "ralph: --page: garden is no page of this bundle, and counts for nothing\n"


def test_ask_says_that_it_does_not_know_and_why(
    make_bundle: MakeBundle, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(capsys, "ask", "--bundle", make_bundle(gate=REFUSE_ALL), "piano")
    assert text.startswith("I don't know")
    assert "below 9.000" in text


def test_without_the_gate_everything_is_shown(
    make_bundle: MakeBundle, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = make_bundle(gate=REFUSE_ALL)
    assert json.loads(output(capsys, "search", "--json", "--bundle", bundle, "piano"))["hits"] == []
    assert json.loads(output(capsys, "search", "--json", "--no-gate", "--bundle", bundle, "piano"))["hits"]


def test_rag_max_distance_brings_the_first_rule_back(
    make_bundle: MakeBundle, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle(gate=REFUSE_ALL)
    monkeypatch.setenv("RAG_MAX_DISTANCE", "0.9")
    found = json.loads(output(capsys, "search", "--json", "--bundle", bundle, "piano"))
    assert found["gate"]["accepted"] is True
    assert "L2 distance" in found["gate"]["reason"]


def test_verify_prints_what_held(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, "verify", bundle).splitlines()[-1].startswith("model: ")


def test_diff_exits_with_1_when_the_second_bundle_is_worse(make_bundle: MakeBundle) -> None:
    good = make_bundle(evaluation={"kept": 0.95})
    bad = make_bundle(evaluation={"kept": 0.90})
    assert main(["diff", str(good), str(bad)]) == 1
    assert main(["diff", str(bad), str(good)]) == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["search", "piano", "--collection", "cellar"],
            "'cellar' is not in this bundle, which has diary, notes",
        ),
        (["search"], "search takes a question or --batch FILE, one of them"),
        (["search", "piano", "--batch", "-"], "search takes a question or --batch FILE, one of them"),
        (["search", "--batch", "/nowhere.jsonl"], "/nowhere.jsonl cannot be read"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_exit_code_2(
    bundle: Path, capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert main([*argv, "--bundle", str(bundle)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("ralph: ")
    assert message in error


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "[" * 100_000,
        '{"text": "a"}',
        '{"id": 1}',
        '{"id": 1, "text": "a", "page": 2}',
        '{"id": NaN, "text": "a"}',
        '{"id": 1e999, "text": "a"}',
    ],
)
def test_a_wrong_line_of_a_batch_is_named(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    batch = tmp_path / "questions.jsonl"
    batch.write_text(f'{{"id": 1, "text": "piano"}}\n{line}\n')
    assert main(["search", "--batch", str(batch), "--bundle", str(bundle)]) == 2
    assert f"{batch}:2: " in capsys.readouterr().err


def test_a_folder_that_is_no_bundle_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "--bundle", str(tmp_path), "piano"]) == 2
    assert capsys.readouterr().err == (
        f"ralph: {tmp_path} is no bundle: it has no manifest.json; `doit build` makes one\n"
    )


@pytest.mark.parametrize("value", ["near", "-1", "nan"])
def test_a_wrong_distance_names_its_variable(
    bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("RAG_MAX_DISTANCE", value)
    assert main(["ask", "--bundle", str(bundle), "piano"]) == 2
    assert "RAG_MAX_DISTANCE: " in capsys.readouterr().err
