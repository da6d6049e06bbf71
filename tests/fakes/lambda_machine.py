"""A machine as Lambda has it for a function: the zip at its place, read-only, an interpreter, and no more.

It is a namespace that bubblewrap makes. Nothing of this checkout or its venv is in it; the network is this
machine's, for the stand-ins on loopback.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.deploy.lambda_wheels import install_step
from pipeline.deploy.lambda_zip import TASK_ROOT
from pipeline.deploy.step import run
from pipeline.settings import ROOT

PYTHON = "/var/lang/bin/python"
RUNTIME = "/var/runtime"
# What the argument list of a function's process is for each of the two clients.
STREAMED = (f"{TASK_ROOT}/stream.sh", PYTHON, "-m", "awslambdaric")
BUFFERED = (PYTHON, "-m", "awslambdaric", "handler.lambda_mangum.handler")
# What Lambda's runtime for Python brings along.
RUNTIME_PACKAGES = (
    *("awslambdaric", "snapshot-restore-py", "simplejson"),
    *("boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3"),
)


@dataclass(frozen=True)
class Machine:
    """The folders that are /var/lang, /var/task and /var/runtime there, and the one of its interpreter."""

    lang: Path
    task: Path
    runtime: Path
    python_prefix: Path

    @contextmanager
    def running(self, argv: tuple[str, ...], environ: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
        """A process there, ended with the context. What it writes is thrown away."""
        environ = {
            "LAMBDA_TASK_ROOT": TASK_ROOT,
            "LAMBDA_RUNTIME_DIR": RUNTIME,
            "RALPH_BUNDLE": f"{TASK_ROOT}/bundle",
            "PATH": "/usr/bin:/bin",
            **environ,
        }
        command = [*self._argv, *argv]
        with subprocess.Popen(
            command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @property
    def is_possible(self) -> bool:
        """Whether this machine has bubblewrap, and lets it make namespaces."""
        return (
            bool(shutil.which("bwrap"))
            and not subprocess.run([*self._argv, "true"], capture_output=True).returncode
        )

    @property
    def _argv(self) -> list[str]:
        return [
            *("bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc"),
            *("--uid", "10001", "--gid", "10001"),
            *("--ro-bind", "/usr", "/usr", "--ro-bind-try", "/bin", "/bin"),
            *("--ro-bind-try", "/lib", "/lib", "--ro-bind-try", "/lib64", "/lib64"),
            *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
            *("--ro-bind", str(self.python_prefix), str(self.python_prefix)),
            *("--ro-bind", str(self.lang), "/var/lang"),
            *("--ro-bind", str(self.task), TASK_ROOT),
            *("--ro-bind", str(self.runtime), RUNTIME),
            *("--remount-ro", "/", "--chdir", TASK_ROOT),
        ]


def machine(folder: Path, archive: Path, python: str, architecture: str) -> Machine:
    """A machine with an interpreter of this one, and a zip for it. Its files stand in `folder`."""
    asked = "import json, sys; print(json.dumps([sys.base_prefix, '%d.%d' % sys.version_info[:2]]))"
    prefix, version = json.loads(subprocess.check_output([python, "-I", "-c", asked]))
    lang, runtime = folder / "lang", folder / "runtime"
    # What an interpreter has installed, its venv has not.
    subprocess.run([python, "-I", "-m", "venv", "--without-pip", str(lang)], check=True)
    packages = folder / "runtime.txt"
    packages.write_text(pinned(ROOT / "requirements" / "dev.txt", *RUNTIME_PACKAGES))
    run(install_step(packages, runtime, architecture, version))
    unpack(archive, folder / "task")
    return Machine(lang, folder / "task", runtime, Path(prefix))


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks a zip as Lambda does: with the modes that it names."""
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            opened.extract(info, folder)
            (folder / info.filename).chmod(info.external_attr >> 16)


def pinned(requirements: Path, *names: str) -> str:
    """The lines of a requirements file for some packages."""
    lines = requirements.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    return "".join(f"{line}\n" for line in lines if line.partition("==")[0] in names)
