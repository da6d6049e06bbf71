"""Files that are written, made, moved and deleted."""

from __future__ import annotations

import base64
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph_fs import moving, writing
from ralph_fs.refusal import RefusedError
from tests.fakes.mcp_files import Answer, Ground, tree_of

Call = Callable[..., Answer]


@pytest.mark.parametrize("content", ["", "text", "a\r\nb\n", "é 😀"])
def test_a_file_is_written_to_the_byte(call: Call, ground: Ground, content: str) -> None:
    assert not call("write_file", path="docs/new.md", content=content).is_error
    assert (ground.root / "docs" / "new.md").read_bytes() == content.encode()
    encoded = base64.b64encode(content.encode()).decode()
    assert not call("write_file", path="docs/new.bin", content=encoded, encoding="base64").is_error
    assert (ground.root / "docs" / "new.bin").read_bytes() == content.encode()


def test_a_file_that_is_replaced_keeps_its_mode(call: Call, ground: Ground) -> None:
    (ground.root / "note.txt").chmod(0o750)
    assert "replaced" in call("write_file", path="note.txt", content="new").text
    assert stat.S_IMODE((ground.root / "note.txt").stat().st_mode) == 0o750


def test_a_file_that_is_replaced_runs_as_its_owner_no_more(call: Call, ground: Ground) -> None:
    (ground.root / "note.txt").chmod(0o6755)
    assert not call("write_file", path="note.txt", content="new").is_error
    assert stat.S_IMODE((ground.root / "note.txt").stat().st_mode) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_is_replaced_keeps_its_owner_and_group(call: Call, ground: Ground) -> None:
    os.chown(ground.root / "note.txt", 12_345, 54_321)
    edit = {"old_text": "two", "new_text": "2"}
    assert not call("edit_file", path="note.txt", edits=[edit]).is_error
    status = (ground.root / "note.txt").stat()
    assert (status.st_uid, status.st_gid) == (12_345, 54_321)


def test_a_new_file_has_the_mode_of_any_new_file(call: Call, ground: Ground) -> None:
    assert "created" in call("write_file", path="new.txt", content="new").text
    (ground.root / "other.txt").write_text("")
    modes = {(ground.root / name).stat().st_mode for name in ("new.txt", "other.txt")}
    assert len(modes) == 1


def test_a_file_that_is_read_only_stays_as_it_is(call: Call, ground: Ground) -> None:
    (ground.root / "note.txt").chmod(0o444)
    assert "read-only" in call("write_file", path="note.txt", content="new").text
    edit = {"old_text": "two", "new_text": "2"}
    assert "read-only" in call("edit_file", path="note.txt", edits=[edit]).text
    assert (ground.root / "note.txt").read_text() == "one\ntwo\nthree\n"


def test_a_reader_never_finds_a_part_of_a_file(ground: Ground) -> None:
    whole = {name * 200_000 for name in "ab"}
    path = ground.root / "note.txt"
    path.write_text("a" * 200_000)
    place = ground.scope.place("note.txt")

    def write() -> None:
        for number in range(60):
            writing.write_file(place, "ab"[number % 2] * 200_000, "utf8")

    writer = threading.Thread(target=write)
    writer.start()
    found = set()
    while writer.is_alive():
        found.add(path.read_text())
    writer.join()
    assert found <= whole
    assert sorted(path.name for path in ground.root.iterdir()) == ["docs", "note.txt"]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(ground: Ground) -> None:
    def fail() -> None:
        raise RefusedError("no")

    fd = os.open(ground.root, os.O_RDONLY)
    try:
        with pytest.raises(RefusedError):
            writing.replace(fd, "note.txt", b"new", os.fstat(fd), fail)
        with pytest.raises(IsADirectoryError):
            writing.replace(fd, "docs", b"new", None)
    finally:
        os.close(fd)
    assert tree_of(ground.root) == {
        "docs/page.md": "# Page\n\nThe pond has algae.\n",
        "note.txt": "one\ntwo\nthree\n",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "missing/new.txt", "content": ""}, "no such file or folder"),
        ({"path": "note.txt/new.txt", "content": ""}, "is a file, no folder"),
        ({"path": "docs", "content": ""}, "is a folder"),
        ({"path": "new.txt", "content": "%%%", "encoding": "base64"}, "no base64"),
    ],
)
def test_a_write_that_cannot_be_done_says_why(call: Call, arguments: dict[str, str], message: str) -> None:
    answer = call("write_file", **arguments)
    assert answer.is_error
    assert message in answer.text


def test_a_folder_is_made_with_those_that_it_is_in(call: Call, ground: Ground) -> None:
    assert "created" in call("create_directory", path="a/b/c").text
    assert "already" in call("create_directory", path="a/b/c").text
    assert (ground.root / "a" / "b" / "c").is_dir()
    assert call("create_directory", path="note.txt/x").is_error
    assert call("create_directory", path="note.txt").is_error


@pytest.mark.parametrize("has_call", [True, False])
def test_a_file_and_a_folder_are_moved_but_never_over_another(
    ground: Ground, has_call: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the kernel's call for it, and on systems that have none."""
    if not has_call:
        monkeypatch.setattr(moving, "exclusive_rename", lambda: None)
    place = ground.scope.place
    moving.move(place("note.txt"), place("docs/moved.txt"))
    moving.move(place("docs"), place("pages"))
    assert (ground.root / "pages" / "moved.txt").read_text() == "one\ntwo\nthree\n"
    (ground.root / "empty").mkdir()
    for source, destination in (("pages/moved.txt", "pages/page.md"), ("pages", "empty"), ("empty", "pages")):
        with pytest.raises(RefusedError, match="already"):
            moving.move(place(source), place(destination))
    with pytest.raises(RefusedError, match="lies in the folder"):
        moving.move(place("pages"), place("pages/inner"))
    with pytest.raises(RefusedError, match="no such file"):
        moving.move(place("missing"), place("x"))
    assert sorted(tree_of(ground.root)) == ["pages/moved.txt", "pages/page.md"]


def test_what_is_missing_or_in_the_way_is_named(call: Call) -> None:
    assert "missing.txt: there is no such" in call("move_file", source="missing.txt", destination="a").text
    assert "no/a: there is no such" in call("move_file", source="note.txt", destination="no/a").text


def test_a_folder_that_is_not_empty_is_deleted_only_as_a_whole(call: Call, ground: Ground) -> None:
    assert "recursive" in call("delete_file", path="docs").text
    assert (ground.root / "docs" / "page.md").exists()
    (ground.root / "docs" / "inner").mkdir()
    assert not call("delete_file", path="docs/inner").is_error
    assert not call("delete_file", path="docs", recursive=True).is_error
    assert not call("delete_file", path="note.txt").is_error
    assert list(ground.root.iterdir()) == []
    assert "no such file" in call("delete_file", path="note.txt").text


def test_a_link_is_deleted_and_moved_itself(call: Call, ground: Ground) -> None:
    (ground.root / "docs" / "out").symlink_to(ground.outside)
    (ground.root / "out").symlink_to(ground.outside)
    assert not call("move_file", source="out", destination="way").is_error
    assert not call("delete_file", path="way", recursive=True).is_error
    assert not call("delete_file", path="docs", recursive=True).is_error
    assert ground.outside_is_untouched()


def test_a_folder_that_cannot_be_emptied_is_said_to_be_there_in_part(ground: Ground, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may delete everything")
    (ground.root / "docs").chmod(0o500)
    try:
        with pytest.raises(RefusedError, match="part"):
            moving.delete(ground.scope.place("docs"), recursive=True)
    finally:
        (ground.root / "docs").chmod(0o700)
