"""What a restore left wrong: the set-up of the server, rows that are missing between tables, counters and audit logs.

Looks and changes nothing. `recollect db upgrade` repairs the set-up; rows that are missing are in the dump or nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recollect.stores.postgres.admin.catalogue import summarize
from recollect.stores.postgres.admin.setup import ADMIN, SCHEMA, SetupFacts, facts
from recollect.stores.postgres.admin.status import Check, checks_of
from recollect.stores.postgres.connections import Connection, Connections, Location, driver, translated
from recollect.stores.postgres.server import Server
from recollect.stores.tables.engine import Rows, Statement
from recollect.values.errors import AccessError

_SETUP = ("server", "schema", "roles", "owners", "functions", "isolation", "grants", "meaning")
"""The checks of `db status` that a restore can spoil. Who looks here is an administrator, and no application."""


def check_restore(location: Location) -> list[Check]:
    """How the server is set up, and whether the rows of all tenants are whole."""
    with Connections(location).lent() as connection:
        try:
            checks = [check for check in checks_of(connection, location) if check.name in _SETUP]
            seen = facts(connection, location.schema)
            if seen.migrations != SCHEMA:  # the check of the schema says so, and the tables may be others
                return checks
            tenants = _tenants(connection, location, seen)
        except driver().Error as error:
            raise translated(error, location) from error
    server = Server(location)
    problems = _RowProblems(server)
    try:
        for tenant in tenants:
            problems.look(tenant)
    except AccessError as error:  # the grants are not there, which the check of grants says too
        unread = f"they cannot be read: {error}. Run `recollect db upgrade` first"
        return [*checks, Check("rows", "problem", unread)]
    finally:
        server.close()
    return [*(_meaning(check, seen, problems.vectors) for check in checks), *problems.checks(len(tenants))]


def _tenants(connection: Connection, location: Location, seen: SetupFacts) -> list[str]:
    """All that have a row in places; for a superuser also those that have lost theirs."""
    if not seen.unbound and ADMIN not in seen.member_of:
        raise AccessError(
            f"the role {seen.user} may not see which tenants there are: connect as a superuser or a member of {ADMIN}"
        )
    tables = _WITH_PLACES if seen.unbound else ("places",)
    sql = " UNION ".join(f"SELECT tenant FROM {location.schema}.{table}" for table in tables)
    with connection.transaction():
        if not seen.unbound:
            connection.execute(f"SET LOCAL ROLE {ADMIN}")
        return sorted(tenant for (tenant,) in connection.execute(sql).fetchall())


def _meaning(check: Check, seen: SetupFacts, vectors: int) -> Check:
    """Vectors were stored, so pgvector was there where the dump was made: without it recall is not what it was."""
    if check.name != "meaning" or seen.vectors or not vectors:
        return check
    return Check("meaning", "problem", f"{vectors:,} memories have a vector that cannot be compared. {check.told}")


class _RowProblems:
    """What is wrong with the rows of the tenants that were looked at."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.vectors = 0
        """How many memories have a vector."""
        self._rows: list[str] = []
        self._counters: list[str] = []
        self._logs: list[str] = []

    def look(self, tenant: str) -> None:
        statements = [Statement(sql, {"tenant": tenant}) for sql in (_COUNTERS, _VECTORS, *_MISSING.values())]
        # As one snapshot: somebody may write meanwhile.
        counters, ((vectors,),), *missing = self._server.ask(tenant, statements, steady=True, primary=True)
        self.vectors += vectors
        for problem, rows in zip(_MISSING, missing, strict=True):
            self._rows += [f"{_place(tenant, workspace)}: {count} {problem}" for workspace, count in rows]
        self._counters += _behind(tenant, counters)
        self._logs += _broken_ends(tenant, counters)

    def checks(self, tenants: int) -> list[Check]:
        return [
            _check("rows", self._rows, f"those of {tenants} tenants belong together"),
            _check("counters", self._counters, "no workspace counts fewer rows than it has"),
            _check("audit", self._logs, "every audit log is as long as its workspace says, and ends with its seal"),
        ]


def _check(name: str, problems: Sequence[str], good: str) -> Check:
    if not problems:
        return Check(name, "ok", good)
    return Check(name, "problem", f"{summarize(problems)}. Restore these tables again", tuple(problems))


def _place(tenant: str, workspace: str) -> str:
    return f"{tenant}/{workspace}" if workspace else tenant


def _behind(tenant: str, counters: Rows) -> Iterator[str]:
    """Where the next memory, document or entry would get a number that is taken."""
    for workspace, memories, last_memory, items, last_thing, entries, last_entry, *_ in counters:
        pairs = {
            "memories": (memories, last_memory),
            "documents": (items, last_thing),
            "audit entries": (entries, last_entry),
        }
        for what, (counter, last) in pairs.items():
            if counter < last:
                yield f"{_place(tenant, workspace)}: {what} are counted up to {counter} and go up to {last}"


def _broken_ends(tenant: str, counters: Rows) -> Iterator[str]:
    for workspace, *_, entries, last_entry, count, sealed, last_hash in counters:
        longest = max(entries, last_entry)
        if count < longest:
            yield f"{_place(tenant, workspace)}: {longest - count} of {longest} audit entries are missing"
        elif entries and sealed != last_hash:
            yield f"{_place(tenant, workspace)}: the last audit entry is not the one that was sealed"


_WITH_PLACES = ("places", "memories", "contents", "things", "audit")
_VECTORS = "SELECT count(*) FROM {s}.embeddings WHERE tenant = %(tenant)s"
# Every part of a statement names the tenant itself, so that indexes, partitions and Citus can go by it.
_HERE = "x.tenant = %(tenant)s AND x.workspace = p.workspace"
_COUNTERS = f"""SELECT p.workspace,
        p.memories, coalesce((SELECT max(x.seq) FROM {{s}}.memories x WHERE {_HERE}), 0),
        p.things, coalesce((SELECT max(x.seq) FROM {{s}}.things x WHERE {_HERE}), 0),
        p.entries, coalesce((SELECT max(x.seq) FROM {{s}}.audit x WHERE {_HERE}), 0),
        (SELECT count(*) FROM {{s}}.audit x WHERE {_HERE}), p.sealed,
        (SELECT x.hash FROM {{s}}.audit x WHERE {_HERE} AND x.seq = p.entries)
    FROM {{s}}.places p WHERE p.tenant = %(tenant)s ORDER BY p.workspace"""


def _lacking(table: str, other: str, key: str = "seq", condition: str = "true") -> str:
    """Counts the rows of a table, by workspace, that have no row in another one."""
    same = "y.workspace = x.workspace" + (f" AND y.{key} = x.{key}" if key else "")
    return f"""SELECT x.workspace, count(*) FROM {{s}}.{table} x WHERE x.tenant = %(tenant)s AND {condition}
        AND NOT EXISTS (SELECT FROM {{s}}.{other} y WHERE y.tenant = %(tenant)s AND {same})
        GROUP BY x.workspace ORDER BY x.workspace"""


_MISSING = {
    "memories have lost their content": _lacking("memories", "contents"),
    "memories are missing from the text index": _lacking("memories", "search"),
    "memories have lost their vector": _lacking("memories", "embeddings", condition="x.embedded IS NOT NULL"),
    "contents belong to no memory": _lacking("contents", "memories"),
    "rows of the text index belong to no memory": _lacking("search", "memories"),
    "tags belong to no memory": _lacking("tags", "memories"),
    "vectors belong to no memory": _lacking("embeddings", "memories"),
    "memories have no row in places": _lacking("memories", "places", key=""),
    "documents have no row in places": _lacking("things", "places", key=""),
    "audit entries have no row in places": _lacking("audit", "places", key=""),
}
"""By problem, as it is reported after a count."""
