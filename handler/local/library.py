"""What the local chat searches: every collection of a bundle, or of an index that is being written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from handler.bundle.bundle import Bundle
from handler.bundle.live import LiveIndex
from handler.bundle.types import BundleError
from handler.followup import Search
from handler.local.settings import LocalSettings

# What an answer says in place of a bundle's version: a live index has none.
LIVE = "live"


@dataclass(frozen=True, slots=True)
class Library:
    """A bundle, and the live index that stands in for its own one, if any."""

    bundle: Bundle
    live: LiveIndex | None = None

    @classmethod
    def open(cls, settings: LocalSettings) -> Library:
        """The library that the settings name.

        Raises BundleError when the bundle cannot be used, or the live index does not fit its model.
        """
        bundle = Bundle.open(settings.base.bundle.resolve()).with_max_distance(settings.base.max_distance)
        if settings.database is None:
            return cls(bundle)
        try:
            library = cls(bundle, LiveIndex(settings.database))
            library.current()
        except BundleError as error:
            raise BundleError(f"RAG_DB_PATH: {error}") from None
        return library

    @property
    def version(self) -> str:
        """The version of what is searched."""
        return LIVE if self.live else self.bundle.manifest.version

    def current(self) -> Bundle:
        """What is searched now. Raises BundleError when a live index cannot be read, or does not fit."""
        if self.live is None:
            return self.bundle
        index, spec = self.live.current(), self.bundle.encoder.spec
        if len(index) and (index.model != spec.fingerprint or index.vectors.shape[1] != spec.dim):
            raise BundleError(
                f"{self.live.path} was made with another embedding model than the bundle's {spec.name}: "
                "build it again with that one, or name its bundle in RALPH_BUNDLE"
            )
        return replace(self.bundle, index=index)

    def search(self) -> Search:
        """A search of all that is there now, private collections too. Raises what `current` raises."""
        bundle = self.current()
        return partial(bundle.search, collections=tuple(bundle.index.collections))
