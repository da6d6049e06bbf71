"""How doit speaks in a build: what ran, what failed, and nothing about what was up to date."""

from __future__ import annotations

import atexit
import errno
import multiprocessing
import os
import select
import signal
import sqlite3
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from doit.reporter import ConsoleReporter

_REFUSALS = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}
_DATABASE_REFUSALS = {"SQLITE_FULL", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR_WRITE"}


def disk_refusal(error: OSError | sqlite3.OperationalError, build: Path) -> str | None:
    """What the disk refused to a build, in one sentence; None when it is no refusal but a fault of ours."""
    if isinstance(error, sqlite3.OperationalError):
        refused = error.sqlite_errorname in _DATABASE_REFUSALS
        where, reason = build, str(error)
    else:
        refused = error.errno in _REFUSALS
        where = error.filename2 or error.filename or build
        reason = os.strerror(error.errno or 0)
    return f"{where}: {reason}; make room or allow it, or point RALPH_BUILD elsewhere" if refused else None


def say_interrupts() -> None:
    """From now on Ctrl-C ends the program with one sentence in place of a traceback."""
    signal.signal(signal.SIGINT, _interrupted)


def _interrupted(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit("interrupted; the next build goes on from here")


def end_without_reader() -> None:
    """From now on the program ends without a word when its output has no reader, as in `doit list | head`."""
    signal.signal(signal.SIGPIPE, _pipe_broke)
    atexit.register(_flush)


def _pipe_broke(_signal: int, frame: FrameType | None) -> None:
    """Ends the program, unless it was the other end of a socket that hung up: that is its caller's to see.

    doit would catch the exception that the write raises too, and print its traceback. In a process of
    `doit -n` it is that exception that ends the task, and the parent hears of it.
    """
    poll = select.poll()
    poll.register(1, 0)
    if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
        _discard_output()
        is_exiting = frame is None or frame.f_back is None  # Python has left doit, and emptied the buffer
        if is_exiting or multiprocessing.parent_process() is not None:
            return
        for child in multiprocessing.active_children():
            child.terminate()  # or it would wait for tasks for ever
        raise SystemExit(128 + signal.SIGPIPE)  # what shells say of it


def _flush() -> None:
    """Writes what is left in the buffer, where Python would complain of a missing reader at the very end."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class BuildReporter(ConsoleReporter):  # type: ignore[misc] # doit is untyped
    """One line a task that runs; a failure in its own words, without a traceback where the words suffice."""

    desc = "one line for each task that runs"

    def __init__(self, outstream: Any, options: dict[str, Any]) -> None:
        super().__init__(outstream, options)
        self._n_executed = 0

    def execute_task(self, task: Any) -> None:
        """Says that a task starts."""
        if task.actions and not task.name.startswith("_"):
            self._n_executed += 1
            self.write(f"{task.title()}\n")
            self.outstream.flush()

    def skip_uptodate(self, task: Any) -> None:
        """Says nothing."""

    def complete_run(self) -> None:
        """Says that there was nothing to do, or repeats the errors of doit itself."""
        for error in self.runtime_errors:
            self.write(f"{error}\n")
        if not self._n_executed and not self.failures and not self.runtime_errors:
            self.write("up to date\n")

    def _write_failure(self, result: dict[str, Any], write_exception: bool = True) -> None:  # noqa: ARG002 - doit's signature
        self.write(f"{result['task'].name}: {result['exception'].get_msg().rstrip()}\n")
