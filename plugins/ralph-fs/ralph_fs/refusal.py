"""What a client reads when a call cannot be done: its own spelling of the path, and why."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.printable import printable

MAX_SHOWN_CHARS = 200

_REASONS = {
    errno.EACCES: "permission denied",
    errno.EAGAIN: "is being moved at this moment; try again",
    errno.EBUSY: "is in use",
    errno.EEXIST: "is there already",
    errno.EINVAL: "is no name that this file system takes",
    errno.EISDIR: "is a folder",
    errno.ELOOP: "a symbolic link on the way leads round in a circle, or may not be followed",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOENT: "there is no such file or folder",
    errno.ENOSPC: "no room is left on the disk",
    errno.ENOTDIR: "a part of the path is a file, no folder",
    errno.ENOTEMPTY: "the folder is not empty",
    errno.ENXIO: "is no regular file",
    errno.EPERM: "the system does not permit it",
    errno.EROFS: "the file system is read-only",
    # What the kernel says of a path that would leave the folder it has to stay beneath.
    errno.EXDEV: "leads out of the allowed folders",
}


class RefusedError(Exception):
    """A call that cannot be done. The message is for the client and names nothing of the host."""


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """Turns what the system says into a RefusedError that names `path`, the client's spelling.

    An OSError's own text is never passed on: it may hold a path of the host.
    """
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or os.strerror(error.errno or errno.EIO)
        raise RefusedError(f"{shown(path)}: {reason}") from error


def shown(name: str) -> str:
    """A name on one line: what would break or colour it is escaped, and what is very long is cut."""
    visible = printable(name)
    return visible if len(visible) <= MAX_SHOWN_CHARS else f"{visible[:MAX_SHOWN_CHARS]}…"
