"""Descriptors of files and folders in the allowed folders. After these, no path is used again.

While one is open, an error of the system is a refusal that names the client's path.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ralph_fs.beneath import open_beneath
from ralph_fs.refusal import RefusedError, refusing, shown
from ralph_fs.roots import Place

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def open_file(place: Place) -> Iterator[tuple[int, os.stat_result]]:
    """The descriptor of a regular file, for reading, and what it is; closed with the context.

    Raises RefusedError for everything else: a second link may be a file outside, which nothing else can tell.
    """
    with _opened(place, os.O_RDONLY) as fd:
        status = os.fstat(fd)
        refuse_unless_plain(status, place.shown)
        yield fd, status


@contextmanager
def open_folder(place: Place) -> Iterator[int]:
    """The descriptor of a folder; closed with the context. Raises RefusedError."""
    with _opened(place, _FOLDER) as fd:
        yield fd


@contextmanager
def open_parent(place: Place) -> Iterator[tuple[int, str]]:
    """The descriptor of the folder that `place` is in, and its name there, be there such a file or not.

    What is done with the pair must not follow a symbolic link of that name. Raises RefusedError.
    """
    if not place.parts:
        raise RefusedError(f"{shown(place.shown)}: is an allowed folder itself, which stays as it is")
    with _opened(Place(place.root, place.parts[:-1], place.shown), _FOLDER) as fd:
        yield fd, spelled_in(fd, place.parts[-1])


def read_at(fd: int, offset: int, n_bytes: int) -> bytes:
    """What an open file has from a byte on: `n_bytes`, or fewer where it ends before."""
    parts = []
    while n_bytes > 0 and (part := os.pread(fd, n_bytes, offset)):
        parts.append(part)
        offset += len(part)
        n_bytes -= len(part)
    return b"".join(parts)


def is_folder(place: Place) -> bool:
    """Whether it is a folder and no file. Raises RefusedError when it is not there."""
    with _opened(place, os.O_RDONLY) as fd:
        return stat.S_ISDIR(os.fstat(fd).st_mode)


def status_of(folder_fd: int, name: str) -> os.stat_result | None:
    """What there is by that name, itself and not what it links to; None if there is nothing."""
    try:
        return os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def refuse_unless_plain(status: os.stat_result, path: str) -> None:
    """Raises RefusedError unless it is a regular file that has no second name."""
    if stat.S_ISDIR(status.st_mode):
        raise RefusedError(f"{shown(path)}: is a folder")
    if stat.S_ISLNK(status.st_mode):
        raise RefusedError(f"{shown(path)}: is a symbolic link; name the file that it leads to")
    if not stat.S_ISREG(status.st_mode):
        raise RefusedError(f"{shown(path)}: is no regular file")
    if status.st_nlink > 1:
        raise RefusedError(f"{shown(path)}: has a second (hard) link, which may lie outside")


def spelled_in(folder_fd: int, name: str) -> str:
    """The name as the folder has it: the same letters, where only their Unicode normal form differs.

    macOS and some archives write é as two code points, clients as one.
    """
    if name.isascii() or status_of(folder_fd, name):
        return name
    wanted = unicodedata.normalize("NFC", name)
    alike = [other for other in names_in(folder_fd) if unicodedata.normalize("NFC", other) == wanted]
    return alike[0] if len(alike) == 1 else name


def names_in(folder_fd: int) -> list[str]:
    """The names of everything in a folder, in no order."""
    with os.scandir(folder_fd) as entries:
        return [entry.name for entry in entries]


@contextmanager
def _opened(place: Place, flags: int) -> Iterator[int]:
    with refusing(place.shown):
        # It is no link since the scope was read; one that has taken its place may lead anywhere.
        root_fd = os.open(place.root, _FOLDER | os.O_NOFOLLOW)
        try:
            fd = _open(root_fd, place.parts, flags, place.root)
        finally:
            os.close(root_fd)
        try:
            yield fd
        finally:
            os.close(fd)


def _open(root_fd: int, parts: Sequence[str], flags: int, home: str) -> int:
    try:
        return open_beneath(root_fd, parts, flags, home)
    except FileNotFoundError:
        if all(part.isascii() for part in parts):
            raise
        return open_beneath(root_fd, _spelled(root_fd, parts, home), flags, home)


def _spelled(root_fd: int, parts: Sequence[str], home: str) -> list[str]:
    spelled: list[str] = []
    for part in parts:
        fd = open_beneath(root_fd, spelled, _FOLDER, home)
        try:
            spelled.append(spelled_in(fd, part))
        finally:
            os.close(fd)
    return spelled
