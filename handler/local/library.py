"""What the local chat searches: every collection of a bundle, and of the local index beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from handler.bundle.bundle import Bundle
from handler.bundle.joined import Joined, search_distinct
from handler.bundle.types import BundleError
from handler.followup import Search
from handler.local.settings import LocalSettings

# What an answer says in place of a bundle's version: a live index has none.
LIVE = "live"


@dataclass(frozen=True, slots=True)
class Library:
    """A bundle, and the live index that is asked together with it."""

    bundle: Bundle
    joined: Joined

    @classmethod
    def open(cls, settings: LocalSettings) -> Library:
        """The library that the settings name.

        Raises BundleError when the bundle cannot be used, or the live index does not fit its model.
        """
        bundle = Bundle.open(settings.base.bundle.resolve()).with_max_distance(settings.base.max_distance)
        library = cls(bundle, Joined(settings.database, required=settings.is_database_named))
        try:
            library.current()
        except BundleError as error:
            raise BundleError(f"RAG_DB_PATH: {error}") from None
        return library

    @property
    def version(self) -> str:
        """The version of what is searched."""
        return LIVE if self.joined.is_asked else self.bundle.manifest.version

    def current(self) -> Bundle:
        """What is searched now. Raises BundleError when a live index cannot be read, or does not fit."""
        return self.joined.with_bundle(self.bundle)

    def search(self) -> Search:
        """A search of all that is there now, private collections too. Raises what `current` raises."""
        bundle = self.current()
        return partial(search_distinct, bundle, collections=tuple(bundle.index.collections))
