"""SQLite files: made, opened and migrated; and what errors of SQLite mean to a caller."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import msgspec

from recollect.runtime import forking
from recollect.stores.rows import UNREADABLE, text_key
from recollect.stores.scope import Scope
from recollect.stores.tables.memories import name_in, speaker_of
from recollect.stores.transactions import StaleFileError
from recollect.stores.undo import OldValues
from recollect.values.errors import (
    ConcurrencyError,
    ConflictError,
    CorruptionError,
    DiskFullError,
    ReadOnlyError,
    StoreError,
    UnreadableError,
)
from recollect.values.record import EPOCH, Address, Record, new_id

BUSY_SECONDS = 10.0
APPLICATION_ID = 0x7265636C  # "recl"
_MIGRATIONS = tuple(sorted((Path(__file__).parent / "migrations").glob("*.sql")))
SCHEMA = len(_MIGRATIONS)
ADVICE = (
    "Other workspaces are not affected. Move the file away and import an export, "
    "or recover what is left with the sqlite3 command's .recover"
)


def schema_of(connection: Any) -> int:
    return connection.pragma("user_version")


def _speaker(role: Any, metadata: Any) -> str:
    return speaker_of(_recalled(role, metadata, ""))


def _name(text: Any, metadata: Any) -> str | None:
    return name_in(_recalled(None, metadata, text))


def _recalled(role: Any, metadata: Any, text: Any) -> Record:
    """As much of a memory in a conversation as tells who speaks."""
    try:
        fields = msgspec.json.decode(metadata, type=dict[str, Any]) if metadata else {}
    except UNREADABLE:
        fields = {}
    address = Address(conversation="any")
    return Record("", address, "conversation", "", text, 0.0, EPOCH, EPOCH, role=role, metadata=fields)


def _old_values(record: Any) -> bytes:
    return msgspec.json.encode(OldValues.of(msgspec.json.decode(record, type=Record)).fields)


_OF_COLUMNS: dict[str, tuple[Any, int]] = {
    "text_key": (text_key, 1),
    "letters": (len, 1),  # SQLite's own length ends at a NUL
    "speaker_of": (_speaker, 2),
    "name_in": (_name, 2),
    "old_values": (_old_values, 1),
}
"""Functions by which migrations fill new columns, and how many arguments each takes."""


def migrate(connection: Any, more_tables: str = "") -> None:
    """All in one transaction; a second process waits and finds it done. A new file gets `more_tables` at the end."""
    for name, (function, arguments) in _OF_COLUMNS.items():
        connection.create_scalar_function(name, function, arguments, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        is_new = schema_of(connection) == 0
        for number, script in enumerate(_MIGRATIONS, 1):
            if number > schema_of(connection):
                connection.execute(script.read_text())
                connection.execute(f"PRAGMA user_version = {number}")
        if is_new and more_tables:
            connection.execute(more_tables)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def identity(path: str, still: bool) -> tuple[int, ...] | None:
    """Which file a path names; for one that is to stand still, also what tells whether it or its log has changed."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    file = (status.st_ino, status.st_dev)
    return (*file, status.st_mtime_ns, *(identity(path + "-wal", True) or ())) if still else file


def create(path: str) -> None:
    """The file and the folders above it, for this user only."""
    missing: list[Path] = []
    folder = Path(path).parent
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    try:
        for folder in reversed(missing):
            _make(folder)
        if not os.path.exists(path):
            _make_file(path)
    except PermissionError as error:
        raise ReadOnlyError(f"{path} cannot be created: {error.strerror}. Check the folder's owner and mode") from error
    except NotADirectoryError as error:
        raise StoreError(f"{path} cannot be created: something above it is a file, not a folder") from error
    except FileNotFoundError:
        raise StaleFileError from None
    except OSError as error:
        kind = {errno.EROFS: ReadOnlyError, errno.ENOSPC: DiskFullError, errno.EDQUOT: DiskFullError}
        raise kind.get(error.errno or 0, StoreError)(f"{path} cannot be created: {error.strerror}") from error


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError as error:
        # Under a folder that is there, this is not another process at work: /proc and its like hold no folders.
        if folder.parent.exists():
            raise StoreError(f"{folder} cannot be created: its parent cannot hold folders") from error
        raise


def _make_file(path: str) -> None:
    """An empty file, made under another name.

    Closing a file ends every lock that the process has on it, and another thread may have opened it in SQLite by then.
    """
    unnamed = f"{path}-{new_id()}"
    os.close(os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        os.link(unnamed, path)
    except FileExistsError:
        return
    except PermissionError:  # not every file system has links
        if not os.path.exists(path):
            os.rename(unnamed, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(unnamed)


class Moves:
    """Keeps a workspace's folder from being moved away while a connection to its file is opened or closed.

    SQLite opens and removes the log and the memory beside it by their paths, and a process has its own locks only once
    for each file: a connection to the file that was moved would use, cut and remove those of the one that is there now.
    """

    def __init__(self) -> None:
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        # Taken by itself, not by way of the condition: that is Python, and an interrupt in it would leave it locked.
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.connecting: defaultdict[str, set[object]] = defaultdict(set)
        """By path: who opens or closes a connection just now."""
        self.moving_away: set[str] = set()

    def staying(self, path: str) -> _Staying:
        return _Staying(self, path)

    def moving(self, path: str) -> _Moving:
        return _Moving(self, path)


class _Staying(Scope[None]):
    def __init__(self, moves: Moves, path: str) -> None:
        self._moves = moves
        self._path = path

    def enter(self) -> None:
        moves, path = self._moves, self._path
        with moves.lock:
            moves.changed.wait_for(lambda: path not in moves.moving_away)
            moves.connecting[path].add(self)

    def leave(self, error: BaseException | None) -> None:
        self.abandon()

    def abandon(self) -> None:
        moves, path = self._moves, self._path
        with moves.lock:
            moves.connecting[path].discard(self)
            if not moves.connecting[path]:
                del moves.connecting[path]
            moves.changed.notify_all()


class _Moving(Scope[None]):
    def __init__(self, moves: Moves, path: str) -> None:
        self._moves = moves
        self._path = path
        self._free = False

    def enter(self) -> None:
        moves, path = self._moves, self._path
        with moves.lock:
            self._free = moves.changed.wait_for(
                lambda: path not in moves.moving_away and path not in moves.connecting, timeout=BUSY_SECONDS
            )
            if not self._free:
                raise ConcurrencyError(f"{path} is being opened by other threads; trying again is safe")
            moves.moving_away.add(path)

    def leave(self, error: BaseException | None) -> None:
        self.abandon()

    def abandon(self) -> None:
        if self._free:
            with self._moves.lock:
                self._moves.moving_away.discard(self._path)
                self._moves.changed.notify_all()


moves = Moves()


def connect(path: str, writable: bool, still: bool) -> Any:
    """A connection that has read from the file, so that its log is open too."""
    with moves.staying(path):
        before = identity(path, False)
        connection = _connect(path, writable, still, before)
        try:
            connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
            connection.execute("PRAGMA schema_version").fetchall()
        except apsw.Error as error:
            connection.close()
            if identity(path, False) != before:
                raise StaleFileError from None
            raise translate(error, path) from error
        if identity(path, False) != before:
            connection.close()
            raise StaleFileError
        return connection


def connect_in_memory(name: str) -> Any:
    """A connection to the database of this process with that name; the last one to close takes it along."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    connection: Any = apsw.Connection(f"file:/{quote(name, safe='')}?vfs=memdb", flags=flags)
    connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    return connection


def _connect(path: str, writable: bool, still: bool, before: tuple[int, ...] | None) -> Any:
    try:
        if writable:
            return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        log = os.path.exists(path + "-wal")
        way = "mode=ro" if not still else "mode=ro&vfs=unix-none" if log else "immutable=1"
        uri = f"{Path(path).resolve().as_uri()}?{way}"
        connection: Any = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        if still and log:
            # Alone with the file, SQLite reads the log without the memory that it would share with others.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        return connection
    except apsw.Error as error:
        if before is None or identity(path, False) != before:  # dropped, and perhaps begun anew, meanwhile
            raise StaleFileError from None
        raise translate(error, path) from error


def patiently(action: Any) -> None:
    """Switching a new file to WAL does not wait for others who are doing the same."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return action()
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def translate(error: apsw.Error, path: str) -> StoreError | ConflictError:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return ConcurrencyError(
            f"{path} was locked by another process for over {BUSY_SECONDS:.0f} s; trying again is safe"
        )
    if isinstance(error, apsw.FullError):
        return DiskFullError(f"{path}: no space left on the disk; nothing was written")
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError | apsw.AuthError):
        return ReadOnlyError(f"{path} cannot be written by this process")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError) or "no such table" in str(error):
        return CorruptionError(f"{path} is damaged ({error}). {ADVICE}")
    if isinstance(error, apsw.CantOpenError):
        return UnreadableError(f"{path} cannot be opened. Check who owns it and its folder, and their permissions")
    if isinstance(error, apsw.ConstraintError):
        return ConflictError(f"{path}: {error}")
    if isinstance(error, apsw.IOError):
        if getattr(error, "extendedresult", 0) in (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE):
            return DiskFullError(f"{path} could not be written: disk full or file size limit reached ({error})")
        return StoreError(f"{path}: the disk failed ({error})")
    return StoreError(f"{path}: {error}")
