"""The metadata store of a standalone broker: one SQLite table of paths, shaped like ZooKeeper's tree."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import assert_never

from cordwood.errors import StorageError, StoreConflict
from cordwood.ports import Check, Create, Delete, MetadataChange, Node, Set, StoreOp

FORMAT = 1
"""The version of the table's schema, in the file's ``user_version``; 0 means a new file."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS nodes (
    path TEXT PRIMARY KEY,
    data BLOB NOT NULL,
    version INTEGER NOT NULL
) WITHOUT ROWID
"""


class SqliteStore:
    """A ``MetadataStore`` in one file. Every ``multi`` is a transaction, on the disk when it returns."""

    def __init__(self, path: str) -> None:
        # One thread at a time uses the store, but not always the same one: it is opened before the worker exists.
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._open(path)
        except sqlite3.Error as error:
            self._database.close()
            is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            advice = "make room there" if is_full else "restore it, or start with another --data"
            raise StorageError(f"{path} cannot be used: {error}; {advice}") from None
        except StorageError:
            self._database.close()
            raise

    def _open(self, path: str) -> None:
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version not in (0, FORMAT):
            raise StorageError(
                f"{path} has format version {version}, and this broker knows {FORMAT}; "
                "use a newer one, or another --data"
            )
        self._database.execute(_SCHEMA)
        self._database.execute(f"PRAGMA user_version = {FORMAT}")

    def load(self) -> Iterable[Node]:
        rows = self._database.execute("SELECT path, data, version FROM nodes ORDER BY path").fetchall()
        return [Node(*row) for row in rows]

    def multi(self, operations: Sequence[StoreOp], /) -> MetadataChange:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                nodes = [node for operation in operations for node in self._apply(operation)]
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise StorageError(f"The metadata could not be written: {error}.") from error
        return MetadataChange(nodes, [operation.path for operation in operations if isinstance(operation, Delete)])

    def _apply(self, operation: StoreOp) -> list[Node]:
        match operation:
            case Create(path, data):
                if self._version(path) is not None:
                    raise StoreConflict(f"{path} exists already")
                self._database.execute("INSERT INTO nodes VALUES (?, ?, 0)", (path, data))
                return [Node(path, data, 0)]
            case Set(path, data, expected):
                version = self._expect(path, expected) + 1
                self._database.execute("UPDATE nodes SET data = ?, version = ? WHERE path = ?", (data, version, path))
                return [Node(path, data, version)]
            case Delete(path, expected):
                self._expect(path, expected)
                # '0' is the character after '/': this range is everything below the node, and nothing else.
                self._database.execute(
                    "DELETE FROM nodes WHERE path = ? OR (path > ? AND path < ?)", (path, path + "/", path + "0")
                )
                return []
            case Check(path, expected):
                self._expect(path, expected)
                return []
            case _:
                assert_never(operation)

    def _version(self, path: str) -> int | None:
        row = self._database.execute("SELECT version FROM nodes WHERE path = ?", (path,)).fetchone()
        return None if row is None else int(row[0])

    def _expect(self, path: str, expected: int | None) -> int:
        version = self._version(path)
        if version is None:
            raise StoreConflict(f"{path} does not exist")
        if expected is not None and version != expected:
            raise StoreConflict(f"{path} has version {version}, not {expected}")
        return version

    def purge(self) -> None:
        """Nothing to do: no changes are kept for others."""

    def close(self) -> None:
        self._database.close()
