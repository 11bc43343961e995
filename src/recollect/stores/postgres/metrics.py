"""What a PostgreSQL store measures: its connections, its statements, its replica, and what the server says of tenants.

Counters are of this process. Gauges that need SQL are read over a connection of their own, so that they are there when
the pool is exhausted, and at most every 15 s. A server that does not answer within 2 s is `recollect_store_up 0`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from recollect.runtime import forking
from recollect.stores.metrics import Durations, Labels, Metric
from recollect.stores.postgres.admin.nearest import ABOVE, SHRUNK, index_name
from recollect.stores.postgres.admin.setup import ADMIN, SetupFacts, facts
from recollect.stores.postgres.connections import Connection, Connections, Location, driver, translated
from recollect.stores.postgres.replica import position_number
from recollect.stores.postgres.statements import place_of
from recollect.values import errors
from recollect.values.errors import RecollectError

if TYPE_CHECKING:
    from recollect.stores.postgres.server import Server

Operation = Literal["read", "write", "search"]
OPERATIONS: tuple[Operation, ...] = ("read", "write", "search")
_FRESH = 15.0
"""Seconds for which what the server said is not asked again."""
_ANSWER = 2.0
"""Seconds in which it must answer."""
_SIZES = (1_000, 10_000, 100_000)
"""Upper bounds of the size classes of tenants, in memories."""
_CLASSES = (*(f"<={size}" for size in _SIZES), f">{_SIZES[-1]}")
_TENANTS = """SELECT {counts} FROM (SELECT sum(coalesce(live_memories, memories)) AS memories FROM {{s}}.places
    WHERE memories > 0 OR things > 0 OR entries > 0 GROUP BY tenant) tenants""".format(
    counts=", ".join(
        f"count(*) FILTER (WHERE memories > {above} AND memories <= {size})"
        for above, size in zip((-1, *_SIZES), (*_SIZES, 2**62), strict=True)
    )
)
_UNINDEXED = "SELECT count(*) FROM {s}.places WHERE nearest IS NULL AND memories >= %s"
_INDEXED = "SELECT tenant, workspace, nearest, memories FROM {s}.places WHERE nearest IS NOT NULL"
_VALID = """SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_index i ON i.indexrelid = c.oid
    WHERE n.nspname = %s AND c.relname = ANY(%s) AND i.indisvalid"""
# A replica has no position of its own to write at.
_POSITION = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_lsn()::text END"
_REPLAYED = """SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn()::text,
    extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8"""


class _ThreadOperation(threading.local):
    def __init__(self) -> None:
        self.operation: Operation | None = None


_thread = _ThreadOperation()


@contextmanager
def counted_as(operation: Operation) -> Generator[None]:
    """Count what this thread sends meanwhile as this operation, unless it is part of another one."""
    before = _thread.operation
    _thread.operation = before or operation
    try:
        yield
    finally:
        _thread.operation = before


class RoundTrip:
    """What is sent at once."""

    __slots__ = ("statements",)

    def __init__(self, statements: int) -> None:
        self.statements = statements


class StatementMetrics:
    """Counts and times the statements of one process on one server, by operation."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._statements: Counter[Operation] = Counter()
        self._errors: Counter[tuple[Operation, str]] = Counter()
        self._durations = {operation: Durations() for operation in OPERATIONS}

    @contextmanager
    def timed(self, operation: Operation, statements: int = 1) -> Generator[RoundTrip]:
        """Around one round trip. Errors are counted by the class that callers know them by."""
        counted_as = _thread.operation or operation
        sent = RoundTrip(statements)
        start = time.perf_counter()
        try:
            yield sent
        except (RecollectError, driver().Error) as error:
            with self._lock:
                self._errors[counted_as, self._kind(error)] += 1
            raise
        finally:
            self._durations[counted_as].add(time.perf_counter() - start)
            with self._lock:
                self._statements[counted_as] += sent.statements

    def _kind(self, error: Exception) -> str:
        if not isinstance(error, RecollectError):
            error = translated(error, self._location)
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__)

    def counters(self, labels: Labels) -> list[Metric]:
        with self._lock:
            statements, failed = dict(self._statements), dict(self._errors)
        counted: list[Metric] = []
        for operation in OPERATIONS:
            labelled = (*labels, ("operation", operation))
            counted += [
                Metric(
                    "recollect_store_statements_total",
                    "Statements that were sent to the server.",
                    statements.get(operation, 0),
                    labelled,
                ),
                Metric(
                    "recollect_store_round_trip_seconds",
                    "Time until the server had answered one statement, or several that were sent together.",
                    self._durations[operation].histogram(),
                    labelled,
                ),
            ]
        help = "Round trips that failed, by the error; some of them are tried again."
        return counted + [
            Metric("recollect_store_errors_total", help, n, (*labels, ("kind", kind), ("operation", operation)))
            for (operation, kind), n in failed.items()
        ]


class ServerGauges:
    """What one server says of itself and of its tenants."""

    def __init__(self, name: str, location: Location, replica: Location | None = None) -> None:
        self._labels: Labels = (("server", name),)
        self._location, self._replica = location, replica
        self.problem = ""
        """Why the server could not be asked the last time."""
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._values: list[Metric] = []
        self._fresh_until = 0.0

    def values(self) -> list[Metric]:
        """Never raises. Of threads that ask at the same time one reads, and the others wait for its answer."""
        with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._values = self._read()
                self._fresh_until = time.monotonic() + _FRESH
            return self._values

    def _read(self) -> list[Metric]:
        try:
            with _connected(self._location) as connection:
                seen = facts(connection, self._location.schema)
                ((position,),) = connection.execute(_POSITION).fetchall()
                rows = self._rows(connection, seen)
        except (driver().Error, RecollectError) as error:
            self.problem = str(error)
            return [self._gauge("recollect_store_up", _UP, 0)]
        self.problem = ""
        lag = [] if self._replica is None else self._lag(self._replica, position)
        return [self._gauge("recollect_store_up", _UP, 1), *rows, *lag]

    def _rows(self, connection: Connection, seen: SetupFacts) -> list[Metric]:
        """What only a role that may see all tenants can count: nothing for others, or where it takes too long."""
        if not seen.begun or not (seen.unbound or ADMIN in seen.member_of):
            return []
        try:
            with connection.transaction():
                for begin in (*seen.begin, f"SET LOCAL statement_timeout = {int(_ANSWER * 1000)}"):
                    connection.execute(begin)
                if ADMIN in seen.member_of:
                    connection.execute(f"SET LOCAL ROLE {ADMIN}")
                return self._tenants(connection) + (self._indexes(connection) if seen.vectors else [])
        except driver().Error as error:
            if error.sqlstate not in ("57014", "42501", "42P01"):
                raise
            return []

    def _tenants(self, connection: Connection) -> list[Metric]:
        (counts,) = connection.execute(self._sql(_TENANTS)).fetchall()
        help = "Tenants by how many memories they have."
        return [
            self._gauge("recollect_store_tenants", help, count, ("memories", size))
            for size, count in zip(_CLASSES, counts, strict=True)
        ]

    def _indexes(self, connection: Connection) -> list[Metric]:
        """Stale is an index that the server does not have, or has not finished, or of a workspace that has shrunk."""
        ((missing,),) = connection.execute(self._sql(_UNINDEXED), (ABOVE,)).fetchall()
        indexed = connection.execute(self._sql(_INDEXED)).fetchall()
        names = [index_name(place_of(tenant, workspace), model) for tenant, workspace, model, _ in indexed]
        valid = {name for (name,) in connection.execute(_VALID, (self._location.schema, names)).fetchall()}
        ready = sum(name in valid and row[3] >= SHRUNK for name, row in zip(names, indexed, strict=True))
        states = {"missing": missing, "ready": ready, "stale": len(indexed) - ready}
        help = "Workspaces by the state of the index of their vectors; missing counts those large enough to need one."
        return [
            self._gauge("recollect_store_vector_indexes", help, count, ("state", state))
            for state, count in states.items()
        ]

    def _lag(self, replica: Location, position: str | None) -> list[Metric]:
        up = "Whether the replica answers and follows a primary."
        follows, replayed, seconds = False, "0/0", 0.0
        try:
            with _connected(replica) as connection:
                ((follows, replayed, seconds),) = connection.execute(_REPLAYED).fetchall()
        except (driver().Error, RecollectError):
            pass  # it is said below
        if not follows:
            return [self._gauge("recollect_store_replica_up", up, 0)]
        lag = [self._gauge("recollect_store_replica_up", up, 1)]
        if position is not None:
            behind = max(0, position_number(position) - position_number(replayed))
            help = "Bytes of the primary's log that the replica has not replayed."
            lag.append(self._gauge("recollect_store_replica_lag_bytes", help, behind))
            # A replica that has everything is not late, however long nobody has written.
            late = seconds if behind else 0.0
            if late is not None:  # one that has started since the last write does not know
                help = "Age of the last transaction that the replica replayed; 0 where it has all."
                lag.append(self._gauge("recollect_store_replica_lag_seconds", help, late))
        return lag

    def _sql(self, text: str) -> str:
        return text.replace("{s}", self._location.schema)

    def _gauge(self, name: str, help: str, value: float, *labels: tuple[str, str]) -> Metric:
        return Metric(name, help, value, (*labels, *self._labels))


_UP = "Whether the server answers."


@contextmanager
def _connected(location: Location) -> Generator[Connection]:
    with closing(Connections(location, most=1, answer=_ANSWER)) as connections, connections.lent(_ANSWER) as connection:
        yield connection


class _Measured(NamedTuple):
    server: Server
    gauges: ServerGauges
    labels: Labels


class StoreMetrics:
    """The numbers of a store on one server or several."""

    def __init__(self, servers: Mapping[str, Server]) -> None:
        self._servers = [
            _Measured(server, ServerGauges(name, server.location, _replica_of(server)), (("server", name),))
            for name, server in servers.items()
        ]

    def gauges(self) -> list[Metric]:
        return [
            metric
            for server, gauges, labels in self._servers
            for metric in (*gauges.values(), *_pool_gauges(server.connections, labels))
        ]

    def counters(self) -> list[Metric]:
        counted: list[Metric] = []
        for server, _, labels in self._servers:
            counted += server.statements.counters(labels)
            help = "Time that callers waited until they had a connection."
            waited = server.connections.waits.histogram()
            counted.append(Metric("recollect_store_connection_wait_seconds", help, waited, labels))
            counted += _replica_counters(server, labels)
        return counted


def _replica_of(server: Server) -> Location | None:
    return None if server.replica is None else server.replica.connections.location


def _pool_gauges(connections: Connections, labels: Labels) -> list[Metric]:
    pool = connections.pool()
    numbers: Sequence[tuple[str, str, int]] = (
        ("open", "Connections of this process.", pool.open),
        ("idle", "Connections of this process that nobody uses.", pool.idle),
        ("waiting", "Callers that wait for a connection.", pool.waiting),
        ("limit", "Connections that this process opens at most.", pool.limit),
    )
    return [Metric(f"recollect_store_connections_{name}", help, n, labels) for name, help, n in numbers]


def _replica_counters(server: Server, labels: Labels) -> list[Metric]:
    if (replica := server.replica) is None:
        return []
    help = "Reads that the primary answered in the place of the replica: it was away, or had not come so far."
    fallbacks: dict[Any, int] = {"away": 0, "behind": 0, **replica.fallbacks}
    return [
        Metric("recollect_store_replica_answered_total", "Reads that the replica answered.", replica.answered, labels),
        *(
            Metric("recollect_store_replica_fallbacks_total", help, n, (("reason", reason), *labels))
            for reason, n in fallbacks.items()
        ),
    ]
