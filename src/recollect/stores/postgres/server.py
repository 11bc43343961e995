"""Transactions: reads that are one round trip, and writes that hold the locks of their places.

Every transaction says whose it is by `SET LOCAL recollect.tenant`, which row-level security goes by, and every
statement says `tenant = …` itself besides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from recollect.runtime import forking
from recollect.stores.port import Place
from recollect.stores.postgres.admin.setup import ADMIN, SetupFacts, ready
from recollect.stores.postgres.connections import PATIENCE, Connection, Connections, Location, driver, lost, translated
from recollect.stores.postgres.metrics import StatementMetrics, counted_as
from recollect.stores.postgres.replica import Replica
from recollect.stores.postgres.statements import rows_of, whose, workspace_of
from recollect.stores.postgres.tenants.placement import AWAY, HOME, MOVES, FrozenError, moved
from recollect.stores.postgres.transaction import OpenTransaction, ServerTransaction
from recollect.stores.scope import end_left
from recollect.stores.tables.engine import Rows, Statement
from recollect.values.errors import AccessError, InputError, MovedError, RecollectError, StoreError, UnavailableError

T = TypeVar("T")
_PAUSE = 0.05
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""Said, because a server may be set to a stricter one. The locks of places keep order here, and nobody is refused."""
_BLINK = 0.005
"""Seconds between looks at a tenant that is being moved."""


class Runner(Protocol):
    """What runs statements: on one server, or on the one that a tenant is on."""

    @property
    def facts(self) -> SetupFacts: ...
    def facts_of(self, tenant: str) -> SetupFacts: ...
    @property
    def hints(self) -> PlaceHints: ...
    @property
    def transaction(self) -> OpenTransaction | None: ...
    def rows(self, tenant: str, sql: str, values: Any = (), binary: bool = False) -> Rows: ...
    def read(self, tenant: str, statements: Sequence[Statement], binary: bool = False) -> list[Rows]: ...
    def administer(self, sql: str, values: Sequence[Any] = ()) -> Rows: ...
    def away(self) -> dict[str, str]: ...
    def writing(self, places: Sequence[Place], steps: int = 2, seconds: float = PATIENCE) -> ServerTransaction: ...
    def begin(self, places: Sequence[Place], seconds: float) -> OpenTransaction: ...
    def end(self, transaction: OpenTransaction, error: BaseException | None) -> None: ...
    def abandon(self) -> None: ...
    def close(self) -> None: ...


class PlaceHints:
    """What places were like when they were asked last: only which way is tried first depends on it."""

    _MOST = 10_000

    def __init__(self) -> None:
        self.empty: set[Place] = set()
        self.large: set[tuple[Place, str]] = set()
        """With the way in which they were asked."""

    def note(self, place: Place, way: str, *, empty: bool, large: bool) -> None:
        _set(self.empty, place, empty and len(self.empty) < self._MOST)
        _set(self.large, (place, way), large and len(self.large) < self._MOST)


def _set(values: set[T], value: T, present: bool) -> None:
    (values.add if present else values.discard)(value)


class Server:
    """What runs statements for the threads of one process on one server."""

    def __init__(self, location: Location, replica: Replica | None = None) -> None:
        self.location = location
        self.connections = Connections(location)
        self.replica = replica
        self.statements = StatementMetrics(location)
        self._forget_threads()
        self._facts: SetupFacts | None = None
        self.hints = PlaceHints()
        self._looking = threading.Lock()
        forking.watch(self)

    def _forget_threads(self) -> None:
        self._thread = _CurrentTransaction()

    def after_fork(self) -> None:
        self._looking = threading.Lock()
        if self._thread.transaction is not None:  # the parent's, and its to end
            _abandoned.append(self._thread.transaction)
        self._forget_threads()

    @property
    def facts(self) -> SetupFacts:
        """Found out, and the schema made or brought up to date, when the server is first used."""
        if self._facts is None:
            with self._looking:
                if self._facts is None:
                    facts = self.patiently(lambda connection: ready(connection, self.location))
                    if facts.citus and self.replica is not None:
                        raise InputError(
                            "replica_url", "is not for Citus: a replica of the coordinator has no rows of its own"
                        )
                    self._facts = facts
        return self._facts

    def facts_of(self, tenant: str) -> SetupFacts:
        return self.facts

    @property
    def transaction(self) -> OpenTransaction | None:
        """This thread's transaction."""
        end_left()
        return self._thread.transaction

    def sql(self, statement: str) -> str:
        statement = statement.replace("{s}", self.location.schema)
        return statement.replace("{v}", f'"{self.facts.extensions}"') if "{v}" in statement else statement

    def prefix(self, tenant: str) -> list[str]:
        """What a transaction begins with. The setting is literal: on Citus only that reaches the workers."""
        seen = self.facts
        begin = [_BEGIN, *seen.begin, whose(tenant)]
        if seen.role is not None:
            begin.append(f"SET LOCAL ROLE {seen.role}")
        return begin

    # Reading

    def rows(self, tenant: str, sql: str, values: Any = (), binary: bool = False) -> Rows:
        return self.read(tenant, [Statement(sql, values)], binary)[0]

    def read(self, tenant: str, statements: Sequence[Statement], binary: bool = False) -> list[Rows]:
        """Joins this thread's transaction; else one of its own, begun again where the connection was lost."""
        if (transaction := self.transaction) is not None:
            with counted_as("read"):
                transaction.become(tenant)
                return [
                    rows_of(transaction.execute(sql, values, binary, prepare)) for sql, values, prepare in statements
                ]
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
        if steady:
            prefix[0] = "BEGIN ISOLATION LEVEL REPEATABLE READ"
        if self.replica is not None and not primary:
            with self.statements.timed("read", len(statements)):
                answer = self.replica.read(tenant, prefix, statements, binary, self.sql)
            if answer is not None:
                return answer
        return self.patiently(lambda connection: self._read(connection, prefix, statements, binary))

    def _read(
        self, connection: Connection, prefix: Sequence[str], statements: Sequence[Statement], binary: bool
    ) -> list[Rows]:
        execute: Any = connection.execute
        with self.statements.timed("read", len(statements)), connection.pipeline():
            for begin in prefix:
                execute(begin, prepare=False)
            cursors = [
                execute(self.sql(sql), values or None, binary=binary, prepare=prepare)
                for sql, values, prepare in statements
            ]
            execute("COMMIT", prepare=False)
        return [rows_of(cursor) for cursor in cursors]

    def patiently(self, run: Callable[[Connection], T]) -> T:
        """Run what may be run again: once more where the connection was lost before it answered."""
        until, pause = time.monotonic() + PATIENCE, _PAUSE
        while True:
            try:
                with self.connections.lent(until - time.monotonic()) as connection:
                    return run(connection)
            except driver().Error as error:
                # A reader may be ended, too, where others change tables on several workers in another order.
                again = lost(error) or error.sqlstate == "40P01"
                if not again or time.monotonic() + pause > until:
                    raise translated(error, self.location) from error
            time.sleep(pause)
            pause *= 2

    def administer(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """A question about all tenants, which only some roles may ask."""
        seen = self.facts
        if ADMIN not in seen.member_of and not seen.unbound:
            raise AccessError(
                f"the role {seen.user} may not see which tenants there are: name one with --tenant, or connect as a "
                f"member of {ADMIN}"
            )
        begin = [_BEGIN, *seen.begin]
        if ADMIN in seen.member_of:
            begin.append(f"SET LOCAL ROLE {ADMIN}")
        return self.patiently(lambda connection: self._read(connection, begin, [Statement(sql, values)], False))[0]

    def away(self) -> dict[str, str]:
        """The tenants that were moved to other servers, and which."""
        return dict(self.administer(AWAY, (HOME,)))

    # Writing

    def writing(self, places: Sequence[Place], steps: int = 2, seconds: float = PATIENCE) -> ServerTransaction:
        return ServerTransaction(self, places, steps, seconds)

    def begin(self, places: Sequence[Place], seconds: float) -> OpenTransaction:
        """Waits, with no lock held, while the last of the tenant is being moved."""
        until = time.monotonic() + seconds
        while True:
            try:
                return self.start(places, seconds)
            except FrozenError:
                if time.monotonic() + _BLINK > until:
                    raise
                time.sleep(_BLINK)

    def start(self, places: Sequence[Place], seconds: float) -> OpenTransaction:
        """With the locks of the places. FrozenError or MovedError, with nothing done, if they cannot be written here.

        Nothing was done before, so a lost connection is no reason to give up.
        """
        _ = self.facts  # which takes a connection: whoever held one already would wait for all who do the same
        until, pause = time.monotonic() + PATIENCE, _PAUSE
        while True:
            transaction = self._thread.transaction = OpenTransaction(
                self, self.connections.take(until - time.monotonic())
            )
            try:
                with self.statements.timed("write"):
                    transaction.lock(places, seconds)
                return transaction
            except (FrozenError, MovedError):
                transaction.roll_back()
                self.abandon()
                raise
            except driver().Error as error:
                self.abandon()
                again = lost(error) or error.sqlstate in ("40P01", "40001")
                if not again or time.monotonic() + pause > until:
                    raise translated(error, self.location) from error
            time.sleep(pause)
            pause *= 2

    def end(self, transaction: OpenTransaction, error: BaseException | None) -> None:
        try:
            if error is None:
                transaction.commit()
            else:
                transaction.roll_back()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of this thread's transaction, which is taken back if it is not over."""
        if (transaction := self._thread.transaction) is not None:
            self.connections.give_back(transaction.connection)
            self._thread.transaction = None

    def committed(self, transaction: OpenTransaction) -> None:
        """Whether a transaction was committed whose answer was lost: an error if it was not, or nobody can tell."""
        until = time.monotonic() + PATIENCE
        try:
            while time.monotonic() < until:
                status = self.patiently(lambda connection: _status(connection, transaction.number))
                if status == "committed" and self._sealed(transaction):
                    return
                # On Citus the worker commits first: what is in the log was written, even if the coordinator crashed.
                if status == "aborted" and self.facts.citus and transaction.logged() and self._sealed(transaction):
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

    def _sealed(self, transaction: OpenTransaction) -> bool:
        """Whether the log of each place has the last entry of this transaction.

        A server that crashed may give the number of a transaction that it lost to another one.
        """
        for place, head in transaction.logged():
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


def _status(connection: Connection, transaction: str) -> str | None:
    try:
        row = connection.execute("SELECT pg_xact_status(%s::xid8)", (transaction,), prepare=False).fetchone()
    except driver().Error as error:
        if error.sqlstate == "22023":  # a number that the server has not come to: it crashed before any of it was kept
            return "aborted"
        raise
    return row and row[0]


_SEAL = "SELECT hash FROM {s}.audit WHERE tenant = %s AND workspace = %s AND seq = %s"


def _nothing(statement: Statement, rows: Rows) -> bool:
    """Whether an answer could be that of a server that has nothing of the tenant's: no rows, or a count of none."""
    return (not rows and not statement.sql.startswith("SET ")) or (len(rows) == 1 and rows[0][0] == 0)


class _CurrentTransaction(threading.local):
    def __init__(self) -> None:
        self.transaction: OpenTransaction | None = None


_abandoned: list[object] = []
