"""Calls of file tools that have to be refused, and some that have to work, each on a fresh folder."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.mcp_files import Answer, Ground

Arguments = Mapping[str, Any]


def nothing(ground: Ground) -> None:
    """Leaves the ground as it is."""


@dataclass(frozen=True)
class Case:
    """One call. `works` is what has to be in the answer or a file; None: the call has to be refused."""

    name: str
    tool: str
    arguments: Arguments
    prepare: Callable[[Ground], object] = nothing
    works: Callable[[Ground, Answer], bool] | None = None
    root: Callable[[Ground], Path] | None = None


def edit(path: str, old: str, new: str) -> Arguments:
    """The arguments of an edit."""
    return {"path": path, "edits": [{"old_text": old, "new_text": new}]}


def link(name: str, target: str) -> Callable[[Ground], object]:
    """Makes a link in the root."""
    return lambda ground: (ground.root / name).symlink_to(target)


def circle(ground: Ground) -> None:
    """Two links that lead to each other."""
    (ground.root / "a").symlink_to("b")
    (ground.root / "b").symlink_to("a")


def chain(ground: Ground) -> None:
    """Links to links that lead out."""
    (ground.root / "one").symlink_to("docs/two")
    (ground.root / "docs" / "two").symlink_to("../../outside")


def linked_root(ground: Ground) -> Path:
    """The root's other name."""
    linked = ground.root.with_name("linked")
    linked.symlink_to(ground.root)
    return linked


def hard_link(ground: Ground) -> None:
    """A second name of a file outside."""
    os.link(ground.outside / "secret.txt", ground.root / "h")


def fifo(ground: Ground) -> None:
    """A file that nobody ever writes to."""
    os.mkfifo(ground.root / "f")


def device(ground: Ground) -> None:
    """A device that never ends."""
    os.mknod(ground.root / "zero", 0o20666, os.makedev(1, 5))


def nfd(ground: Ground) -> None:
    """A name as macOS and some archives write it."""
    (ground.root / unicodedata.normalize("NFD", "Café.md")).write_text("coffee")


def has(text: str) -> Callable[[Ground, Answer], bool]:
    """Whether the answer holds a text."""
    return lambda _, answer: text in answer.text


def holds(name: str, content: bytes) -> Callable[[Ground, Answer], bool]:
    """Whether a file has become this."""
    return lambda ground, _: (ground.root / name).read_bytes() == content


OUTSIDE = "../outside"
OUTSIDE_FILE = "../outside/secret.txt"
NOTHING = "../outside/new"

CASES = (
    Case(".. in a relative path", "read_file", {"path": "docs/../../outside/secret.txt"}),
    Case("an absolute path outside", "read_file", {"path": "{outside}/secret.txt"}),
    Case("a folder whose name begins alike", "read_file", {"path": "{root}-evil/secret.txt"}),
    Case("a link to a file outside, read", "read_file", {"path": "l"}, link("l", OUTSIDE_FILE)),
    Case("a link to a file outside, edited", "edit_file", edit("l", "what", "x"), link("l", OUTSIDE_FILE)),
    Case("a link to a folder outside", "read_file", {"path": "l/secret.txt"}, link("l", OUTSIDE)),
    Case("a link to a folder outside, listed", "list_directory", {"path": "l"}, link("l", OUTSIDE)),
    Case("a chain of links", "read_file", {"path": "one/secret.txt"}, chain),
    Case("links in a circle", "read_file", {"path": "a"}, circle),
    Case("a new file beneath a link", "write_file", {"path": "l/new", "content": "x"}, link("l", OUTSIDE)),
    Case("a new folder beneath a link", "create_directory", {"path": "l/new/er"}, link("l", OUTSIDE)),
    Case(
        "a link to nothing, written to",
        "write_file",
        {"path": "l", "content": "x"},
        link("l", NOTHING),
    ),
    Case("a file moved out", "move_file", {"source": "note.txt", "destination": "l/new"}, link("l", OUTSIDE)),
    Case("a hard link, read", "read_file", {"path": "h"}, hard_link),
    Case("a hard link, edited", "edit_file", edit("h", "what", "x"), hard_link),
    Case("a FIFO, read", "read_file", {"path": "f"}, fifo),
    Case("a FIFO, edited", "edit_file", edit("f", "a", "b"), fifo),
    Case("a device", "read_file", {"path": "zero"}, device),
    Case("/proc/self/environ", "read_file", {"path": "/proc/self/environ"}),
    Case("a NUL in the path", "read_file", {"path": "note.txt\0.md"}),
    Case("~/secret.txt", "read_file", {"path": "~/secret.txt"}),
    Case("file:// address", "read_file", {"path": "file://{outside}/secret.txt"}),
    Case("%2e%2e/ for ../", "read_file", {"path": "%2e%2e/outside/secret.txt"}),
    Case("..\\ for ../", "read_file", {"path": "..\\outside\\secret.txt"}),
    Case("a name of 300 letters", "write_file", {"path": "x" * 300, "content": ""}),
    Case("the root, written over", "write_file", {"path": ".", "content": ""}),
    Case("the root, moved away", "move_file", {"source": "{root}", "destination": "{root}/docs/x"}),
    Case(
        "a file moved over another",
        "move_file",
        {"source": "note.txt", "destination": "docs/b"},
        lambda g: (g.root / "docs" / "b").write_text("b"),
    ),
    Case("an edit that fits twice", "edit_file", edit("note.txt", "t", "T")),
    Case("a relative path", "read_file", {"path": "note.txt"}, works=has("three")),
    Case("an absolute path", "read_file", {"path": "{root}/note.txt"}, works=has("three")),
    Case(
        "a root that is a link",
        "read_file",
        {"path": "{linked}/note.txt"},
        works=has("three"),
        root=linked_root,
    ),
    Case("a link that stays inside", "read_file", {"path": "l"}, link("l", "note.txt"), has("three")),
    Case(
        "an absolute link that stays inside",
        "read_file",
        {"path": "l"},
        lambda g: (g.root / "l").symlink_to(g.root / "note.txt"),
        has("three"),
    ),
    Case("an NFD name asked for in NFC", "read_file", {"path": "Café.md"}, nfd, has("coffee")),
    Case(
        "an edit of CRLF lines",
        "edit_file",
        edit("crlf", "a\nb", "1\n2"),
        lambda g: (g.root / "crlf").write_bytes(b"a\r\nb\r\nc\r\n"),
        holds("crlf", b"1\r\n2\r\nc\r\n"),
    ),
    Case(
        "an edit keeps the mode",
        "edit_file",
        edit("note.txt", "two", "2"),
        lambda g: (g.root / "note.txt").chmod(0o750),
        lambda g, _: (g.root / "note.txt").stat().st_mode & 0o777 == 0o750,
    ),
)
