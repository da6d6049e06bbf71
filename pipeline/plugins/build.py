"""The marketplace of this repository: its wheels made, its plugins checked, all of it packed in a folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from pipeline.plugins.checks import MARKETPLACE, problems
from pipeline.plugins.wheel import make_wheel

# What lies about in a folder that was worked in, and is nobody else's.
_LEFT_OVER = shutil.ignore_patterns("__pycache__", "*.pyc", ".*_cache", ".DS_Store", "*~", "*.swp", ".env")


class PluginError(Exception):
    """The marketplace or a plugin is wrong. The message has a line for each problem, with its remedy."""


def build_plugins(root: Path, out: Path, claude: str | None) -> None:
    """Writes the plugins' wheels, checks everything, and packs the marketplace into the folder `out`.

    `claude` is the program of Claude Code, whose own validator is asked too. Raises PluginError.
    """
    for folder in (root / "plugins").glob("*"):
        if (folder / "pyproject.toml").exists():
            write_wheel(folder, root)
    if found := problems(root):
        raise PluginError("\n".join(found))
    pack_marketplace(root, out)
    if claude:
        for folder in (out, *plugin_folders(out)):
            validate(claude, folder)


def write_wheel(plugin: Path, root: Path) -> None:
    """Puts the wheel of a plugin's server into its folder, in the place of an older one."""
    name, data = make_wheel(plugin, root)
    for old in plugin.glob("*.whl"):
        if old.name != name:
            old.unlink()
    if not (plugin / name).exists() or (plugin / name).read_bytes() != data:
        (plugin / name).write_bytes(data)


def pack_marketplace(root: Path, out: Path) -> None:
    """Copies the marketplace and its plugins into the folder `out`, from which they can be installed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    (new / MARKETPLACE).parent.mkdir(parents=True)
    shutil.copyfile(root / MARKETPLACE, new / MARKETPLACE)
    for folder in plugin_folders(root):
        shutil.copytree(folder, new / folder.relative_to(root), ignore=_LEFT_OVER)
    new.chmod(0o755)  # temporary folders are for their maker's eyes alone
    shutil.rmtree(out, ignore_errors=True)
    new.rename(out)


def plugin_folders(root: Path) -> list[Path]:
    """The plugins' folders, in the order of a marketplace that is free of problems."""
    entries = json.loads((root / MARKETPLACE).read_text(encoding="utf-8"))["plugins"]
    return [root / entry["source"] for entry in entries]


def validate(claude: str, folder: Path) -> None:
    """Asks Claude Code's validator about a marketplace or a plugin. Raises PluginError with what it says."""
    command = [claude, "plugin", "validate", "--strict", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PluginError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
