"""A host to deploy to: this machine, through a real sshd on loopback with keys and an alias of its own.

with sshd(folder):
    host = Host(folder, tmp_path, health_url="http://127.0.0.1:8080/healthz")
    host.deploy(package)
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pipeline.deploy.rsync import deploy
from pipeline.settings import DeploySettings, read_deploy_settings
from tests.fakes.loopback import free_port

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
MISSING = [name for name in ("ssh", "ssh-keygen", "rsync", "sha256sum", "flock") if not shutil.which(name)]
ALIAS = "ralph-host"

SSHD_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
SetEnv HOME={folder}
ForceCommand PATH={folder}/bin:$PATH exec sh -c "$SSH_ORIGINAL_COMMAND"
"""
SSH_CONFIG = """
Host ralph-host
    HostName 127.0.0.1
    HostKeyAlias ralph-host
    Port {port}
    IdentityFile {folder}/key
    IdentitiesOnly yes
    KexAlgorithms curve25519-sha256
    StrictHostKeyChecking yes
    UserKnownHostsFile {folder}/known_hosts
    ControlPath {folder}/connection
"""
# A venv without an hour of downloads: its python is the one that runs the tests, and has everything.
PYTHON = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then
    [ ! -e {folder}/before-venv ] || . {folder}/before-venv
    echo "venv $3" >> {log}
    mkdir -p "$3/bin" && ln -s {python} "$3/bin/python.real" && cp "$0" "$3/bin/python"
elif [ "$1 $2" = "-m pip" ]; then
    for last; do :; done
    test -s "$last"
else
    exec {python} "$@"
fi
"""
# What a transfer goes through on the host; a test may have something happen to it.
RSYNC = """#!/bin/sh
[ ! -e {folder}/before-upload ] || . {folder}/before-upload
{rsync} "$@"
code=$?
[ ! -e {folder}/after-upload ] || . {folder}/after-upload
exit $code
"""
# What systemd does with the unit, without systemd.
RESTART = """
[ ! -e {folder}/pid ] || kill "$(cat {folder}/pid)" || :
exec 7>{folder}/serving
flock 7  # which the server has for as long as it lives
cd {app}/current
setsid .venv/bin/python -m handler serve --bundle {app}/current/bundle --port {port} \
    >{folder}/out 2>&1 </dev/null &
echo $! >{folder}/pid
"""
RELOAD = "kill -HUP $(cat {folder}/pid)"


class Gate:
    """A point on the host that nothing passes before it is opened."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path
        # What is to run there.
        self.script = f"echo > {path}; cat {path} >/dev/null"

    def wait(self) -> None:
        """Returns when something has come to the gate."""
        self._path.read_text()

    def open(self) -> None:
        """Lets it pass."""
        self._path.write_text("on\n")


class Host:
    """A folder on this machine as seen through ssh, and a service that answers from its `current`."""

    def __init__(self, sshd: Path, folder: Path, health_url: str = "") -> None:
        self.sshd = sshd
        self.app = folder / "app"
        self.log = folder / "service.log"
        folder.mkdir()
        # What a test may put in the place of the settings' own.
        self.service: dict[str, object] = {}
        self._settings = replace(
            read_deploy_settings({}),
            host=ALIAS,
            path=str(self.app),
            ssh=("ssh", "-F", str(sshd / "ssh_config")),
            restart=f"echo restart >> {self.log}",
            reload=f"echo reload >> {self.log}",
            health_url=health_url,
            health_timeout_s=0,  # one look: it answers, or it does not
        )
        self.said: list[str] = []

    def settings_with(self, **settings: object) -> DeploySettings:
        """The settings with others in the place of some of them."""
        return replace(self._settings, **{**self.service, **settings})  # type: ignore[arg-type]

    @property
    def settings(self) -> DeploySettings:
        """What a deployment to this host is told."""
        return self.settings_with()

    def deploy(self, folder: Path, **settings: object) -> None:
        """Deploys a package, and keeps what is said meanwhile."""
        self.said.clear()
        deploy(self.settings_with(**settings), folder, self.said.append)

    def on(self, event: str, script: str) -> None:
        """Has the host run a script at "before-upload", "after-upload" or "before-venv"."""
        (self.sshd / event).write_text(script)

    @property
    def releases(self) -> list[str]:
        """The names in releases/, in order."""
        return sorted(path.name for path in (self.app / "releases").iterdir())

    @property
    def current(self) -> str:
        """The version of the release that is current, every byte of which is checked."""
        release = (self.app / "current").resolve(strict=True)
        sums = ["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"]
        subprocess.run(sums, cwd=release, check=True)
        assert (release / ".venv" / "bin" / "python").exists()
        return release.name

    @property
    def previous(self) -> str:
        """The version of the release that was current before."""
        return (self.app / "previous").resolve(strict=True).name

    @property
    def service_calls(self) -> list[str]:
        """Each "restart" and "reload" that was asked for."""
        return self.log.read_text().split() if self.log.exists() else []


@contextmanager
def sshd(folder: Path) -> Iterator[Path]:
    """A running sshd; its folder has the configuration of a client, `ssh_config`, in it."""
    assert SSHD
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where it locks itself in, before it knows who asks
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    port = free_port()
    (folder / "bin").mkdir()
    places = {"port": port, "folder": folder, "rsync": shutil.which("rsync")}
    (folder / "sshd_config").write_text(SSHD_CONFIG.format(**places))
    (folder / "ssh_config").write_text(SSH_CONFIG.format(**places))
    (folder / "known_hosts").write_text(f"{ALIAS} {(folder / 'host_key.pub').read_text()}")
    python = shlex.quote(sys.executable)
    for name, script in (("python3", PYTHON), ("rsync", RSYNC)):
        program = folder / "bin" / name
        program.write_text(script.format(**places, python=python, log=folder / "venvs.log"))
        program.chmod(0o755)
    with subprocess.Popen(
        [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        first = process.stderr.readline()
        assert "listening" in first, first + process.stderr.read()
        drain = threading.Thread(target=process.stderr.read)
        drain.start()
        try:
            yield folder
        finally:
            process.terminate()
            drain.join()


@contextmanager
def one_connection(sshd: Path) -> Iterator[None]:
    """Has all commands be sessions of one connection: keys are exchanged once, and tests are quicker."""
    client = ["ssh", "-F", str(sshd / "ssh_config")]
    subprocess.run([*client, "-M", "-N", "-f", ALIAS], check=True, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([*client, "-O", "exit", ALIAS], check=True, stderr=subprocess.DEVNULL)


@contextmanager
def real_service(host: Host) -> Iterator[str]:
    """The address of the real handler as the host's service, from its first deployment on."""
    port = free_port()
    folder = host.app.parent
    places = {"folder": folder, "app": host.app, "port": port}
    (folder / "restart").write_text(RESTART.format(**places))
    url = f"http://127.0.0.1:{port}"
    host.service = {
        "restart": f"sh {folder}/restart",
        "reload": RELOAD.format(**places),
        "health_url": f"{url}/healthz",
        "health_timeout_s": 10,
    }
    try:
        yield url
    finally:
        subprocess.run(["sh", "-c", f"kill $(cat {folder}/pid)"], check=True)
