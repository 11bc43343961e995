"""Changing the number of partitions that the table of vectors has.

Tenants are spread over the partitions by a hash of their name. Fewer are better for few tenants; more keep each small
where there are very many. The rows are copied into a new table, tenant by tenant, in one transaction: whoever is killed
has changed nothing. Readers go on until the last moment; whoever stores a vector waits until it is over.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from recollect.stores.postgres.admin.all_tenants import connected_as_owner, rows_of_all
from recollect.stores.postgres.admin.setup import APP, SetupFacts, make_vectors
from recollect.stores.postgres.connections import Connection, Location
from recollect.stores.postgres.statements import whose
from recollect.values.errors import InputError

MOST = 1024
_COUNT = "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(%s)"
_TENANTS = "SELECT DISTINCT tenant FROM {s}.places ORDER BY tenant"
_INDEXED = "SELECT count(*) FROM {s}.places WHERE nearest IS NOT NULL"
_NEW = "new_vectors"


class Repartitioning(msgspec.Struct, frozen=True):
    """What was done."""

    before: int
    partitions: int
    tenants: int = 0
    vectors: int = 0
    indexes_dropped: int = 0
    """Indexes of large places that `recollect db index` has to build again."""


def partition_count(location: Location) -> int:
    with connected_as_owner(location, "look at the partitions of vectors") as (connection, _):
        return _count(connection, location)


def repartition(
    location: Location, partitions: int, tell: Callable[[int, int], object] = lambda done, total: None
) -> Repartitioning:
    """Spread the vectors over so many partitions. `tell` hears how many tenants are done, and of how many."""
    if not 1 <= partitions <= MOST:
        raise InputError("partitions", f"must be 1 to {MOST}, not {partitions}")
    with connected_as_owner(location, "change the partitions of vectors") as (connection, seen):
        if seen.citus:
            raise InputError("store", "is on Citus, where the table of vectors has shards and no partitions")
        if not seen.vectors:
            raise InputError("store", "has no table of vectors: pgvector is not installed there")
        before = _count(connection, location)
        if before == partitions:
            return Repartitioning(before, partitions)
        return _copy(connection, location, seen, before, partitions, tell)


def _count(connection: Connection, location: Location) -> int:
    return connection.execute(_COUNT, (f"{location.schema}.vectors",)).fetchone()[0]


def _copy(
    connection: Connection,
    location: Location,
    seen: SetupFacts,
    before: int,
    partitions: int,
    tell: Callable[[int, int], object],
) -> Repartitioning:
    schema = location.schema
    ((indexes,),) = rows_of_all(connection, location, seen, _INDEXED)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s), 7265)", (schema,))
        _become_owner(connection, seen)
        # Nobody writes from here on, so that the list of tenants is whole; readers read the old table.
        connection.execute(f"LOCK TABLE {schema}.vectors IN SHARE ROW EXCLUSIVE MODE")
        tenants = [tenant for (tenant,) in rows_of_all(connection, location, seen, _TENANTS)]
        _become_owner(connection, seen)
        make_vectors(connection, schema, seen, _NEW, partitions)
        copied = 0
        for number, tenant in enumerate(tenants, 1):
            connection.execute(whose(tenant))
            sql = f"INSERT INTO {schema}.{_NEW} SELECT * FROM {schema}.vectors WHERE tenant = %s"
            copied += connection.execute(sql, (tenant,)).rowcount
            connection.execute(f"UPDATE {schema}.places SET nearest = NULL WHERE tenant = %s", (tenant,))
            tell(number, len(tenants))
        _swap(connection, schema, partitions)
        if APP in seen.roles:
            connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.vectors TO {APP}")
    return Repartitioning(before, partitions, len(tenants), copied, indexes)


def _become_owner(connection: Connection, seen: SetupFacts) -> None:
    connection.execute(f'SET LOCAL ROLE "{seen.owner}"')


def _swap(connection: Connection, schema: str, partitions: int) -> None:
    """Readers wait from here until the transaction ends."""
    connection.execute(f"DROP TABLE {schema}.vectors")
    connection.execute(f"ALTER TABLE {schema}.{_NEW} RENAME TO vectors")
    for number in range(partitions):
        connection.execute(f"ALTER TABLE {schema}.{_NEW}_{number} RENAME TO vectors_{number}")
