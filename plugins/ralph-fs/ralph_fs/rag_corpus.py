"""The bundle and the local index of a server, opened when they are needed.

Imported when a RAG tool is first called: the packages behind it take most of a second to load.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from handler.bundle.bundle import Bundle
from handler.bundle.joined import Joined
from handler.bundle.types import BundleError
from pipeline.site import SiteError
from ralph_fs.refusal import RefusedError
from ralph_fs.settings import Settings


class Corpus:
    """What can be asked; any thread may ask. Both indexes are opened again when they were replaced."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings.rag
        self._root = os.path.realpath(settings.root_dir)
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._bundle: Bundle | None = None
        self._joined = Joined(self.settings.database)

    def bundle(self) -> Bundle:
        """The bundle, whose model embeds files and questions alike. Raises BundleError."""
        with self._lock:
            folder = self.settings.bundle.resolve()
            if self._bundle is None or folder != self._folder:
                self._bundle, self._folder = Bundle.open(folder), folder
            return self._bundle

    def current(self) -> Bundle:
        """The bundle with the local index in it, as both are now. Raises BundleError."""
        return self._joined.with_bundle(self.bundle())

    def shown_address(self, url: str) -> str:
        """An address as the client would write it: a file's as a path, relative if in the root folder."""
        if not url.startswith("file:"):
            return url
        path = unquote(urlsplit(url).path)
        below = f"{self._root}/"
        return path.removeprefix(below) if path.startswith(below) else path

    def location(self, path: str) -> str:
        """The file that a client's path or address names, as the local index knows it. Nothing is opened."""
        return path if "://" in path else os.path.realpath(os.path.join(self._root, path))  # noqa: PTH118

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turns what is wrong with an index or a setting into a RefusedError, by the setting's name."""
        try:
            yield
        except (BundleError, SiteError) as error:
            text = str(error)
            for path, name in (
                (self.settings.database, "the local index (RAG_DB_PATH)"),
                (self.settings.bundle.resolve(), "the bundle (RALPH_BUNDLE)"),
                (self.settings.bundle, "the bundle (RALPH_BUNDLE)"),
                (self.settings.collections / "collections.toml", "collections.toml (RALPH_SITES)"),
            ):
                text = text.replace(str(path), name)
            raise RefusedError(text) from error
