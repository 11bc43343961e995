"""Counting what a place has, where its counters are missing or wrong.

One place at a time, each in a short transaction that holds the lock of the place, so that writers of other places do
not wait. A killed run has counted some places; the next one goes on.
"""

from __future__ import annotations

import msgspec

from recollect.stores.postgres.admin.all_tenants import connected_as_owner, rows_of_all
from recollect.stores.postgres.admin.setup import SetupFacts
from recollect.stores.postgres.connections import PATIENCE, Connection, Location
from recollect.stores.postgres.memories import COUNTED
from recollect.stores.postgres.statements import whose
from recollect.stores.postgres.tenants.placement import MOVES, lock_key

_PLACES = "SELECT tenant, workspace FROM {s}.places"
_UNCOUNTED = f"{_PLACES} WHERE live_memories IS NULL OR content_bytes IS NULL"
_LOCK = "SELECT 1 FROM {s}.places WHERE tenant = %s AND workspace = %s FOR UPDATE"
_WRITE = "UPDATE {s}.places SET live_memories = %s, content_bytes = %s WHERE tenant = %s AND workspace = %s"


class Recount(msgspec.Struct, frozen=True):
    """A place whose counters were not what it has."""

    tenant: str
    workspace: str
    memories: int
    bytes: int
    memories_before: int | None
    """None where it had not been counted."""
    bytes_before: int | None


def recount(location: Location, *, only_uncounted: bool = False) -> list[Recount]:
    """Count all places, or those that were not counted yet, and write what they have. Returns those that changed.

    A tenant that is being moved is left out: its rows are compared with those of the other server.
    """
    changed: list[Recount] = []
    with connected_as_owner(location, "count what all tenants have") as (connection, seen):
        for tenant, workspace in rows_of_all(connection, location, seen, _UNCOUNTED if only_uncounted else _PLACES):
            changed += _recount(connection, location, seen, tenant, workspace)
    return changed


def _recount(
    connection: Connection, location: Location, seen: SetupFacts, tenant: str, workspace: str
) -> list[Recount]:
    def run(sql: str, *values: object) -> list[tuple[int | None, ...]]:
        cursor = connection.execute(sql.replace("{s}", location.schema), values)
        return cursor.fetchall() if cursor.description else []

    with connection.transaction():
        for begin in (*seen.begin, whose(tenant), f"SET LOCAL lock_timeout = {int(PATIENCE * 1000)}"):
            connection.execute(begin)
        if seen.owner != seen.user:
            connection.execute(f'SET LOCAL ROLE "{seen.owner}"')
        run(f"SELECT pg_advisory_xact_lock_shared({lock_key(location.schema, tenant)})")
        if run(MOVES, tenant) or not run(_LOCK, tenant, workspace):
            return []
        ((live, size, true_live, true_size),) = run(COUNTED, tenant, workspace)
        if (live, size) == (true_live, true_size):
            return []
        run(_WRITE, true_live, true_size, tenant, workspace)
    assert true_live is not None
    assert true_size is not None
    return [Recount(tenant, workspace, true_live, true_size, live, size)]
