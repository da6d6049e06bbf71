"""An opened bundle: everything that a question needs, checked before it is trusted."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from handler.bundle.encoder import Encoder, ModelSpec
from handler.bundle.gate import Gate
from handler.bundle.layout import DATABASE
from handler.bundle.manifest import Manifest, check_format, read_manifest
from handler.bundle.probe import check_probe
from handler.bundle.reader import Index
from handler.bundle.search import SearchResult, search
from handler.bundle.sums import check_sums
from handler.bundle.types import BundleError, Mode


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle in memory. Nothing is ever written to its folder; many threads may ask at once."""

    manifest: Manifest
    index: Index
    encoder: Encoder
    gate: Gate

    @classmethod
    def open(cls, folder: Path, threads: int = 1) -> Self:
        """The bundle of a folder, every byte of it verified.

        The digests are computed beside the loading, which takes as long. Raises BundleError, in one
        sentence, when the bundle is missing, damaged, inconsistent or of another format.
        """
        manifest = read_manifest(folder)
        check_format(manifest, folder)
        with ThreadPoolExecutor(1) as pool:
            check = pool.submit(check_sums, folder)
            try:
                spec = ModelSpec.from_dict(manifest.model)
                bundle = cls(
                    manifest=manifest,
                    index=Index.open(folder / DATABASE),
                    encoder=Encoder.load(folder, spec, threads),
                    gate=Gate.from_dict(manifest.gate),
                )
            except BundleError:
                check.result()  # a wrong digest explains the failure better than its consequence
                raise
            check.result()
        try:
            bundle._check_parts()
        except BundleError as error:
            raise BundleError(f"{folder}: its files are not of one build: {error}") from None
        return bundle

    def _check_parts(self) -> None:
        """Raises BundleError when the parts, each whole by itself, would answer wrongly together."""
        spec, index = self.encoder.spec, self.index
        if len(index) and (index.vectors.shape[1] != spec.dim or index.model != spec.fingerprint):
            raise BundleError(f"{DATABASE} does not hold vectors of {spec.name}")
        if self.gate.direction and len(self.gate.direction) != spec.dim:
            raise BundleError(f"the gate is for vectors of {len(self.gate.direction)} dimensions")
        found = {name: len(rows) for name, rows in index.collections.items()}
        listed = {name: row.n_chunks for name, row in self.manifest.collections.items()}
        if found != listed:
            raise BundleError(f"{DATABASE} has chunks {found}; the manifest says {listed}")
        check_probe(self.encoder, self.manifest.probe)

    def with_max_distance(self, max_distance: float | None) -> Self:
        """The bundle with the first rule of the gate, by L2 distance, in place of the calibrated one."""
        if max_distance is None:
            return self
        return replace(self, gate=replace(self.gate, max_distance=max_distance))

    def search(
        self,
        question: str,
        *,
        collections: Iterable[str] | None = None,
        top_k: int = 6,
        mode: Mode = "hybrid",
        gated: bool = True,
        chunks_per_page: int | None = 1,
        page: str | None = None,
    ) -> SearchResult:
        """What handler.bundle.search.search finds here; without `collections`, in the public ones."""
        return search(
            self.index,
            self.encoder,
            question,
            collections=self.manifest.public_collections if collections is None else collections,
            top_k=top_k,
            mode=mode,
            gate=self.gate if gated else None,
            chunks_per_page=chunks_per_page,
            page=page,
        )
