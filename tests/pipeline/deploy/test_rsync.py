"""Deployments through a real sshd: what is sent and installed, what stays, and what stops one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.deploy.rsync import deploy, held, rollback, rsync_steps
from pipeline.deploy.step import DeployError
from pipeline.package import package_version, requirements_version
from pipeline.settings import read_deploy_settings
from tests.fakes.ssh_host import Gate, Host

MakePackage = Callable[..., Path]


def n_sent(host: Host) -> int:
    (line,) = (line for line in host.said if "bytes sent" in line)
    return int(re.sub(r"\D", "", line.split(":")[1]))


def venv_of(package: Path) -> str:
    return f"{requirements_version(package)}-{sys.version_info.major}.{sys.version_info.minor}"


def test_a_first_deployment_makes_a_release_that_answers(host: Host, make_package: MakePackage) -> None:
    package = make_package()
    host.deploy(package)
    assert host.current == package_version(package)
    assert host.service_calls == ["restart"]
    assert host.said[-1] == f"ralph-host: {host.current} answers"
    assert (host.app / "current" / "handler" / "__pycache__").is_dir()
    assert not (host.app / "previous").exists()


def test_what_did_not_change_is_not_sent_again(host: Host, make_package: MakePackage) -> None:
    first, second = make_package(), make_package("Tomatoes want water.")
    host.deploy(first)
    n_first = n_sent(host)
    host.deploy(second)
    assert n_sent(host) < n_first / 10
    assert (host.current, host.previous) == (package_version(second), package_version(first))
    old, new = (host.app / link / "handler" / "app.py" for link in ("previous", "current"))
    assert old.samefile(new)


def test_another_bundle_is_a_reload_and_another_program_a_restart(
    host: Host, make_package: MakePackage
) -> None:
    for package in (make_package("A."), make_package("B."), make_package("B.", "Ada\n"), make_package("C.")):
        host.deploy(package)
    assert host.service_calls == ["restart", "reload", "restart", "reload"]


def test_a_server_that_cannot_be_told_of_another_bundle_is_restarted(
    host: Host, make_package: MakePackage
) -> None:
    """As systemd refuses to reload what does not run."""
    host.deploy(make_package("A."))
    host.deploy(make_package("B."), reload=f"echo reload >> {host.log}; exit 1")
    assert host.service_calls == ["restart", "reload", "restart"]


def test_packages_are_installed_only_when_the_lock_changed(host: Host, make_package: MakePackage) -> None:
    first, second = make_package("A."), make_package("B.")
    lock = first.parent / "clone" / "requirements" / "serve.txt"
    lock.write_text(lock.read_text() + "# another\n")
    third = make_package("C.")
    for package in (first, second, third):
        host.deploy(package)
    made = (host.sshd / "venvs.log").read_text().split()[1::2]
    assert made == [f"../venvs/{venv_of(package)}" for package in (first, third)]
    assert host.service_calls == ["restart", "reload", "restart"]


def test_packages_are_installed_again_for_another_python(host: Host, make_package: MakePackage) -> None:
    """A new version looks for them in another folder, whatever has become of the one before."""
    package = make_package()
    host.deploy(package)
    host.deploy(make_package("B."))
    rollback(host.settings, host.said.append)
    later = host.sshd / "bin" / "python-later"
    later.write_text(f'#!/bin/sh\n[ "$1" = -m ] || exec echo "$3-9.9"\nexec {host.sshd}/bin/python3 "$@"\n')
    later.chmod(0o755)
    n_calls = len(host.service_calls)
    host.deploy(package, python=str(later))
    assert host.current == package_version(package)
    assert (host.app / "current" / ".venv").resolve().name == f"{requirements_version(package)}-9.9"
    assert (host.app / "previous" / ".venv").resolve().name == venv_of(package)
    assert host.service_calls[n_calls:] == ["restart"]


def test_packages_whose_python_is_gone_are_installed_again(host: Host, make_package: MakePackage) -> None:
    package = make_package()
    host.deploy(package)
    python = host.app / "current" / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to(host.app / "nowhere")
    host.deploy(make_package("B."))
    assert python.resolve().exists()


def test_what_the_owner_keeps_in_the_folder_stays(host: Host, make_package: MakePackage) -> None:
    host.app.mkdir()
    (host.app / ".env").write_text("ANTHROPIC_API_KEY=x\n")
    (host.app / ".env").chmod(0o600)
    if os.geteuid() == 0:
        os.chown(host.app / ".env", 65534, 65534)
    (host.app / "notes").write_text("mine")
    before = (host.app / ".env").stat()
    host.deploy(make_package())
    after = (host.app / ".env").stat()
    assert (after.st_mode, after.st_uid, after.st_ctime_ns) == (0o100600, before.st_uid, before.st_ctime_ns)
    assert (host.app / ".env").read_text() == "ANTHROPIC_API_KEY=x\n"
    assert (host.app / "notes").read_text() == "mine"


def test_a_host_and_a_folder_may_have_odd_names(
    host: Host, make_package: MakePackage, tmp_path: Path, health: tuple[str, list[Path]]
) -> None:
    """The host's own name is one that its alias in the client's configuration makes up."""
    client = tmp_path / "a client's folder"
    client.mkdir()
    text = (host.sshd / "ssh_config").read_text().replace("Host ralph-host", "Host r4lph_h0st.x+y")
    (client / "ssh config").write_text(text)
    package = make_package().rename(client / "a package")
    host.app = host.app.parent / 'it\'s a "folder" $(touch ran)'
    health[1][0] = host.app / "current" / "bundle"
    host.deploy(
        package,
        host="r4lph_h0st.x+y",
        path=str(host.app),
        ssh=("ssh", "-F", str(client / "ssh config")),
    )
    assert host.current == package_version(package)
    assert not list(tmp_path.rglob("ran"))


def test_a_link_in_the_place_of_a_release_is_replaced_by_it(
    host: Host, make_package: MakePackage, tmp_path: Path
) -> None:
    package = make_package()
    shutil.copytree(package, tmp_path / "elsewhere")
    (host.app / "releases").mkdir(parents=True)
    (host.app / "releases" / package_version(package)).symlink_to(tmp_path / "elsewhere")
    host.deploy(package)
    assert host.current == package_version(package)
    assert not (host.app / "releases" / host.current).is_symlink()
    assert (tmp_path / "elsewhere" / "LICENSE").is_file()


def test_a_host_that_lets_nobody_restart_the_service_is_told(host: Host, make_package: MakePackage) -> None:
    """Without RALPH_RESTART_CMD it is systemd's, which needs a line in sudoers."""
    sudo = host.sshd / "bin" / "sudo"
    sudo.write_text(
        f'#!/bin/sh\necho "sudo $*" >> {host.log}\necho sudo: a password is required >&2\nexit 1\n'
    )
    sudo.chmod(0o755)
    default = read_deploy_settings({})
    host.deploy(make_package("A."))
    before = host.current
    try:
        with pytest.raises(DeployError, match="a password is required"):
            host.deploy(make_package("B.", "Ada\n"), restart=default.restart, reload=default.reload)
    finally:
        sudo.unlink()
    assert host.current == before
    assert host.log.read_text().splitlines()[1:] == [default.restart] * 2


def test_what_a_dry_run_prints_deploys_when_it_is_pasted_into_a_shell(
    host: Host, make_package: MakePackage
) -> None:
    package = make_package()
    said: list[str] = []
    deploy(host.settings, package, said.append, dry_run=True)
    assert not host.app.exists()
    subprocess.run(["sh", "-e"], input="\n".join(said), text=True, check=True, stdout=subprocess.DEVNULL)
    assert host.current == package_version(package)
    assert host.service_calls == ["restart"]


def test_old_releases_and_their_packages_are_pruned(host: Host, make_package: MakePackage) -> None:
    host.deploy(make_package("A."))
    first = host.current
    os.utime(host.app / "releases" / first, (1, 1))
    for second, name in enumerate(("aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"), start=2):
        release, venv = host.app / "releases" / name, host.app / "venvs" / f"of-{name}"
        release.mkdir()
        venv.mkdir()
        (release / ".venv").symlink_to(f"../../venvs/{venv.name}")
        os.utime(release, (second, second))
    host.deploy(make_package("B."))
    # The two newest beside the current one; the previous one, from which the process was started, is older.
    assert host.releases == sorted([first, host.current, "bbbbbbbbbbbb", "cccccccccccc"])
    assert not (host.app / "venvs" / "of-aaaaaaaaaaaa").exists()
    assert len(list((host.app / "venvs").iterdir())) == 3


def test_the_same_package_twice_is_one_release(host: Host, make_package: MakePackage) -> None:
    package = make_package()
    for _ in range(2):
        host.deploy(package)
    assert host.releases == [host.current]
    assert not (host.app / "previous").exists()


def test_a_release_that_was_damaged_on_the_host_is_made_whole(host: Host, make_package: MakePackage) -> None:
    package = make_package()
    host.deploy(package)
    (host.app / "current" / "handler" / "app.py").write_text("broken")
    host.deploy(package)
    assert host.current == package_version(package)
    assert host.releases == [host.current]


def test_a_corrupted_transfer_is_not_installed(host: Host, make_package: MakePackage) -> None:
    host.deploy(make_package("A."))
    before = host.current
    host.on(
        "after-upload", f"for f in {host.app}/releases/.incoming-*/bundle/rag.db; do printf x >> $f; done"
    )
    with pytest.raises(DeployError, match="not what was sent"):
        host.deploy(make_package("B."))
    assert host.current == before
    host.on("after-upload", f"cd {host.app}/releases/.incoming-*/handler && touch extra.py")
    with pytest.raises(DeployError, match="not what was sent"):
        host.deploy(make_package("B."))
    assert host.current == before


def test_a_cut_transfer_is_told_and_gone_on_with(host: Host, make_package: MakePackage) -> None:
    host.deploy(make_package("A."))
    before = host.current
    host.on("before-upload", "exit 1")
    with pytest.raises(DeployError, match=r"^upload: "):
        host.deploy(make_package("B."))
    assert host.current == before
    assert host.releases == [before]


def test_the_second_of_two_deployments_at_once_refuses(host: Host, make_package: MakePackage) -> None:
    first, second = make_package("A."), make_package("B.")
    gate = Gate(host.app.parent / "gate")
    host.on("before-upload", gate.script)
    slow = threading.Thread(target=host.deploy, args=(first,))
    slow.start()
    gate.wait()  # the first one is in the middle of its upload
    with pytest.raises(DeployError, match="another deployment"):
        deploy(host.settings, second, lambda _line: None)
    gate.open()
    slow.join()
    assert host.current == package_version(first)
    host.on("before-upload", "")
    host.deploy(second)
    assert host.current == package_version(second)


def test_what_was_deployed_while_the_host_was_looked_at_is_what_is_compared_with(
    host: Host, make_package: MakePackage
) -> None:
    better = make_package("A.", evaluation=figures(0.9, 1.0))
    settings, worse = host.settings, make_package("B.", evaluation=figures(0.8, 1.0))

    def another_deploys(line: str) -> None:
        if "MB free" in line:
            host.deploy(better)

    with pytest.raises(DeployError, match="answers worse"):
        deploy(settings, worse, another_deploys)
    assert host.current == package_version(better)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo Welcome; cat >/dev/null", r"the host said 'Welcome\\n'"),
        ("exec <&-; echo unreachable >&2; exit 255", r"(?s)^hold: unreachable\nRALPH_HOST is "),
        ("exit 1", "the host said ''"),
    ],
)
def test_a_host_that_does_not_hold_is_told(script: str, told: str, host: Host) -> None:
    with pytest.raises(DeployError, match=told):
        rollback(host.settings_with(ssh=("sh", "-c", script)), host.said.append)


def test_a_client_that_ends_lets_the_next_one_in(host: Host, make_package: MakePackage) -> None:
    hold = rsync_steps(host.settings, make_package()).hold
    for _ in range(2):
        with held(hold):
            pass


def test_a_host_that_cannot_do_it_is_told_before_anything_is_sent(
    host: Host, make_package: MakePackage
) -> None:
    package = make_package()
    with pytest.raises(DeployError, match="no python9: install it, or name another in RALPH_HOST_PYTHON"):
        host.deploy(package, python="python9")
    old = host.app.parent / "old"
    old.write_text("#!/bin/sh\n[ $1 != -V ] || echo Python 3.9.2\nexit 1\n")
    old.chmod(0o755)
    with pytest.raises(DeployError, match=r"Python 3\.9\.2: 3\.11 is needed"):
        host.deploy(package, python=str(old))
    with pytest.raises(DeployError, match="ralph-nowhere"):
        host.deploy(package, host="ralph-nowhere.invalid")
    with pytest.raises(DeployError, match=r"^preflight: the program no-ssh cannot be run"):
        host.deploy(package, ssh=("no-ssh",))
    with pytest.raises(DeployError, match=r"^hold: the program no-ssh cannot be run"):
        rollback(host.settings_with(ssh=("no-ssh",)), host.said.append)
    with pytest.raises(DeployError, match=r"^preflight: kein Ger\ufffdt$"):
        host.deploy(package, ssh=("sh", "-c", r"printf 'kein Ger\344t' >&2; exit 1"))
    assert not host.app.exists()


@contextmanager
def small_disk(folder: Path, n_kb: int) -> Iterator[None]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={n_kb}k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(not shutil.which("ssh"), reason="needs ssh (Debian: openssh-client)")
def test_a_host_that_cannot_be_reached_is_told_with_the_setting_that_names_it(
    make_package: MakePackage,
) -> None:
    settings = read_deploy_settings({"RALPH_HOST": "127.0.0.1", "RALPH_SSH": "ssh -F none -p 1"})
    with pytest.raises(DeployError, match=r"(?s)^preflight: .*refused.*RALPH_HOST is 127\.0\.0\.1: set it"):
        deploy(settings, make_package(), print)
    with pytest.raises(DeployError, match=r"(?s)^hold: .*refused.*RALPH_HOST"):
        rollback(settings, print)


def test_a_disk_that_is_too_small_is_told_before_anything_is_sent(
    host: Host, make_package: MakePackage
) -> None:
    with small_disk(host.app, 8_000):
        with pytest.raises(DeployError, match=r"has 7 MB free of the .* MB that are needed"):
            host.deploy(make_package())
        assert list(host.app.iterdir()) == []


def test_a_disk_that_fills_up_meanwhile_leaves_the_release_that_answers(
    host: Host, make_package: MakePackage
) -> None:
    first, second = make_package("A."), make_package("B. " * 40_000)
    n_kb = sum(path.stat().st_size for path in second.rglob("*")) // 1024
    with small_disk(host.app, 3 * n_kb + 4_000):
        venv = host.app / "venvs" / venv_of(first)
        (venv / "bin").mkdir(parents=True)
        shutil.copy(host.sshd / "bin" / "python3", venv / "bin" / "python")
        (venv / ".complete").touch()
        host.deploy(first)
        before = host.current
        host.on("before-upload", f"dd if=/dev/zero of={host.app}/full bs=1k 2>/dev/null")
        with pytest.raises(DeployError, match=r"(?i)no space left"):
            host.deploy(second)
        assert host.current == before
        assert host.releases == [before]
        (host.app / "full").unlink()
        host.on("before-upload", "")
        host.deploy(second)
        assert (host.current, host.previous) == (package_version(second), before)


def figures(hit_at_1: float, refused: float) -> dict[str, object]:
    return {"modes": {"hybrid": {"hit_at_1": hit_at_1, "hit_at_6": 1.0}}, "kept": 1.0, "refused": refused}


def test_a_bundle_that_answers_worse_is_deployed_only_when_told_by_name(
    host: Host, make_package: MakePackage
) -> None:
    host.deploy(make_package("A.", evaluation=figures(0.8, 1.0)))
    before = host.current
    worse = make_package("B.", evaluation=figures(0.7, 0.9))
    with pytest.raises(
        DeployError, match=r"hit@1 fell from 0\.800 to 0\.700; questions refused fell"
    ) as error:
        host.deploy(worse)
    assert host.current == before
    with pytest.raises(DeployError, match="answers worse"):
        host.deploy(worse, accept_worse="another")
    name = re.search(r"RALPH_ACCEPT_WORSE=(\w+)", str(error.value))
    assert name
    host.deploy(worse, accept_worse=name[1])
    assert host.current == package_version(worse)


def test_a_bundle_that_fails_verify_is_not_deployed(host: Host, make_package: MakePackage) -> None:
    package = make_package()
    with (package / "bundle" / "rag.db").open("ab") as database:
        database.write(b"x")
    with pytest.raises(DeployError, match=r"this bundle is not deployed: .*rag\.db"):
        host.deploy(package)
    assert not host.app.exists()
