"""`doit deploy:rsync`: a package becomes a release on a host with ssh, and `current` when it answers.

What the host does stands in host.sh; here is what is sent, in which order, and what is refused before.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pipeline.deploy.gate import check_bundle, check_not_worse
from pipeline.deploy.step import DeployError, Step, cannot_run, failure, run
from pipeline.package import BUNDLE, package_version, requirements_version
from pipeline.settings import DeploySettings

HOST = Path(__file__).with_name("host.sh")
# Passwords cannot be asked for here; a host that has gone is noticed within a minute.
SSH_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15")
# A venv of requirements/serve.txt has 296 MB on x86_64, and pip unpacks each wheel beside it.
VENV_KB = 450_000


@dataclass(frozen=True, slots=True)
class RsyncSteps:
    """The steps of a deployment; `hold` lasts until the end, `discard` is for an upload that failed."""

    preflight: Step
    hold: Step
    manifest: Step
    upload: Step
    install: Step
    activate: Step
    discard: Step

    @property
    def in_order(self) -> tuple[Step, ...]:
        """The steps of a deployment that goes well."""
        return self.preflight, self.hold, self.manifest, self.upload, self.install, self.activate


def rsync_steps(settings: DeploySettings, package: Path) -> RsyncSteps:
    """What deploying a package runs, to the argument."""
    version, lock = package_version(package), requirements_version(package)
    n_kb = sum(path.stat().st_size // 1024 + 4 for path in package.rglob("*"))
    app = settings.path
    return RsyncSteps(
        preflight=_on_host(settings, "preflight", app, settings.python, n_kb, lock, VENV_KB),
        hold=_on_host(settings, "hold", app, version),
        manifest=_on_host(settings, "manifest", app),
        upload=Step(
            "upload",
            (
                "rsync",
                # Not -a: owner and group are the host's. By content, as all times in a package are the same.
                *("-rlpt", "--checksum", "--delete", "--stats", "--link-dest=../../current"),
                f"--rsh={shlex.join(_ssh(settings))}",
                # Whoever comes next waits for it, even if it outlives its client.
                f"--rsync-path=flock -n {shlex.quote(f'{app}/.working')} rsync",
                f"{package}/",
                f"{settings.host}:{app}/releases/.incoming-{version}/",
            ),
        ),
        install=_on_host(settings, "install", app, version, settings.python, lock),
        activate=_on_host(settings, "activate", app, version, *_service(settings)),
        discard=_on_host(settings, "discard", app, version),
    )


def rollback_steps(settings: DeploySettings) -> tuple[Step, Step]:
    """Keeping others out, and going back to the previous release."""
    app = settings.path
    return _on_host(settings, "hold", app), _on_host(settings, "rollback", app, *_service(settings))


def deploy(
    settings: DeploySettings, package: Path, say: Callable[[str], None], dry_run: bool = False
) -> None:
    """Deploys a package, or says what that would run. Raises DeployError.

    `current` is a whole release at every moment, however this ends.
    """
    steps = rsync_steps(settings, package)
    if dry_run:
        for step in steps.in_order:
            say(str(step))
        return
    for line in check_bundle(package / BUNDLE):
        say(line)
    say(f"{settings.host}: {run(steps.preflight).strip()}")
    with held(steps.hold):
        check_not_worse(run(steps.manifest), package / BUNDLE, settings.accept_worse)
        try:
            sent = run(steps.upload)
        except DeployError:
            with suppress(DeployError):  # the first error is the one to be told
                run(steps.discard)
            raise
        say(f"{settings.host}: {_bytes_sent(sent)} bytes sent")
        run(steps.install)
        say(f"{settings.host}: {run(steps.activate).strip()}")


def rollback(settings: DeploySettings, say: Callable[[str], None], dry_run: bool = False) -> None:
    """Makes the previous release current again, or says what that would run. Raises DeployError."""
    hold, back = rollback_steps(settings)
    if dry_run:
        say(str(hold))
        say(str(back))
        return
    with held(hold):
        say(f"{settings.host}: {run(back).strip()}")


@contextmanager
def held(step: Step) -> Iterator[None]:
    """Keeps other deployments out for as long as a connection to the host is open."""
    assert step.stdin
    pipe = subprocess.PIPE
    try:
        opened = subprocess.Popen(
            step.argv, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
        )
    except OSError as error:
        raise cannot_run(step, error) from None
    with opened as process:
        assert process.stdin and process.stdout
        with suppress(BrokenPipeError):  # what ended it, it says itself
            process.stdin.write(step.stdin.read_text(encoding="utf-8"))
            process.stdin.flush()
        if (said := process.stdout.readline()) != "held\n":
            _, complaint = process.communicate()
            if complaint.strip():
                raise failure(step, complaint, process.returncode)
            raise DeployError(f"{step.doc}: the host said {said!r}; have its shell say nothing by itself")
        yield  # leaving the context closes the standard input, and the host lets go


def _bytes_sent(stats: str) -> str:
    found = re.search(r"Total bytes sent: ([\d,.]+)", stats)
    return found[1] if found else "?"


def _service(settings: DeploySettings) -> tuple[str | int, ...]:
    """The last arguments of whatever switches: how the service is told, and asked whether it answers."""
    return settings.restart, settings.reload, settings.health_url, settings.health_timeout_s


def _on_host(settings: DeploySettings, function: str, *arguments: str | int) -> Step:
    command = shlex.join(["sh", "-s", "--", function, *map(str, arguments)])
    unreached = (
        f"RALPH_HOST is {settings.host}: set it to a host that `ssh` reaches without a password, "
        "user@host or an alias of ~/.ssh/config"
    )
    return Step(function, (*_ssh(settings), settings.host, command), stdin=HOST, unreached=unreached)


def _ssh(settings: DeploySettings) -> tuple[str, ...]:
    return (*settings.ssh, *SSH_OPTIONS)
