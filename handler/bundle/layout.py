"""The files of a bundle, by name."""

from __future__ import annotations

# Raised when a reader of the old format would misread the new one.
FORMAT_VERSION = 1

DATABASE = "rag.db"
MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"
MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
# What SHA256SUMS lists, in its order.
FILES = (MANIFEST, MODEL, DATABASE, TOKENIZER)
