"""Starts the server in an environment of its own, which the first start makes: `uv run start.py`.

`uv run --with-requirements` would do the same, but does not look at the digests of requirements.txt, and
Python would take modules of the folder that it is started in for those of the server.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
# uv brings its own certificates; a machine behind a proxy has more of them in the system's store.
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt")
# A session that was started before an update may still run in the environment from before it.
N_KEPT = 2
LONGEST_START_S = 3_600


def main() -> int:
    """Runs the server until it ends."""
    (wheel,) = HERE.glob("ralph_fs-*.whl")
    try:
        environment = ready_environment(data_folder(), wheel)
    except subprocess.CalledProcessError as error:
        print(f"ralph-fs: its packages could not be installed (exit {error.returncode})", file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"ralph-fs: no environment can be made: {error}; CLAUDE_PLUGIN_DATA names a folder for it",
            file=sys.stderr,
        )
        return 1
    # -I: neither PYTHONPATH nor a numpy.py in the project that is worked on has a say.
    command = [str(python_of(environment)), "-I", "-m", "ralph_fs", *sys.argv[1:]]
    if os.name != "nt":  # where exec leaves the client without the process that it started
        os.execv(command[0], command)  # noqa: S606
    return subprocess.run(command, check=False).returncode


def data_folder() -> Path:
    """Where the environment stays across updates of the plugin, whose own folder is replaced."""
    if given := os.environ.get("CLAUDE_PLUGIN_DATA"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ralph-fs"


def ready_environment(data: Path, wheel: Path) -> Path:
    """The environment for this wheel, these requirements and this Python.

    It is made aside and renamed: a start that is interrupted leaves none, and of two at once one wins. Raises
    CalledProcessError when uv fails, after uv has said why.
    """
    made_from = REQUIREMENTS.read_bytes() + wheel.read_bytes() + sys.version.encode()
    environment = data / f"env-{hashlib.sha256(made_from).hexdigest()[:12]}"
    if environment.exists():
        if python_of(environment).exists():
            return environment
        # It was renamed when it was whole: since then it was damaged, or the Python that it links to removed.
        shutil.rmtree(environment, ignore_errors=True)
    data.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix="new-", dir=data))
    try:
        uv("venv", "--clear", "--relocatable", "--python", sys.executable, str(new))
        into = ("--python", str(python_of(new)))
        uv("pip", "install", *into, "--require-hashes", "--only-binary", ":all:", "-r", str(REQUIREMENTS))
        uv("pip", "install", *into, "--offline", "--no-deps", str(wheel))
        new.rename(environment)
    except OSError:
        if not environment.exists():
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
    drop_old(data)
    return environment


def drop_old(data: Path) -> None:
    """Removes all environments but the newest, and what starts that were killed have left."""
    old = sorted(data.glob("env-*"), key=lambda path: path.stat().st_mtime)[:-N_KEPT]
    left = [path for path in data.glob("new-*") if path.stat().st_mtime < time.time() - LONGEST_START_S]
    for path in (*old, *left):
        shutil.rmtree(path, ignore_errors=True)


def python_of(environment: Path) -> Path:
    """The interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def uv(*arguments: str) -> None:
    """Runs the uv that runs this, with the user's configuration and not that of the project worked on.

    Standard output is the client's, so uv has no part in it.
    """
    own = {"UV_SYSTEM_CERTS": "true"} if any(map(os.path.exists, CERTIFICATES)) else {}
    command = [os.environ.get("UV", "uv"), *arguments, "--quiet"]
    subprocess.run(command, cwd=HERE, env={**own, **os.environ}, stdout=sys.stderr, check=True)


if __name__ == "__main__":
    sys.exit(main())
