"""The zip of a function of AWS Lambda: a package, and the wheels that it runs with, compiled.

It is made for another machine than this one, and equal inputs give equal bytes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from handler.bundle.sums import file_sha256
from pipeline.deploy import lambda_wheels
from pipeline.deploy.lambda_wheels import drop_unused, file_names, install_step, network_options
from pipeline.deploy.step import DeployError, Step, run
from pipeline.package import REQUIREMENTS, package_version
from pipeline.settings import ROOT

WRAPPER = ROOT / "infra" / "lambda" / "stream.sh"
# The runtime that the template names. Its bytecode is its own: an interpreter of this version is needed.
PYTHON = "3.13"
# Where Lambda unpacks it, which tracebacks name.
TASK_ROOT = "/var/task"
# Lambda's limit, of what is unpacked.
MAX_BYTES = 250 * 1024 * 1024

# The oldest time that a zip can say.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a zip: its size, that of its files unpacked, and the part of each top-level name of it."""

    zip_bytes: int
    unpacked_bytes: int
    parts: Mapping[str, int]

    def __str__(self) -> str:
        """The sizes in a line, the largest parts first."""
        largest = sorted(self.parts.items(), key=lambda part: (-part[1], part[0]))[:8]
        named = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in largest)
        return f"{self.zip_bytes / 1e6:.1f} MB, unpacked {self.unpacked_bytes / 1e6:.1f} MB: {named}"


def build_zip(
    package: Path, out: Path, architecture: str, python: str = PYTHON, compiler: str | None = None
) -> Contents:
    """Makes the zip `out` of a package for a processor of PLATFORMS, and says what is in it.

    `compiler` is an interpreter of the version `python`, by default one that is installed. Raises DeployError
    when there is none, when a wheel is missing, and when Lambda would refuse the zip for its size.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    compiler = compiler or find_python(python)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".zip-") as name:
        folder = Path(name)
        run(install_step(package / REQUIREMENTS, folder, architecture, python, network_options()))
        drop_unused(folder)
        shutil.copytree(package, folder, dirs_exist_ok=True)
        shutil.copy(WRAPPER, folder / WRAPPER.name)
        run(compile_step(compiler, folder))
        new = out.with_name(f".{out.name}-new")
        write_zip(folder, new)
    found = contents(new)
    if found.unpacked_bytes > MAX_BYTES:
        new.unlink()
        raise DeployError(f"Lambda takes {MAX_BYTES / 1e6:.0f} MB at most; the zip has {found}")
    new.replace(out)
    return found


def zip_version(package: Path, architecture: str) -> str:
    """16 hex digits that change with whatever the zip of a package is made from, before it is made."""
    made_from = [
        package_version(package),
        architecture,
        PYTHON,
        file_sha256(WRAPPER),
        file_sha256(Path(__file__)),
        file_sha256(Path(lambda_wheels.__file__)),
    ]
    return hashlib.sha256("\n".join(made_from).encode()).hexdigest()[:16]


def compile_step(python: str, folder: Path) -> Step:
    """Compiles everything, as it will be found below TASK_ROOT.

    A start without bytecode takes twice as long. Lambda's files have the zip's times, so what a .pyc was made
    from is not looked at again.
    """
    options = ("--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", TASK_ROOT)
    return Step("compile", (python, "-I", "-m", "compileall", "-q", *options, str(folder)))


def find_python(version: str) -> str:
    """An interpreter of a version such as "3.13". Raises DeployError when there is none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    # A version manager puts a stand-in first that only says that this version is not chosen.
    on_path = (shutil.which(f"python{version}", path=folder) for folder in os.get_exec_path())
    found = next((python for python in on_path if python and _runs(python)), None)
    if found is None:
        raise DeployError(
            f"there is no python{version} to make bytecode for Lambda with, without which it starts half as "
            f"fast; install one, for example with `uv python install {version}`"
        )
    return found


def _runs(python: str) -> bool:
    return subprocess.run([python, "-V"], capture_output=True, check=False).returncode == 0


def write_zip(folder: Path, out: Path) -> None:
    """A zip of the files of a folder, the same whenever and by whomever it is made."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in file_names(folder):
            path = folder / name
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system = 3  # Unix, on every machine: it is what gives the modes a meaning
            info.external_attr = (0o100755 if os.access(path, os.X_OK) else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())


def contents(path: Path) -> Contents:
    """What is in a zip."""
    parts: Counter[str] = Counter()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            parts[info.filename.partition("/")[0]] += info.file_size
    return Contents(path.stat().st_size, parts.total(), parts)
