from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.settings import read_deploy_settings

UNIT = Path(__file__).resolve().parent.parent.parent / "infra" / "systemd" / "davo-bot.service"
SUDOERS = UNIT.with_name("davo-bot.sudoers")
APP = read_deploy_settings({}).path

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True)


@pytest.fixture
def deployed(tmp_path: Path) -> Path:
    """The unit with a release where it looks for one; what it runs has to be there to be checked."""
    python = tmp_path / "app" / "current" / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch(0o755)
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(APP, str(tmp_path / "app")))
    return unit


@needs_systemd
def test_systemd_knows_every_line_of_the_unit(deployed: Path) -> None:
    """Unknown keys are only a warning, with exit code 0."""
    done = analyze("verify", str(deployed))
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_a_wrong_line_would_be_noticed(deployed: Path) -> None:
    deployed.write_text(deployed.read_text().replace("ProtectHome=", "ProtectHouse="))
    assert "ProtectHouse" in analyze("verify", str(deployed)).stderr


@needs_systemd
def test_the_service_is_exposed_as_little_as_a_server_can_be() -> None:
    """At most 2 of 10, where 10 is a root service without any bounds; --threshold counts in tenths."""
    done = analyze("security", "--offline=true", "--threshold=20", str(UNIT))
    assert done.returncode == 0, done.stdout


def test_the_unit_runs_what_a_deployment_makes_current() -> None:
    text = UNIT.read_text()
    assert f"WorkingDirectory={APP}/current\n" in text
    assert f"EnvironmentFile=-{APP}/.env\n" in text
    assert re.findall(rf"{re.escape(APP)}/current/([\w./]+)", text.partition("ExecStart=")[2]) == [
        ".venv/bin/python",
        "bundle",
    ]


def test_whoever_deploys_may_run_what_a_deployment_runs_and_nothing_else() -> None:
    (rule,) = re.findall(r"^deploy ALL=\(root\) NOPASSWD: (.+)$", SUDOERS.read_text(), re.MULTILINE)
    settings = read_deploy_settings({})
    assert [f"sudo -n {command.removeprefix('/usr/bin/')}" for command in rule.split(", ")] == [
        settings.restart,
        settings.reload,
    ]


@pytest.mark.skipif(not shutil.which("visudo"), reason="needs visudo (Debian: sudo)")
def test_sudo_reads_the_rule() -> None:
    subprocess.run(["visudo", "--check", "--quiet", f"--file={SUDOERS}"], check=True)
