"""Vectors that were computed once, kept in one SQLite file for every later build."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import apsw
import numpy as np

from handler.bundle.encoder import Vector

# Another build may be writing to the same cache; its transactions last some milliseconds.
BUSY_TIMEOUT_MS = 60_000
_CRC_BYTES = 4
_SCHEMA = "CREATE TABLE IF NOT EXISTS vector(key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"


def vector_key(fingerprint: str, text: str) -> bytes:
    """The digest that a text's vector is kept under: 32 bytes, of the model's fingerprint and the text."""
    return hashlib.sha256(f"{fingerprint}\0{text}".encode("utf-8", "surrogatepass")).digest()


class VectorCache:
    """An open cache. Every `put` is one transaction: what was put survives a kill at any moment."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def get(self, keys: Iterable[bytes], dim: int) -> Iterator[tuple[bytes, Vector]]:
        """The vectors that are here and whole, each with its key, in the order of `keys`."""
        for key in keys:
            row = self._connection.execute("SELECT vector FROM vector WHERE key = ?", (key,)).get
            vector = None if row is None else _unpack(row, dim)
            if vector is not None:
                yield key, vector

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Keeps the vectors, instead of older ones of the same keys."""
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?)",
                ((key, _pack(vector)) for key, vector in vectors.items()),
            )


@contextmanager
def open_cache(path: Path, say: Callable[[str], None] = print) -> Iterator[VectorCache]:
    """The cache in a file, made when it is not there. A damaged one is replaced by an empty one, and said."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        connection = _connect(path)
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError) as error:
        say(f"{path} is damaged ({error}); all vectors are computed anew")
        for suffix in ("", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        connection = _connect(path)
    try:
        yield VectorCache(connection)
    finally:
        connection.close()


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.execute(_SCHEMA)
        # Structure only: each vector carries its own checksum.
        if (verdict := connection.execute("PRAGMA quick_check(1)").get) != "ok":
            raise apsw.CorruptError(str(verdict))
    except apsw.Error:
        connection.close()
        raise
    return connection


def _pack(vector: Vector) -> bytes:
    data = vector.astype("<f4").tobytes()
    return data + zlib.crc32(data).to_bytes(_CRC_BYTES, "little")


def _unpack(packed: bytes, dim: int) -> Vector | None:
    """The vector, or None when its bytes are not those that were packed."""
    data, crc = packed[:-_CRC_BYTES], packed[-_CRC_BYTES:]
    if len(data) != 4 * dim or zlib.crc32(data).to_bytes(_CRC_BYTES, "little") != crc:
        return None
    return np.frombuffer(data, "<f4").astype(np.float32)
