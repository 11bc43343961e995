"""PostgreSQL: the same port for thousands of tenants, kept apart by row-level security."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.runtime import forking, imports
from recollect.stores.port import Damage, Place, TenantLimits
from recollect.stores.postgres.connections import PATIENCE, Location
from recollect.stores.postgres.memories import MemoryRows, tables
from recollect.stores.postgres.metrics import StoreMetrics, counted_as
from recollect.stores.postgres.replica import Replica
from recollect.stores.postgres.server import Runner, Server
from recollect.stores.postgres.statements import FOR_PLACE, place_of, workspace_of
from recollect.stores.postgres.tenants.placement import HOME
from recollect.stores.postgres.tenants.servers import LIMITS, Servers
from recollect.stores.postgres.transaction import OpenTransaction, ServerTransaction
from recollect.stores.scope import Scope
from recollect.stores.tables.audit import AuditTable
from recollect.stores.tables.memories import MemoryTable
from recollect.stores.tables.shelves import ShelfTable
from recollect.stores.touches import Touched
from recollect.stores.write_timer import timer
from recollect.values.errors import InputError, StoreError
from recollect.values.record import Record

if TYPE_CHECKING:
    from recollect.stores.metrics import Metric
    from recollect.stores.shortlist import Ask, Shortlist

_SOON = 0.25
_IDENTITY = """SELECT extract(epoch FROM pg_postmaster_start_time())::text, oid::text FROM pg_database
    WHERE datname = current_database()"""
_WRITTEN = "SELECT entries FROM {s}.places WHERE tenant = %s AND workspace = %s"
_USED = "memories > 0 OR things > 0 OR entries > 0"


class Postgres(MemoryTable, AuditTable, ShelfTable):
    """One server. Any number of processes and threads may share it; nothing of it is kept in memory."""

    def __init__(self, location: str, replica_url: str | None = None, servers: Mapping[str, str] | None = None) -> None:
        replica = None if replica_url is None else Replica(Location.of(replica_url))
        self._home = Server(Location.of(f"postgresql:{location}" if location.startswith("//") else location), replica)
        others = _others(servers or {})
        self._runner: Runner = self._home if servers is None else Servers(self._home, others)
        self._metrics = StoreMetrics({HOME: self._home, **others})
        self._memories = MemoryRows(self._runner)
        self.tables = self._memories.tables
        forking.watch(self)

    def after_fork(self) -> None:
        self._memories.after_fork()

    @property
    def server(self) -> Server:
        """What runs statements on the server."""
        return self._home

    # Memories

    def transaction(self, *places: Place) -> Counting:
        return self._writing(*places)

    def _writing(self, *places: Place, steps: int = 2, seconds: float = PATIENCE) -> Counting:
        return Counting(self._memories, self._runner.writing(places, steps, seconds), places)

    def put(self, place: Place, records: Sequence[Record]) -> Sequence[Record]:
        with self._writing(place, steps=1) as transaction:
            self._memories.put(transaction, place, records)
        return records

    def update(self, place: Place, records: Sequence[Record]) -> None:
        if records:
            with self._writing(place) as transaction:
                self._memories.update(transaction, place, records)

    def delete(self, place: Place, ids: Sequence[str], reason: str = "") -> None:
        if ids:
            with self._writing(place) as transaction:
                self._memories.delete(transaction, place, ids)

    def touch(self, place: Place, ids: Sequence[str], at: datetime) -> None:
        with suppress(StoreError):
            self._memories.touch(place, ids, at)
            timer.schedule(self)

    def settle(self) -> bool:
        """Write the counted retrievals of all places. False if some could not be written."""
        return self._memories.settle_all()

    def search(self, ask: Ask) -> list[Shortlist]:
        imports.load("recollect.stores.postgres.search")
        from recollect.stores.postgres.search import search

        with counted_as("search"):
            return search(self._runner, ask)

    def embed(self, place: Place, model: str, vectors: Mapping[str, bytes]) -> None:
        if vectors and place in self.places(place.tenant):
            with self._writing(place, seconds=_SOON) as transaction:
                self._memories.embed(transaction, place, model, vectors)

    def places(self, tenant: str) -> list[Place]:
        sql = f"SELECT workspace FROM {{s}}.places WHERE tenant = %s AND ({_USED}) ORDER BY workspace = '', workspace"
        return [place_of(tenant, workspace) for (workspace,) in self._runner.rows(tenant, sql, (tenant,))]

    def drop(self, place: Place) -> None:
        if place.workspace is None or place not in self.places(place.tenant):
            return
        where = place.tenant, workspace_of(place)
        with self._writing(place) as transaction:
            transaction.changed(place, "drop", [()])
            for table in (*tables(transaction), "undo_items", "things"):
                transaction.execute(f"DELETE FROM {{s}}.{table} WHERE tenant = %s AND workspace = %s", where)
            transaction.execute(FOR_PLACE.format("{s}.drop_place(%s, %s)"), (*where, *where))

    def tenants(self) -> list[str]:
        sql = f"SELECT DISTINCT tenant FROM {{s}}.places WHERE {_USED} ORDER BY tenant"
        return sorted({tenant for (tenant,) in self._runner.administer(sql)})

    def identity(self) -> str:
        """A server has no other name that is its own alone: not even one that was copied started at the same time."""
        started, database = self._home.patiently(lambda connection: connection.execute(_IDENTITY).fetchone())
        return f"postgresql {started} {database} {self._home.location.schema}"

    def away(self) -> dict[str, str]:
        return self._runner.away()

    def remarks(self) -> list[str]:
        from recollect.stores.postgres.admin.status import remarks

        return remarks(self._runner.facts)

    def problems(self) -> list[str]:
        from recollect.stores.postgres.admin.status import status

        checks = status(self._home.location)
        return [f"{check.name}: {check.told}" for check in checks if check.level == "problem"]

    def limits(self, tenant: str) -> TenantLimits:
        rows = self._runner.rows(tenant, LIMITS, (tenant,))
        return TenantLimits(*rows[0]) if rows else TenantLimits()

    def gauges(self) -> list[Metric]:
        return self._metrics.gauges()

    def counters(self) -> list[Metric]:
        return self._metrics.counters()

    def damage(self, place: Place) -> list[Damage]:
        return self._memories.damage(place)

    def written(self, place: Place) -> int:
        transaction = self._runner.transaction
        if transaction is not None and place in transaction.heads:
            return transaction.heads[place].entries
        if transaction is not None and place.workspace is None and place.tenant in transaction.shared:
            return transaction.shared[place.tenant]
        rows = self._runner.rows(place.tenant, _WRITTEN, (place.tenant, workspace_of(place)))
        return rows[0][0] if rows else 0

    def close(self) -> None:
        self._memories.settle_all()
        self._runner.close()
        timer.forget(self)


class Counting(Scope[OpenTransaction]):
    """A transaction. Counted retrievals are written along, before anything else changes what they count."""

    __slots__ = ("_memories", "_places", "_taken", "_writing")

    def __init__(self, memories: MemoryRows, writing: ServerTransaction, places: Sequence[Place]) -> None:
        self._memories = memories
        self._places = places
        self._writing = writing
        self._taken: dict[Place, Mapping[str, Touched]] = {}

    def enter(self) -> OpenTransaction:
        transaction = self._writing.enter()
        if self._writing.opened:
            for place in self._places:
                self._taken[place] = self._memories.write_touches(transaction, place)
        return transaction

    def leave(self, error: BaseException | None) -> None:
        self._writing.leave(error)
        if error is not None:
            self._put_back()

    def abandon(self) -> None:
        self._writing.abandon()
        self._put_back()

    def _put_back(self) -> None:
        while self._taken:
            place, touched = self._taken.popitem()
            self._memories.touches(place).put_back(touched)


def _others(servers: Mapping[str, str]) -> dict[str, Server]:
    for name, url in servers.items():
        if not url.startswith(("postgresql://", "postgres://")):
            raise InputError("servers", f"{name} needs a URL, as in postgresql://user@host/database")
    return {name: Server(Location.of(url)) for name, url in servers.items()}
