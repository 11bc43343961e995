"""One SQLite file: opening, migrating, locking, and errors that say what to do."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from recollect.errors import (
    Conflict,
    SchemaTooNew,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)

BUSY_SECONDS = 10.0
_APPLICATION_ID = 0x7265636C  # "recl"
_MIGRATIONS = tuple(sorted((Path(__file__).parent / "migrations").glob("*.sql")))
SCHEMA = len(_MIGRATIONS)


class Moved(Exception):
    """The file that is open is no longer the one at its path: another process dropped the workspace."""


class Database:
    """A connection with a lock around it, for one process and any number of its threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.connection: Any  # apsw describes SQLite values with a type that strict checking cannot resolve
        self.connection, self.writable = _connect(path)
        try:
            self._prepare()
            status = os.stat(path)
        except BaseException:
            self.connection.close()
            raise
        self._identity = (status.st_ino, status.st_dev)
        self._looked = time.monotonic()

    def current(self) -> bool:
        """Whether the path still names the open file."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        self._looked = time.monotonic()
        return (status.st_ino, status.st_dev) == self._identity

    def fresh(self) -> bool:
        """Whether that was looked up in the last second. A drop is noticed by its missing tables even so."""
        return time.monotonic() - self._looked < 1.0

    def rows(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        try:
            with self.lock:
                return self.connection.execute(sql, parameters).fetchall()
        except apsw.Error as error:
            raise translate(error, self.path) from error

    def row(self, sql: str, parameters: Any = ()) -> tuple[Any, ...] | None:
        try:
            with self.lock:
                return self.connection.execute(sql, parameters).fetchone()
        except apsw.Error as error:
            raise translate(error, self.path) from error

    @contextmanager
    def guard(self) -> Generator[None]:
        """The lock, and apsw's errors as ours."""
        try:
            with self.lock:
                yield
        except apsw.Error as error:
            raise translate(error, self.path) from error

    def begin(self) -> None:
        """Take the lock and open a transaction. Raises Moved, without either, if the file is no longer the one."""
        self.lock.acquire()
        try:
            if not self.writable:
                raise StoreReadOnly(f"{self.path} cannot be written by this process")
            self.connection.execute("BEGIN IMMEDIATE")
            # Whoever drops a workspace holds this same lock while it moves the folder away, so one look is enough.
            if not self.current():
                raise Moved
            self.flush()
        except BaseException as error:
            self._rollback()
            self.lock.release()
            if isinstance(error, apsw.Error):
                raise translate(error, self.path) from error
            raise

    def end(self, error: BaseException | None) -> None:
        """Commit, or roll back if there was an error."""
        try:
            if error is None:
                self.connection.execute("COMMIT")
        except apsw.Error as failure:
            raise translate(failure, self.path) from failure
        finally:
            self._rollback()
            self.lock.release()
        if isinstance(error, apsw.Error):
            raise translate(error, self.path) from error

    def _rollback(self) -> None:
        """What is still open. SQLite has rolled back by itself after some errors, such as a full disk."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def flush(self) -> None:
        """Called first in every outermost transaction, for what was put off."""

    def checkpoint(self) -> None:
        """Move everything into the main file and empty the log."""
        with self.guard():
            busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() or (0,)
        if busy:
            raise StoreBusy(f"{self.path}: another process is still reading older data; try again")

    def close(self) -> None:
        with self.guard():
            self.connection.close()

    def _prepare(self) -> None:
        with self.guard():
            self.connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
            self._check_owner()
            if not self.writable:
                return
            _patiently(lambda: self.connection.execute("PRAGMA journal_mode = WAL").fetchall())
            self.connection.execute("PRAGMA synchronous = FULL; PRAGMA secure_delete = ON")
            if self._version() < SCHEMA:
                self._migrate()

    def _version(self) -> int:
        return self.connection.pragma("user_version")

    def _check_owner(self) -> None:
        version, owner = self._version(), self.connection.pragma("application_id")
        if owner != _APPLICATION_ID and (version or owner or self.connection.execute(_ANY_TABLE).fetchone()):
            raise StoreCorrupt(f"{self.path} is a SQLite database, but not one of recollect's; it was left untouched")
        if version > SCHEMA:
            raise SchemaTooNew(
                f"{self.path} has schema {version}; this recollect knows up to {SCHEMA}. "
                "Upgrade recollect; the file was left untouched"
            )
        if not self.writable and version < SCHEMA:
            raise StoreReadOnly(f"{self.path} has the older schema {version} and cannot be upgraded: it is read-only")

    def _migrate(self) -> None:
        """Each migration and its number in one transaction; a second process waits and finds it done."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            for number, script in enumerate(_MIGRATIONS, 1):
                if number > self._version():
                    self.connection.execute(script.read_text())
                    self.connection.execute(f"PRAGMA user_version = {number}")
            self.connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self.connection.execute("COMMIT")
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise


_ANY_TABLE = "SELECT 1 FROM sqlite_schema LIMIT 1"


def create(path: str) -> None:
    """The file and the folders above it, for this user only."""
    missing: list[Path] = []
    folder = Path(path).parent
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    try:
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except PermissionError as error:
        raise StoreReadOnly(f"{path} cannot be created: {error.strerror}. Check the folder's owner and mode") from error
    except NotADirectoryError as error:
        raise StoreError(f"{path} cannot be created: something above it is a file, not a folder") from error
    except FileNotFoundError:
        raise Moved from None
    except OSError as error:
        kind = StoreReadOnly if error.errno == 30 else StoreFull if error.errno in (28, 122) else StoreError
        raise kind(f"{path} cannot be created: {error.strerror}") from error


def _connect(path: str) -> tuple[apsw.Connection, bool]:
    """Read and write if that is allowed, else read only."""
    if os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK):
        try:
            return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE), True
        except apsw.Error as error:
            raise translate(error, path) from error
    # SQLite needs to write beside the file to read it while others write. Where nothing can be written, nobody writes.
    shared = os.path.exists(path + "-shm") and os.access(path + "-shm", os.W_OK)
    uri = f"{Path(path).resolve().as_uri()}?{'mode=ro' if shared else 'immutable=1'}"
    try:
        return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI), False
    except apsw.Error as error:
        raise translate(error, path) from error


def _patiently(action: Any) -> None:
    """Switching a new file to WAL does not wait for others who are doing the same."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return action()
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def translate(error: apsw.Error, path: str) -> StoreError | Conflict | Moved:
    if isinstance(error, apsw.SQLError) and "no such table" in str(error):
        return Moved()
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusy(f"{path} was locked by another process for over {BUSY_SECONDS:.0f} s; trying again is safe")
    if isinstance(error, apsw.FullError):
        return StoreFull(f"{path}: no space left on the disk; nothing was written")
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError | apsw.AuthError):
        return StoreReadOnly(f"{path} cannot be written by this process")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreCorrupt(
            f"{path} is damaged ({error}). Other workspaces are not affected. Move the file away and import an export, "
            "or recover what is left with the sqlite3 command's .recover"
        )
    if isinstance(error, apsw.ConstraintError):
        return Conflict(f"{path}: {error}")
    if isinstance(error, apsw.IOError):
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_WRITE:
            return StoreFull(f"{path} could not be written: disk full or file size limit reached ({error})")
        return StoreError(f"{path}: the disk failed ({error})")
    return StoreError(f"{path}: {error}")
