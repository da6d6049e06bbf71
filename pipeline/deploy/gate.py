"""What keeps a bundle from being deployed: it is damaged, or answers worse than the one in its place."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from handler.bundle.diff import worse
from handler.bundle.layout import MANIFEST
from handler.bundle.manifest import Manifest, read_manifest
from handler.bundle.types import BundleError
from handler.bundle.verify import verify
from pipeline.deploy.step import DeployError


def check_bundle(bundle: Path) -> Iterator[str]:
    """Verifies a bundle that is about to ship, and yields what held. Raises DeployError when it does not."""
    try:
        yield from verify(bundle)
    except BundleError as error:
        raise DeployError(f"this bundle is not deployed: {error}") from None


def check_not_worse(deployed: str, bundle: Path, accepted: str | None) -> None:
    """Compares the figures of a bundle with those in the deployed one's manifest, a text that may be empty.

    `accepted` is the version of the bundle that may be worse. Raises DeployError, naming each figure that
    fell, or why they cannot be compared.
    """
    new = read_manifest(bundle)
    if not deployed or accepted == new.version:
        return
    try:
        fell = worse(_manifest(deployed), new)
    except BundleError as error:
        found = f"bundle {new.version} cannot be compared with the deployed one: {error}"
    else:
        if not fell:
            return
        found = f"bundle {new.version} answers worse than the deployed one: {'; '.join(fell)}"
    raise DeployError(f"{found}. Say RALPH_ACCEPT_WORSE={new.version} to deploy it all the same")


def _manifest(text: str) -> Manifest:
    with tempfile.TemporaryDirectory(prefix="deployed-") as folder:
        Path(folder, MANIFEST).write_text(text, encoding="utf-8")
        return read_manifest(Path(folder))
