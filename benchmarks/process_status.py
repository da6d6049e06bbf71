"""What Linux tells of a process that was started in a namespace of its own."""

from __future__ import annotations

from pathlib import Path


def innermost_status(pid: int) -> dict[str, str]:
    """The lines of /proc/PID/status, by name, of the innermost process beneath this one.

    bubblewrap starts itself again before it starts what it is told to.
    """
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(children[0])
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def peak_mb(status: dict[str, str]) -> float:
    """The most memory that a process has had, by its status."""
    return int(status["VmHWM"].split()[0]) / 1024
