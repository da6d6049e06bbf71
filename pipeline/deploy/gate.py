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
    """Compares the figures of a bundle with those in the text of the deployed one's manifest, if any.

    `accepted` is the version of the bundle that may be worse. Raises DeployError, naming each figure that
    fell. A deployed manifest that cannot be read has no figures to fall behind.
    """
    new = read_manifest(bundle)
    old = _manifest(deployed)
    fell = worse(old, new) if old else ()
    if fell and accepted != new.version:
        raise DeployError(
            f"bundle {new.version} answers worse than the deployed one: {'; '.join(fell)}. "
            f"Say RALPH_ACCEPT_WORSE={new.version} to deploy it all the same"
        )


def _manifest(text: str) -> Manifest | None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, MANIFEST).write_text(text, encoding="utf-8")
        try:
            return read_manifest(Path(folder))
        except BundleError:
            return None
