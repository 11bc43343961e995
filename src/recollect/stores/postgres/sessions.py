"""Transactions: reads that are one round trip, and writes that hold the locks of their places.

Every transaction says whose it is by `SET LOCAL recollect.tenant`, which row-level security goes by, and every
statement says `tenant = …` itself besides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar

from recollect import forking
from recollect.errors import MovedError, RecollectError, StoreError, UnavailableError
from recollect.stores.audit import GENESIS
from recollect.stores.port import Place, in_order
from recollect.stores.postgres.connections import PATIENCE, Connection, Connections, Location, driver, lost, translated
from recollect.stores.postgres.placement import LOG, MOVES, FrozenError, Movement, What, encoded, lock_key, moved
from recollect.stores.postgres.replica import Replica
from recollect.stores.postgres.setup import ADMIN, Facts, ready

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
_PAUSE = 0.05
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""Said, because a server may be set to a stricter one. The locks of places keep order here, and nobody is refused."""
_BLINK = 0.005
"""Seconds between looks at a tenant that is being moved."""


class Statement(NamedTuple):
    sql: str
    """With `{s}` for the name of our schema, and `{v}` for that of pgvector."""
    values: Any = ()
    prepare: bool | None = None
    """False for one whose plan depends on the values; else it is prepared when it comes often."""


class Head(NamedTuple):
    """The counters of a place, as whoever holds its lock has them."""

    memories: int
    things: int
    entries: int
    sealed: str


class Runner(Protocol):
    """What runs statements: on one server, or on the one that a tenant is on."""

    @property
    def facts(self) -> Facts: ...
    def facts_of(self, tenant: str) -> Facts: ...
    @property
    def work(self) -> Work | None: ...
    def rows(self, tenant: str, sql: str, values: Any = (), binary: bool = False) -> Rows: ...
    def read(self, tenant: str, statements: Sequence[Statement], binary: bool = False) -> list[Rows]: ...
    def administer(self, sql: str, values: Sequence[Any] = ()) -> Rows: ...
    def writing(self, places: Sequence[Place], steps: int = 2, seconds: float = PATIENCE) -> Writing: ...
    def begin(self, places: Sequence[Place], seconds: float) -> Work: ...
    def end(self, work: Work, error: BaseException | None) -> None: ...
    def close(self) -> None: ...


class Sessions:
    """What runs statements for the threads of one process on one server."""

    def __init__(self, location: Location, replica: Replica | None = None) -> None:
        self.location = location
        self.connections = Connections(location)
        self.replica = replica
        self._forget_threads()
        self._facts: Facts | None = None
        self._looking = threading.Lock()
        forking.watch(self)

    def _forget_threads(self) -> None:
        self._thread = _Thread()

    def after_fork(self) -> None:
        self._looking = threading.Lock()
        if self._thread.work is not None:  # the parent's, and its to end
            _abandoned.append(self._thread.work)
        self._forget_threads()

    @property
    def facts(self) -> Facts:
        """Found out, and the schema made or brought up to date, when the server is first used."""
        if self._facts is None:
            with self._looking:
                if self._facts is None:
                    self._facts = self.patiently(lambda connection: ready(connection, self.location))
        return self._facts

    def facts_of(self, tenant: str) -> Facts:
        return self.facts

    @property
    def work(self) -> Work | None:
        """This thread's transaction."""
        return self._thread.work

    def sql(self, statement: str) -> str:
        statement = statement.replace("{s}", self.location.schema)
        return statement.replace("{v}", f'"{self.facts.extensions}"') if "{v}" in statement else statement

    def prefix(self, tenant: str) -> list[str]:
        """What a transaction begins with. The setting is literal: on Citus only that reaches the workers."""
        seen = self.facts
        begin = [_BEGIN]
        if seen.citus:
            begin.append("SET LOCAL citus.propagate_set_commands = 'local'")
        begin.append(whose(tenant))
        if seen.role is not None:
            begin.append(f"SET LOCAL ROLE {seen.role}")
        return begin

    # Reading

    def rows(self, tenant: str, sql: str, values: Any = (), binary: bool = False) -> Rows:
        return self.read(tenant, [Statement(sql, values)], binary)[0]

    def read(self, tenant: str, statements: Sequence[Statement], binary: bool = False) -> list[Rows]:
        """Joins this thread's transaction; else one of its own, begun again where the connection was lost."""
        if (work := self._thread.work) is not None:
            work.become(tenant)
            return [_rows(work.execute(sql, values, binary, prepare)) for sql, values, prepare in statements]
        answer = self.ask(tenant, statements, binary)
        if any(_nothing(*pair) for pair in zip(statements, answer, strict=True)):
            self._check_here(tenant)
        return answer

    def _check_here(self, tenant: str) -> None:
        """Nothing may be all that is left of a tenant that was moved."""
        (rows,) = self.ask(tenant, [Statement(MOVES, (tenant,))], primary=True)
        if rows and rows[0][0] in ("gone", "arriving"):
            raise moved(tenant, rows[0][1])

    def ask(
        self,
        tenant: str,
        statements: Sequence[Statement],
        binary: bool = False,
        *,
        steady: bool = False,
        primary: bool = False,
    ) -> list[Rows]:
        """In a transaction of its own. If it is steady, all statements see the same moment."""
        prefix = self.prefix(tenant)
        if self.replica is not None and not primary:
            answer = self.replica.read(tenant, prefix, statements, binary, self.sql)
            if answer is not None:
                return answer
        if steady:
            prefix[0] = "BEGIN ISOLATION LEVEL REPEATABLE READ"
        return self.patiently(lambda connection: self._read(connection, prefix, statements, binary))

    def _read(
        self, connection: Connection, prefix: Sequence[str], statements: Sequence[Statement], binary: bool
    ) -> list[Rows]:
        execute: Any = connection.execute
        with connection.pipeline():
            for begin in prefix:
                execute(begin, prepare=False)
            cursors = [
                execute(self.sql(sql), values or None, binary=binary, prepare=prepare)
                for sql, values, prepare in statements
            ]
            execute("COMMIT", prepare=False)
        return [_rows(cursor) for cursor in cursors]

    def patiently(self, run: Callable[[Connection], T]) -> T:
        """Run what may be run again: once more where the connection was lost before it answered."""
        until, pause = time.monotonic() + PATIENCE, _PAUSE
        while True:
            connection = self.connections.take()
            try:
                return run(connection)
            except driver().Error as error:
                if not lost(error) or time.monotonic() + pause > until:
                    raise translated(error, self.location) from error
            finally:
                self.connections.give_back(connection)
            time.sleep(pause)
            pause *= 2

    def administer(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """A question about all tenants, which only some roles may ask."""
        seen = self.facts
        begin = [_BEGIN, f"SET LOCAL ROLE {ADMIN}"] if ADMIN in seen.member_of else [_BEGIN]
        return self.patiently(lambda connection: self._read(connection, begin, [Statement(sql, values)], False))[0]

    # Writing

    def writing(self, places: Sequence[Place], steps: int = 2, seconds: float = PATIENCE) -> Writing:
        return Writing(self, places, steps, seconds)

    def begin(self, places: Sequence[Place], seconds: float) -> Work:
        """Waits, with no lock held, while the last of the tenant is being moved."""
        until = time.monotonic() + seconds
        while True:
            try:
                return self.start(places, seconds)
            except FrozenError:
                if time.monotonic() + _BLINK > until:
                    raise
                time.sleep(_BLINK)

    def start(self, places: Sequence[Place], seconds: float) -> Work:
        """FrozenError or MovedError, with nothing done, if the tenant cannot be written here."""
        self._thread.work = self._begun(places, seconds)
        return self._thread.work

    def _begun(self, places: Sequence[Place], seconds: float) -> Work:
        """With the locks of the places. Nothing was done before, so a lost connection is no reason to give up."""
        _ = self.facts  # which takes a connection: whoever held one already would wait for all who do the same
        until, pause = time.monotonic() + PATIENCE, _PAUSE
        while True:
            connection = self.connections.take()
            work = Work(self, connection)
            try:
                work.lock(places, seconds)
                return work
            except (FrozenError, MovedError):
                work.roll_back()
                self.connections.give_back(connection)
                raise
            except driver().Error as error:
                self.connections.give_back(connection)
                again = lost(error) or error.sqlstate in ("40P01", "40001")
                if not again or time.monotonic() + pause > until:
                    raise translated(error, self.location) from error
            except BaseException:
                self.connections.give_back(connection)
                raise
            time.sleep(pause)
            pause *= 2

    def end(self, work: Work, error: BaseException | None) -> None:
        self._thread.work = None
        try:
            if error is None:
                work.commit()
            else:
                work.roll_back()
        finally:
            self.connections.give_back(work.connection)

    def committed(self, work: Work) -> None:
        """Whether a transaction was committed whose answer was lost: an error if it was not, or nobody can tell."""
        until = time.monotonic() + PATIENCE
        try:
            while time.monotonic() < until:
                status = self.patiently(lambda connection: _status(connection, work.transaction))
                if status == "committed" and self._sealed(work):
                    return
                if status in ("aborted", "committed"):
                    raise UnavailableError(
                        f"{self.location.shown}: the connection was lost before the change was written; "
                        "trying again is safe"
                    )
                time.sleep(_PAUSE)  # the server has not noticed yet that nobody is there
        except UnavailableError:
            raise
        except RecollectError as error:
            raise self._unknown() from error
        raise self._unknown()

    def _sealed(self, work: Work) -> bool:
        """Whether the log of each place has the last entry of this transaction.

        A server that crashed may give the number of a transaction that it lost to another one.
        """
        for place, head in work.logged():
            asked = Statement(_SEAL, (place.tenant, workspace_of(place), head.entries))
            prefix = self.prefix(place.tenant)
            (seals,) = self.patiently(
                lambda connection, prefix=prefix, asked=asked: self._read(connection, prefix, [asked], False)
            )
            if seals != [(head.sealed,)]:
                return False
        return True

    def _unknown(self) -> StoreError:
        return UnavailableError(
            f"{self.location.shown}: the connection was lost while the change was written, and the server does not "
            "say whether it was; look before trying again"
        )

    def close(self) -> None:
        self.connections.close()
        if self.replica is not None:
            self.replica.close()


class Work:
    """One transaction that writes, of one thread."""

    def __init__(self, sessions: Sessions, connection: Connection) -> None:
        self.sessions = sessions
        self.connection = connection
        self.heads: dict[Place, Head] = {}
        self._before: dict[Place, Head] = {}
        self._savepoints: list[tuple[dict[Place, Head], str]] = []
        self._tenant = ""
        self._logged: dict[str, dict[tuple[str, What, str], None]] = {}
        """By tenant, for those that are being copied elsewhere: the keys of what was changed."""
        self.transaction = ""
        """Its number on the server."""

    def logged(self) -> list[tuple[Place, Head]]:
        """Where it has written to the log."""
        return [(place, head) for place, head in self.heads.items() if head.entries != self._before[place].entries]

    def execute(self, sql: str, values: Any = (), binary: bool = False, prepare: bool | None = None) -> Any:
        """Errors are ours already."""
        try:
            execute: Any = self.connection.execute
            return execute(self.sessions.sql(sql), values or None, binary=binary, prepare=prepare)
        except driver().Error as error:
            raise translated(error, self.sessions.location) from error

    def run(self, statements: Sequence[Statement]) -> list[Any]:
        """All in one round trip. Their cursors."""
        if len(statements) == 1:
            return [self.execute(statements[0].sql, statements[0].values)]
        try:
            execute: Any = self.connection.execute
            with self.connection.pipeline():
                return [execute(self.sessions.sql(sql), values or None) for sql, values, _ in statements]
        except driver().Error as error:
            raise translated(error, self.sessions.location) from error

    def become(self, tenant: str) -> None:
        if tenant != self._tenant:
            self.execute(whose(tenant))
            self._tenant = tenant

    def changed(self, place: Place, what: What, keys: Iterable[Sequence[Any]]) -> None:
        """Whoever writes says so: if the tenant is being copied to another server, that is copied once more."""
        if (log := self._logged.get(place.tenant)) is not None:
            log.update(dict.fromkeys((workspace_of(place), what, encoded(*key)) for key in keys))

    def lock(self, places: Sequence[Place], seconds: float) -> None:
        """Raises psycopg's errors. Places come in the order in which locks are taken."""
        tenants = list(dict.fromkeys(place.tenant for place in places))
        for number, tenant in enumerate(tenants):
            begin = self.sessions.prefix(tenant) if number == 0 else [whose(tenant)]
            begin.append(f"SET LOCAL lock_timeout = {max(1, int(seconds * 1000))}")
            begin += self._watched(tenant)
            wanted = [place for place in places if place.tenant == tenant]
            self._tenant = tenant
            while wanted:
                self._lock(begin, tenant, wanted)
                begin, wanted = [], [place for place in wanted if place not in self.heads]
                if wanted:
                    values = [value for place in wanted for value in (tenant, workspace_of(place))]
                    marks = ", ".join(["(%s, %s)"] * len(wanted))
                    sql = f"INSERT INTO {{s}}.places (tenant, workspace) VALUES {marks} ON CONFLICT DO NOTHING"
                    self.connection.execute(self.sessions.sql(sql), values)
                    for place in wanted:
                        self.changed(place, "head", [()])
        self._before = dict(self.heads)

    def _watched(self, tenant: str) -> list[str]:
        """The tenant's lock, and then, as it is under that, whether the tenant is being moved."""
        key = lock_key(self.sessions.location.schema, tenant)
        look = self.sessions.sql(MOVES).replace("%s", literal(tenant))
        return [f"SELECT pg_advisory_xact_lock_shared({key})", look]

    def _heed(self, tenant: str, movement: Movement) -> None:
        if movement.state == "copying":
            self._logged[tenant] = {}
        elif movement.state == "gone":
            raise moved(tenant, movement.server)
        else:
            raise FrozenError(tenant)

    def _lock(self, begin: Sequence[str], tenant: str, places: Sequence[Place]) -> None:
        names = ", ".join(literal(workspace_of(place)) for place in places)
        # As one text without parameters, so that all of it is one round trip.
        sql = self.sessions.sql(
            f"""SELECT workspace, memories, things, entries, sealed, pg_current_xact_id()::text FROM {{s}}.places
            WHERE tenant = {literal(tenant)} AND workspace IN ({names}) ORDER BY workspace FOR UPDATE"""
        )
        cursor = self.connection.execute("; ".join([*begin, sql]), prepare=False)
        told: Rows = []
        while cursor.nextset():
            if cursor.description and cursor.description[0].name == "state":
                told = cursor.fetchall()
        if told:
            self._heed(tenant, Movement(*told[0]))
        for workspace, memories, things, entries, sealed, transaction in cursor.fetchall():
            self.transaction = transaction
            self.heads[place_of(tenant, workspace)] = Head(memories, things, entries, sealed or GENESIS)

    def savepoint(self) -> None:
        self.execute(f"SAVEPOINT s{len(self._savepoints)}")
        self._savepoints.append((dict(self.heads), self._tenant))

    def release(self, error: BaseException | None) -> None:
        """Keep what was written since the last savepoint, or take it back."""
        heads, tenant = self._savepoints.pop()
        name = f"s{len(self._savepoints)}"
        if error is None:
            self.execute(f"RELEASE {name}")
            return
        self.heads, self._tenant = heads, tenant  # the setting is taken back, too
        try:
            self.connection.execute(f"ROLLBACK TO {name}; RELEASE {name}", prepare=False)
        except driver().Error:  # all of it is lost; the error that led here is the one to tell
            self.connection.close()

    def commit(self) -> None:
        """An error means that nothing was written, or says that this is not known."""
        psycopg = driver()
        sent = False
        try:
            execute: Any = self.connection.execute
            with self.connection.pipeline():
                for place, head in self.heads.items():
                    if head != self._before[place]:
                        self.changed(place, "head", [()])
                        if place.tenant != self._tenant:
                            execute(whose(place.tenant), prepare=False)
                            self._tenant = place.tenant
                        where = (place.tenant, workspace_of(place))
                        execute(self.sessions.sql(_HEAD), (*head, *where))
                for tenant, log in self._logged.items():
                    if log:
                        execute(whose(tenant), prepare=False)
                        self._tenant = tenant
                        execute(self.sessions.sql(LOG), (tenant, *map(list, zip(*log, strict=True))))
                sent = True
                done = execute("COMMIT", prepare=False)
                position = None if self.sessions.replica is None else execute(_POSITION)
            if done.statusmessage != "COMMIT":  # an error that somebody caught has ended the transaction before
                raise StoreError(f"{self.sessions.location.shown}: the change was taken back after an error in it")
            if position is not None and self.sessions.replica is not None:
                ((reached,),) = position.fetchall()
                self.sessions.replica.wrote([place.tenant for place in self.heads], reached)
        except psycopg.Error as error:
            if sent and lost(error) and self.transaction:
                self.sessions.committed(self)
                return
            self.roll_back()
            raise translated(error, self.sessions.location) from error

    def roll_back(self) -> None:
        if not self.connection.closed:
            try:
                self.connection.execute("ROLLBACK", prepare=False)
            except driver().Error:
                self.connection.close()


def _status(connection: Connection, transaction: str) -> str | None:
    try:
        row = connection.execute("SELECT pg_xact_status(%s::xid8)", (transaction,), prepare=False).fetchone()
    except driver().Error as error:
        if error.sqlstate == "22023":  # a number that the server has not come to: it crashed before any of it was kept
            return "aborted"
        raise
    return row and row[0]


_SEAL = "SELECT hash FROM {s}.audit WHERE tenant = %s AND workspace = %s AND seq = %s"
_POSITION = "SELECT pg_current_wal_insert_lsn()::text"
_HEAD = """UPDATE {s}.places SET memories = %s, things = %s, entries = %s, sealed = %s
    WHERE tenant = %s AND workspace = %s"""


class Writing:
    """The transaction of some places: opened if this thread has none, else joined.

    Inside an open one, several steps are taken back together if one fails; a single step leaves nothing by itself.
    """

    __slots__ = ("_opened", "_places", "_seconds", "_sessions", "_steps")

    def __init__(self, sessions: Runner, places: Sequence[Place], steps: int, seconds: float) -> None:
        self._sessions = sessions
        self._places = places if len(places) == 1 else in_order(places)
        self._steps = steps
        self._seconds = seconds

    def __enter__(self) -> Work:
        work = self._sessions.work
        self._opened = work is None
        if not self._places:
            return None  # pyright: ignore[reportReturnType] - nobody has a place to write to
        if work is None:
            return self._sessions.begin(self._places, self._seconds)
        for place in self._places:
            if place not in work.heads:
                raise StoreError(f"a transaction in {place} was begun inside one of other places; name all at once")
        if self._steps > 1:
            work.savepoint()
        work.become(self._places[0].tenant)
        return work

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        work = self._sessions.work
        if work is None:
            return
        if self._opened:
            self._sessions.end(work, error)
        elif self._steps > 1:
            work.release(error)


def _rows(cursor: Any) -> Rows:
    return cursor.fetchall() if cursor.description else []


def _nothing(statement: Statement, rows: Rows) -> bool:
    """Whether an answer could be that of a server that has nothing of the tenant's: no rows, or a count of none."""
    return (not rows and not statement.sql.startswith("SET ")) or (len(rows) == 1 and rows[0][0] == 0)


def workspace_of(place: Place) -> str:
    """As a column has it."""
    return "" if place.workspace is None else place.workspace


def place_of(tenant: str, workspace: str) -> Place:
    return Place(tenant, workspace or None)


def whose(tenant: str) -> str:
    return f"SET LOCAL recollect.tenant = {literal(tenant)}"


def literal(text: str) -> str:
    """A text inside a statement: nothing in it can end it, however the server reads backslashes."""
    if "\0" in text:
        raise StoreError("a name must not hold the character NUL")
    quoted = text.replace("'", "''")
    return " E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in quoted else f"'{quoted}'"


class _Thread(threading.local):
    def __init__(self) -> None:
        self.work: Work | None = None


_abandoned: list[object] = []
