"""Sites made of a few small files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.site import Site

MakeSite = Callable[..., Site]


@pytest.fixture
def make_site(tmp_path: Path) -> MakeSite:
    """A site of the given kind whose source holds the given files (path -> text or bytes)."""

    def make(kind: str, files: Mapping[str, str | bytes], **keys: Any) -> Site:
        source = tmp_path / "source"
        source.mkdir(exist_ok=True)
        for path, content in files.items():
            location = source / path
            location.parent.mkdir(parents=True, exist_ok=True)
            location.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        values: dict[str, Any] = {
            "name": "example",
            "kind": kind,
            "source": str(source),
            "base_url": "https://example.org/",
            "collection": "docs",
            "folder": tmp_path / "sites" / "example",
        }
        return Site(**(values | keys))

    return make
