"""Files written as a whole: a reader finds the old one or the new one, never a part."""

from __future__ import annotations

import base64
import binascii
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Literal

from ralph_fs.opening import open_parent, refuse_unless_plain, status_of
from ralph_fs.refusal import RefusedError, shown
from ralph_fs.roots import Place

Encoding = Literal["utf8", "base64"]

# Two calls that change files take turns: the second then works on what the first has left. Servers of two
# sessions do so by take_turn.
changing = Lock()

# Another server holds a folder while it changes one file: a hundred edits of a large one take seconds.
PATIENCE_S = 10.0

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_file(place: Place, content: str, encoding: Encoding) -> str:
    """Writes a file, new or in place of the one that is there, which keeps its mode; says what it did.

    Raises RefusedError.
    """
    data = _bytes(content, encoding)
    with changing, open_parent(place) as (folder_fd, name):
        take_turn(folder_fd, place.shown)
        before = status_of(folder_fd, name)
        if before:
            refuse_unless_writable(folder_fd, name, before, place.shown)
        replace(folder_fd, name, data, before)
    return f"{'replaced' if before else 'created'}, {len(data):,} bytes"


def take_turn(folder_fd: int, path: str, patience_s: float = PATIENCE_S) -> None:
    """Waits until no other server changes a file in the folder; others then wait for the descriptor's end.

    Raises RefusedError when that takes too long: any program may lock a folder, and keep it.
    """
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(folder_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise RefusedError(f"{shown(path)}: another program keeps its folder locked") from None
            time.sleep(0.01)
        except OSError:  # some network file systems know no locks
            return
        else:
            return


def refuse_unless_writable(folder_fd: int, name: str, status: os.stat_result, path: str) -> None:
    """Raises RefusedError unless it is a plain file that may be written to.

    The folder's permission would be enough to put another file in its place; that is not what the owner of a
    read-only file means.
    """
    refuse_unless_plain(status, path)
    if not status.st_mode & 0o222:
        raise RefusedError(f"{shown(path)}: is read-only")
    os.close(os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder_fd))


def replace(
    folder_fd: int,
    name: str,
    data: bytes,
    before: os.stat_result | None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Puts a file with `data` where `name` is, at once, with the mode of the file that was there `before`.

    `check` is called last before that; what it raises leaves everything as it was. Whatever `name` has become
    meanwhile, a link above all, is replaced and not followed. Extended attributes and access lists of the old
    file are lost. A server that is killed while it writes leaves the temporary file: a file without a name
    (O_TMPFILE) needs one too before it can replace another, as linkat(2) does not, and looking for such files
    would mean to read the whole folder at each call.
    """
    temporary = f".ralph-{secrets.token_hex(8)}.tmp"
    fd = os.open(temporary, _CREATE, 0o600 if before else 0o666, dir_fd=folder_fd)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if before:
                # Where the server may give files away: as root, and to other groups of its user.
                with suppress(PermissionError):
                    os.fchown(fd, before.st_uid, before.st_gid)
                # As write(2) does it: what runs as its owner is not what somebody else wrote.
                os.fchmod(fd, stat.S_IMODE(before.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
            os.fsync(fd)
        check()
        os.replace(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder_fd)
        raise


def _bytes(content: str, encoding: Encoding) -> bytes:
    try:
        if encoding == "base64":
            return base64.b64decode(content, validate=True)
        return content.encode("utf-8")
    except (binascii.Error, ValueError):
        kind = "base64" if encoding == "base64" else "Unicode text"
        raise RefusedError(f"the content is no {kind}") from None
