from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from pipeline.deploy.rsync import deploy, rollback, rsync_steps
from pipeline.settings import read_deploy_settings
from pipeline.site import SiteError


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name in ("SHA256SUMS", "requirements.txt"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_without_settings_the_service_of_the_host_woozie_is_deployed(package: Path) -> None:
    steps = rsync_steps(read_deploy_settings({}), package)
    ssh = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15")
    empty = "e3b0c44298fc"
    assert steps.upload.argv == (
        "rsync",
        "-rlpt",
        "--checksum",
        "--delete",
        "--stats",
        "--link-dest=../../current",
        f"--rsh={' '.join(ssh)}",
        "--rsync-path=flock -n /var/www/apps/davo-bot/.working rsync",
        f"{package}/",
        f"woozie:/var/www/apps/davo-bot/releases/.incoming-{empty}/",
    )
    assert steps.activate.argv == (
        *ssh,
        "woozie",
        f"sh -s -- activate /var/www/apps/davo-bot {empty} 'sudo -n systemctl restart davo-bot' "
        "'sudo -n systemctl reload davo-bot' http://127.0.0.1:3001/healthz 30",
    )
    assert str(steps.activate).endswith("host.sh")


def test_commands_of_the_host_reach_its_shell_as_they_are(package: Path) -> None:
    settings = read_deploy_settings({"RALPH_RESTART_CMD": "kill '$X' && echo \"a b\""})
    assert """'kill '"'"'$X'"'"' && echo "a b"'""" in rsync_steps(settings, package).activate.argv[-1]
    assert settings.reload == settings.restart  # the default reloads another service


def test_any_alias_port_and_key_of_ssh_are_used_by_both_programs(package: Path) -> None:
    settings = read_deploy_settings(
        {"RALPH_SSH": "ssh -p 2222 -i '/a b/key'", "RALPH_HOST": "ada@example.org"}
    )
    steps = rsync_steps(settings, package)
    assert steps.preflight.argv[:5] == ("ssh", "-p", "2222", "-i", "/a b/key")
    assert any(each.startswith("--rsh=ssh -p 2222 -i '/a b/key' -o") for each in steps.upload.argv)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RALPH_HOST", "-oProxyCommand=sh"),
        ("RALPH_HOST", "a b"),
        ("RALPH_HOST", "host\n"),
        ("RALPH_HOST", "host:"),
        ("RALPH_HOST", "ssh://host"),
        ("RALPH_HOST", "$(id)"),
        ("RALPH_HOST_PATH", "/var/www/$(id)"),
        ("RALPH_HOST_PATH", "relative"),
        ("RALPH_HOST_PATH", "/"),
        ("RALPH_HOST_PATH", "/a/../b"),
        ("RALPH_HOST_PYTHON", "python3; id"),
        ("RALPH_HEALTH_URL", "http://x/'"),
        ("RALPH_HEALTH_URL", "127.0.0.1:3001/healthz"),
        ("RALPH_HEALTH_TIMEOUT_S", "soon"),
        ("RALPH_SSH", "ssh 'x"),
        ("DAVO_BOT_PROMPT", "/nowhere/persona.md"),
        ("RALPH_DEPLOY", "ftp"),
    ],
)
def test_a_setting_that_a_shell_would_read_otherwise_is_refused(name: str, value: str) -> None:
    with pytest.raises(SiteError, match=f"^{name}: "):
        read_deploy_settings({name: value})


def test_a_dry_run_prints_what_can_be_pasted_and_runs_nothing(package: Path) -> None:
    settings = read_deploy_settings({"RALPH_HOST": "nowhere.invalid"})
    said: list[str] = []
    deploy(settings, package, said.append, dry_run=True)
    steps = rsync_steps(settings, package)
    assert said == [str(step) for step in steps.in_order]
    assert shlex.split(said[0]) == [*steps.preflight.argv, "<", str(steps.preflight.stdin)]
    said.clear()
    rollback(settings, said.append, dry_run=True)
    assert [shlex.split(line)[-3].split()[3] for line in said] == ["hold", "rollback"]


def test_a_target_that_is_named_twice_is_deployed_to_once() -> None:
    assert read_deploy_settings({"RALPH_DEPLOY": "lambda, rsync lambda"}).targets == ("lambda", "rsync")
