"""A bundle's folder and its manifest: what is in it, and what it was made with."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handler.bundle.layout import FORMAT_VERSION, MANIFEST
from handler.bundle.typed import typed
from handler.bundle.types import BundleError


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """One collection of a bundle. Only public ones can be asked from outside."""

    title: str
    public: bool
    n_pages: int
    n_chunks: int


@dataclass(frozen=True, slots=True)
class SiteSummary:
    """One site of a bundle."""

    collection: str
    n_pages: int


@dataclass(frozen=True, slots=True)
class Probe:
    """A question and its vector as the building machine embedded it, (dim,) float32, unit length."""

    text: str
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a bundle says of itself.

    `version` is 12 hex digits made from the content alone: equal content, equal version. `model`, `gate`
    and `evaluation` are the dictionaries of ModelSpec, Gate and the evaluation report.
    """

    version: str
    model: Mapping[str, Any]
    chunker: Mapping[str, Any]
    collections: Mapping[str, CollectionSummary]
    sites: Mapping[str, SiteSummary]
    gate: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    probe: Probe
    format_version: int = FORMAT_VERSION

    @property
    def public_collections(self) -> tuple[str, ...]:
        """The names of the collections that anyone may ask, sorted."""
        return tuple(sorted(name for name, collection in self.collections.items() if collection.public))

    def to_json(self) -> str:
        """The manifest as it stands in manifest.json, byte-equal for equal content."""
        table = asdict(self)
        vector = np.ascontiguousarray(self.probe.vector, dtype="<f4")
        table["probe"]["vector"] = base64.b64encode(vector.tobytes()).decode()
        return json.dumps(table, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read_manifest(bundle: Path) -> Manifest:
    """The manifest of a bundle's folder.

    Raises BundleError in one sentence when there is none, when it cannot be read, or when its format is
    newer than this program's.
    """
    path = bundle / MANIFEST
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise BundleError(f"{bundle} is no bundle: it has no {MANIFEST}; `doit build` makes one") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"{path} cannot be read: {error}") from None
    if not isinstance(table, dict):
        raise BundleError(f"{path} is not a manifest of format {FORMAT_VERSION}: no table")
    found = table.get("format_version")
    if isinstance(found, int) and found > FORMAT_VERSION:
        raise BundleError(
            f"{bundle} has bundle format {found} and this program reads up to {FORMAT_VERSION}: update Ralph"
        )
    try:
        return _manifest(table)
    except BundleError as error:
        raise BundleError(f"{path} is not a manifest of format {FORMAT_VERSION}: {error}") from None


def check_format(manifest: Manifest, bundle: Path) -> None:
    """Raises BundleError when a bundle's format is older than what this program can ask."""
    if manifest.format_version < FORMAT_VERSION:
        raise BundleError(
            f"{bundle} has bundle format {manifest.format_version} and this program asks bundles of format "
            f"{FORMAT_VERSION}: build it again (`doit build`)"
        )


def _manifest(table: Mapping[str, Any]) -> Manifest:
    def read(name: str, kind: Any) -> Any:
        return typed(kind, table.get(name), name)

    if read("format_version", int) < 1:
        raise BundleError(f"format_version: there is no {table['format_version']}")
    probe = read("probe", dict[str, str])
    try:
        vector = np.frombuffer(base64.b64decode(probe["vector"]), dtype="<f4")
        text = probe["text"]
    except (KeyError, ValueError) as error:
        raise BundleError(f"probe: {error!r}") from None
    return Manifest(
        format_version=table["format_version"],
        version=read("version", str),
        model=read("model", dict[str, Any]),
        chunker=read("chunker", dict[str, Any]),
        collections=read("collections", dict[str, CollectionSummary]),
        sites=read("sites", dict[str, SiteSummary]),
        gate=read("gate", dict[str, Any]),
        evaluation=read("evaluation", dict[str, Any]),
        probe=Probe(text, vector),
    )
