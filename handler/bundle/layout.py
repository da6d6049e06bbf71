"""The files of a bundle, by name, and where the local index is that is asked beside it."""

from __future__ import annotations

from pathlib import Path

# Raised when a reader of the old format would misread the new one.
FORMAT_VERSION = 3

DATABASE = "rag.db"
MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"
MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
# What SHA256SUMS lists, in its order.
FILES = (MANIFEST, MODEL, DATABASE, TOKENIZER)


def local_index(data_home: str | None, home: str | None) -> Path:
    """The local index that nobody named, by XDG_DATA_HOME and HOME (XDG Base Directory Specification)."""
    return Path(data_home or Path(home or "/", ".local", "share"), "ralph", "rag.db")
