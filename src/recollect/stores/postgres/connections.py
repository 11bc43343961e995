"""Connections to one PostgreSQL server: lent to whoever works, kept for the next, replaced when they break.

A connection is opened by the thread that needs it, so what goes wrong is told at once and to the right one. There are
no threads of our own, and nothing of a connection outlives a transaction, so a pooler in transaction mode may stand
between.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import weakref
from collections.abc import Generator
from contextlib import AbstractContextManager, suppress
from functools import cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from recollect.runtime import forking, imports
from recollect.stores.metrics import Durations
from recollect.stores.scope import Scope
from recollect.values.errors import (
    AccessError,
    ConcurrencyError,
    DiskFullError,
    InputError,
    LimitError,
    ReadOnlyError,
    RecollectError,
    SchemaError,
    StoreError,
    UnavailableError,
)


class Connection(Protocol):
    """What we use of psycopg's, which takes only texts that are known when types are checked."""

    closed: bool
    prepare_threshold: int | None
    answer: float | None
    slot: Any
    lent: bool
    """Whether somebody has it."""
    url: str
    pgconn: Any
    info: Any

    def execute(self, query: str, params: Any = None, *, prepare: bool | None = None, binary: bool = False) -> Any: ...
    def pipeline(self) -> AbstractContextManager[Any]: ...
    def transaction(self) -> AbstractContextManager[object]: ...
    def close(self) -> None: ...


PATIENCE = 10.0
"""Seconds that whoever works waits for a lock, a free connection, or a server that is starting again."""
_MOST = 16
_STILL = 300.0
"""Seconds after which a connection that nobody used is looked at before it is used again."""
_LONGEST_PAUSE = 0.5
_ENCODING = "UTF8"
_SILENCE = 5.0
"""Seconds without a word after which another connection tries the server, and for how long. Then twice as many."""
_WATCHED = {"keepalives_idle": 30, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 10_000}
"""For the kernel to notice a peer that is gone, where the URL says nothing about that."""


_SCHEMA = re.compile(r"(?!pg_|information_schema$)[a-z_][a-z0-9_]{0,39}")


class Location(NamedTuple):
    """A server and what is ours on it."""

    url: str
    schema: str

    @classmethod
    def of(cls, location: str) -> Location:
        """From `postgresql://user@host/database?schema=name`. What else the URL says is for libpq."""
        split = _split(location)
        parameters = parse_qsl(split.query, keep_blank_values=True)
        named = [value for key, value in parameters if key == "schema"]
        if len(named) > 1:
            raise InputError("schema", "is given twice")
        schema = named[0] if named else "recollect"
        if not _SCHEMA.fullmatch(schema):
            raise InputError("schema", f"{schema[:48]!r} must be 1 to 40 of a-z, 0-9 and '_', not beginning with pg_")
        # libpq takes a plus for a plus.
        query = urlencode([(key, value) for key, value in parameters if key != "schema"], quote_via=quote)
        return cls(urlunsplit(("postgresql", split.netloc, split.path, query, "")), schema)

    def __repr__(self) -> str:
        return f"<{self.shown}>"

    @property
    def shown(self) -> str:
        """Without the password."""
        split = urlsplit(self.url)
        user, at, host = split.netloc.rpartition("@")
        return f"postgresql://{user.partition(':')[0]}{at}{host}{split.path}"


def _split(location: str) -> SplitResult:
    """InputError for what is no URL. It is not repeated: there may be a password in it."""
    try:
        split = urlsplit(location)
        plain = split.port is None or split.port > 0
    except ValueError:
        raise _no_url() from None
    whole = (
        plain and "://" in location and not split.fragment and "@" not in split.path and split.netloc.count("@") <= 1
    )
    if not whole or re.search("%(?![0-9A-Fa-f]{2})", location):
        raise _no_url()
    return split


def _no_url() -> InputError:
    return InputError(
        "store",
        "is not a URL as postgresql://USER@HOST:PORT/DATABASE, with a PORT from 1 to 65535; in a user or password "
        "write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23, [ as %5B, ] as %5D and % as %25",
    )


def driver() -> Any:
    """psycopg, which is an extra."""
    try:
        imports.load("psycopg")
        import psycopg
    except ImportError as error:
        advice = "PostgreSQL needs psycopg: pip install 'recollect[postgres]'"
        raise StoreError(f"{advice} ({error})") from error
    return psycopg


class Connections:
    """Those of one process to one server."""

    def __init__(self, location: Location, most: int = _MOST, answer: float | None = None) -> None:
        """`answer` is within how many seconds the server must answer; else it is waited for while it answers others."""
        self.location = location
        self._answer = answer
        self.reached = False
        """Whether the server has ever answered: one that has is waited for when it is away."""
        self.pooled = False
        """Whether something stands between that gives each transaction another session."""
        self._most = most
        self.waits = Durations()
        """How long callers waited until they had a connection."""
        self._begin_anew()
        forking.watch(self)

    def _begin_anew(self) -> None:
        # Taken by itself, not by way of the condition: that is Python, and an interrupt in it would leave it locked.
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self._idle: list[tuple[Connection, float]] = []
        """The one that was used last comes last."""
        self._slots: weakref.WeakSet[_Slot] = weakref.WeakSet()
        self._waiting: set[int] = set()
        """Threads that wait for a connection. One that an interrupt took out of its wait stays until it comes again."""

    @property
    def open(self) -> int:
        """How many there are, those that are being opened too."""
        return len(self._slots)

    def pool(self) -> PoolSize:
        with self._lock:
            return PoolSize(len(self._slots), len(self._idle), len(self._waiting), self._most)

    def after_fork(self) -> None:
        """The parent's connections must not be used here, nor closed: closing would end them for the parent."""
        _abandoned.extend(connection for connection, _ in self._idle)
        self._begin_anew()

    def lent(self, patience: float = PATIENCE) -> Lent:
        """One for a block. It is given back in any case, and closed if a transaction in it is not over."""
        return Lent(self, patience)

    def take(self, patience: float = PATIENCE) -> Connection:
        """One that whoever takes it must give back."""
        start = time.monotonic()
        try:
            connection = self._take(patience)
        finally:
            self._waiting.discard(threading.get_ident())
            self.waits.add(time.monotonic() - start)
        connection.lent = True
        return connection

    def _take(self, patience: float) -> Connection:
        until = time.monotonic() + patience
        with self._lock:
            while True:
                if (rested := self._rested()) is not None:
                    return rested
                if len(self._slots) < self._most:
                    slot = _Slot()
                    self._slots.add(slot)
                    break
                left = until - time.monotonic()
                self._waiting.add(threading.get_ident())
                if not self._free.wait(max(min(left, _LONGEST_PAUSE), 0.0)) and left <= 0:
                    raise ConcurrencyError(
                        f"all {self._most} connections to {self.location.shown} were busy for {patience:.0f} s; "
                        "trying again is safe"
                    )
        try:
            return self._connect(until, slot)
        except BaseException:
            self._gone(slot)
            raise

    def _rested(self) -> Connection | None:
        """One that nobody uses. Whoever asks holds the lock."""
        while self._idle:
            connection, used = self._idle.pop()
            if not connection.closed and time.monotonic() - used <= _STILL:
                return connection
            self._slots.discard(connection.slot)
            _close(connection)
        return None

    def _gone(self, slot: _Slot) -> None:
        with self._lock:
            self._slots.discard(slot)
            self._free.notify()

    def give_back(self, connection: Connection) -> None:
        """Once more is no harm: the first time may have been broken off."""
        broken = connection.closed
        if broken or connection.pgconn.transaction_status or connection.pgconn.pipeline_status:  # not at rest
            _close(connection)
            self._gone(connection.slot)
            if broken:  # what ended it has mostly ended the others as well, and each would cost a call its patience
                self.close()
            return
        rested = connection, time.monotonic()
        with self._lock:
            if connection.lent:
                connection.lent = False
                self._idle.append(rested)
                self._free.notify()

    def _connect(self, until: float, slot: _Slot) -> Connection:
        """Once more after a while where the server was there before: it may be starting again, or be full.

        Meanwhile one of ours may have become free, and is as good.
        """
        psycopg, pause = driver(), 0.02
        while True:
            try:
                connection = _opened(self.location.url, min(self._answer or PATIENCE, until - time.monotonic()))
                connection.slot, connection.answer = slot, self._answer
                if not self.reached:
                    self._meet(connection)
                break
            except psycopg.Error as error:
                problem = _unreachable(error, self.location)
                if not self.reached or isinstance(problem, AccessError) or time.monotonic() + pause > until:
                    raise problem from error
                with self._lock:
                    self._free.wait(pause)
                    if (rested := self._rested()) is not None:
                        self._slots.discard(slot)
                        return rested
                pause = min(2 * pause, _LONGEST_PAUSE)
        if self.pooled:
            connection.prepare_threshold = None  # what one session prepared, the next does not have
        return connection

    def _meet(self, connection: Connection) -> None:
        """Find out what the server is like."""
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in (None, _ENCODING):
            _close(connection)
            raise SchemaError(
                f"{self.location.shown} keeps texts as {encoding}, which cannot hold every text. Make a database with "
                "`createdb --encoding=UTF8 --template=template0`, and give its name"
            )
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        self.pooled = row is None or row[0] != connection.info.backend_pid
        self.reached = True

    def close(self) -> None:
        """Those that nobody uses; the others are closed when they are given back."""
        with self._lock:
            idle, self._idle = self._idle, []
            for connection, _ in idle:
                self._slots.discard(connection.slot)
            self._free.notify_all()
        for connection, _ in idle:
            _close(connection)


class PoolSize(NamedTuple):
    """How many connections there are, and how many callers wait for one."""

    open: int
    idle: int
    waiting: int
    limit: int


class Lent(Scope[Connection]):
    """A connection for a block."""

    __slots__ = ("_connection", "_connections", "_patience")

    def __init__(self, connections: Connections, patience: float) -> None:
        self._connections = connections
        self._patience = patience
        self._connection: Connection | None = None

    def enter(self) -> Connection:
        self._connection = self._connections.take(self._patience)
        return self._connection

    def leave(self, error: BaseException | None) -> None:
        self.abandon()

    def abandon(self) -> None:
        if self._connection is not None:
            self._connections.give_back(self._connection)


class _Slot:
    """One of as many connections as there may be, for as long as somebody has it: an interrupt anywhere frees it."""

    __slots__ = ("__weakref__",)


_abandoned: list[object] = []


@cache
def _quiet() -> Any:
    """psycopg's connections without their warning: whoever lets go of a Memory lets go of its connections too."""
    psycopg = driver()

    class Quiet(psycopg.Connection):
        slot: _Slot | None = None
        lent = False
        answer: float | None = None
        """Seconds within which the server must go on answering, where it may be left for another."""
        url = ""

        def __del__(self) -> None:
            pass  # the socket is closed with what holds it

        def wait(self, gen: Any, *interval: Any, **more: Any) -> Any:
            plain: Any = super()
            return plain.wait(self._bounded(gen), *interval, **more)

        def _bounded(self, gen: Any) -> Generator[int, int | None, Any]:
            """What psycopg waits for, but not for ever: a server that is stopped keeps its connections open."""
            since, most = time.monotonic(), self.answer or _SILENCE
            try:
                wanted = next(gen)
                while True:
                    ready = yield wanted  # nothing, several times a second, where nothing comes
                    if ready:
                        since = time.monotonic()
                    elif time.monotonic() - since > most:
                        if self.answer is not None or not _alive(self.url):
                            self.close()
                            raise psycopg.OperationalError("the server has stopped answering")
                        since, most = time.monotonic(), 2 * most
                    wanted = gen.send(ready)
            except StopIteration as end:
                return end.value

    def heard(record: logging.LogRecord) -> bool:
        """Not that the end of a pipeline failed after an error in it: that error is ours to tell, and is told."""
        args = record.args if isinstance(record.args, tuple) else ()
        ours = any(isinstance(getattr(arg, "_conn", None), Quiet) for arg in args)
        return not (ours and record.msg.startswith("error ignored terminating"))

    logging.getLogger("psycopg").addFilter(heard)
    return Quiet


def _opened(url: str, seconds: float) -> Connection:
    parameters = dict(parse_qsl(urlsplit(url).query))
    options = {name: value for name, value in _WATCHED.items() if name not in parameters}
    # Texts are ours to encode, whatever the database or the environment says.
    options |= {"client_encoding": _ENCODING, "connect_timeout": max(2, int(seconds))}
    connection: Connection = _quiet().connect(url, autocommit=True, **options)
    connection.url = url
    return connection


def _alive(url: str) -> bool:
    """Whether the server answers anybody. One that is only busy with a long statement does, if only to refuse."""
    try:
        _close(_opened(url, _SILENCE))
    except driver().errors.ConnectionTimeout:
        return False
    except driver().Error:
        return True
    return True


def _close(connection: Connection) -> None:
    with suppress(Exception):
        connection.close()


def _unreachable(error: Exception, location: Location) -> RecollectError:
    text = " ".join(str(error).split()).rstrip(".?! ")
    if isinstance(error, driver().ProgrammingError):  # what libpq makes nothing of, and told before it tried
        return InputError("store", f"the URL of {location.shown} is wrong: {text}")
    if "too many" in text or "connection slots" in text:  # which may name the role, but is not about its rights
        return UnavailableError(f"{location.shown} has no connection free: {text}; {_AGAIN}")
    if any(words in text for words in _REFUSALS):
        return AccessError(f"{location.shown} refuses this user: {text}. Check the user and the password")
    if "does not exist" in text:
        return UnavailableError(f"{location.shown}: {text}. Make the database with createdb, or correct the name")
    return UnavailableError(f"{location.shown} cannot be reached: {text}. Is the server running?")


_REFUSALS = ("authentication", "no password supplied", "pg_hba.conf", "role ", "permission denied")
"""Words of a server, or of libpq, that trying again does not change."""


def lost(error: BaseException) -> bool:
    """Whether it was the connection that failed, so that the server has rolled back what was not committed."""
    _heed_interrupt(error)
    state = getattr(error, "sqlstate", None)
    if state is None:
        psycopg = driver()
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state in ("57P01", "57P02", "57P03", "25P03", "57P05") or state.startswith("08")


def _heed_interrupt(error: BaseException) -> None:
    """Raise the interrupt that psycopg was putting things in order after when it came to this error.

    One that the caller has caught before is in the chain of errors, too, but was not raised first in psycopg.
    """
    before = error.__context__
    while before is not None:
        trace = before.__traceback__
        within = trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("psycopg")
        if within and not isinstance(before, Exception):
            raise before
        before = before.__context__


_AGAIN = "trying again is safe"
LIMIT = "RL001"
"""The SQLSTATE by which `write_head` says that a tenant has as much as it may have."""


def _limit_reached(error: Any, message: str) -> RecollectError:
    detail = str(error.diag.message_detail or "").split()
    if len(detail) != 4:
        return DiskFullError(f"{message}. Nothing was stored")
    limit, *numbers = detail
    return LimitError(limit, *map(int, numbers))


def translated(error: Any, location: Location) -> RecollectError:
    """What an error of psycopg means to the caller. It never repeats what was stored."""
    state: str = error.sqlstate or ""
    message = str(error.diag.message_primary or error).strip().split("\n")[0]
    where = location.shown
    if lost(error):
        return UnavailableError(f"{where}: the connection was lost ({message}); {_AGAIN}")
    if state in ("55P03", "40P01", "40001", "57014"):
        causes = {"55P03": "was locked by somebody else for too long", "57014": "took longer than the server allows"}
        return ConcurrencyError(f"{where} {causes.get(state, 'was changed by others at the same time')}; {_AGAIN}")
    if state == LIMIT:
        return _limit_reached(error, message)
    if state in ("53100", "53200", "54000") or "No space left" in message:
        return DiskFullError(f"{where} has no room: {message}. Nothing was written")
    if state.startswith("53"):
        return UnavailableError(f"{where} has no connection free: {message}; {_AGAIN}")
    if state == "25006":
        return ReadOnlyError(f"{where} takes no writes: {message}. It may be a replica")
    if state in ("42501",):
        return AccessError(f"{where} refuses this role: {message}. `recollect db roles` prints what it needs")
    if state in ("3F000", "42P01", "42883", "42703"):
        return SchemaError(f"{where} is not set up as this recollect needs it ({message}): run `recollect db upgrade`")
    return StoreError(f"{where}: {type(error).__name__}: {message}")
