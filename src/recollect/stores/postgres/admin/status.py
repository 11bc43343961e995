"""How a server is set up, for the people who look after it."""

from __future__ import annotations

from typing import Literal

import msgspec

from recollect.stores.postgres.admin.setup import APP, SCHEMA, Facts, facts, roles_sql, upgrade
from recollect.stores.postgres.connections import Connections, Location, driver, translated

Level = Literal["ok", "note", "problem"]
_OLDEST = 140000
_UNPROTECTED = """SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND c.relname <> 'migrations'
    AND NOT (c.relrowsecurity AND (c.relforcerowsecurity OR c.relname = 'search')) ORDER BY 1"""


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    level: Level
    told: str


def status(location: Location) -> list[Check]:
    """Changes nothing."""
    with Connections(location).lent() as connection:
        try:
            seen = facts(connection, location.schema)
            bare = [name for (name,) in connection.execute(_UNPROTECTED, (location.schema,)).fetchall()]
            propagates = ""
            if seen.citus:
                ((propagates,),) = connection.execute("SHOW citus.propagate_set_commands").fetchall()
        except driver().Error as error:
            raise translated(error, location) from error
    return [
        _version(seen),
        _schema(seen),
        _role(seen),
        _isolation(seen, bare),
        _vectors(seen),
        *([_citus(seen, propagates)] if seen.citus else []),
    ]


def _version(seen: Facts) -> Check:
    told = f"PostgreSQL {seen.version // 10000}.{seen.version % 10000}"
    if seen.version < _OLDEST:
        return Check("server", "problem", f"{told}; 14 or newer is needed")
    return Check("server", "ok", told)


def _schema(seen: Facts) -> Check:
    if not seen.begun:
        return Check("schema", "problem", "not there yet: run `recollect db upgrade`")
    if seen.migrations < SCHEMA:
        return Check("schema", "problem", f"{seen.migrations} of {SCHEMA} migrations: run `recollect db upgrade`")
    if seen.migrations > SCHEMA:
        return Check("schema", "problem", f"{seen.migrations}, newer than this recollect ({SCHEMA}): upgrade recollect")
    return Check("schema", "ok", f"up to date ({SCHEMA}), owned by {seen.owner}")


def bypasses(seen: Facts) -> str:
    """What is wrong with a login that row-level security does not hold for, and what to do."""
    steps_down = f"each transaction becomes {seen.role}, but whoever has the login can bypass that"
    nothing = f"there is no {APP} to become: run `recollect db upgrade`"
    return (
        f"{seen.user} is a superuser or has BYPASSRLS; {steps_down if seen.role else nothing}. "
        f"Give applications a role of their own: CREATE ROLE app LOGIN PASSWORD '…' IN ROLE {APP}"
    )


def _role(seen: Facts) -> Check:
    if seen.unbound:
        return Check("role", "problem", bypasses(seen))
    if seen.role is not None:
        return Check(
            "role",
            "note",
            f"{seen.user} is the owner's; each transaction becomes {seen.role}. Give applications a "
            f"role of their own: CREATE ROLE app LOGIN PASSWORD '…' IN ROLE {APP}",
        )
    if seen.owner == seen.user:
        return Check("role", "note", f"{seen.user} owns the tables; `recollect db roles` prints how to keep that apart")
    return Check("role", "ok", f"{seen.user}, bound by row-level security")


def _isolation(seen: Facts, bare: list[str]) -> Check:
    if not seen.begun:
        return Check("isolation", "problem", "nothing to look at yet")
    if bare:
        return Check("isolation", "problem", f"row-level security is not forced on: {', '.join(bare)}")
    return Check("isolation", "ok", "row-level security on every table; `recollect prove isolation` attacks it")


def _vectors(seen: Facts) -> Check:
    if seen.extensions is None:
        how = (
            "run `CREATE EXTENSION vector` and `recollect db upgrade`" if seen.vector_available else "install pgvector"
        )
        return Check("meaning", "note", f"pgvector is not there: recall is by words alone. To change that, {how}")
    if not seen.vectors:
        return Check("meaning", "note", "pgvector is there, but no table for it: run `recollect db upgrade`")
    return Check("meaning", "ok", "vectors are compared on the server")


def _citus(seen: Facts, propagates: str) -> Check:
    if propagates != "local":
        return Check(
            "citus",
            "note",
            "citus.propagate_set_commands is set in each transaction; setting it for the "
            f"database saves that: ALTER DATABASE {seen.database} SET citus.propagate_set_commands = 'local'",
        )
    return Check("citus", "ok", "tables are distributed by tenant")


def remarks(seen: Facts) -> list[str]:
    """What `doctor` should say of a set-up that works, but not as well as it could."""
    role, meaning = _role(seen), _vectors(seen)
    # A login that bypasses row-level security works, and `db status` says what is wrong with it.
    found = [role] if role.level == "problem" and seen.role is None else []
    found += [meaning] if meaning.level != "ok" else []
    return [f"{check.name}: {check.told}" for check in found]


def bring_up_to_date(location: Location) -> list[str]:
    """What was done."""
    with Connections(location).lent() as connection:
        try:
            return upgrade(connection, location)
        except driver().Error as error:
            raise translated(error, location) from error


def roles_for(location: Location) -> list[str]:
    """The SQL by which an administrator makes the roles that the connecting one may not make."""
    with Connections(location).lent() as connection:
        try:
            return roles_sql(*connection.execute(_WHO).fetchone())
        except driver().Error as error:
            raise translated(error, location) from error


_WHO = """SELECT current_user::text, current_database()::text,
    EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"""
