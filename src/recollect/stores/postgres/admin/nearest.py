"""An index of its own for the vectors of a large place.

Comparing all vectors is exact and quick for some ten thousand. Beyond that a partial HNSW index of just that place
finds the nearest; one for all tenants would find too few, and show how dense others are. Only the owner of the tables
can make one, so it is a job for `recollect db index`, and there are some dozens at most.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from recollect.stores.port import Place
from recollect.stores.postgres.admin.all_tenants import connected_as_owner
from recollect.stores.postgres.admin.setup import ADMIN, SetupFacts
from recollect.stores.postgres.connections import Connection, Location
from recollect.stores.postgres.statements import literal, place_of, whose, workspace_of

ABOVE = 20_000
"""Vectors from which a place gets an index."""
_KEEP = 0.5
"""It loses it below this share of that, so that it does not come and go."""
SHRUNK = ABOVE * _KEEP
_MOST = 48
_SAMPLE, _TOP = 20, 10
_LONGEST = 4000
"""Dimensions that such an index can have."""


class IndexChange(msgspec.Struct, frozen=True):
    tenant: str
    workspace: str
    model: str
    """With its dimensions."""
    vectors: int
    action: Literal["build", "drop", "keep"]
    recall: float | None = None
    """The share of the true ten that a sample found by the index."""


class Indexer:
    """Whoever may act as the owner. One at a time."""

    def __init__(self, location: Location, above: int = ABOVE) -> None:
        self._location = location
        self._above = above

    def plan(self) -> list[IndexChange]:
        with self._connected() as (connection, seen):
            return self._plan(connection, seen)

    def run(self, on_change: Callable[[IndexChange], object] = lambda change: None) -> list[IndexChange]:
        """Build what is wanted and drop what is not, each told when it is done."""
        with self._connected() as (connection, seen):
            connection.execute("SELECT pg_advisory_lock(7265, 3)")
            try:
                done: list[IndexChange] = []
                for change in self._plan(connection, seen):
                    done.append(self._carry_out(connection, seen, change))
                    on_change(done[-1])
                return done
            finally:
                connection.execute("SELECT pg_advisory_unlock(7265, 3)")

    @contextmanager
    def _connected(self) -> Generator[tuple[Connection, SetupFacts]]:
        with connected_as_owner(self._location, "make indexes of vectors") as (connection, seen):
            try:
                connection.execute("SET row_security = on")
                yield connection, seen
            finally:
                if not connection.closed:
                    connection.execute("RESET ROLE")
                    connection.execute("RESET row_security")

    def _sql(self, text: str) -> str:
        return text.replace("{s}", self._location.schema)

    def _plan(self, connection: Connection, seen: SetupFacts) -> list[IndexChange]:
        if not seen.vectors:
            return []
        with connection.transaction():
            connection.execute(f"SET LOCAL ROLE {ADMIN}")
            sql = self._sql(
                "SELECT tenant, workspace, nearest FROM {s}.places WHERE memories >= %s OR nearest IS NOT NULL"
            )
            rows = connection.execute(sql, (self._above * _KEEP,)).fetchall()
        changes: list[IndexChange] = []
        for tenant, workspace, nearest in rows:
            model, count = self._counted(connection, seen, tenant, workspace)
            wanted = count >= self._above or (nearest == model and count >= self._above * _KEEP)
            if wanted and int(model.rpartition(":")[2]) <= _LONGEST:
                action: Any = "keep" if nearest == model else "build"
                changes.append(IndexChange(tenant, workspace, model, count, action))
            elif nearest is not None:
                changes.append(IndexChange(tenant, workspace, nearest, count, "drop"))
        changes.sort(key=lambda change: -change.vectors)
        indexed = [change for change in changes if change.action != "drop"][:_MOST]
        return [*indexed, *(change for change in changes if change.action == "drop")]

    def _counted(self, connection: Connection, seen: SetupFacts, tenant: str, workspace: str) -> tuple[str, int]:
        """The model that most of its vectors are of, and how many."""
        with self._as(connection, seen, tenant, seen.role or seen.owner):
            sql = """SELECT model, count(*) FROM {s}.vectors WHERE tenant = %s AND workspace = %s
                GROUP BY 1 ORDER BY 2 DESC"""
            rows = connection.execute(self._sql(sql), (tenant, workspace)).fetchall()
        return rows[0] if rows else ("", 0)

    @contextmanager
    def _as(self, connection: Connection, seen: SetupFacts, tenant: str, role: str | None) -> Generator[None]:
        with connection.transaction():
            for statement in (*seen.begin, whose(tenant), f'SET LOCAL ROLE "{role}"'):
                connection.execute(statement, prepare=False)
            yield

    def _carry_out(self, connection: Connection, seen: SetupFacts, change: IndexChange) -> IndexChange:
        place = place_of(change.tenant, change.workspace)
        name = index_name(place, change.model)
        if change.action == "keep":
            return msgspec.structs.replace(change, recall=self._recall(connection, seen, place, change.model))
        if change.action == "drop":
            self._note(connection, seen, place, None)  # first, so that nobody counts on it any more
            self._drop(connection, seen, name)
            return change
        self._drop(connection, seen, name)  # what a killed run left is not valid
        self._build(connection, seen, place, change.model, name)
        self._note(connection, seen, place, change.model)
        return msgspec.structs.replace(change, recall=self._recall(connection, seen, place, change.model))

    def _build(self, connection: Connection, seen: SetupFacts, place: Place, model: str, name: str) -> None:
        table = self._sql("{s}.vectors")
        if not seen.citus:  # of the partition alone: an index of all of them cannot be made concurrently
            with self._as(connection, seen, place.tenant, seen.role or seen.owner):
                sql = self._sql("SELECT tableoid::regclass::text FROM {s}.vectors WHERE tenant = %s LIMIT 1")
                ((table,),) = connection.execute(sql, (place.tenant,)).fetchall()
        dimensions = int(model.rpartition(":")[2])
        self._become(connection, seen)
        connection.execute(
            f"""CREATE INDEX CONCURRENTLY {name} ON {table}
            USING hnsw ((v::"{seen.extensions}".halfvec({dimensions})) "{seen.extensions}".halfvec_ip_ops)
            WHERE {vectors_of(place, model)}"""
        )

    def _drop(self, connection: Connection, seen: SetupFacts, name: str) -> None:
        self._become(connection, seen)
        connection.execute(self._sql(f"DROP INDEX CONCURRENTLY IF EXISTS {{s}}.{name}"))

    def _become(self, connection: Connection, seen: SetupFacts) -> None:
        """An index cannot be made concurrently inside a transaction."""
        if seen.owner != seen.user:
            connection.execute(f'SET ROLE "{seen.owner}"')

    def _note(self, connection: Connection, seen: SetupFacts, place: Place, model: str | None) -> None:
        connection.execute("RESET ROLE")
        with self._as(connection, seen, place.tenant, seen.owner):
            sql = "UPDATE {s}.places SET nearest = %s WHERE tenant = %s AND workspace = %s"
            connection.execute(self._sql(sql), (model, place.tenant, workspace_of(place)))

    def _recall(self, connection: Connection, seen: SetupFacts, place: Place, model: str) -> float:
        """How many of the true ten the index finds, for some vectors of the place itself."""
        connection.execute("RESET ROLE")
        where = vectors_of(place, model)
        with self._as(connection, seen, place.tenant, seen.role or seen.owner):
            connection.execute("SET LOCAL hnsw.ef_search = 200")
            sql = self._sql(f"SELECT v::text FROM {{s}}.vectors WHERE {where} ORDER BY md5(seq::text) LIMIT {_SAMPLE}")
            sample = [vector for (vector,) in connection.execute(sql).fetchall()]
            hits = 0
            for vector in sample:
                approximate, true = (
                    self._nearest(connection, seen, where, model, vector, exact) for exact in (False, True)
                )
                hits += len(approximate & true)
        return hits / max(1, len(sample) * _TOP)

    def _nearest(
        self, connection: Connection, seen: SetupFacts, where: str, model: str, vector: str, exact: bool
    ) -> set[int]:
        sql = self._sql(nearest_sql(where.replace("%", "%%"), model, _TOP, exact)).replace(
            "{v}", f'"{seen.extensions}"'
        )
        return {seq for (seq,) in connection.execute(sql, {"vector": vector}, prepare=False).fetchall()}


def vectors_of(place: Place, model: str) -> str:
    """The condition of the index, and of a statement that is to use it."""
    where = f"tenant = {literal(place.tenant)} AND workspace = {literal(workspace_of(place))}"
    return f"{where} AND model = {literal(model)}"


def nearest_sql(where: str, model: str, limit: int | str, exact: bool = False) -> str:
    """The nearest by the index: the expression must be the one that was indexed, or it is not used."""
    dimensions = int(model.rpartition(":")[2])
    far = f"(v::{{v}}.halfvec({dimensions}) OPERATOR({{v}}.<#>) %(vector)s::{{v}}.halfvec({dimensions}))"
    return f"SELECT seq FROM {{s}}.vectors WHERE {where} ORDER BY {far}{' + 0' if exact else ''} LIMIT {limit}"


def not_moved(tenant: str, indexes: int, location: Location) -> str:
    """What to tell whoever moved a tenant to a server where so many indexes are still to be made; nothing for none."""
    if not indexes:
        return ""
    which = "an index" if indexes == 1 else f"{indexes} indexes"
    schema = "" if location.schema == "recollect" else f"?schema={location.schema}"
    return (
        f"{which} of the vectors of {tenant} did not move along: all of them are compared, which is exact but slower, "
        f"until you run `recollect db index --store {location.shown}{schema}`"
    )


def index_name(place: Place, model: str) -> str:
    """Of the index: the same for the same place and model."""
    named = f"{place.tenant}\0{workspace_of(place)}\0{model}"
    return "nearest_" + hashlib.blake2b(named.encode(), digest_size=12).hexdigest()
