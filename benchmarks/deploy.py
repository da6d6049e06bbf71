"""What `doit deploy:rsync` sends and how long it takes, beside copying the package.

    python -m benchmarks.deploy

What is deployed is the bundle of sites/ as it is, and that of the same sites with a sentence more on one
page. The host is this machine, through a real sshd on loopback with a connection for each command; its server
is the real one. A deployment checks every byte on the host, switches, and waits until the server answers from
the new bundle; the copies do none of that, and overwrite what is being served. All bytes that the client
sends are counted, those of ssh too. Installing packages, which only a first deployment does, is left out.
"""

from __future__ import annotations

import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipeline.deploy.rsync import rollback
from pipeline.layout import Layout
from pipeline.package import package
from pipeline.settings import ROOT, read_settings
from tests.fakes.loopback import LoopbackServer, answering
from tests.fakes.ssh_host import ALIAS, MISSING, SSHD, Host, real_service, sshd

EDITED = Path("ralph", "deploy.md")


class Wire(LoopbackServer):
    """A way to the host's sshd, on which all that is sent to it is counted."""

    def __init__(self, sshd_port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.sshd_port = sshd_port
        self.n_bytes = 0

    @property
    def ssh_options(self) -> tuple[str, ...]:
        """What has ssh go this way, once for each command."""
        return "-o", f"Port={self.server_address[1]}", "-o", "ControlPath=none"


def main() -> None:
    """Prints one line for each thing that was done."""
    if not SSHD or MISSING:
        raise SystemExit(f"there is no {', '.join(MISSING) or 'sshd'} (Debian: openssh-server, rsync)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, second = packages(folder)
        (folder / "sshd").mkdir()
        with sshd(folder / "sshd") as client, wire(client / "sshd_config") as counted:
            options = ("-F", str(client / "ssh_config"), *counted.ssh_options)
            deploy_and_go_back(Host(client, folder / "host"), counted, options, first, second)
            copy(folder, counted, options, first, second)


def packages(folder: Path) -> tuple[Path, Path]:
    """Two packages, the second with a sentence more on a page."""
    settings = read_settings(os.environ)
    sites, build = folder / "sites", Layout(folder / "build")
    shutil.copytree(settings.sites, sites)
    cache = Layout(settings.build).vector_cache
    if cache.exists():
        build.vector_cache.parent.mkdir(parents=True)
        shutil.copy(cache, build.vector_cache)
    environ = {**os.environ, "RALPH_SITES": str(sites), "RALPH_BUILD": str(build.root)}
    made = []
    for name in ("first", "second"):
        command = [sys.executable, "-m", "doit", "build"]
        subprocess.run(command, cwd=ROOT, env=environ, check=True, stdout=subprocess.DEVNULL)
        made.append(folder / name)
        package(build.current, made[-1])
        with (sites / EDITED).open("a", encoding="utf-8") as page:
            page.write("\nA sentence about marmalade that was not there before.\n")
    return made[0], made[1]


def deploy_and_go_back(host: Host, wire: Wire, options: Sequence[str], first: Path, second: Path) -> None:
    """Ralph's way."""
    ssh = ("ssh", *options)
    with real_service(host):
        for what, source in (("first", first), ("one page edited", second), ("nothing changed", second)):
            with reported(wire, f"deploy:rsync, {what}"):
                host.deploy(source, ssh=ssh)
        with reported(wire, "rollback:rsync"):
            rollback(host.settings_with(ssh=ssh), host.said.append)


def copy(folder: Path, wire: Wire, options: Sequence[str], first: Path, second: Path) -> None:
    """The same by programs that copy."""
    # Without --checksum rsync takes a file of equal size for the same: all times in a package are equal.
    rsync = ["rsync", "-a", "--checksum", "--delete", f"--rsh={' '.join(('ssh', *options))}"]
    scp = ["scp", "-q", "-O", "-r", *options]  # -O, as this sshd has no sftp
    for argv, name in ((rsync, "rsync -a --checksum"), (scp, "scp -r")):
        target = folder / argv[0]
        target.mkdir()
        for what, source in (
            ("first", first),
            ("one page edited", second),
            ("nothing changed", second),
            ("back again", first),
        ):
            with reported(wire, f"{name}, {what}"):
                subprocess.run([*argv, *source.iterdir(), f"{ALIAS}:{target}"], check=True)


@contextmanager
def reported(wire: Wire, what: str) -> Iterator[None]:
    """Prints what was sent meanwhile, and how long it took."""
    n_before, start = wire.n_bytes, time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    print(f"{what:40} {(wire.n_bytes - n_before) / 1e6:8.2f} MB sent {seconds:6.1f} s", flush=True)


@contextmanager
def wire(sshd_config: Path) -> Iterator[Wire]:
    """A way to the sshd with that configuration."""
    words = sshd_config.read_text(encoding="utf-8").split()
    with Wire(int(words[words.index("Port") + 1])) as counted, answering(counted):
        yield counted


class _Connection(socketserver.BaseRequestHandler):
    server: Wire

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.sshd_port)) as host:
            back = threading.Thread(target=_pass_on, args=(host, self.request, lambda _n: None))
            back.start()
            _pass_on(self.request, host, self._count)
            back.join()

    def _count(self, n_bytes: int) -> None:
        self.server.n_bytes += n_bytes


def _pass_on(source: socket.socket, target: socket.socket, count: Callable[[int], None]) -> None:
    while data := source.recv(1 << 16):
        count(len(data))
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main()
