"""A host to deploy to, a service on it, and packages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handler.bundle.manifest import read_manifest
from pipeline.package import package
from tests.fakes.loopback import LoopbackHandler, LoopbackServer, answering
from tests.fakes.ssh_host import MISSING, SSHD, Host, one_connection, sshd

ROOT = Path(__file__).resolve().parent.parent.parent.parent


@pytest.fixture(scope="session")
def ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a running sshd, with the configuration of a client in it."""
    if not SSHD or MISSING:
        pytest.skip(f"needs {', '.join(MISSING) or 'sshd'} (Debian: openssh-server, rsync)")
    with sshd(tmp_path_factory.mktemp("sshd")) as folder, one_connection(folder):
        yield folder


@pytest.fixture
def health() -> Iterator[tuple[str, list[Path]]]:
    """The address of a service, and the bundle that it answers from, which a test may take away."""
    bundle: list[Path] = []

    class Service(LoopbackHandler):
        def do_GET(self) -> None:
            if not bundle:
                self.send_error(503)
                return
            self.reply(200, f'{{"bundle": "{read_manifest(bundle[0]).version}"}}'.encode())

    with LoopbackServer(("127.0.0.1", 0), Service) as server, answering(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/healthz", bundle


@pytest.fixture
def host(ssh_server: Path, tmp_path: Path, health: tuple[str, list[Path]]) -> Iterator[Host]:
    url, bundle = health
    host = Host(ssh_server, tmp_path / "host", url)
    bundle.append(host.app / "current" / "bundle")
    yield host
    for name in ("before-upload", "after-upload", "before-venv", "venvs.log"):
        (ssh_server / name).unlink(missing_ok=True)


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
