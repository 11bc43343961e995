"""Changing the schema while others read and write.

A migration runs in one transaction, and waits for each lock half a second at most: whoever waits for a lock of a whole
table has all that come later wait behind it. It gives way and tries again. Indexes of large tables are made behind the
line `-- outside a transaction` of its script, concurrently and one by one; a build that was killed leaves an invalid
index, which the next upgrade drops and builds again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from recollect.stores.postgres.connections import Connection, driver

T = TypeVar("T")
LOCK_TIMEOUT = 0.5
"""Seconds that others may have to wait behind a change of the schema that waits itself."""
_PATIENCE = 60.0
_PAUSE, _LONGEST_PAUSE = 0.25, 2.0
_OUTSIDE = "-- outside a transaction\n"
_CONCURRENT = re.compile(r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY (\w+) ON ")
_STATE = """SELECT i.indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
    WHERE c.relnamespace = %s::regnamespace AND c.relname = %s"""


def parts_of(script: str) -> tuple[str, str]:
    """What runs in the transaction of a migration, and what runs after it."""
    inside, _, outside = script.partition(_OUTSIDE)
    return inside, outside


def with_short_locks(change: Callable[[], T]) -> T:
    """Run a transaction that changes the schema; again, after a pause, where it could not have a lock."""
    until, pause = time.monotonic() + _PATIENCE, _PAUSE
    while True:
        try:
            return change()
        except (driver().errors.LockNotAvailable, driver().errors.DeadlockDetected):
            if time.monotonic() + pause > until:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


class ConcurrentIndex(NamedTuple):
    name: str
    statement: str


def concurrent_indexes(scripts: Sequence[str]) -> list[ConcurrentIndex]:
    """The indexes that the scripts make outside of transactions, but for those that a later script drops."""
    indexes: list[ConcurrentIndex] = []
    for number, script in enumerate(scripts):
        for statement in filter(None, map(str.strip, parts_of(script)[1].split(";\n"))):
            made = _CONCURRENT.match(statement)
            assert made, f"only CREATE INDEX CONCURRENTLY may stand outside a transaction, not {statement[:60]}"
            dropped = re.compile(rf"DROP INDEX [^;]*\b{made[1]}\b")
            if not any(map(dropped.search, scripts[number + 1 :])):
                indexes.append(ConcurrentIndex(made[1], statement.rstrip(";")))
    return indexes


def missing_indexes(connection: Connection, schema: str, scripts: Sequence[str]) -> list[ConcurrentIndex]:
    """Those that are not there, or were not finished."""
    return [
        index
        for index in concurrent_indexes(scripts)
        if connection.execute(_STATE, (schema, index.name)).fetchall() != [(True,)]
    ]


def build_indexes(connection: Connection, schema: str, owner: str | None, scripts: Sequence[str]) -> list[str]:
    """Build those that are missing. Returns their names.

    Without a timeout for locks: a concurrent build waits for transactions that are open, and nobody waits behind it.
    One at a time, by a lock of the session, because it cannot be part of a transaction.
    """
    if not missing_indexes(connection, schema, scripts):
        return []
    connection.execute("SELECT pg_advisory_lock(hashtext(%s), 7266)", (schema,))
    try:
        if owner is not None:
            connection.execute(f'SET ROLE "{owner}"')
        missing = missing_indexes(connection, schema, scripts)
        for index in missing:
            connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{index.name}")
            connection.execute(index.statement.replace("{schema}", schema), prepare=False)
        return [index.name for index in missing]
    finally:
        if not connection.closed:
            connection.execute("RESET ROLE")
            connection.execute("SELECT pg_advisory_unlock(hashtext(%s), 7266)", (schema,))
