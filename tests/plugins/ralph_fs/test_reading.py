"""What is read of a file, and what is said of the rest."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from ralph_fs import reading
from ralph_fs.reading import MAX_ANSWER_BYTES
from tests.fakes.mcp_files import Answer, Ground

Call = Callable[..., Answer]


@pytest.mark.parametrize(
    "content", [b"one\ntwo", b"a\r\nb\r\n", b"\xef\xbb\xbfbom\n", b"\n\n", "é 😀\n".encode()]
)
def test_a_file_is_read_to_the_byte(call: Call, ground: Ground, content: bytes) -> None:
    (ground.root / "a").write_bytes(content)
    assert [block.encode() for block in call("read_file", path="a").blocks] == [content]
    assert base64.b64decode(call("read_file", path="a", encoding="base64").text) == content


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({"head": 2}, "12"),
        ({"tail": 2}, "45"),
        ({"from_line": 4}, "45"),
        ({"to_line": 3}, "123"),
        ({"from_line": 2, "to_line": 3}, "23"),
        ({"head": 99}, "12345"),
        ({"head": 10**30}, "12345"),
        ({"tail": 10**30}, "12345"),
        ({"tail": 99}, "12345"),
        ({"from_line": 5, "to_line": 99}, "5"),
    ],
)
def test_lines_are_chosen_from_either_end_or_by_number(
    call: Call, ground: Ground, asked: dict[str, int], lines: str
) -> None:
    (ground.root / "a").write_text("1\n2\n3\n4\n5\n")
    assert call("read_file", path="a", **asked).blocks == ("".join(f"{line}\n" for line in lines),)


def test_an_empty_file_is_said_to_be_empty(call: Call, ground: Ground) -> None:
    (ground.root / "a").write_text("")
    for asked in ({}, {"head": 3}, {"tail": 3}, {"encoding": "base64"}):
        assert call("read_file", path="a", **asked).blocks == ("", "[the file is empty]")


@pytest.mark.parametrize(
    "line", ["short line é\n", "x" * 30_000 + "\n", "é" * 100_000 + "\n", "😀" * 200_000]
)
def test_a_long_file_is_read_in_parts_that_make_the_whole(call: Call, ground: Ground, line: str) -> None:
    text = line * (300_000 // len(line) + 1)
    (ground.root / "a").write_text(text)
    read = ""
    asked: dict[str, int] = {}
    for _ in range(100):
        part, *notes = call("read_file", path="a", **asked).blocks
        assert len(part.encode()) <= MAX_ANSWER_BYTES
        read += part
        if not (notes and "go on with" in notes[0]):
            break
        name, _, number = notes[0].rpartition("go on with ")[2].rstrip("]").partition("=")
        asked = {name: int(number)}
    assert read == text


def test_bytes_are_read_in_parts_that_make_the_whole(call: Call, ground: Ground) -> None:
    data = bytes(range(256)) * 700
    (ground.root / "a").write_bytes(data)
    read = b""
    while len(read) < len(data):
        part, note = call("read_file", path="a", encoding="base64", offset=len(read)).blocks
        read += base64.b64decode(part)
        assert f"bytes {len(read) - len(base64.b64decode(part))}-{len(read)} of {len(data)}" in note
    assert read == data


def test_the_last_lines_of_a_huge_file_are_read_from_its_end(call: Call, ground: Ground) -> None:
    with (ground.root / "a").open("wb") as file:
        file.truncate(2**40)
        file.seek(2**40 - 10)
        file.write(b"\nlast\nline")
    assert call("read_file", path="a", tail=2).text == "last\nline"
    answer = call("read_file", path="a", from_line=10_000)
    assert answer.is_error
    assert "offset" in answer.text


def test_the_last_line_may_be_longer_than_an_answer(call: Call, ground: Ground) -> None:
    (ground.root / "a").write_text("one\n" + "é" * 60_000 + "\n")
    text, note = call("read_file", path="a", tail=1).blocks
    assert text.endswith("é\n")
    assert "end of the last line" in note
    assert len(text.encode()) <= MAX_ANSWER_BYTES


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"head": 1, "tail": 1}, "one of head and tail"),
        ({"head": 1, "from_line": 1}, "one of head and from_line"),
        ({"offset": 1, "tail": 1}, "one of tail and offset"),
        ({"head": -1}, "no negative"),
        ({"from_line": -3}, "no negative"),
        ({"encoding": "base64", "head": 1}, "knows no lines"),
        ({"offset": 99}, "has 14 bytes"),
        ({"from_line": 99}, "has 3 lines"),
        ({"from_line": 3, "to_line": 2}, "before"),
        ({"encoding": "latin1"}, "utf8"),
        ({"head": "many"}, "integer"),
    ],
)
def test_a_part_that_makes_no_sense_is_refused(call: Call, asked: dict[str, object], message: str) -> None:
    answer = call("read_file", path="note.txt", **asked)
    assert answer.is_error
    assert message in answer.text


def test_what_is_no_text_is_refused_with_the_way_to_read_it(call: Call, ground: Ground) -> None:
    (ground.root / "a").write_bytes(b"caf\xe9")
    answer = call("read_file", path="a")
    assert answer.is_error
    assert "encoding base64" in answer.text


@pytest.mark.parametrize("asked", [{}, {"head": 1}, {"tail": 1}, {"offset": 1}])
def test_text_in_two_bytes_a_letter_is_no_text_either(
    call: Call, ground: Ground, asked: dict[str, int]
) -> None:
    (ground.root / "wide").write_bytes("wide".encode("utf-16-le"))
    assert "base64" in call("read_file", path="wide", **asked).text


def test_several_files_share_one_answer_and_one_that_fails_spoils_nothing(call: Call, ground: Ground) -> None:
    for name in "abc":
        (ground.root / name).write_text(f"{name}\n" * 40_000)
    answer = call("read_multiple_files", paths=["note.txt", "missing", "../x", "a", "b", "c"])
    assert not answer.is_error
    assert answer.blocks[0] == "[note.txt]\none\ntwo\nthree\n"
    assert "no such file" in answer.blocks[1]
    assert "outside" in answer.blocks[2]
    assert all("go on with from_line=" in block for block in answer.blocks[3:])
    assert len(answer.text.encode()) < MAX_ANSWER_BYTES + 1_000
    assert call("read_multiple_files", paths=["x"] * (reading.MAX_FILES + 1)).is_error
    assert call("read_multiple_files", paths=[]).is_error
