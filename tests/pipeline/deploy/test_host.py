"""A deployment from end to end, with the real handler as the service."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from handler.bundle.manifest import read_manifest
from pipeline.deploy.rsync import rollback
from pipeline.deploy.step import DeployError
from pipeline.package import package
from tests.fakes.ssh_host import Host, real_service

PATIENCE_S = 30


@pytest.fixture
def real_host(host: Host) -> Iterator[Host]:
    with real_service(host):
        yield host


def answering(host: Host) -> tuple[str, int]:
    """The bundle that the server answers from, and its process."""
    url = str(host.service["health_url"])
    pid = int((host.app.parent / "pid").read_text())
    return str(httpx.get(url, timeout=PATIENCE_S).json()["bundle"]), pid


def test_the_server_goes_on_to_each_release_and_back(
    real_host: Host, make_package: Callable[..., Path]
) -> None:
    first, second, third = (
        make_package("Tomatoes want sun."),
        make_package("Tomatoes want water."),
        make_package("Tomatoes want both.", "Ada\n"),
    )
    versions = [read_manifest(each / "bundle").version for each in (first, second, third)]

    real_host.deploy(first)
    bundle, pid = answering(real_host)
    assert bundle == versions[0]

    real_host.deploy(second)
    assert answering(real_host) == (versions[1], pid)  # it only read another bundle

    real_host.deploy(third)
    bundle, another_pid = answering(real_host)
    assert (bundle, another_pid != pid) == (versions[2], True)

    good = real_host.current
    (third.parent / "clone" / "handler" / "app.py").write_text("raise RuntimeError('broken')\n")
    with pytest.raises(DeployError, match=f"{good} is current again, and answers"):
        real_host.deploy(make_package("Tomatoes want nothing."))
    assert (real_host.current, answering(real_host)[0]) == (good, versions[2])

    rollback(real_host.settings, real_host.said.append)
    assert answering(real_host)[0] == versions[1]


@pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bwrap (Debian: bubblewrap)")
def test_the_package_needs_no_home_no_network_and_writes_nowhere(
    make_bundle: Callable[..., Path], tmp_path: Path
) -> None:
    package(make_bundle({"notes/garden.md": "Garden\n\nTomatoes want sun.\n"}), tmp_path / "package")
    prison = ["--ro-bind", "/", "/", "--dev", "/dev", "--unshare-all", "--die-with-parent", "--clearenv"]
    command = [sys.executable, "-m", "handler", "ask", "--bundle", "bundle", "Do tomatoes want sun?"]
    if subprocess.run(["bwrap", *prison, "true"], capture_output=True).returncode:
        pytest.skip("bwrap may not make namespaces here")
    environ = ["--setenv", "PYTHONWARNINGS", "error"]
    done = subprocess.run(
        ["bwrap", *prison, *environ, *command],
        cwd=tmp_path / "package",
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Tomatoes want sun." in done.stdout
