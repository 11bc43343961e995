"""What an upgrade would do, and what others would wait for: read from the scripts, with the sizes of the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from recollect.stores.postgres.admin import setup
from recollect.stores.postgres.admin.grants import grants_script
from recollect.stores.postgres.admin.migrations import missing_indexes, parts_of
from recollect.stores.postgres.connections import Connection, Connections, Location, driver, translated

Lock = Literal["ACCESS EXCLUSIVE", "SHARE", "SHARE UPDATE EXCLUSIVE", "ROW EXCLUSIVE", "ACCESS SHARE"]
Work = Literal["none", "scan", "rewrite"]
_LOCKS: tuple[Lock, ...] = ("ACCESS SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "ACCESS EXCLUSIVE")
"""The weakest first."""
_WORK: tuple[Work, ...] = ("none", "scan", "rewrite")
_BYTES_A_SECOND = 100e6
"""What a server with a usual disk reads, for an estimate."""
_SIZES = """SELECT c.relname::text, pg_total_relation_size(c.oid) + coalesce((
        SELECT sum(pg_total_relation_size(i.inhrelid)) FROM pg_inherits i WHERE i.inhparent = c.oid), 0)::bigint
    FROM pg_class c WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind IN ('r', 'p')"""
_TABLE = r"\{schema\}\.(\w+)"


class TableLock(msgspec.Struct, frozen=True):
    """What a migration does to a table that is there."""

    table: str
    lock: Lock
    """ACCESS EXCLUSIVE keeps readers and writers out, SHARE writers; the others neither."""
    work: Work
    bytes: int
    seconds: float
    """How long reading the table takes, estimated from its size; 0 where it is not read."""


class PlannedMigration(msgspec.Struct, frozen=True):
    name: str
    tables: list[TableLock]
    transaction: bool = True
    """False for indexes that are built concurrently, behind the migration."""


def upgrade_plan(location: Location) -> list[PlannedMigration]:
    """The migrations that are pending. Changes nothing."""
    with Connections(location).lent() as connection:
        try:
            return _plan(connection, location.schema)
        except driver().Error as error:
            raise translated(error, location) from error


def _plan(connection: Connection, schema: str) -> list[PlannedMigration]:
    seen = setup.facts(connection, schema)
    sizes = dict(connection.execute(_SIZES, (schema,)).fetchall())
    scripts = setup.scripts()
    planned: list[PlannedMigration] = []
    for name, script in list(scripts.items())[seen.migrations :]:
        planned.append(PlannedMigration(name, _locks(parts_of(script)[0], sizes)))
    if planned:
        planned.append(PlannedMigration("grants", _locks(grants_script(seen.vectors), sizes)))
    # Also those of earlier migrations, whose build was killed.
    missing = (
        {index.name for index in missing_indexes(connection, schema, list(scripts.values()))} if seen.begun else ()
    )
    for name, script in scripts.items():
        outside = parts_of(script)[1]
        pending = name in {migration.name for migration in planned}
        if outside and (pending or any(f" {index} " in outside for index in missing)):
            planned.append(PlannedMigration(name, _locks(outside, sizes), transaction=False))
    return planned


def _locks(script: str, sizes: dict[str, int]) -> list[TableLock]:
    """The strongest lock and the most work for each table that is there already: nobody waits for a new one."""
    strongest: dict[str, tuple[Lock, Work]] = {}
    for statement in setup.statements_of(script):
        for table, lock, work in _effects(statement):
            if table in sizes:
                before_lock, before_work = strongest.get(table, ("ACCESS SHARE", "none"))
                strongest[table] = (
                    _LOCKS[max(_LOCKS.index(before_lock), _LOCKS.index(lock))],
                    _WORK[max(_WORK.index(before_work), _WORK.index(work))],
                )
    return [
        TableLock(table, lock, work, sizes[table], 0.0 if work == "none" else round(sizes[table] / _BYTES_A_SECOND, 1))
        for table, (lock, work) in sorted(strongest.items())
    ]


def _effects(statement: str) -> Iterator[tuple[str, Lock, Work]]:
    """By PostgreSQL's documentation of explicit locking, for the statements that our scripts use."""
    if re.match(r"CREATE (OR REPLACE )?FUNCTION|CREATE TABLE|REVOKE|GRANT|DROP FUNCTION", statement):
        return
    tables: list[str] = re.findall(_TABLE, statement)
    if statement.startswith("DO "):  # the one that protects the tables that it names
        for table in re.findall(r"'(\w+)'", statement):
            yield table, "ACCESS EXCLUSIVE", "none"
    elif index := re.match(rf"CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?\w+ ON {_TABLE}", statement):
        yield index[2], "SHARE UPDATE EXCLUSIVE" if index[1] else "SHARE", "scan"
    elif statement.startswith("ALTER TABLE"):
        rewrites = re.search(r"\bTYPE\b|SET (UN)?LOGGED|GENERATED ALWAYS AS \(", statement)
        scans = re.search(r"SET NOT NULL|ADD (CONSTRAINT|CHECK|FOREIGN|UNIQUE|PRIMARY)", statement)
        unchecked = "NOT VALID" in statement
        yield tables[0], "ACCESS EXCLUSIVE", "rewrite" if rewrites else "scan" if scans and not unchecked else "none"
    elif re.match(r"(INSERT INTO|UPDATE|DELETE FROM)", statement):
        yield tables[0], "ROW EXCLUSIVE", "none" if statement.startswith("INSERT") else "scan"
        for table in tables[1:]:
            yield table, "ACCESS SHARE", "scan"
    else:  # DROP TABLE, CREATE POLICY, and what is not known here
        for table in tables:
            yield table, "ACCESS EXCLUSIVE", "none"
