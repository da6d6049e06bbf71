"""Ways out of the allowed folder, each tried with every tool that it fits."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial

import pytest

from ralph_fs import beneath, moving, opening, reading, text_search, writing
from ralph_fs.globs import read_glob
from ralph_fs.reading import Lines
from ralph_fs.refusal import RefusedError
from ralph_fs.text_search import Query
from tests.fakes.mcp_files import SECRET, Answer, Ground
from tests.fakes.swapped_link import INSIDE, swapped_link

Call = Callable[..., Answer]

# What the tools need beside a path.
EXTRA: dict[str, dict[str, object]] = {
    "read_file": {},
    "list_directory": {},
    "directory_tree": {},
    "file_info": {},
    "search_files": {"pattern": "**"},
    "search_text": {"query": "stands"},
    "write_file": {"content": "new"},
    "edit_file": {"edits": [{"old_text": "what", "new_text": "new"}]},
    "create_directory": {},
    "delete_file": {"recursive": True},
}
OF_FOLDERS = ("list_directory", "directory_tree", "search_files", "search_text")
OF_FILES = ("read_file", "search_text", "write_file", "edit_file")


@pytest.fixture(params=[beneath.open_by_kernel, beneath.open_by_walk], ids=["kernel", "walk"], autouse=True)
def each_way_of_opening(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel refuses on Linux, the walk refuses elsewhere."""
    if request.param is beneath.open_by_kernel and beneath.best_open() is not beneath.open_by_kernel:
        pytest.skip("this kernel has no openat2, or forbids it")
    monkeypatch.setattr(opening, "open_beneath", request.param)


def assert_refused(answer: Answer, ground: Ground) -> None:
    """The answer is an error that tells nothing of what is outside, nor where the host keeps things."""
    assert answer.is_error, answer.text
    assert SECRET not in answer.text
    assert str(ground.root.parent) not in answer.text
    assert "Traceback" not in answer.text
    assert ground.outside_is_untouched()


def try_everything(call: Call, path: str, ground: Ground) -> None:
    """Every tool that takes a path is refused that one."""
    for tool, extra in EXTRA.items():
        assert_refused(call(tool, path=path, **extra), ground)
    assert_refused(call("move_file", source=path, destination="mine.txt"), ground)
    assert_refused(call("move_file", source="note.txt", destination=path), ground)
    assert SECRET not in call("read_multiple_files", paths=[path]).text


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "docs/../../outside/secret.txt",
        "../root-evil/secret.txt",
        "..",
        "/",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/cwd/secret.txt",
        "/dev/zero",
        "note.txt\0.md",
        "~",
        "~/.ssh/id_rsa",
        "file:///etc/passwd",
        "FILE:note.txt",
        "..\\outside\\secret.txt",
        "C:\\Windows\\win.ini",
        "",
        "//etc/passwd",
        "./../outside",
    ],
)
def test_a_path_that_leads_out_is_refused_by_every_tool(call: Call, ground: Ground, path: str) -> None:
    try_everything(call, path, ground)


def test_an_absolute_path_beside_the_root_is_refused(call: Call, ground: Ground) -> None:
    path = f"{ground.root}-evil/secret.txt"
    answer = call("read_file", path=path)
    assert answer.is_error
    assert SECRET not in answer.text
    assert path in answer.text  # as the client spelled it
    assert call("read_file", path=f"{ground.root}/../outside/secret.txt").is_error


@pytest.mark.parametrize("path", ["%2e%2e/outside/secret.txt", "%2e%2e%2foutside%2fsecret.txt"])
def test_percent_signs_are_letters_of_a_name(call: Call, ground: Ground, path: str) -> None:
    assert_refused(call("read_file", path=path), ground)


def test_a_name_that_is_too_long_is_refused_and_cut_in_the_answer(call: Call, ground: Ground) -> None:
    for path in ("x" * 300, "x" * 5_000, "d/" * 3_000 + "x"):
        for tool in ("read_file", "write_file", "create_directory"):
            answer = call(tool, path=path, **EXTRA[tool])
            assert_refused(answer, ground)
            assert len(answer.text) < 400


@pytest.mark.parametrize("target", ["../outside/secret.txt", "{outside}/secret.txt"])
def test_a_link_to_a_file_outside_is_refused(call: Call, ground: Ground, target: str) -> None:
    (ground.root / "link").symlink_to(target.format(outside=ground.outside, root=ground.root))
    for tool in OF_FILES:
        assert_refused(call(tool, path="link", **EXTRA[tool]), ground)
    assert SECRET not in call("search_text", query="stands").text
    assert SECRET not in call("read_multiple_files", paths=["link"]).text


@pytest.mark.parametrize(
    "target",
    [
        "../outside",
        "{outside}",
        "docs/../../outside",
        "/",
        "{root}-evil",
        "{root}/../outside",
        "{root}/../root-evil",
    ],
)
def test_a_link_to_a_folder_outside_is_refused(call: Call, ground: Ground, target: str) -> None:
    (ground.root / "link").symlink_to(target.format(outside=ground.outside, root=ground.root))
    for path in ("link/secret.txt", "link/new.txt", "link/new/folder"):
        try_everything(call, path, ground)
    for tool in OF_FOLDERS:
        assert_refused(call(tool, path="link", **EXTRA[tool]), ground)
        assert "secret" not in call(tool, path=".", **EXTRA[tool]).text


def test_a_chain_of_links_to_the_outside_is_refused(call: Call, ground: Ground) -> None:
    (ground.root / "one").symlink_to("two")
    (ground.root / "two").symlink_to("docs/three")
    (ground.root / "docs" / "three").symlink_to("../../outside")
    try_everything(call, "one/secret.txt", ground)


def test_links_in_a_circle_end_in_a_refusal(call: Call, ground: Ground) -> None:
    (ground.root / "a").symlink_to("b")
    (ground.root / "b").symlink_to("a")
    (ground.root / "docs" / "up").symlink_to("..")
    (ground.root / "self").symlink_to(ground.root / "self")
    assert_refused(call("read_file", path="a"), ground)
    assert_refused(call("read_file", path="self"), ground)
    assert_refused(call("read_file", path="a/b/c"), ground)
    assert_refused(call("read_file", path="docs/up/" * 41 + "note.txt"), ground)
    assert "up@" in call("directory_tree", depth=100).text


def test_a_link_that_stays_inside_is_followed(call: Call, ground: Ground) -> None:
    (ground.root / "docs" / "up").symlink_to("../note.txt")
    (ground.root / "pages").symlink_to("docs")
    (ground.root / "docs" / "absolute").symlink_to(ground.root / "note.txt")
    (ground.root / "docs" / "home").symlink_to(ground.root)
    assert call("read_file", path="docs/home/docs/absolute").text == "one\ntwo\nthree\n"
    assert call("read_file", path="docs/up").text == "one\ntwo\nthree\n"
    assert "algae" in call("read_file", path="pages/page.md").text
    assert not call("write_file", path="pages/new.md", content="new").is_error
    assert (ground.root / "docs" / "new.md").read_text() == "new"


def test_nothing_is_written_through_a_link_that_dangles(call: Call, ground: Ground) -> None:
    (ground.root / "link").symlink_to("../outside/new.txt")
    assert_refused(call("write_file", path="link", content="new"), ground)
    assert_refused(call("edit_file", path="link", edits=[{"old_text": "a", "new_text": "b"}]), ground)
    assert_refused(call("create_directory", path="link"), ground)
    assert_refused(call("move_file", source="note.txt", destination="link"), ground)


def test_a_hard_link_to_the_outside_is_neither_read_nor_written(call: Call, ground: Ground) -> None:
    os.link(ground.outside / "secret.txt", ground.root / "hard.txt")
    for tool in OF_FILES:
        answer = call(tool, path="hard.txt", **EXTRA[tool])
        assert_refused(answer, ground)
        assert "hard" in answer.text
    found = call("search_text", query="stands").text
    assert SECRET not in found
    assert "1 files" in found


def test_what_is_no_regular_file_is_refused_at_once(call: Call, ground: Ground) -> None:
    os.mkfifo(ground.root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(ground.root / "socket"))
        for path in ("fifo", "socket"):
            for tool in (*OF_FILES, "list_directory"):
                assert_refused(call(tool, path=path, **EXTRA[tool]), ground)
            assert "special" in call("file_info", path=path).text
    assert "pond" in call("search_text", query="pond").text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_refused(call: Call, ground: Ground) -> None:
    try:
        os.mknod(ground.root / "zero", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this machine lets nobody make devices")
    for tool in ("read_file", "write_file"):
        assert_refused(call(tool, path="zero", **EXTRA[tool]), ground)


@pytest.mark.parametrize("path", [".", "", "docs/..", "{root}", "{root}/"])
def test_the_allowed_folder_itself_stays(call: Call, ground: Ground, path: str) -> None:
    path = path.format(root=ground.root)
    for tool in ("write_file", "edit_file", "delete_file"):
        assert call(tool, path=path, **EXTRA[tool]).is_error
    assert call("move_file", source=path, destination="docs/x").is_error
    assert call("move_file", source="docs", destination=path).is_error
    assert (ground.root / "note.txt").read_text() == "one\ntwo\nthree\n"


def test_a_link_in_the_place_of_the_allowed_folder_is_not_followed(call: Call, ground: Ground) -> None:
    ground.root.rename(ground.root.with_name("before"))
    assert "no such file or folder" in call("read_file", path="secret.txt").text
    ground.root.symlink_to(ground.outside)
    assert_refused(call("read_file", path="secret.txt"), ground)
    assert_refused(call("write_file", path="new.txt", content="new"), ground)


def test_a_link_that_is_swapped_during_the_calls_lets_nothing_out(ground: Ground) -> None:
    """One thread makes `door` a folder inside and a link to the outside in turns; calls go through it."""
    place = ground.scope.place

    def read(path: str) -> str:
        return reading.read_text(place(path), Lines()).text

    answers: list[str] = []
    with swapped_link(ground.root):
        for number in range(600):
            path = f"door/new{number}.txt"
            for attempt in (
                partial(read, "door/secret.txt"),
                partial(writing.write_file, place(path), "new", "utf8"),
                partial(moving.delete, place(path), recursive=False),
                partial(text_search.search_text, place("door"), Query("stands"), read_glob("*")),
            ):
                try:
                    answers.append(attempt())
                except RefusedError as refusal:
                    answers.append(str(refusal))
    assert not any(SECRET in answer for answer in answers)
    assert ground.outside_is_untouched()
    # Both sides had their turns.
    assert any(INSIDE in answer for answer in answers)
    assert any("leads out" in answer for answer in answers)
