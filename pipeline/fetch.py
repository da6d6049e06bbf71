"""A model's files from the first source that has them, verified and kept for the next build."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from pipeline.site import SiteError
from pipeline.sources import HUB, Source, UnavailableError, download


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file by its name in the cache and the digest of its bytes."""

    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class FetchedModel:
    """The two files of a model on this machine, and the words for where they came from."""

    weights: Path
    tokenizer: Path
    source: str


def default_cache() -> Path:
    """Where models are kept between builds unless RALPH_MODELS says otherwise: the user's cache folder."""
    return platformdirs.user_cache_path("ralph", appauthor=False) / "models"


def fetch_model(
    name: str,
    weights: PinnedFile,
    tokenizer: PinnedFile,
    sources: Iterable[Source],
    cache: Path,
    hub: str = HUB,
) -> FetchedModel:
    """The model's files in `cache`/`name`, downloaded unless they are there and whole.

    `hub` is the address of the Hugging Face hub or of a stand-in for it. Raises SiteError that lists
    every source with the reason why it could not serve.
    """
    folder = cache / name
    files = (weights, tokenizer)
    missing = [file for file in files if not _is_whole(folder / file.file, file.sha256)]
    if not missing:
        return FetchedModel(folder / weights.file, folder / tokenizer.file, f"the cache {folder}")
    reasons = [_why_not_cached(folder / file.file) for file in missing]
    for source in sources:
        try:
            _download(source, weights, tokenizer, folder, hub)
        except UnavailableError as error:
            reasons.append(f"{source}: {error}")
        else:
            return FetchedModel(folder / weights.file, folder / tokenizer.file, str(source))
    remedy = (
        f"put {weights.file} and {tokenizer.file} of {name} into {folder}, or set RALPH_MODELS to a folder "
        f"that has them in {name}/, or build where one of the sources is reachable"
    )
    raise SiteError("\n  ".join([f"the model {name} cannot be had:", *reasons, remedy]))


def _download(source: Source, weights: PinnedFile, tokenizer: PinnedFile, folder: Path, hub: str) -> None:
    """Both files into `folder`, each moved to its name only when its bytes are the pinned ones."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Beside the final place, so that moving a file there is one atomic step.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as scratch_name:
            scratch = Path(scratch_name)
            names = {source.weights: weights.file, source.tokenizer: tokenizer.file}
            download(source, names, scratch, hub)
            for file in (weights, tokenizer):
                if not _is_whole(scratch / file.file, file.sha256):
                    raise UnavailableError(f"its {file.file} is not the pinned one")
            for file in (weights, tokenizer):
                _sync(scratch / file.file)
                (scratch / file.file).replace(folder / file.file)
    except OSError as error:
        raise UnavailableError(f"{error.strerror or error}: {error.filename or folder}") from error


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False


def _why_not_cached(path: Path) -> str:
    return f"{path}: " + ("damaged" if path.exists() else "not there")


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
