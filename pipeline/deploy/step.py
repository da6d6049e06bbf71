"""A deployment as data: commands that can be shown before they are run, and compared in tests."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

# What ssh exits with when it is not the host's command that failed, see ssh(1).
NO_CONNECTION = 255


class DeployError(Exception):
    """A deployment cannot go on. The message says what answers now, or what to do."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command, the file that it reads as its standard input, and what to do if ssh reaches no host."""

    doc: str
    argv: tuple[str, ...]
    stdin: Path | None = None
    unreached: str = ""

    def __str__(self) -> str:
        """The step as it can be pasted into a shell."""
        return shlex.join(self.argv) + (f" < {shlex.quote(str(self.stdin))}" if self.stdin else "")


def failure(step: Step, complaint: str, exit_code: int) -> DeployError:
    """What is told of a step that failed: what it complains of, and the remedy where there is one."""
    said = f"{step.doc}: {complaint.strip() or f'exit code {exit_code}'}"
    return DeployError(f"{said}\n{step.unreached}" if step.unreached and exit_code == NO_CONNECTION else said)


def run(step: Step) -> str:
    """What a step prints, when it went well. Raises DeployError with what it complains of when not."""
    stdin = step.stdin.read_text(encoding="utf-8") if step.stdin else ""
    try:
        # A host may speak another encoding than UTF-8 when it complains.
        done = subprocess.run(
            step.argv, input=stdin, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
    except OSError as error:
        raise cannot_run(step, error) from None
    if done.returncode:
        raise failure(step, done.stderr, done.returncode)
    return done.stdout


def cannot_run(step: Step, error: OSError) -> DeployError:
    """What is told of a step whose program could not even be started."""
    return DeployError(
        f"{step.doc}: the program {step.argv[0]} cannot be run: {error.strerror}; install it, or name another"
    )
