"""Folders made, and files and folders moved and deleted."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from ralph_fs.opening import open_folder, open_parent, status_of
from ralph_fs.refusal import RefusedError, shown
from ralph_fs.roots import Place
from ralph_fs.writing import changing

_NOREPLACE = 1  # RENAME_NOREPLACE, linux/fs.h
_EXCL = 4  # RENAME_EXCL, sys/stdio.h of macOS


def create_folder(place: Place) -> str:
    """Makes a folder and those that it is in, as far as they are not there. Raises RefusedError."""
    n_made = 0
    with changing:
        for depth in range(1, len(place.parts) + 1):
            with open_parent(Place(place.root, place.parts[:depth], place.shown)) as (folder_fd, name):
                try:
                    os.mkdir(name, dir_fd=folder_fd)
                    n_made += 1
                except FileExistsError:
                    pass
        with open_folder(place):
            return "created" if n_made else "is there already"


def move(source: Place, destination: Place, kept: Iterable[str] = ()) -> str:
    """Moves a file, a folder or a link itself to a path where nothing is yet.

    Raises RefusedError; also for what is one of the folders `kept`, by whichever name.
    """
    with changing, open_parent(source) as (from_fd, old):
        # Before the destination is opened: what is wrong with the source is said of the source.
        status = os.stat(old, dir_fd=from_fd, follow_symlinks=False)
        _refuse_kept(status, source, kept)
        with open_parent(destination) as (to_fd, new):
            try:
                _rename(from_fd, old, to_fd, new)
            except FileExistsError:
                raise RefusedError(f"{shown(destination.shown)}: is there already") from None
            except OSError as error:
                if error.errno == errno.EXDEV:
                    raise RefusedError(f"{shown(destination.shown)}: is on another disk") from None
                if error.errno == errno.EINVAL and stat.S_ISDIR(status.st_mode):
                    raise RefusedError(
                        f"{shown(destination.shown)}: lies in the folder to be moved"
                    ) from None
                raise
    return f"moved to {shown(destination.shown)}"


def delete(place: Place, kept: Iterable[str] = (), *, recursive: bool) -> str:
    """Deletes a file, a link itself, or a folder; one that is not empty only if `recursive`.

    Raises RefusedError; also for what is one of the folders `kept`, by whichever name.
    """
    with changing, open_parent(place) as (folder_fd, name):
        status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        _refuse_kept(status, place, kept)
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=folder_fd)
        elif recursive:
            _delete_all(folder_fd, name, place)
        else:
            try:
                os.rmdir(name, dir_fd=folder_fd)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise RefusedError(f"{shown(place.shown)}: is not empty; pass recursive=true") from None
                raise
    return "deleted"


def _refuse_kept(status: os.stat_result, place: Place, kept: Iterable[str]) -> None:
    for folder in kept:
        with suppress(OSError):
            if os.path.samestat(status, Path(folder).stat()):
                raise RefusedError(
                    f"{shown(place.shown)}: is an allowed folder or holds one, and stays where it is"
                )


def _delete_all(folder_fd: int, name: str, place: Place) -> None:
    # It works on descriptors and follows no link wherever there is openat(2), which opening.py needs anyway.
    assert shutil.rmtree.avoids_symlink_attacks
    try:
        shutil.rmtree(name, dir_fd=folder_fd)
    except RecursionError:
        raise RefusedError(f"{shown(place.shown)}: is nested too deeply; delete its folders first") from None
    except OSError as error:
        if status_of(folder_fd, name):
            reason = os.strerror(error.errno or errno.EIO)
            raise RefusedError(f"{shown(place.shown)}: only a part could be deleted: {reason}") from None
        raise


def _rename(from_fd: int, old: str, to_fd: int, new: str) -> None:
    """renameat(2), but never over what is there. Raises FileExistsError."""
    if rename := exclusive_rename():
        if rename(from_fd, os.fsencode(old), to_fd, os.fsencode(new)) == 0:
            return
        code = ctypes.get_errno()
        # Some file systems do not know the flag; they get the check below.
        if code not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise OSError(code, os.strerror(code))
    # Between this check and the next line another program may put a file there, which is then lost.
    if status_of(to_fd, new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(old, new, src_dir_fd=from_fd, dst_dir_fd=to_fd)


@cache
def exclusive_rename() -> Callable[[int, bytes, int, bytes], int] | None:
    """The system's call for it, where the C library has one."""
    name, flag = ("renameatx_np", _EXCL) if sys.platform == "darwin" else ("renameat2", _NOREPLACE)
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is None:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return lambda from_fd, old, to_fd, new: int(call(from_fd, old, to_fd, new, flag))
