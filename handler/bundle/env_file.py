"""Settings that are kept in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def over_env_file(environ: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """The environment over what the folder's `.env` says, if it has one.

    As systemd reads an EnvironmentFile, `$` means nothing in it: one file serves both. Raises OSError or
    UnicodeDecodeError when it cannot be read.
    """
    path = folder / ".env"
    if not path.is_file():
        return environ
    from dotenv import dotenv_values  # most starts have no such file, and are to be quick

    values = dotenv_values(path, interpolate=False)
    return {**{name: value for name, value in values.items() if value is not None}, **environ}
