"""What the server was told. The environment is read here and nowhere else in the package."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.settings import IngestSettings, read_ingest_settings
from pipeline.site import SiteError


class SettingsError(Exception):
    """A setting is wrong. The message names the variable, its value and the remedy."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The folders that tools may touch, and what `rag` needs: the bundle, the local index, the collections.

    `root_dir` is where relative paths start. All folders are absolute and spelled as the user spelled them,
    symbolic links included.
    """

    root_dir: Path
    allowed_dirs: tuple[Path, ...]
    rag: IngestSettings

    @property
    def root_is_allowed(self) -> bool:
        """Whether relative paths are of use.

        They are not where the server is registered for all projects and started in one that is not allowed.
        """
        root = self.root_dir.resolve()
        return any(root.is_relative_to(folder.resolve()) for folder in self.allowed_dirs)


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
    try:
        settings = Settings(root_dir, allowed_dirs, read_ingest_settings(environ))
    except SiteError as error:
        raise SettingsError(str(error)) from error
    if named and not settings.root_is_allowed:
        raise SettingsError(f"RALPH_ROOT_DIR: {root_dir} is in none of RALPH_ALLOWED_DIRS; add it there")
    return settings


def _folder(name: str, text: str, cwd: Path) -> Path:
    try:
        path = cwd / Path(text).expanduser()
        is_folder = path.is_dir()
    except (OSError, RuntimeError):  # a name that is too long, a ~user whom nobody knows
        is_folder = False
    if not is_folder:
        raise SettingsError(f"{name}: {text!r} is no folder; create it, or name another")
    # Where `..` after a link leads, its spelling does not tell.
    return path.resolve() if ".." in path.parts else path
