"""How a server is set up, for the people who look after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from recollect.stores.postgres.admin.catalogue import Catalogue, SetupProblem, Topic, summarize
from recollect.stores.postgres.admin.owners import (
    has_owner,
    make_missing_functions,
    problems_left,
    repair_owners,
    repair_rights,
)
from recollect.stores.postgres.admin.setup import (
    APP,
    SCHEMA,
    SetupFacts,
    facts,
    grant,
    roles_sql,
    undistributed,
    upgrade,
)
from recollect.stores.postgres.connections import Connection, Connections, Location, driver, translated
from recollect.values.errors import SchemaError

Level = Literal["ok", "note", "problem"]
_OLDEST = 15
"""The oldest major version of PostgreSQL that recollect is tested with."""
_JIT = "SELECT current_setting('jit')::boolean AND pg_jit_available()"


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    level: Level
    told: str
    details: tuple[str, ...] = ()
    """Every problem by itself, where `told` shortens them."""


def status(location: Location) -> list[Check]:
    """Changes nothing."""
    with Connections(location).lent() as connection:
        try:
            return checks_of(connection, location)
        except driver().Error as error:
            raise translated(error, location) from error


def checks_of(connection: Connection, location: Location) -> list[Check]:
    """How the server is set up, each check by itself."""
    seen = facts(connection, location.schema)
    ((compiles,),) = connection.execute(_JIT).fetchall()
    problems = read_findings(connection, location, seen)
    return [
        check_version(seen),
        _schema(seen),
        _role(seen, [finding.problem for finding in problems if finding.topic == "role"]),
        *_catalogue(seen, problems),
        _vectors(seen),
        *([_jit()] if compiles else []),
        *([_citus(connection, location, seen)] if seen.citus and seen.begun else []),
    ]


def read_findings(connection: Connection, location: Location, seen: SetupFacts) -> list[SetupProblem]:
    """What the catalogue says of the schema, read as the role that transactions run as."""
    with connection.transaction():
        if seen.role is not None:
            connection.execute(f"SET LOCAL ROLE {seen.role}")
        return Catalogue(connection, location.schema).findings()


def check_version(seen: SetupFacts) -> Check:
    version = f"PostgreSQL {seen.version // 10000}.{seen.version % 10000}"
    if seen.version // 10000 < _OLDEST:
        return Check(
            "server", "problem", f"{version}; recollect needs PostgreSQL {_OLDEST} or newer: upgrade the server"
        )
    return Check("server", "ok", version)


def _schema(seen: SetupFacts) -> Check:
    if not seen.begun:
        return Check("schema", "problem", "not there yet: run `recollect db upgrade`")
    if seen.migrations < SCHEMA:
        return Check("schema", "problem", f"{seen.migrations} of {SCHEMA} migrations: run `recollect db upgrade`")
    if seen.migrations > SCHEMA:
        return Check("schema", "problem", f"{seen.migrations}, newer than this recollect ({SCHEMA}): upgrade recollect")
    return Check("schema", "ok", f"up to date ({SCHEMA}), owned by {seen.owner}")


def bypasses(seen: SetupFacts) -> str:
    """What is wrong with a login that row-level security does not hold for, and what to do."""
    steps_down = f"each transaction becomes {seen.role}, but whoever has the login can bypass that"
    nothing = f"there is no {APP} to become: run `recollect db upgrade`"
    return (
        f"{seen.user} is a superuser or has BYPASSRLS; {steps_down if seen.role else nothing}. "
        f"Give applications a role of their own: CREATE ROLE app LOGIN PASSWORD '…' IN ROLE {APP}"
    )


def _role(seen: SetupFacts, powers: Sequence[str] = ()) -> Check:
    """`powers` are what the catalogue says that the role can do, and an application must not."""
    if seen.unbound:
        return Check("role", "problem", bypasses(seen), tuple(powers))
    if powers:
        advice = f"Give applications a role of their own: CREATE ROLE app LOGIN PASSWORD '…' IN ROLE {APP}"
        if APP not in seen.roles:
            advice = f"`recollect db roles` prints the SQL that makes {APP}, for a login that owns nothing"
        return Check("role", "problem", f"{summarize(powers)}. {advice}", tuple(powers))
    if seen.role is not None:
        return Check(
            "role",
            "note",
            f"{seen.user} is the owner's; each transaction becomes {seen.role}. Give applications a "
            f"role of their own: CREATE ROLE app LOGIN PASSWORD '…' IN ROLE {APP}",
        )
    return Check("role", "ok", f"{seen.user}, bound by row-level security")


def _catalogue(seen: SetupFacts, problems: Sequence[SetupProblem]) -> list[Check]:
    """A check for each topic of the catalogue."""
    if not seen.begun:
        return [Check("isolation", "problem", "nothing to look at yet")]
    checks: list[Check] = []
    for topic, good in _TOPICS.items():
        wrong = tuple(finding.problem for finding in problems if finding.topic == topic)
        text = f"{summarize(wrong)}. {_REPAIR}" if wrong else good.format(owner=seen.owner)
        checks.append(Check(topic, "problem" if wrong else "ok", text, wrong))
    return checks


_REPAIR = "To repair what can be repaired, run `recollect db upgrade` as a superuser"
_TOPICS: dict[Topic, str] = {
    "roles": "recollect_owner, recollect_app and recollect_admin are there",
    "owners": "the schema, its tables and functions belong to {owner}",
    "functions": "those that run as their owner take no names from whoever calls them",
    "isolation": "row-level security on every table; `recollect prove isolation` attacks it",
    "grants": "the roles have the rights that they need, and no others",
}
"""By topic of the catalogue: what to say if nothing is wrong."""


def _jit() -> Check:
    return Check("jit", "note", "the server compiles statements (JIT); each transaction of recollect switches that off")


def _vectors(seen: SetupFacts) -> Check:
    if seen.extensions is None:
        how = (
            "run `CREATE EXTENSION vector` and `recollect db upgrade`" if seen.vector_available else "install pgvector"
        )
        return Check("meaning", "note", f"pgvector is not there: recall is by words alone. To change that, {how}")
    if not seen.vectors:
        return Check("meaning", "note", "pgvector is there, but no table for it: run `recollect db upgrade`")
    return Check("meaning", "ok", "vectors are compared on the server")


def _citus(connection: Connection, location: Location, seen: SetupFacts) -> Check:
    tables = undistributed(connection, location.schema)
    problems = [f"the table {table} is not distributed: run `recollect db upgrade`" for table in tables]
    if not seen.unbound:
        note = "whether the workers keep tenants apart is seen by a superuser, and by `recollect prove isolation`"
        return _problem("citus", problems) if problems else Check("citus", "note", note)
    asked = _BARE_SHARDS.format(schema=location.schema).replace("'", "''")
    for name, port, success, answer in connection.execute(_ON_WORKERS.format(asked)).fetchall():
        if not success or answer:
            what = f"row-level security is not forced on {answer}" if success else f"cannot be asked ({answer})"
            problems.append(f"worker {name}:{port}: {what}")
    return _problem("citus", problems) if problems else Check("citus", "ok", "tables are distributed by tenant")


def _problem(name: str, problems: Sequence[str]) -> Check:
    return Check(name, "problem", summarize(problems), tuple(problems))


_ON_WORKERS = "SELECT nodename, nodeport, success, result FROM run_command_on_workers('{}')"
_BARE_SHARDS = """SELECT coalesce(string_agg(c.relname, ', ' ORDER BY c.relname), '') FROM pg_class c
    WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind = 'r' AND c.relname <> 'migrations'
    AND NOT (c.relrowsecurity AND (c.relforcerowsecurity OR c.relname ~ '^search(_|$)'))"""


def remarks(seen: SetupFacts) -> list[str]:
    """What `doctor` should say of a set-up that works, but not as well as it could."""
    role, meaning = _role(seen), _vectors(seen)
    # A login that bypasses row-level security works, and `db status` says what is wrong with it.
    checks = [role] if role.level == "problem" and seen.role is None else []
    checks += [meaning] if meaning.level != "ok" else []
    return [f"{check.name}: {check.told}" for check in checks]


class Upgrade(msgspec.Struct, frozen=True):
    """What `bring_up_to_date` did."""

    made: list[str]
    repaired: list[str]
    left: list[str]
    """What is not as recollect makes it and is the administrator's to change, such as a policy that somebody added."""


def bring_up_to_date(location: Location) -> Upgrade:
    """Migrate the schema, and repair what a restore or somebody has changed of owners, policies and grants.

    AccessError if something is to be repaired and the connecting role may not do it.
    """
    with Connections(location).lent() as connection:
        try:
            # First, because migrations and grants act as the owner of the schema; and once more, because there may
            # have been no role to give it to.
            repaired = repair_owners(connection, location) if has_owner(connection) else []
            repaired += make_missing_functions(connection, location)
            made = upgrade(connection, location)
            repaired += repair_owners(connection, location)
            if rights := repair_rights(connection, location):
                repaired += rights
                grant(connection, location)  # taking back a right on a table takes those on its columns along
            left = problems_left(connection, location)
        except driver().Error as error:
            problem = translated(error, location)
            if isinstance(problem, SchemaError):
                message = str(error).split("\n")[0]
                raise SchemaError(
                    f"{location.shown}: {message}. The migrations say that it was made, so somebody has removed it: "
                    "restore it from a backup"
                ) from error
            raise problem from error
    return Upgrade(made, repaired, left)


def roles_for(location: Location) -> list[str]:
    """The SQL by which an administrator makes the roles that the connecting one may not make."""
    with Connections(location).lent() as connection:
        try:
            return roles_sql(*connection.execute(_WHO).fetchone())
        except driver().Error as error:
            raise translated(error, location) from error


_WHO = """SELECT current_user::text, current_database()::text,
    EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"""
