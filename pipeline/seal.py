"""The last stage: puts a bundle together, gives it its version, and makes it the current one.

`current` names a whole bundle at every moment: files are written to a folder that no one reads, the hash
list last, then the folder gets its name by one rename, and `current` is switched by another.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from handler.bundle.layout import DATABASE, FILES, MANIFEST, MODEL, SUMS, TOKENIZER
from handler.bundle.manifest import Manifest, read_manifest
from handler.bundle.sums import content_version, is_whole, write_sums
from handler.bundle.types import BundleError

BUNDLES_KEPT = 3


def seal(manifest: Manifest, database: Path, model: Path, tokenizer: Path, build: Path) -> Path:
    """The folder of the sealed bundle, build/bundles/<version>, with build/current pointing to it.

    `manifest` comes without a version and gets one made from the content. The last three bundles are
    kept. An equal bundle that is there already, and whole, is taken as it is.
    """
    bundles = build / "bundles"
    bundles.mkdir(parents=True, exist_ok=True)
    for leftover in bundles.glob(".incoming-*"):
        shutil.rmtree(leftover)
    incoming = bundles / f".incoming-{os.getpid()}"
    incoming.mkdir()
    try:
        manifest = _fill(incoming, manifest, database, model, tokenizer)
    except OSError:
        shutil.rmtree(incoming)  # a full disk gets its room back
        raise
    bundle = bundles / manifest.version
    if is_whole(bundle):
        shutil.rmtree(incoming)
        # Its age decides which bundles are pruned, and it is the newest again.
        os.utime(bundle)
    else:
        shutil.rmtree(bundle, ignore_errors=True)
        incoming.rename(bundle)
    _switch(build / "current", Path("bundles") / manifest.version)
    _prune(bundles, current=manifest.version)
    return bundle


def read_current(build: Path) -> Manifest | None:
    """The manifest of the current bundle, or None when there is none that can be read."""
    try:
        return read_manifest(build / "current")
    except BundleError:
        return None


def _fill(folder: Path, manifest: Manifest, database: Path, model: Path, tokenizer: Path) -> Manifest:
    """Writes all files of a bundle and returns its manifest, which has its version now."""
    for source, name in ((database, DATABASE), (model, MODEL), (tokenizer, TOKENIZER)):
        shutil.copyfile(source, folder / name)
    manifest = replace(manifest, version=content_version(folder, manifest))
    (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    write_sums(folder)
    for name in (*FILES, SUMS):
        (folder / name).chmod(0o644)
        _sync(folder / name)
    _sync(folder)
    return manifest


def _switch(link: Path, target: Path) -> None:
    """Points a symbolic link somewhere else; there is no moment without it (rename(2))."""
    new = link.with_name(f".{link.name}-{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(target, target_is_directory=True)
    new.replace(link)
    _sync(link.parent)


def _prune(bundles: Path, current: str) -> None:
    """Removes all but the newest bundles; the current one is always kept."""
    others = [path for path in bundles.iterdir() if path.is_dir() and path.name != current]
    others.sort(key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)
    for path in others[BUNDLES_KEPT - 1 :]:
        shutil.rmtree(path)


def _sync(path: Path) -> None:
    """Makes sure that a file or folder is on the disk before the next step relies on it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
