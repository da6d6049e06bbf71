"""A rag.db that another program writes to while it is read here."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path
from urllib.parse import quote

import apsw

from handler.bundle.database import connect
from handler.bundle.reader import Index
from handler.bundle.types import BundleError

# How long a writer may hold the file before a question gives up.
BUSY_TIMEOUT_MS = 5_000

# The schema of a database that grows file by file, PRAGMA user_version; a bundle's has none.
LOCAL_VERSION = 3

_numbers = count(1)


class LiveIndex:
    """The index in a database as of its last commit; read again when that changed, or the file did.

    Rows are looked up by id in the course of a search, so what is searched must not change: each state is
    copied into memory, where the vectors are anyway. The writer is never kept waiting for more than that,
    and a search that began goes on in the state it began with. SQLite bounds such a copy to 1 GiB.
    """

    def __init__(self, path: Path) -> None:
        """Raises BundleError when there is no such database, or it is no index."""
        self.path = path
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._state: tuple[object, ...] | None = None
        self._index = self.current()

    def current(self) -> Index:
        """The index now. Any thread may ask. Raises BundleError."""
        with self._lock:
            try:
                state = self._read_state()
                if state != self._state:
                    self._index = self._copy()
                    self._state = state
            except (OSError, apsw.Error) as error:
                raise BundleError(f"{self.path} cannot be read: {reason_of(error)}") from error
            return self._index

    def _read_state(self) -> tuple[object, ...]:
        """Equal as long as nobody committed to the file or put another one in its place."""
        status = self.path.stat()
        check_is_file(self.path)
        file = (status.st_dev, status.st_ino)
        if self._connection is None or file != self._file:
            # Not immutable: SQLite must look for the writer's locks and its write-ahead log.
            self._connection = connect(f"file:{quote(str(self.path.resolve()))}?mode=ro")
            self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            self._file = file
        return (*file, self._connection.pragma("data_version"))

    def _copy(self) -> Index:
        assert self._connection is not None
        check_local_version(self._connection)
        if _is_older(self._connection):
            raise BundleError(
                f"{self.path} was made by an older version of this program: ingest something into it again "
                "(rag_ingest_file, or `ralph ingest`), which brings it up to date"
            )
        copy = _Copy(f"file:/ralph-live-{next(_numbers)}?vfs=memdb")
        # Not SQLite's backup: it would copy the journal mode, and there is no write-ahead log in memory.
        self._connection.execute("VACUUM INTO ?", (copy.uri,))
        return Index.read(self.path, copy.connect)


def check_is_file(path: Path) -> None:
    """Raises BundleError when something else is there, above all a FIFO, on which SQLite would wait."""
    if path.exists() and not path.is_file():
        raise BundleError(f"{path} is no file: name one in RAG_DB_PATH")


def reason_of(error: OSError | apsw.Error) -> str:
    """What the system or SQLite says, without the path that the system adds."""
    if isinstance(error, apsw.CantOpenError):
        return "its folder must be there and writable, for SQLite's log, also for those who only read"
    return (isinstance(error, OSError) and error.strerror) or str(error)


def check_local_version(connection: apsw.Connection) -> None:
    """Raises BundleError when a newer version of this program made the database's schema."""
    if (version := connection.pragma("user_version")) > LOCAL_VERSION:
        raise BundleError(
            f"{connection.filename} has a schema of version {version}, and this program knows "
            f"{LOCAL_VERSION} at most: update it"
        )


def lacks_title_vectors(connection: apsw.Connection) -> bool:
    """Whether this is an index of the first version, or a copy of a bundle of format 1."""
    return _lacks_column(connection, "page", "title_vector")


def _is_older(connection: apsw.Connection) -> bool:
    """Whether this is an index of an earlier version, or a copy of a bundle of an earlier format."""
    return lacks_title_vectors(connection) or _lacks_column(connection, "chunk_fts", "links")


def _lacks_column(connection: apsw.Connection, table: str, column: str) -> bool:
    columns = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
    return bool(columns) and column not in columns


class _Copy:
    """A database in memory that all threads share. It is gone with its last connection: one stays here."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        self._connection = apsw.Connection(uri, flags=flags)

    def connect(self) -> apsw.Connection:
        """Another connection, which only reads."""
        return connect(self.uri)
