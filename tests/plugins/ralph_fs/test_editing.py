"""Which text an edit means, and how little it touches beside."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph_fs.diff import Change, hunks, with_edit
from ralph_fs.editing import Edit, edit_file, replacement
from ralph_fs.refusal import RefusedError
from ralph_fs.writing import take_turn
from tests.fakes.mcp_files import Answer, Ground

Call = Callable[..., Answer]

DIFF = """\
--- note.txt
+++ note.txt
@@ -1,3 +1,3 @@
 one
-two
+2
 three
"""


def edited_text(text: str, edit: Edit) -> str:
    start, end, new = replacement(text, edit)
    return text[:start] + new + text[end:]


def test_an_edit_is_done_and_shown_as_a_diff(call: Call, ground: Ground) -> None:
    (ground.root / "note.txt").chmod(0o640)
    edits = [{"old_text": "two", "new_text": "2"}]
    preview = call("edit_file", path="note.txt", edits=edits, dry_run=True)
    assert preview.text == f"[dry run: nothing is written]\n{DIFF}"
    assert (ground.root / "note.txt").read_text() == "one\ntwo\nthree\n"
    assert call("edit_file", path="note.txt", edits=edits).text == DIFF
    assert (ground.root / "note.txt").read_text() == "one\n2\nthree\n"
    assert stat.S_IMODE((ground.root / "note.txt").stat().st_mode) == 0o640


def test_the_name_that_other_servers_have_for_a_dry_run_writes_nothing(call: Call, ground: Ground) -> None:
    answer = call("edit_file", path="note.txt", edits=[{"old_text": "two", "new_text": "2"}], dryRun=True)
    assert answer.is_error
    assert "dry_run" in answer.text
    assert (ground.root / "note.txt").read_text() == "one\ntwo\nthree\n"


def test_edits_are_done_in_turn_and_all_or_none(call: Call, ground: Ground) -> None:
    edits = [{"old_text": "one", "new_text": "two and a half"}, {"old_text": "two and", "new_text": "1"}]
    assert not call("edit_file", path="note.txt", edits=edits).is_error
    assert (ground.root / "note.txt").read_text() == "1 a half\ntwo\nthree\n"
    answer = call("edit_file", path="note.txt", edits=[*edits, {"old_text": "x", "new_text": "y"}])
    assert answer.is_error
    assert "nothing was changed" in answer.text
    assert (ground.root / "note.txt").read_text() == "1 a half\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("text", "old", "message"),
    [
        ("a\nb\na\n", "a", "lines 1, 3"),
        ("aaa", "aa", "more than one place"),
        ("a", "b", "fits nowhere"),
        ("a", "", "has no old_text"),
        ("  a\n\ta\n", " a \n", "more than one place"),
        ("a\n\n\nb", "  \n  ", "fits nowhere"),
    ],
)
def test_an_edit_that_does_not_fit_in_one_place_alone_is_refused(
    call: Call, ground: Ground, text: str, old: str, message: str
) -> None:
    (ground.root / "a").write_text(text)
    answer = call("edit_file", path="a", edits=[{"old_text": old, "new_text": "new"}])
    assert answer.is_error
    assert message in answer.text
    assert (ground.root / "a").read_text() == text


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        # Line endings: the client's are never the file's.
        ("a\r\nb\r\nc\r\n", "a\nb", "1\n2\n3", "1\r\n2\r\n3\r\nc\r\n"),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\nb\n", "a\r\nb", "1\r\n2", "1\n2\n"),
        ("a\r\nb\nc\n", "c", "x\ny", "a\r\nb\nx\ny\n"),
        ("a\r\nb\r\nc\nd\ne\nf\n", "a\nb", "1\n2", "1\r\n2\r\nc\nd\ne\nf\n"),
        ("a\r\rb\r\n", "b", "c", "a\r\rc\r\n"),
        # Whole lines whose indentation the client did not know.
        (
            "if x:\n    if y:\n        go()\n",
            "if y:\n    go()",
            "if z:\n    stop()",
            "if x:\n    if z:\n        stop()\n",
        ),
        ("\tgo()  \nend\n", "go()\nend", "stop()", "\tstop()\n"),
        ("\ufeffa\nb", "b", "c", "\ufeffa\nc"),
        ("a\nb", "a\n", "", "b"),
        ("\ta\nb\n", "  a\n", "", "b\n"),
        ("\ta\nb\n", "  a\n", "  c\n", "\tc\nb\n"),
        ("\ta", " a\n", " c\n", "\tc\n"),
    ],
)
def test_an_edit_changes_what_it_means_and_nothing_else(text: str, old: str, new: str, expected: str) -> None:
    assert edited_text(text, Edit(old, new)) == expected


@given(st.text("ab \n\r", max_size=40), st.text("ab \n\r", max_size=5), st.text("xy\n", max_size=5))
@settings(max_examples=300, deadline=None)
def test_lines_outside_of_an_edit_stay_to_the_byte(before: str, new: str, after: str) -> None:
    text = f"{before}\nMARK\n{after}"
    edited = edited_text(text, Edit("MARK", new))
    assert edited.startswith(f"{before}\n")
    assert edited.endswith(f"\n{after}")


def some_lines(random: Random, n_most: int) -> str:
    return "".join(random.choices(["a\n", "b\r\n", "c\n", "d", ""], k=random.randint(0, n_most)))


@pytest.mark.parametrize("program", [["patch", "--binary", "-s", "-p0"], ["git", "apply", "-p0"]])
def test_one_diff_of_many_edits_makes_the_one_text_of_the_other(tmp_path: Path, program: list[str]) -> None:
    if not shutil.which(program[0]):
        pytest.skip(f"there is no {program[0]}")
    random = Random(0)
    for number in range(100):
        before = after = some_lines(random, 60)
        changes: list[Change] = []
        for _ in range(random.randint(1, 6)):
            start, end = sorted(random.randint(0, len(after)) for _ in "12")
            end = min(end, start + random.randint(0, 12))
            new = some_lines(random, 4)
            changes = with_edit(changes, start, end, len(new))
            after = after[:start] + new + after[end:]
        lines = list(hunks(before, after, changes))
        assert bool(lines) == (before != after)
        # A file is made and deleted by other headers than these.
        if lines and before and after:
            file = tmp_path / f"text{number}"
            file.write_bytes(before.encode())
            diff = "".join([f"--- {file.name}\n", f"+++ {file.name}\n", *lines])
            done = subprocess.run(
                program, cwd=tmp_path, input=diff.encode(), capture_output=True, check=False
            )
            assert done.returncode == 0, (before, after, diff, done.stderr)
            assert file.read_bytes() == after.encode()


def test_the_lines_of_a_diff_are_those_of_the_file_before_and_after_all_edits(
    call: Call, ground: Ground
) -> None:
    (ground.root / "a").write_text("".join(f"{number}\n" for number in range(1, 41)))
    edits = [
        {"old_text": "30\n", "new_text": "x\n"},
        {"old_text": "\n2\n3\n4\n", "new_text": "\n"},
        {"old_text": "\nx\n", "new_text": "\ny\nz\n"},
    ]
    answer = call("edit_file", path="a", edits=edits)
    assert answer.text.count("@@ -") == 2
    assert "@@ -1,7 +1,4 @@\n 1\n-2\n-3\n-4\n 5\n 6\n 7\n" in answer.text
    assert "@@ -27,7 +24,8 @@\n 27\n 28\n 29\n-30\n+y\n+z\n 31\n" in answer.text
    assert "x" not in answer.text.partition("@@")[2]


def test_a_diff_of_many_lines_is_quick_and_cut(call: Call, ground: Ground) -> None:
    line = "the same line again and again\n"
    (ground.root / "a").write_text("first\n" + line * 100_000 + "last\n")
    edits = [{"old_text": "first", "new_text": line * 5_000}, {"old_text": "last", "new_text": "end"}]
    answer = call("edit_file", path="a", edits=edits)
    assert "the diff goes on" in answer.text
    assert len(answer.text) < 70_000
    assert (ground.root / "a").read_text().endswith("end\n")


def test_edits_at_the_same_time_lose_nothing(ground: Ground) -> None:
    (ground.root / "a").write_text("".join(f"line {number};\n" for number in range(16)))
    place = ground.scope.place("a")

    def edit(number: int) -> None:
        edit_file(place, [Edit(f"line {number};", "done")], dry_run=False)

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (ground.root / "a").read_text() == "done\n" * 16


def test_what_is_no_text_or_too_large_is_not_edited(call: Call, ground: Ground) -> None:
    (ground.root / "latin").write_bytes(b"caf\xe9 two")
    with (ground.root / "large").open("wb") as file:
        file.truncate(10**8)
    for path, message in (
        ("latin", "UTF-8"),
        ("large", "too many"),
        ("docs", "folder"),
        ("missing", "no such"),
    ):
        answer = call("edit_file", path=path, edits=[{"old_text": "two", "new_text": "2"}])
        assert answer.is_error
        assert message in answer.text
    with pytest.raises(RefusedError):
        edit_file(ground.scope.place("note.txt"), [], dry_run=False)
    assert (
        call("edit_file", path="note.txt", edits=[{"old_text": "two", "new_text": "two"}]).text
        == "[no change]"
    )


def test_an_edit_waits_for_the_server_of_another_session(ground: Ground) -> None:
    note = ground.root / "note.txt"
    other = os.open(ground.root, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    arguments = (ground.scope.place("note.txt"), [Edit("two", "2")])
    ours = threading.Thread(target=edit_file, args=arguments, kwargs={"dry_run": False})
    ours.start()
    ours.join(0.2)
    assert ours.is_alive()
    note.write_text("zero\n" + note.read_text())
    os.close(other)
    ours.join()
    assert note.read_text() == "zero\none\n2\nthree\n"


def test_a_folder_that_another_program_keeps_locked_is_refused_after_a_while(ground: Ground) -> None:
    other, ours = (os.open(ground.root, os.O_RDONLY) for _ in "12")
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(RefusedError, match=r"^note\.txt: another program keeps its folder locked$"):
        take_turn(ours, "note.txt", patience_s=0.1)
    os.close(other)
    take_turn(ours, "note.txt", patience_s=0)
    os.close(ours)
