"""A host to deploy to: this machine, through a real sshd on loopback with keys and an alias of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from handler.bundle.manifest import read_manifest
from pipeline.deploy.rsync import deploy
from pipeline.package import package
from pipeline.settings import DeploySettings, read_deploy_settings

ROOT = Path(__file__).resolve().parent.parent.parent.parent
SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
MISSING = [name for name in ("ssh", "ssh-keygen", "rsync", "sha256sum", "flock") if not shutil.which(name)]

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


class Host:
    """A folder on this machine as seen through ssh, and a service that answers from its `current`."""

    def __init__(self, sshd: Path, folder: Path, health_url: str) -> None:
        self.sshd = sshd
        self.app = folder / "app"
        self.log = folder / "service.log"
        # What a test may put in the place of the settings' own.
        self.service: dict[str, object] = {}
        self._settings = replace(
            read_deploy_settings({}),
            host="ralph-host",
            path=str(self.app),
            ssh=("ssh", "-F", str(sshd / "ssh_config")),
            restart=f"echo restart >> {self.log}",
            reload=f"echo reload >> {self.log}",
            health_url=health_url,
            health_timeout_s=0,  # one look: it answers, or it does not
        )
        self.said: list[str] = []

    def settings_with(self, **settings: object) -> DeploySettings:
        return replace(self._settings, **{**self.service, **settings})  # type: ignore[arg-type]

    @property
    def settings(self) -> DeploySettings:
        return self.settings_with()

    def deploy(self, folder: Path, **settings: object) -> None:
        """Deploys a package, and keeps what is said meanwhile."""
        self.said.clear()
        deploy(self.settings_with(**settings), folder, self.said.append)

    def on_upload(self, when: str, script: str) -> None:
        """Has the host run a script `before` or `after` it receives files."""
        (self.sshd / f"{when}-upload").write_text(script)

    @property
    def releases(self) -> list[str]:
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
        return (self.app / "previous").resolve(strict=True).name

    @property
    def service_calls(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a running sshd, with the configuration of a client in it."""
    if not SSHD or MISSING:
        pytest.skip(f"needs {', '.join(MISSING) or 'sshd'} (Debian: openssh-server, rsync)")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where it locks itself in, before it knows who asks
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "bin").mkdir()
    places = {"port": port, "folder": folder, "rsync": shutil.which("rsync")}
    (folder / "sshd_config").write_text(SSHD_CONFIG.format(**places))
    (folder / "ssh_config").write_text(SSH_CONFIG.format(**places))
    host_key = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}")
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
        # One connection for all tests: keys are exchanged once, and each command is a session of it.
        client = ["ssh", "-F", str(folder / "ssh_config")]
        subprocess.run([*client, "-M", "-N", "-f", "ralph-host"], check=True, stderr=subprocess.DEVNULL)
        yield folder
        subprocess.run([*client, "-O", "exit", "ralph-host"], check=True, stderr=subprocess.DEVNULL)
        process.terminate()
        drain.join()


@pytest.fixture
def health() -> Iterator[tuple[str, list[Path]]]:
    """The address of a service, and the bundle that it answers from, which a test may take away."""
    bundle: list[Path] = []

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not bundle:
                self.send_error(503)
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f'{{"bundle": "{read_manifest(bundle[0]).version}"}}'.encode())

        def log_message(self, *_args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/healthz", bundle
        server.shutdown()
        thread.join()


@pytest.fixture
def host(sshd: Path, tmp_path: Path, health: tuple[str, list[Path]]) -> Iterator[Host]:
    url, bundle = health
    host = Host(sshd, tmp_path / "host", url)
    host.app.parent.mkdir()
    bundle.append(host.app / "current" / "bundle")
    yield host
    for name in ("before-upload", "after-upload", "venvs.log"):
        (sshd / name).unlink(missing_ok=True)


@pytest.fixture
def make_package(tmp_path: Path, make_bundle: Callable[..., Path]) -> Callable[..., Path]:
    """Packages a bundle of one page and returns the folder; `persona` stands for another program."""

    def make(
        text: str = "Tomatoes want sun.", persona: str = "", evaluation: dict[str, object] | None = None
    ) -> Path:
        root = tmp_path / "clone"
        if not root.exists():
            for folder in ("handler", "requirements"):
                shutil.copytree(ROOT / folder, root / folder)
            for name in ("LICENSE", "NOTICE.md"):
                shutil.copy(ROOT / name, root)
        if persona:
            (root / "handler" / "persona.md").write_text(persona)
        bundle = make_bundle({"notes/garden.md": f"Garden\n\n{text}\n"}, evaluation=evaluation)
        out = tmp_path / f"package-{len(list(tmp_path.glob('package-*')))}"
        package(bundle, out, root=root)
        return out

    return make
