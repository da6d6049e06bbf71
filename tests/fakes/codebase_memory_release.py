"""A machine for the installer of codebase-memory-mcp: its own PATH and home, and a release on loopback.

with published_release(folder) as release:
    release.publish({LINUX: archive(*usual(program()))})
    release.run("--dir", "here")
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.loopback import LoopbackHandler, LoopbackServer, answering

SCRIPT = Path(__file__).resolve().parent.parent.parent / "infra" / "installers" / "codebase-memory"
VERSION = "9.8.7"
LINUX = "codebase-memory-mcp-linux-amd64-portable.tar.gz"
PLATFORMS = ("darwin-arm64", "darwin-amd64", "linux-arm64-portable", "linux-amd64-portable")
TOOLS = "awk cat chmod curl cut grep gzip mkdir mktemp mv printf rm sed sh sha256sum sort tar uniq"

Member = tarfile.TarInfo | tuple[str, bytes]


def program(version: str = VERSION, platform: str = "linux-amd64-portable") -> bytes:
    return f"#!/bin/sh\n# {platform}\necho codebase-memory-mcp {version}\n".encode()


def archive(*members: Member) -> bytes:
    """A .tar.gz of regular files, or of what else a TarInfo says."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return buffer.getvalue()


def usual(binary: bytes) -> list[Member]:
    return [
        ("codebase-memory-mcp", binary),
        ("LICENSE", b"MIT"),
        ("install.sh", b"exit 1\n"),
        ("THIRD_PARTY_NOTICES.md", b"..."),
    ]


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@dataclass
class Release:
    """A machine with a PATH of its own, and the release that it can download from."""

    root: Path
    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut_off: set[str] = field(default_factory=set)
    stalled: set[str] = field(default_factory=set)
    is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def script(self) -> Path:
        return self.root / "codebase-memory"

    @property
    def target(self) -> Path:
        return self.root / "home" / ".local" / "bin" / "codebase-memory-mcp"

    def publish(self, files: Mapping[str, bytes]) -> None:
        """Puts up a release, and pins it in a copy of the script the way a maintainer does."""
        self.files |= files
        lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()]
        self.files["checksums.txt"] = "".join(lines).encode()
        pins = self.run("--pin", f"v{VERSION}")
        assert pins.returncode == 0, pins.stderr
        text = SCRIPT.read_text(encoding="utf-8")
        before, _, rest = text.partition("VERSION=")
        after = rest.partition('\n"\n')[2]
        self.script.write_text(before + pins.stdout + after, encoding="utf-8")

    def provide(self, name: str, body: str) -> None:
        """A program on the PATH of the installer."""
        path = self.root / "bin" / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        script = self.script if self.script.exists() else SCRIPT
        return subprocess.run(
            ["sh", str(script), *arguments],
            cwd=self.root,
            env={
                "PATH": str(self.root / "bin"),
                "HOME": str(self.root / "home"),
                "CBM_DOWNLOAD_URL": self.url,
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=30,
        )

    def refusal(self, *arguments: str, **variables: str) -> str:
        """What the installer says when it installs nothing, and leaves nothing behind."""
        before = sorted((self.root / "home").rglob("*codebase*"))
        done = self.run(*arguments, **variables)
        assert done.returncode == 1, done.stdout
        assert sorted((self.root / "home").rglob("*codebase*")) == before
        return done.stderr


@contextmanager
def published_release(root: Path) -> Iterator[Release]:
    """A Linux machine without gh, and a release with an archive for each platform."""
    release = Release(root)
    (root / "bin").mkdir()
    (root / "home").mkdir()
    for tool in TOOLS.split():
        if found := shutil.which(tool):
            (root / "bin" / tool).symlink_to(found)
    release.provide("uname", 'case $1 in -s) echo Linux ;; -sm) echo "Linux x86_64" ;; esac')

    class Handler(LoopbackHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            data = release.files.get(name)
            self.send_response(200 if data is not None else 404)
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            self.wfile.write((data or b"")[: 10 if name in release.cut_off | release.stalled else None])
            if name in release.stalled:
                release.is_over.wait()

    with LoopbackServer(("127.0.0.1", 0), Handler) as server, answering(server):
        release.url = f"http://127.0.0.1:{server.server_address[1]}/v{VERSION}"
        release.publish(
            {
                f"codebase-memory-mcp-{platform}.tar.gz": archive(*usual(program(platform=platform)))
                for platform in PLATFORMS
            }
        )
        yield release
        release.is_over.set()
