"""The way back to the release before: by itself from one that does not answer, and when it is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.deploy.rsync import rollback
from pipeline.deploy.step import DeployError
from pipeline.package import package_version
from tests.fakes.ssh_host import Host

MakePackage = Callable[..., Path]


def freeze(host: Host, health: tuple[str, list[Path]], package: Path) -> None:
    """Has the service answer from the release of a package for good: it takes no other bundle."""
    frozen = host.app.parent / "frozen"
    frozen.symlink_to(host.app / "releases" / package_version(package) / "bundle")
    health[1][0] = frozen


def test_a_release_that_does_not_answer_is_taken_back(
    host: Host, make_package: MakePackage, health: tuple[str, list[Path]]
) -> None:
    good, bad = make_package("A."), make_package("B.")
    host.deploy(good)
    freeze(host, health, good)
    with pytest.raises(DeployError, match=rf"{package_version(good)} is current again, and answers") as error:
        host.deploy(bad)
    assert "awaited for 0 s" in str(error.value)
    assert host.current == package_version(good)
    assert not (host.app / "previous").exists()
    assert host.service_calls == ["restart", "reload", "restart"]


def test_a_restart_that_fails_takes_the_release_back(host: Host, make_package: MakePackage) -> None:
    host.deploy(make_package("A."))
    before = host.current
    script = host.app.parent / "restart"
    script.write_text(f"[ ! -e {host.app}/current/handler/new.md ]")
    (host.app.parent.parent / "clone" / "handler" / "new.md").write_text("x")
    with pytest.raises(DeployError, match="is current again, and answers"):
        host.deploy(make_package("B."), restart=f"sh {script}")
    assert host.current == before


def test_a_current_release_that_does_not_answer_goes_back_when_it_is_deployed_again(
    host: Host, make_package: MakePackage, health: tuple[str, list[Path]]
) -> None:
    """As after a host that was switched off before the release had ever answered."""
    good, bad = make_package("A."), make_package("B.")
    host.deploy(good)
    host.deploy(bad)
    freeze(host, health, good)
    with pytest.raises(DeployError, match=rf"{package_version(good)} is current again, and answers"):
        host.deploy(bad)
    assert host.current == package_version(good)
    assert not (host.app / "previous").exists()


def test_a_first_release_that_does_not_answer_stays_and_is_told(
    host: Host, make_package: MakePackage, health: tuple[str, list[Path]]
) -> None:
    health[1].clear()
    package = make_package()
    with pytest.raises(DeployError, match=r"(?s)503.*no release to go back to"):
        host.deploy(package)
    assert host.current == package_version(package)


def test_rollback_goes_back_and_forth(host: Host, make_package: MakePackage) -> None:
    with pytest.raises(DeployError, match="no previous release"):
        host.deploy(make_package("A."))
        rollback(host.settings, host.said.append)
    first = host.current
    host.deploy(make_package("B."))
    second = host.current
    rollback(host.settings, host.said.append)
    assert (host.current, host.previous) == (first, second)
    assert host.said[-1] == f"ralph-host: {first} answers"
    rollback(host.settings, host.said.append)
    assert (host.current, host.previous) == (second, first)
