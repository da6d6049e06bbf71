"""A client that is killed in the middle of a deployment, alone or with all that it had started."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.deploy.step import DeployError
from pipeline.package import package_version
from tests.fakes.ssh_host import Gate, Host

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = """
import os, sys
from pathlib import Path
from pipeline.deploy.rsync import deploy
from pipeline.settings import read_deploy_settings
deploy(read_deploy_settings(os.environ), Path(sys.argv[1]), print)
"""

Kill = Callable[["subprocess.Popen[bytes]"], None]


def kill_alone(client: subprocess.Popen[bytes]) -> None:
    client.kill()


def kill_with_children(client: subprocess.Popen[bytes]) -> None:
    os.killpg(client.pid, signal.SIGKILL)


def start_client(host: Host, package: Path, restart: str) -> subprocess.Popen[bytes]:
    """A deployment in a process, and a process group, of its own."""
    settings = host.settings
    environ = {
        "PATH": os.environ["PATH"],
        "RALPH_HOST": settings.host,
        "RALPH_HOST_PATH": settings.path,
        "RALPH_SSH": shlex.join(settings.ssh),
        "RALPH_RESTART_CMD": restart,
        "RALPH_HEALTH_URL": settings.health_url,
        "RALPH_HEALTH_TIMEOUT_S": "0",
    }
    return subprocess.Popen(
        [sys.executable, "-c", DEPLOY, str(package)],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_until_idle(host: Host) -> None:
    """Returns when nothing of the interrupted deployment runs on the host any more."""
    subprocess.run(["flock", str(host.app / ".working"), "true"], check=True)


@pytest.mark.parametrize("kill", [kill_alone, kill_with_children])
@pytest.mark.parametrize("phase", ["upload", "install", "activate"])
def test_a_client_that_is_killed_leaves_a_whole_release_and_the_next_deployment_works(
    phase: str, kill: Kill, host: Host, make_package: Callable[..., Path]
) -> None:
    first, second = make_package("A."), make_package("B. " * 1_000, "Ada\n")
    host.deploy(first)
    before = host.current
    gate = Gate(host.app.parent / "gate")
    if phase == "upload":
        host.on("before-upload", gate.script)
    elif phase == "install":
        lock = host.app.parent.parent / "clone" / "requirements" / "serve.txt"
        lock.write_text(lock.read_text() + "# another\n")
        second = make_package("B.")
        host.on("before-venv", gate.script)
    restart = gate.script if phase == "activate" else host.settings.restart
    with start_client(host, second, restart) as client:
        gate.wait()
        kill(client)
    # What the client had begun may still be at work: nobody else is let in before that has ended.
    with pytest.raises(DeployError, match="another deployment"):
        host.deploy(second)
    assert host.current == (package_version(second) if phase == "activate" else before)
    gate.open()
    wait_until_idle(host)
    assert host.current == (package_version(second) if phase == "activate" else before)
    for event in ("before-upload", "before-venv"):
        host.on(event, "")
    host.deploy(second)
    assert (host.current, host.previous) == (package_version(second), before)
    assert [name for name in host.releases if name.startswith(".")] == []
