"""One SQLite file, for the threads of a process: who reads, who writes, and in turn."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import Any

import apsw

from recollect.stores.scope import let_go
from recollect.stores.sqlite.functions import FUNCTIONS
from recollect.stores.sqlite.opening import (
    ADVICE,
    APPLICATION_ID,
    BUSY_SECONDS,
    SCHEMA,
    connect,
    connect_in_memory,
    identity,
    migrate,
    moves,
    patiently,
    schema_of,
    translate,
)
from recollect.stores.sqlite.turns import Alone
from recollect.stores.transactions import StaleFileError
from recollect.values.errors import (
    ConcurrencyError,
    CorruptionError,
    ReadOnlyError,
    RecollectError,
    SchemaError,
)

_TAKEN_AWAY = (apsw.IOError, apsw.CantOpenError, apsw.CorruptError, apsw.NotADBError)
"""What SQLite says of files that were moved away while it had them open; and of others."""
_READERS = 2
"""Connections that are kept open to read with. More are opened while more threads read."""


class Database:
    """One connection that writes and a few that read, for one process and any number of its threads.

    Readers wait for nobody: each has a connection of its own while it reads. Writers take turns.
    """

    more_tables = ""
    """SQL of tables that a new file gets besides those of the migrations."""
    patience = BUSY_SECONDS
    """Lock timeout in seconds of a write that nobody has set another one for."""
    synchronous = "FULL"
    """Whether a commit waits for the disk."""

    def __init__(self, path: str, in_memory: bool = False) -> None:
        """`path` is only a name for one that is kept in memory."""
        self.path = path
        self.in_memory = in_memory
        self.lock = threading.RLock()
        """Held by the thread that writes, for a whole transaction. The guard is only ever taken after it."""
        # Taken by itself, not by way of the condition: that is Python, and an interrupt in it would leave it locked.
        self._lock = threading.Lock()
        self._guard = threading.Condition(self._lock)
        self._closing = False
        """Whether somebody waits for readers and writers to end."""
        self._owner = 0
        """The thread in whose transaction the writer is."""
        self._writer: Any = None  # apsw describes SQLite values with a type that strict checking cannot resolve
        self._idle: list[Any] = []
        self._reading = 0
        """Connections that threads have taken to read."""
        self._open: set[object] = set()
        """Connections there are, whoever has them, and for each that is being opened something that stands for it."""
        self.writable = in_memory or (os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK))
        # SQLite must write beside a file to read it while others write. Where it cannot, they must not: the file is
        # read as it stands, and opened anew once it or its log has changed.
        self._still = not self.writable and not all(os.access(path + end, os.R_OK) for end in ("-wal", "-shm"))
        # Before opening: if the path names the same file afterwards, that is the file which was opened.
        self._identity = self._identity_now()
        first = self._connect()
        self._open.add(first)
        try:
            self._prepare(first)
        except BaseException:
            self.dispose(first)
            if not self.current():
                raise StaleFileError from None
            raise
        if not self.current():
            self.dispose(first)
            raise StaleFileError
        # A database in memory is gone with its last connection.
        self._anchor = self.connect() if in_memory else None
        self._idle.append(first)

    def _identity_now(self) -> tuple[int, ...] | None:
        return () if self.in_memory else identity(self.path, self._still)

    def _connect(self) -> Any:
        return connect_in_memory(self.path) if self.in_memory else connect(self.path, self.writable, self._still)

    def current(self) -> bool:
        """Whether the path still names the open file."""
        self._looked = time.monotonic()
        return self._identity is not None and self._identity_now() == self._identity

    @property
    def closed(self) -> bool:
        return self._identity is None

    @property
    def busy(self) -> bool:
        """Whether some thread reads or writes just now."""
        return bool(self._owner or self._reading)

    @property
    def open_files(self) -> int:
        """How many its connections have open: two each, and one that they share."""
        return 2 * len(self._open) + 1

    @property
    def inside(self) -> bool:
        """Whether this thread is in a transaction here."""
        return self._owner == get_ident()

    def fresh(self) -> bool:
        """Whether that was looked up in the last second. A drop is noticed by its missing tables even so."""
        return time.monotonic() - self._looked < 1.0 and not self._still

    # Reading

    @contextmanager
    def reading(self) -> Generator[Any]:
        """A connection to read with: the writer's inside this thread's own transaction, else one of its own."""
        if self.inside:
            with self._translated():
                yield self._writer
            return
        connection = self._take()
        try:
            with self._translated():
                yield connection
        finally:
            self._give_back(connection)

    def _take(self) -> Any:
        with self._lock:
            if self._identity is None:
                raise self._moved()
            self._reading += 1
            if self._idle:
                return self._idle.pop()
        try:
            return self.connect()
        except BaseException:
            self._give_back(None)
            raise

    def _give_back(self, connection: Any) -> None:
        with self._lock:
            self._reading -= 1
            reusable = connection is not None and self._identity is not None and len(self._idle) < _READERS
            if reusable:
                self._idle.append(connection)
            if self._closing:
                self._guard.notify_all()
        if connection is not None and not reusable:
            self.dispose(connection)

    def connect(self) -> Any:
        """Another connection that reads. Whoever asks for it must `dispose` of it."""
        return self._connected("query_only = ON")

    def _connected(self, *pragmas: str) -> Any:
        with self._lock:
            if self._identity is None:
                raise self._moved()
            coming = object()
            self._open.add(coming)
        connection: Any = None
        try:
            with self._translated():
                connection = self._connect()
                with self._lock:
                    self._open.add(connection)
                    self._open.discard(coming)
                self._equip(connection)
                for pragma in pragmas if self.writable else ():
                    connection.execute(f"PRAGMA {pragma}")
            if not self.current():
                raise StaleFileError
        except BaseException:
            self.dispose(coming if connection is None else connection)
            raise
        return connection

    def dispose(self, connection: Any) -> None:
        """Close a connection, or forget what stands for one that never came to be. Once more is no harm."""
        try:
            if isinstance(connection, apsw.Connection):
                with moves.staying(self.path):
                    connection.close()
        finally:
            with self._lock:
                self._open.discard(connection)
                if self._closing:
                    self._guard.notify_all()

    @contextmanager
    def connected(self) -> Generator[Any]:
        """A connection of its own that reads, for as long as it is used."""
        connection = self.connect()
        try:
            with self._translated():
                yield connection
        finally:
            self.dispose(connection)

    def _equip(self, connection: Any) -> None:
        """What every connection needs."""
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
        for name, function in FUNCTIONS.items():
            connection.create_scalar_function(name, function, 2, deterministic=True)

    def rows(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        # As with `reading`, but without the cost of two context managers: this is called for every single memory.
        inside = self._owner == get_ident()
        connection = self._writer if inside else self._take()
        try:
            return connection.execute(sql, parameters).fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self.problem(error) from error
        finally:
            if not inside:
                self._give_back(connection)

    def row(self, sql: str, parameters: Any = ()) -> tuple[Any, ...] | None:
        """The first, where there is at most one."""
        rows = self.rows(sql, parameters)
        return rows[0] if rows else None

    @contextmanager
    def _translated(self) -> Generator[None]:
        """apsw's errors as ours."""
        try:
            yield
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self.problem(error) from error

    def _moved(self) -> StaleFileError:
        return StaleFileError(f"{self.path} was closed by another thread")

    def problem(self, error: Exception) -> RecollectError:
        """What an error of SQLite, or one in decoding a row, means to the caller."""
        if not isinstance(error, apsw.Error):
            return CorruptionError(f"{self.path} is damaged: a row cannot be read ({error}). {ADVICE}")
        if isinstance(error, apsw.ConnectionClosedError):
            return StaleFileError(f"{self.path} was closed by another thread")
        # SQLite opens the log by its path, and only when it first reads: if the workspace was begun anew in between, it
        # is the log of another file.
        lost = isinstance(error, _TAKEN_AWAY) or "no such table" in str(error)
        if lost and (not self.current() or self._dropped()):
            return StaleFileError()
        return translate(error, self.path)

    def _dropped(self) -> bool:
        """Whether whoever drops the workspace has taken its tables away already, and will move the file next."""
        with suppress(apsw.Error, RecollectError), suppress(RecursionError):
            raw: Any = self._connect()
            try:
                sql = "SELECT 1 FROM sqlite_schema WHERE name = 'dropped'"
                return raw.execute(sql).fetchone() is not None
            finally:
                raw.close()
        return not self.current()

    def copy(self, path: str) -> None:
        """Into another file, page by page, as of one moment. Whoever writes does not wait."""
        with self.reading() as connection:
            other: Any = apsw.Connection(path)
            try:
                with other.backup("main", connection, "main") as copying:
                    copying.step(-1)
            finally:
                other.close()

    # Transaction

    def begin(self, *, seconds: float = BUSY_SECONDS, durable: bool = True, alone: bool = False) -> None:
        """Take the lock and open a transaction. StaleFileError, without either, if the file is no longer the one.

        It is a ConcurrencyError if anybody else writes for longer than so many seconds. What need not be `durable` may
        be lost in a power cut, but costs no flush of the disk.
        """
        if not self.lock.acquire(timeout=seconds):
            raise ConcurrencyError(
                f"{self.path} was written by another thread for over {seconds:g} s; trying again is safe"
            )
        try:
            self._begin(seconds, durable)
        except BaseException as error:
            self._end(committed=False)
            if isinstance(error, apsw.Error):
                raise self.problem(error) from error
            raise

    def _begin(self, seconds: float, durable: bool) -> None:
        self.take_ownership()
        self.open_transaction(seconds, durable)
        self.begun()

    def take_ownership(self) -> None:
        """This thread is in a transaction from now on. Called with the lock held."""
        if not self.writable:
            raise ReadOnlyError(f"{self.path} cannot be written by this process")
        with self._lock:
            if self._identity is None:
                raise self._moved()
            self._owner = get_ident()

    def open_transaction(self, seconds: float, durable: bool = True) -> None:
        """SQLite's own, by the thread that has taken ownership."""
        if self._writer_is_broken_off():  # several interrupts in one call have kept it from being dropped
            self._drop_writer()
        if self._writer is None:
            self._writer = self._connect_writer()
        execute: Any = self._writer.execute
        if seconds != BUSY_SECONDS:
            self._writer.set_busy_timeout(int(seconds * 1000))
        self._durable = durable
        try:
            if not durable:
                execute("PRAGMA synchronous = NORMAL")
            execute("BEGIN IMMEDIATE")
        finally:
            if seconds != BUSY_SECONDS:
                self._writer.set_busy_timeout(int(BUSY_SECONDS * 1000))
        # Whoever drops a workspace holds this same lock while it moves the folder away, so one look is enough.
        if not self.current():
            raise StaleFileError

    _durable = True

    def _connect_writer(self) -> Any:
        return self._connected(f"synchronous = {self.synchronous}", "secure_delete = ON")

    def prepare(self) -> None:
        """Write what is to be committed into the log, so that a full disk is noticed before anything is committed."""
        with self._translated():
            self.writer.cache_flush()

    def end(self, error: BaseException | None) -> None:
        """Commit, or roll back if there was an error."""
        committed = False
        try:
            if error is None:
                self._writer.execute("COMMIT")
                committed = True
            elif not isinstance(error, RecollectError | apsw.Error):
                self._drop_writer()
        except apsw.Error as failure:
            raise self.problem(failure) from failure
        finally:
            self._end(committed)
        if isinstance(error, apsw.Error):
            raise self.problem(error) from error

    def _end(self, committed: bool) -> None:
        """Whatever is still open is rolled back. SQLite has done so itself after some errors, such as a full disk."""
        try:
            writer = self._writer
            if writer is not None and self.inside:
                with suppress(apsw.ConnectionClosedError):
                    if writer.in_transaction:
                        writer.execute("ROLLBACK")
                    if not self._durable:
                        writer.execute(f"PRAGMA synchronous = {self.synchronous}")
            self._durable = True
            self.ended(committed)
        finally:
            self.leave()

    def leave(self) -> None:
        """It is the next one's turn to write."""
        with self._lock:
            self._owner = 0
            if self._closing:
                self._guard.notify_all()
        self.lock.release()
        if self._identity is None:
            self._close_writer()

    @property
    def writer(self) -> Any:
        """The connection of this thread's transaction."""
        assert self.inside
        return self._writer

    def begun(self) -> None:
        """Called first in every transaction, for what was put off."""

    def ended(self, committed: bool) -> None:
        """Called last in every transaction, with whether it was committed."""

    def abandon(self) -> None:
        """Let go of what this thread holds, if it holds anything: `begin` or `end` was broken off anywhere."""
        if self.lock.acquire(blocking=False):  # else another thread has it
            if self.inside or self._writer_is_broken_off():
                self._drop_writer()
            self._end(committed=False)
            let_go(self.lock)

    def _writer_is_broken_off(self) -> bool:
        """Whether it is in a transaction, or a further interrupt came as it was closed."""
        try:
            return self._writer is not None and self._writer.in_transaction
        except apsw.ConnectionClosedError:
            return True

    def _drop_writer(self) -> None:
        """After an interrupt: its traceback may keep a statement of it running, and so the next one from committing."""
        if self._writer is not None:
            self.dispose(self._writer)
            self._writer = None

    def savepoint(self, depth: int) -> None:
        """A transaction inside the open one."""
        with self._translated():
            self.writer.execute(f"SAVEPOINT s{depth}")

    def release(self, depth: int, error: BaseException | None) -> None:
        """Keep what was written since the savepoint, or take it back if there was an error."""
        with self._translated():
            if self.writer.in_transaction:  # else SQLite has rolled back everything already
                back = "" if error is None else f"ROLLBACK TO s{depth}; "
                self.writer.execute(f"{back}RELEASE s{depth}")
        if isinstance(error, apsw.Error):
            raise self.problem(error) from error

    def take_back(self, depth: int) -> None:
        """What was written since the savepoint, if that is there."""
        with suppress(apsw.Error):
            self.writer.execute(f"ROLLBACK TO s{depth}; RELEASE s{depth}")

    def alone(self) -> Alone:
        """The writer's connection outside any transaction, for what SQLite does not do inside one."""
        return Alone(self)

    def take_alone(self) -> Any:
        if not self.lock.acquire(timeout=BUSY_SECONDS):
            raise ConcurrencyError(f"{self.path} was written by another thread for too long; trying again is safe")
        with self._lock:
            if self._identity is None:
                raise self._moved()
            self._owner = get_ident()
        if self._writer is None:
            self._writer = self._connect_writer() if self.writable else self.connect()
        return self._writer

    def checkpoint(self) -> None:
        """Move everything into the main file and empty the log."""
        self._close_idle()  # one that read before may still hold the log open
        with self.alone() as connection:
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() or (0,)
        if busy:
            raise ConcurrencyError(f"{self.path}: another process is still reading older data; try again")

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            self.dispose(connection)

    def close(self, seconds: float = 0.0) -> bool:
        """Open nothing more and close what nobody uses; a reader's connection is closed when it is given back.

        Waits so long for those who are at work. False if any connection is open still.
        """
        with self._lock:
            self._identity, self._looked, self._closing = None, -math.inf, True
        self._close_idle()
        self._close_writer()
        if self._anchor is not None:
            self.dispose(self._anchor)
        with self._lock:
            return self._guard.wait_for(lambda: not self._open, seconds)

    def _close_writer(self) -> None:
        """Unless somebody writes, who then closes it at the end."""
        with self._lock:
            if self._owner:
                return
            writer, self._writer = self._writer, None
        if writer is not None:
            self.dispose(writer)

    def _prepare(self, connection: Any) -> None:
        """Set the file up where that is needed; the connection reads from then on."""
        with self._translated():
            self._equip(connection)
            self._check_owner(connection)
            if not self.writable:
                return
            if not self.in_memory:
                patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchall())
            if schema_of(connection) < SCHEMA:
                connection.execute(f"PRAGMA synchronous = {self.synchronous}; PRAGMA secure_delete = ON")
                migrate(connection, self.more_tables)
            connection.execute("PRAGMA query_only = ON")

    def _check_owner(self, connection: Any) -> None:
        try:
            connection.execute("BEGIN")  # one look at everything: another process may be setting the file up
            version, owner = schema_of(connection), connection.pragma("application_id")
            used = version or owner or connection.execute(_ANY_TABLE).fetchone()
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if owner != APPLICATION_ID and used:
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


_ANY_TABLE = "SELECT 1 FROM sqlite_schema LIMIT 1"
