"""The zip of a function of AWS Lambda: a package, and the wheels that it runs with, compiled.

It is made for another machine than this one, from wheels alone, and equal inputs give equal bytes.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from handler.bundle.sums import file_sha256
from pipeline.deploy.step import DeployError, Step, run
from pipeline.package import REQUIREMENTS, package_version
from pipeline.settings import ROOT

WRAPPER = ROOT / "infra" / "lambda" / "stream.sh"
# The runtime that the template names. Its bytecode is its own: an interpreter of this version is needed.
PYTHON = "3.13"
# What uv calls the platforms. Lambda's runtimes from Python 3.12 on have glibc 2.34.
PLATFORMS: Mapping[str, str] = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}
# Where Lambda unpacks it, which tracebacks name.
TASK_ROOT = "/var/task"
# Lambda's limit, of what is unpacked.
MAX_BYTES = 250 * 1024 * 1024

# What no answer ever loads; the first column of each group says what it would be for. What is in the zip
# after that is measured, and answers, in tests/pipeline/deploy/test_lambda_zip.py. The ELF files are left
# as they are: `strip` breaks numpy's OpenBLAS.
DROPPED = (
    # Programs, C and type checkers
    *("bin/*", "*.pyi", "*.pxd", "*.h", "*.a", "*.lib", "*/py.typed"),
    # The installer; what a wheel was made of. Licences and metadata stay.
    *("*.dist-info/RECORD", "*.dist-info/INSTALLER", "*.dist-info/REQUESTED", "*.dist-info/sboms/*", ".lock"),
    # The libraries' own tests
    *("*/tests/*", "numpy/f2py/*"),
    # Training and conversion of models; the library for C, which the module for Python contains once more
    *("onnxruntime/transformers/*", "onnxruntime/quantization/*", "onnxruntime/tools/*"),
    *("onnxruntime/capi/libonnxruntime.so*", "onnxruntime/datasets/*"),
    *("flatbuffers/*", "flatbuffers-*", "google/*", "protobuf-*"),
    # SQLite's shell and tools
    "apsw/sqlite_extra_binaries/*",
    # Downloads of tokenizers from a hub
    *("huggingface_hub/*", "huggingface_hub-*", "hf_xet/*", "hf_xet-*", "fsspec/*", "fsspec-*"),
    *("filelock/*", "filelock-*", "tqdm/*", "tqdm-*", "yaml/*", "_yaml/*", "pyyaml-*"),
    # Powertools' own web framework
    "aws_lambda_powertools/event_handler/openapi/swagger_ui/*",
)

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
        run(install_step(package / REQUIREMENTS, folder, architecture, python))
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
    ]
    return hashlib.sha256("\n".join(made_from).encode()).hexdigest()[:16]


def install_step(requirements: Path, folder: Path, architecture: str, python: str) -> Step:
    """Unpacks the wheels that the requirements name, by their digests."""
    options = (
        *("--python-platform", PLATFORMS[architecture], "--python-version", python),
        *("--only-binary", ":all:", "--require-hashes", "--no-deps", "--link-mode", "copy"),
    )
    return Step(
        "install",
        (find_uv(), "pip", "install", "--quiet", *options, "--target", str(folder), "-r", str(requirements)),
    )


def compile_step(python: str, folder: Path) -> Step:
    """Compiles everything, as it will be found below TASK_ROOT.

    A start without bytecode takes twice as long. Lambda's files have the zip's times, so what a .pyc was made
    from is not looked at again.
    """
    options = ("--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", TASK_ROOT)
    return Step("compile", (python, "-I", "-m", "compileall", "-q", *options, str(folder)))


def find_uv() -> str:
    """The program that installs for other machines. Raises DeployError when there is none."""
    # `make` puts one there when the machine has none of its own.
    found = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".tools" / "bin"))
    if found is None:
        raise DeployError("there is no program uv; install it, or run `make .tools/bin/uv`")
    return found


def find_python(version: str) -> str:
    """An interpreter of a version such as "3.13". Raises DeployError when there is none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None:
        raise DeployError(
            f"there is no python{version} to make bytecode for Lambda with, without which it starts half as "
            f"fast; install one, for example with `uv python install {version}`"
        )
    return found


def drop_unused(folder: Path) -> None:
    """Deletes the files of DROPPED, and the folders that nothing is left in."""
    for name in list(_files(folder)):
        if is_dropped(name):
            (folder / name).unlink()
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()


def is_dropped(name: str) -> bool:
    """Whether a file of the wheels, by its name from the top, is one that no answer loads."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in DROPPED)


def write_zip(folder: Path, out: Path) -> None:
    """A zip of the files of a folder, the same whenever and by whomever it is made."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in _files(folder):
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


def _files(folder: Path) -> Iterator[str]:
    """The names of all files below a folder, in a fixed order."""
    yield from sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
