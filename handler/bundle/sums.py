"""What a bundle is made of, to the byte: SHA256SUMS, in the format of sha256sum(1), and the version."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from handler.bundle.layout import DATABASE, FILES, MODEL, SUMS, TOKENIZER
from handler.bundle.types import BundleError

if TYPE_CHECKING:  # it loads numpy, and a build with nothing to do only wants to know whether that is so
    from handler.bundle.manifest import Manifest


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(bundle: Path) -> None:
    """Writes SHA256SUMS over the files of a bundle; it is the last file of a bundle to be written."""
    lines = [f"{file_sha256(bundle / name)}  {name}\n" for name in FILES]
    (bundle / SUMS).write_text("".join(lines), encoding="ascii")


def check_sums(bundle: Path) -> None:
    """Reads every byte of a bundle and compares it with SHA256SUMS.

    Raises BundleError naming the first file that is missing, damaged, or not listed.
    """
    try:
        text = (bundle / SUMS).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise BundleError(f"{bundle} is not a whole bundle: {SUMS} is missing or unreadable") from None
    listed = {name: digest for digest, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", text, re.MULTILINE)}
    if set(listed) != set(FILES) or len(text.splitlines()) != len(FILES):
        raise BundleError(f"{bundle} is damaged: {SUMS} does not list exactly {', '.join(FILES)}")
    for name in FILES:
        try:
            digest = file_sha256(bundle / name)
        except OSError:
            raise BundleError(f"{bundle} is damaged: {name} is missing or unreadable") from None
        if digest != listed[name]:
            raise BundleError(
                f"{bundle} is damaged: {name} does not have the digest in {SUMS}; build or copy it again"
            )


def is_whole(bundle: Path) -> bool:
    """Whether every byte of a bundle is as SHA256SUMS says."""
    try:
        check_sums(bundle)
    except BundleError:
        return False
    return True


def content_version(bundle: Path, manifest: Manifest) -> str:
    """12 hex digits made from the content of a bundle: its files, and its manifest without the version."""
    digest = hashlib.sha256(replace(manifest, version="").to_json().encode())
    for name in (DATABASE, MODEL, TOKENIZER):
        digest.update(bytes.fromhex(file_sha256(bundle / name)))
    return digest.hexdigest()[:12]
