"""Opens what lies beneath a folder and nothing outside of it, whatever links there are, whoever moves them.

On Linux the kernel sees to it (openat2(2), since 5.6). Elsewhere every part of the path is opened by itself,
from the descriptor of the folder before it and never through a symbolic link; links are read, and walked in
the same way. Links that stay beneath are followed, those that lead out are refused.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache

# linux/openat2.h; the number is the same on every architecture that Python has wheels for.
_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
# The kernel gives up as often as anything on the file system is renamed under a path with `..` in it.
_N_TRIES = 32
_MAX_LINKS = 40  # as many as Linux follows, path_resolution(7)

# A FIFO without a writer would be waited for, and a terminal would become the server's own.
_ALWAYS = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | _ALWAYS

Open = Callable[[int, Sequence[str], int, str], int]


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(folder_fd: int, parts: Sequence[str], flags: int, home: str) -> int:
    """A new descriptor of the file or folder at `parts`, opened with `flags` (no O_CREAT); close it.

    `home` is the folder's path, so that an absolute link to something beneath it can be told from one that
    leads out; it is compared, never opened. Raises OSError: EXDEV where the way leads out, ELOOP where it
    does not end, else as open(2) does.
    """
    return best_open()(folder_fd, parts, flags, home)


def open_by_kernel(folder_fd: int, parts: Sequence[str], flags: int, home: str) -> int:
    """As open_beneath, with openat2(2). Raises OSError ENOSYS or EPERM where there is no such call."""
    path = os.fsencode("/".join(parts) or ".")
    how = _OpenHow(flags | _ALWAYS, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    syscall = _libc().syscall
    for _ in range(_N_TRIES):
        fd: int = syscall(
            ctypes.c_long(_SYS_OPENAT2),
            ctypes.c_int(folder_fd),
            ctypes.c_char_p(path),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if fd >= 0:
            return fd
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    code = ctypes.get_errno()
    if code == errno.EXDEV:
        # To the kernel every absolute link leads out. What is refused here as well does.
        return open_by_walk(folder_fd, parts, flags, home)
    raise _error(code)


def open_by_walk(folder_fd: int, parts: Sequence[str], flags: int, home: str) -> int:
    """As open_beneath, one part after the other, on any system with openat(2)."""
    todo = list(reversed(parts))
    entered: list[int] = []
    n_links = 0
    try:
        while todo:
            name = todo.pop()
            here = entered[-1] if entered else folder_fd
            if name == "..":
                if not entered:
                    raise _error(errno.EXDEV)
                os.close(entered.pop())
            elif name not in ("", "."):
                how = _SEARCH if todo else flags | os.O_NOFOLLOW | _ALWAYS
                try:
                    entered.append(os.open(name, how, dir_fd=here))
                except OSError as error:
                    target = _link_target(here, name, error)
                    n_links += 1
                    if n_links > _MAX_LINKS:
                        raise _error(errno.ELOOP) from None
                    if target.startswith("/"):
                        target = _from_home(target, home)
                        while entered:
                            os.close(entered.pop())
                    todo.extend(reversed(target.split("/")))
                else:
                    if not todo:
                        return entered.pop()
        return os.open(".", flags | _ALWAYS, dir_fd=entered[-1] if entered else folder_fd)
    finally:
        for fd in entered:
            os.close(fd)


def _link_target(folder_fd: int, name: str, error: OSError) -> str:
    """What a symbolic link that could not be opened says. Raises `error` again where it is no link."""
    # Systems differ in what they say of a link where a folder has to be.
    if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        raise error
    try:
        return os.readlink(name, dir_fd=folder_fd)
    except OSError:
        raise error from None


def _from_home(target: str, home: str) -> str:
    """What an absolute link says, from the folder on. Raises OSError EXDEV where it leads elsewhere."""
    if not f"{target}/".startswith(f"{home}/"):
        raise _error(errno.EXDEV)
    return target.removeprefix(home)


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


@cache
def best_open() -> Open:
    """The kernel's call where there is one; some containers forbid it (EPERM)."""
    if not sys.platform.startswith("linux"):
        return open_by_walk
    here = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(open_by_kernel(here, (), os.O_RDONLY | os.O_DIRECTORY, "/"))
    except OSError:
        return open_by_walk
    finally:
        os.close(here)
    return open_by_kernel


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
