"""One transaction that writes: it holds the locks of its places, and counts what it adds to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.stores.audit import GENESIS
from recollect.stores.port import Place
from recollect.stores.postgres.connections import Connection, driver, lost, translated
from recollect.stores.postgres.statements import DURABLE, FOR_PLACE, literal, place_of, rows_of, whose, workspace_of
from recollect.stores.postgres.tenants.placement import (
    LOG,
    MOVES,
    FrozenError,
    Movement,
    What,
    encoded,
    lock_key,
    moved,
)
from recollect.stores.tables.engine import Statement
from recollect.stores.transactions import Nesting
from recollect.values.errors import StoreError

if TYPE_CHECKING:
    from recollect.stores.postgres.server import Runner, Server

POSITION = "SELECT pg_current_wal_insert_lsn()::text"
_HEAD = FOR_PLACE.format("{s}.write_head(%s, %s, %s, %s, %s, %s, %s, %s)")


class Head(NamedTuple):
    """The counters of a place, as whoever holds its lock has them."""

    memories: int
    things: int
    entries: int
    sealed: str
    added: int = 0
    """Memories that this transaction has added, less those that it has taken out."""
    added_bytes: int = 0
    """The same of the bytes of their content."""


class OpenTransaction:
    """One transaction that writes, of one thread."""

    def __init__(self, server: Server, connection: Connection) -> None:
        self.server = server
        self.connection = connection
        self.heads: dict[Place, Head] = {}
        self._before: dict[Place, Head] = {}
        self._made: set[Place] = set()
        """Those whose row was made here: it has no counters yet."""
        self._savepoints: list[tuple[dict[Place, Head], str]] = []
        self._waiting: list[Statement] = []
        """To be sent along with the next."""
        self.shared: dict[str, int] = {}
        """By tenant, how many audit entries its shared place had when the lock was taken."""
        self._tenant = ""
        self._logged: dict[str, dict[tuple[str, What, str], None]] = {}
        """By tenant, for those that are being copied elsewhere: the keys of what was changed."""
        self._lazy = False
        """Whether the server would say that it is committed before that is on its disk."""
        self.number = ""
        """Its number on the server."""

    def logged(self) -> list[tuple[Place, Head]]:
        """Where it has written to the log."""
        return [(place, head) for place, head in self.heads.items() if head.entries != self._before[place].entries]

    def execute(self, sql: str, values: Any = (), binary: bool = False, prepare: bool | None = None) -> Any:
        """Errors are ours already."""
        if self._waiting:
            self.run(())
        try:
            execute: Any = self.connection.execute
            with self.server.statements.timed("write"):
                return execute(self.server.sql(sql), values or None, binary=binary, prepare=prepare)
        except driver().Error as error:
            raise translated(error, self.server.location) from error

    def run(self, statements: Iterable[Statement]) -> list[Any]:
        """All in one round trip, each sent as soon as it is made. Their cursors."""
        try:
            execute: Any = self.connection.execute
            with self.server.statements.timed("write") as sent, self.connection.pipeline():
                sent.statements = self._send_waiting()
                cursors = [execute(self.server.sql(sql), values or None) for sql, values, _ in statements]
                sent.statements += len(cursors)
                return cursors
        except driver().Error as error:
            raise translated(error, self.server.location) from error

    def later(self, statements: Iterable[Statement]) -> None:
        """Of which nothing is to be known: they cost no round trip of their own."""
        self._waiting += statements

    def _send_waiting(self) -> int:
        """How many they were."""
        execute: Any = self.connection.execute
        waiting, self._waiting = self._waiting, []
        for sql, values, _ in waiting:
            execute(self.server.sql(sql), values or None)
        return len(waiting)

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
            begin = self.server.prefix(tenant) if number == 0 else [whose(tenant)]
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
                    self.connection.execute(self.server.sql(sql), values)
                    self._made.update(wanted)
        self._before = dict(self.heads)

    def _watched(self, tenant: str) -> list[str]:
        """The tenant's lock, and then, as it is under that, whether the tenant is being moved."""
        key = lock_key(self.server.location.schema, tenant)
        look = self.server.sql(MOVES).replace("%s", literal(tenant))
        # The number is asked for here, where no table is: on Citus that is the coordinator's, which is the one to ask.
        facts = "current_setting('synchronous_commit'), pg_current_xact_id()::text"
        return [f"SELECT pg_advisory_xact_lock_shared({key}), {facts}", look]

    def _heed(self, tenant: str, movement: Movement) -> None:
        if movement.state == "copying":
            self._logged[tenant] = {}
        elif movement.state == "gone":
            raise moved(tenant, movement.server)
        else:
            raise FrozenError(tenant)

    def _lock(self, begin: Sequence[str], tenant: str, places: Sequence[Place]) -> None:
        names = ", ".join(literal(workspace_of(place)) for place in places)
        counters = ", ".join(f"coalesce({name}, 0)" for name in ("memories", "things", "entries"))
        heads = f"""SELECT workspace, {counters}, sealed FROM {{s}}.places
            WHERE tenant = {literal(tenant)} AND workspace IN ({names}) ORDER BY workspace FOR UPDATE"""
        shared = f"SELECT coalesce(entries, 0) FROM {{s}}.places WHERE tenant = {literal(tenant)} AND workspace = ''"
        with self.connection.pipeline():  # all of it is one round trip
            cursors = [self.connection.execute(self.server.sql(sql), prepare=False) for sql in (*begin, heads, shared)]
        *before, locked, entries_shared = map(rows_of, cursors)
        if begin:
            *_, ((_, commits, self.number),), moves = before
            self._lazy = commits == "off"
            if moves:
                self._heed(tenant, Movement(*moves[0]))
        self.shared[tenant] = entries_shared[0][0] if entries_shared else 0
        for workspace, memories, items, entries, sealed in locked:
            self.heads[place_of(tenant, workspace)] = Head(memories, items, entries, sealed or GENESIS)

    @property
    def depth(self) -> int:
        """How many savepoints there are."""
        return len(self._savepoints)

    def savepoint(self) -> None:
        self.execute(f"SAVEPOINT s{self.depth}")
        self._savepoints.append((dict(self.heads), self._tenant))

    def release(self, error: BaseException | None) -> None:
        """Keep what was written since the last savepoint, or take it back."""
        heads, tenant = self._savepoints[-1]
        name = f"s{self.depth - 1}"
        if error is None:
            # By itself: after a pipeline the server does not count for how long a transaction is idle, and whoever has
            # opened this one may take a while now.
            self.execute(f"RELEASE {name}")
            del self._savepoints[-1]
            return
        self._waiting = []
        self.heads, self._tenant = heads, tenant  # the setting is taken back, too
        try:
            for statement in (f"ROLLBACK TO {name}", f"RELEASE {name}"):
                self.connection.execute(statement, prepare=False)
        except driver().Error:  # all of it is lost; the error that led here is the one to tell
            self.connection.close()
        del self._savepoints[-1]

    def commit(self) -> None:
        """An error means that nothing was written, or says that this is not known."""
        psycopg = driver()
        sent = False
        try:
            execute: Any = self.connection.execute
            with self.server.statements.timed("write"), self.connection.pipeline():
                self._send_waiting()
                for place, head in self._changed_heads():
                    self.changed(place, "head", [()])
                    if place.tenant != self._tenant:
                        execute(whose(place.tenant), prepare=False)
                        self._tenant = place.tenant
                    where = (place.tenant, workspace_of(place))
                    execute(self.server.sql(_HEAD), (*where, *head, *where))
                for tenant, log in self._logged.items():
                    if log:
                        execute(whose(tenant), prepare=False)
                        self._tenant = tenant
                        execute(self.server.sql(LOG), (*map(list, zip(*log, strict=True)), tenant))
                if self._lazy:
                    execute(DURABLE, prepare=False)
                sent = True
                done = execute("COMMIT", prepare=False)
                position = None if self.server.replica is None else execute(POSITION)
            if done.statusmessage != "COMMIT":  # an error that somebody caught has ended the transaction before
                raise StoreError(f"{self.server.location.shown}: the change was taken back after an error in it")
            if position is not None and self.server.replica is not None:
                ((reached,),) = position.fetchall()
                self.server.replica.wrote([place.tenant for place in self.heads], reached)
        except psycopg.Error as error:
            if sent and lost(error) and self.number:
                self.server.committed(self)
                return
            self.roll_back()
            raise translated(error, self.server.location) from error

    def _changed_heads(self) -> list[tuple[Place, Head]]:
        """Tenant by tenant in the order of the locks. Of one tenant first the places that shrink, so that what moves
        from one place to another does not pass the tenant's limits in between."""
        changed = (pair for pair in self.heads.items() if pair[1] != self._before[pair[0]] or pair[0] in self._made)
        return sorted(changed, key=lambda pair: (pair[0].tenant, pair[1].added, pair[1].added_bytes))

    def roll_back(self) -> None:
        if not self.connection.closed:
            try:
                self.connection.execute("ROLLBACK", prepare=False)
            except driver().Error:
                self.connection.close()


class ServerTransaction(Nesting[OpenTransaction]):
    """The transaction of some places on one server: all of them have one connection."""

    __slots__ = ("_depth", "_runner", "_seconds")

    def __init__(self, server: Runner, places: Sequence[Place], steps: int, seconds: float) -> None:
        super().__init__(places, steps)
        self._runner = server
        self._seconds = seconds
        self._depth = 0

    @property
    def opened(self) -> bool | None:
        """Whether this is the one that has opened it."""
        return self._opened

    def _inside(self) -> Mapping[Place, Head]:
        transaction = self._runner.transaction
        self._depth = 0 if transaction is None else transaction.depth
        return {} if transaction is None else transaction.heads

    def _begin(self) -> None:
        self._runner.begin(self._places, self._seconds)

    def _handle(self) -> OpenTransaction:
        transaction = self._work
        transaction.become(self._places[0].tenant)
        return transaction

    @property
    def _work(self) -> OpenTransaction:
        transaction = self._runner.transaction
        assert transaction is not None, "not in a transaction"
        return transaction

    def _savepoint(self) -> None:
        self._work.savepoint()

    def _release(self, error: BaseException | None) -> None:
        self._work.release(error)

    def _end(self, error: BaseException | None) -> None:
        if (transaction := self._runner.transaction) is not None:
            self._runner.end(transaction, error)

    def _abandon(self) -> None:
        self._runner.abandon()

    def _take_back(self) -> None:
        transaction = self._runner.transaction
        while transaction is not None and transaction.depth > self._depth:
            transaction.release(KeyboardInterrupt())
