"""How large the container image is, how fast it starts, and whether it runs as nobody on a read-only disk.

    python -m benchmarks.container [--package build/package] [--base TAR] [--suite trixie]

Builds the image with buildah exactly as `doit deploy:container` does, on a base that mmdebstrap makes of
Debian, kept in build/benchmarks. It then runs with what the image itself says (command, environment, user) in
a namespace of bubblewrap: no capabilities, root read-only, an empty /tmp. Needs root.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.process_status import innermost_status, peak_mb
from pipeline.deploy.container_target import container_steps
from pipeline.deploy.settings import ContainerSettings
from pipeline.deploy.step import run
from tests.fakes.loopback import free_port

ROOT = Path(__file__).resolve().parent.parent
BASE, IMAGE = "localhost/ralph-base", "ralph-benchmark"
QUESTION = "How do I build a bundle?"
PATIENCE_S = 30
# What this machine trusts: behind a proxy it is more than a base has.
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# As the slim images of Python go without them.
SLIM = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]


@dataclass(frozen=True)
class Image:
    """An image whose files are at `root`, and what it says of how it is run."""

    root: Path
    config: dict[str, Any]

    def start(self, command: list[str], port: int) -> subprocess.Popen[str]:
        """A command in it, as its user. Its own HOST would listen on all addresses; here it is loopback."""
        user, group = map(int, self.config["User"].split(":"))
        environ = dict(pair.split("=", 1) for pair in self.config["Env"])
        prison = [
            *("bwrap", "--die-with-parent", "--unshare-all", "--share-net", "--cap-drop", "ALL"),
            *("--ro-bind", str(self.root), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
            *("--chdir", self.config["WorkingDir"]),
        ]
        return subprocess.Popen(
            [*prison, *command],
            env={**environ, "HOST": "127.0.0.1", "PORT": str(port)},
            user=user,
            group=group,
            extra_groups=[],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def main() -> None:
    """Prints one line for each thing that was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--package", type=Path, default=ROOT / "build" / "package")
    parser.add_argument("--base", type=Path, help="the files of a base, as a tar; by default one is made")
    parser.add_argument("--suite", default="trixie", help="which Debian the base is made of")
    arguments = parser.parse_args()
    kept = ROOT / "build" / "benchmarks" / f"base-{arguments.suite}.tar"
    base = arguments.base or kept
    if not base.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        make_base(arguments.suite, kept)
    with tempfile.TemporaryDirectory() as name:
        storage = Path(name)
        own_storage(storage)
        started = time.perf_counter()
        with built(base, arguments.package, storage) as image:
            print(f"built in {time.perf_counter() - started:.0f} s, the base apart")
            for line in sizes(image.root):
                print(line)
            measure(image)


def make_base(suite: str, out: Path) -> None:
    """A tar of a Debian with Python and nothing that it does not need."""
    command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,python3-venv"]
    subprocess.run([*command, *SLIM, suite, str(out)], check=True)


def own_storage(folder: Path) -> None:
    """Has buildah keep its images in a folder, so that none is left behind."""
    folder.chmod(0o711)
    configuration = f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/run"\n'
    (folder / "storage.conf").write_text(configuration)
    os.environ["CONTAINERS_STORAGE_CONF"] = str(folder / "storage.conf")
    os.environ["BUILDAH_ISOLATION"] = "chroot"


@contextmanager
def built(base: Path, package: Path, storage: Path) -> Iterator[Image]:
    """The image of a package, its files below `storage` while the context lasts."""
    scratch = buildah("from", "scratch")
    buildah("add", "--quiet", scratch, str(base), "/")
    if Path(CERTIFICATES).exists():
        buildah("add", "--quiet", scratch, CERTIFICATES, CERTIFICATES)
    buildah("commit", "--quiet", "--rm", scratch, BASE)
    settings = ContainerSettings(client="buildah", image=IMAGE, base=BASE)
    run(container_steps(settings, "buildah", package).build)
    container = buildah("from", "--pull-never", f"localhost/{IMAGE}:latest")
    try:
        config = json.loads(buildah("inspect", container))["Docker"]["config"]
        root = Path(buildah("mount", container))
        for parent in itertools.takewhile(lambda path: path != storage, root.parents):
            parent.chmod(0o711)  # another user than root is to start in it
        yield Image(root, config)
    finally:
        buildah("umount", container)


def buildah(*arguments: str) -> str:
    """What a command of buildah prints."""
    return subprocess.run(
        ["buildah", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def sizes(root: Path) -> Iterator[str]:
    """What the image has, and which parts of it are the largest."""
    packages, ralph, total = n_bytes(root / "opt" / "venv"), n_bytes(root / "opt" / "ralph"), n_bytes(root)
    base = total - packages - ralph
    yield (
        f"image {total / 1e6:.0f} MB: base {base / 1e6:.0f}, packages {packages / 1e6:.0f}, "
        f"handler and bundle {ralph / 1e6:.0f}"
    )
    parts = [(n_bytes(path), path.name) for path in root.glob("opt/venv/lib/python3*/site-packages/*")]
    named = ", ".join(f"{name} {size / 1e6:.0f}" for size, name in sorted(parts, reverse=True)[:5])
    yield f"largest packages: {named}"


def n_bytes(path: Path) -> int:
    """The bytes of a file, or of all files below a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_symlink() or file.is_file())


def measure(image: Image) -> None:
    """Starts the image, asks it, and has it asked how it is by its own health check."""
    port = free_port()
    started = time.perf_counter()
    with image.start(image.config["Cmd"], port) as process:
        assert process.stdout and process.stderr
        if not process.stdout.readline():
            sys.exit(process.stderr.read())
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
            client.get("/healthz").raise_for_status()
            ready_s = time.perf_counter() - started
            answer = client.post("/api/ask", json={"question": QUESTION}).text
        assert "event: done" in answer
        print(f"answers {ready_s:.1f} s after its start, as {status(process.pid)}")
        with image.start(image.config["Healthcheck"]["Test"][1:], port) as check:
            print("its health check says", "unwell" if check.wait() else "well")
        process.kill()
    places = ("/opt/ralph", "/opt/venv", "/root", "/var/tmp", "/dev/shm", "/tmp")
    with image.start(
        ["/bin/sh", "-c", f"for d in {' '.join(places)}; do touch $d/x && echo $d; done"], port
    ) as shell:
        print("it can write to", *shell.communicate()[0].split())


def status(pid: int) -> str:
    """Who the process in the namespace is, and what it held in memory at most."""
    found = innermost_status(pid)
    user, capabilities = found["Uid"].split()[0], int(found["CapEff"], 16)
    return f"user {user}, capabilities {capabilities}, {peak_mb(found):.0f} MB at most"


if __name__ == "__main__":
    main()
