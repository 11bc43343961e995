"""One SQLite file: opening, migrating, locking, and errors that say what to do."""

from __future__ import annotations

import errno
import math
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec

from recollect.errors import (
    ConcurrencyError,
    ConflictError,
    CorruptionError,
    DiskFullError,
    ReadOnlyError,
    RecollectError,
    SchemaError,
    StoreError,
)
from recollect.record import new_id

BUSY_SECONDS = 10.0
_APPLICATION_ID = 0x7265636C  # "recl"
_MIGRATIONS = tuple(sorted((Path(__file__).parent / "migrations").glob("*.sql")))
SCHEMA = len(_MIGRATIONS)


class MovedError(ConcurrencyError):
    """The file that is open is no longer the one at its path: another process dropped the workspace."""

    def __init__(self, problem: str = "the workspace was forgotten by another process just now") -> None:
        super().__init__(f"{problem}; trying again is safe")


class Database:
    """A connection with a lock around it, for one process and any number of its threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.connection: Any  # apsw describes SQLite values with a type that strict checking cannot resolve
        self.writable = os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)
        # SQLite must write beside a file to read it while others write. Where it cannot, they must not: the file is
        # read as it stands, and opened anew once it or its log has changed.
        self._still = not self.writable and not all(os.access(path + end, os.R_OK) for end in ("-wal", "-shm"))
        # Before opening: if the path names the same file afterwards, that is the file which was opened.
        self._identity = _identity(path, self._still)
        self.connection = _connect(path, self.writable, self._still)
        try:
            self._prepare()
        except BaseException:
            self.connection.close()
            if not self.current():
                raise MovedError from None
            raise
        if not self.current():
            self.connection.close()
            raise MovedError

    def current(self) -> bool:
        """Whether the path still names the open file."""
        self._looked = time.monotonic()
        return self._identity is not None and _identity(self.path, self._still) == self._identity

    @property
    def closed(self) -> bool:
        return self._identity is None

    def fresh(self) -> bool:
        """Whether that was looked up in the last second. A drop is noticed by its missing tables even so."""
        return time.monotonic() - self._looked < 1.0 and not self._still

    def rows(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        try:
            with self.lock:
                return self.connection.execute(sql, parameters).fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self.problem(error) from error

    def row(self, sql: str, parameters: Any = ()) -> tuple[Any, ...] | None:
        try:
            with self.lock:
                return self.connection.execute(sql, parameters).fetchone()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self.problem(error) from error

    @contextmanager
    def guard(self) -> Generator[None]:
        """The lock, and apsw's errors as ours."""
        try:
            with self.lock:
                yield
        except apsw.Error as error:
            raise self.problem(error) from error

    def problem(self, error: Exception) -> RecollectError:
        """What an error of SQLite, or one in decoding a row, means to the caller."""
        if not isinstance(error, apsw.Error):
            return CorruptionError(f"{self.path} is damaged: a row cannot be read ({error}). {_ADVICE}")
        if isinstance(error, apsw.ConnectionClosedError):
            return MovedError(f"{self.path} was closed by another thread")
        if "no such table" in str(error) and not self.current():
            return MovedError()
        return translate(error, self.path)

    def begin(self) -> None:
        """Take the lock and open a transaction. Raises MovedError, without either, if the file is no longer the one."""
        self.lock.acquire()
        try:
            if not self.writable:
                raise ReadOnlyError(f"{self.path} cannot be written by this process")
            self.connection.execute("BEGIN IMMEDIATE")
            # Whoever drops a workspace holds this same lock while it moves the folder away, so one look is enough.
            if not self.current():
                raise MovedError
            self.flush()
        except BaseException as error:
            self._rollback()
            self.ended(kept=False)
            self.lock.release()
            if isinstance(error, apsw.Error):
                raise self.problem(error) from error
            raise

    def end(self, error: BaseException | None) -> None:
        """Commit, or roll back if there was an error."""
        kept = False
        try:
            if error is None:
                self.connection.execute("COMMIT")
                kept = True
        except apsw.Error as failure:
            raise self.problem(failure) from failure
        finally:
            self._rollback()
            self.ended(kept)
            self.lock.release()
        if isinstance(error, apsw.Error):
            raise self.problem(error) from error

    def _rollback(self) -> None:
        """What is still open. SQLite has rolled back by itself after some errors, such as a full disk."""
        with suppress(apsw.ConnectionClosedError):
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def flush(self) -> None:
        """Called first in every transaction, for what was put off."""

    def ended(self, kept: bool) -> None:
        """Called last in every transaction, with whether it was committed."""

    def savepoint(self) -> None:
        """A transaction inside the open one."""
        with self.guard():
            self.connection.execute("SAVEPOINT inner")

    def release(self, error: BaseException | None) -> None:
        """Keep what was written since the last savepoint, or take it back if there was an error."""
        with self.guard():
            if self.connection.in_transaction:  # else SQLite has rolled back everything already
                self.connection.execute("RELEASE inner" if error is None else "ROLLBACK TO inner; RELEASE inner")
        if isinstance(error, apsw.Error):
            raise self.problem(error) from error

    def checkpoint(self) -> None:
        """Move everything into the main file and empty the log."""
        with self.guard():
            busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() or (0,)
        if busy:
            raise ConcurrencyError(f"{self.path}: another process is still reading older data; try again")

    def close(self) -> None:
        with self.guard():
            self._identity, self._looked = None, -math.inf
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
        try:
            self.connection.execute("BEGIN")  # one look at everything: another process may be setting the file up
            version, owner = self._version(), self.connection.pragma("application_id")
            used = version or owner or self.connection.execute(_ANY_TABLE).fetchone()
        finally:
            self._rollback()
        if owner != _APPLICATION_ID and used:
            raise CorruptionError(
                f"{self.path} is a SQLite database, but not one of recollect's; it was left untouched"
            )
        if version > SCHEMA:
            raise SchemaError(
                f"{self.path} has schema {version}; this recollect knows up to {SCHEMA}. "
                "Upgrade recollect; the file was left untouched"
            )
        if not self.writable and version < SCHEMA:
            raise ReadOnlyError(f"{self.path} has the older schema {version} and cannot be upgraded: it is read-only")

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
            self._rollback()
            raise


_ANY_TABLE = "SELECT 1 FROM sqlite_schema LIMIT 1"
UNREADABLE = (ValueError, TypeError, OverflowError, msgspec.MsgspecError)
"""What comes of decoding a row that is not as it was written."""

_ADVICE = (
    "Other workspaces are not affected. Move the file away and import an export, "
    "or recover what is left with the sqlite3 command's .recover"
)


def _identity(path: str, still: bool) -> tuple[int, ...] | None:
    """Which file a path names; for one that is to stand still, also what tells whether it or its log has changed."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    identity = (status.st_ino, status.st_dev)
    return (*identity, status.st_mtime_ns, *(_identity(path + "-wal", True) or ())) if still else identity


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
        raise MovedError from None
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


def _connect(path: str, writable: bool, still: bool) -> apsw.Connection:
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
        if not os.path.exists(path):
            raise MovedError from None
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
        return CorruptionError(f"{path} is damaged ({error}). {_ADVICE}")
    if isinstance(error, apsw.ConstraintError):
        return ConflictError(f"{path}: {error}")
    if isinstance(error, apsw.IOError):
        if getattr(error, "extendedresult", 0) in (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE):
            return DiskFullError(f"{path} could not be written: disk full or file size limit reached ({error})")
        return StoreError(f"{path}: the disk failed ({error})")
    return StoreError(f"{path}: {error}")
