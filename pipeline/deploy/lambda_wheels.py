"""The wheels that a function of AWS Lambda runs with: for its processor, without what no answer loads."""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.deploy.step import DeployError, Step
from pipeline.settings import ROOT

# What uv calls the platforms. Lambda's runtimes from Python 3.12 on have glibc 2.34.
PLATFORMS: Mapping[str, str] = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}
# Where systems keep the certificates that they trust. uv brings its own, which know no company's proxy.
CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
)

# What no answer ever loads; each group says what it would be for. What is in the zip after that answers
# everything in tests/pipeline/deploy/test_lambda_zip.py, and is measured by benchmarks/lambda_zip.py. The ELF
# files are left as they are: `strip` breaks numpy's OpenBLAS. Sources stay beside their bytecode, 21 MB, for
# the lines that tracebacks show.
DROPPED = (
    # Programs, C and type checkers
    *("bin/*", "*.pyi", "*.pxd", "*.h", "*.a", "*.lib", "*/py.typed"),
    # The installer; what a wheel was made of. Licences and metadata stay.
    *("*.dist-info/RECORD", "*.dist-info/INSTALLER", "*.dist-info/REQUESTED", "*.dist-info/sboms/*", ".lock"),
    # The libraries' own tests
    *("*/tests/*", "numpy/_core/_*_tests.*", "numpy/_core/_simd.*"),
    # Fortran, random numbers, Fourier transforms and polynomials, which NumPy imports when they are asked for
    *("numpy/f2py/*", "numpy/random/*", "numpy/fft/*", "numpy/polynomial/*"),
    # Training and conversion of models; the library for C, which the module for Python contains once more
    *("onnxruntime/transformers/*", "onnxruntime/quantization/*", "onnxruntime/tools/*"),
    *("onnxruntime/capi/libonnxruntime.so*", "onnxruntime/datasets/*"),
    *("onnxruntime/backend/*", "packaging/*", "packaging-*"),
    *("flatbuffers/*", "flatbuffers-*", "google/*", "protobuf-*"),
    # SQLite's shell and tools; tokenizers of FTS5 that are written in Python
    *("apsw/sqlite_extra_binaries/*", "apsw/shell.py", "apsw/ext.py", "apsw/speedtest.py"),
    *("apsw/fts5*", "apsw/unicode.py", "apsw/_unicode.*"),
    # Downloads of tokenizers from a hub
    *("huggingface_hub/*", "huggingface_hub-*", "hf_xet/*", "hf_xet-*", "fsspec/*", "fsspec-*"),
    *("filelock/*", "filelock-*", "tqdm/*", "tqdm-*", "yaml/*", "_yaml/*", "pyyaml-*"),
    # Powertools' own web framework, and its readers of events
    *("aws_lambda_powertools/event_handler/*", "aws_lambda_powertools/utilities/data_classes/*"),
    *("aws_lambda_powertools/utilities/parser/*", "aws_lambda_powertools/utilities/idempotency/*"),
)


def install_step(
    requirements: Path, folder: Path, architecture: str, python: str, network: tuple[str, ...] = ()
) -> Step:
    """Unpacks the wheels that the requirements name, by their digests; `network` says where from."""
    options = (
        *("--python-platform", PLATFORMS[architecture], "--python-version", python, *network),
        *("--only-binary", ":all:", "--require-hashes", "--no-deps", "--link-mode", "copy"),
    )
    return Step(
        "install",
        (find_uv(), "pip", "install", "--quiet", *options, "--target", str(folder), "-r", str(requirements)),
    )


def network_options() -> tuple[str, ...]:
    """What uv has to be told to reach what pip reaches, whose configuration it does not read.

    The Makefile tells it the same.
    """
    options = ("--system-certs",) if any(Path(store).exists() for store in CERTIFICATES) else ()
    pip = shutil.which("pip3") or shutil.which("pip")
    if pip is None:
        return options
    done = subprocess.run([pip, "config", "list"], capture_output=True, text=True, check=False)
    index = pip_index(done.stdout)
    return (*options, "--default-index", index) if index else options


def pip_index(configuration: str) -> str | None:
    """The index that pip takes packages from, by what `pip config list` prints; None is its usual one."""
    found = dict(re.findall(r"^(:env:|install|global)\.index-url='(.+)'$", configuration, re.MULTILINE))
    return found.get(":env:") or found.get("install") or found.get("global")


def find_uv() -> str:
    """The program that installs for other machines. Raises DeployError when there is none."""
    # `make` puts one there when the machine has none of its own.
    found = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".tools" / "bin"))
    if found is None:
        raise DeployError("there is no program uv; install it, or run `make .tools/bin/uv`")
    return found


def drop_unused(folder: Path) -> None:
    """Deletes the files of DROPPED, and the folders that nothing is left in."""
    for name in list(file_names(folder)):
        if is_dropped(name):
            (folder / name).unlink()
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()


def is_dropped(name: str) -> bool:
    """Whether a file of the wheels, by its name from the top, is one that no answer loads."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in DROPPED)


def file_names(folder: Path) -> Iterator[str]:
    """The names of all files below a folder, in a fixed order."""
    yield from sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
