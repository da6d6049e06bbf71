"""What the server was told. The environment is read here and nowhere else in the package."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.settings import IngestSettings, read_ingest_settings


class SettingsError(Exception):
    """A setting is wrong. The message names the variable, its value and the remedy."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The folders that tools may touch, and what `rag` needs: the bundle, the local index, the collections.

    `root_dir` is where relative paths start; it lies in one of `allowed_dirs`. All of them are absolute and
    spelled as the user spelled them, symbolic links included.
    """

    root_dir: Path
    allowed_dirs: tuple[Path, ...]
    rag: IngestSettings


def read_settings(environ: Mapping[str, str], cwd: Path) -> Settings:
    """The settings that the environment asks for. An empty variable counts as one that is not set.

    Raises SettingsError at the first wrong one.
    """
    named = environ.get("RALPH_ROOT_DIR")
    root_dir = _folder("RALPH_ROOT_DIR", named, cwd) if named else cwd
    # As in PATH, the separator is the system's, and an empty part is none.
    parts = [part for part in environ.get("RALPH_ALLOWED_DIRS", "").split(os.pathsep) if part]
    allowed_dirs = tuple(_folder("RALPH_ALLOWED_DIRS", part, cwd) for part in parts) or (root_dir,)
    for folder in allowed_dirs:
        if folder.resolve().parent == folder.resolve():
            raise SettingsError(f"{folder}: the whole machine is no allowed folder; name those you mean")
    if not any(root_dir.resolve().is_relative_to(folder.resolve()) for folder in allowed_dirs):
        raise SettingsError(f"RALPH_ROOT_DIR: {root_dir} is in none of RALPH_ALLOWED_DIRS; add it there")
    return Settings(
        root_dir=root_dir,
        allowed_dirs=allowed_dirs,
        rag=read_ingest_settings(environ),
    )


def _folder(name: str, text: str, cwd: Path) -> Path:
    path = cwd / Path(text).expanduser()
    if not path.is_dir():
        raise SettingsError(f"{name}: {text!r} is no folder; create it, or name another")
    return path
