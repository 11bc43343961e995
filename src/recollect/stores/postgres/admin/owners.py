"""Repairs owners, row-level security, functions and grants, as after a restore on a server without recollect's roles.

Only recollect's own tables and functions are changed. A view, table or policy that somebody added is left alone:
`recollect db status` names it.
"""

from __future__ import annotations

from collections.abc import Iterator

from recollect.stores.postgres.admin.catalogue import (
    CONDITION,
    POLICY,
    SEARCH_PATH,
    Catalogue,
    summarize,
)
from recollect.stores.postgres.admin.functions import function_script
from recollect.stores.postgres.admin.grants import Grant, our_functions
from recollect.stores.postgres.admin.setup import LIMITS, MOVING, OWNER, SCHEMA, TABLES, facts
from recollect.stores.postgres.connections import Connection, Location
from recollect.values.errors import AccessError

_OUR_TABLES = (*TABLES, *MOVING, LIMITS, "migrations", "vectors")
_RIGHTS = ("isolation", "functions", "grants")
_NO_RIGHT = ("42501", "42704")
"""No right to it; there is no such role."""


def has_owner(connection: Connection) -> bool:
    """Whether there is a role that recollect's tables can be given to."""
    return connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (OWNER,)).fetchone() is not None


def repair_owners(connection: Connection, location: Location) -> list[str]:
    """Give what belongs to the wrong role to the right one. Returns what was done.

    AccessError if the connecting role may not do that.
    """
    catalogue = Catalogue(connection, location.schema)
    expected = catalogue.expected_owner
    wrong = {owner: objects for owner, objects in catalogue.owners.items() if owner != expected}
    statements = [
        f'ALTER {name} OWNER TO "{expected}"'
        for objects in wrong.values()
        for name in objects
        if _is_ours(name, location.schema)
    ]
    if not statements or not catalogue.exists:
        return []
    problems = [finding.problem for finding in catalogue.findings() if finding.topic == "owners"]
    _run_or_refuse(connection, location, statements, problems, None)
    return [f"owners: {summarize(problems)}"]


def repair_rights(connection: Connection, location: Location) -> list[str]:
    """Restore row-level security, policies, functions and grants to what recollect makes. Returns what was done.

    AccessError if the connecting role may not act as the owner.
    """
    catalogue = Catalogue(connection, location.schema)
    if not catalogue.exists:
        return []
    statements = [*_table_repairs(catalogue), *_function_repairs(catalogue), *_revokes(catalogue)]
    if not statements:
        return []
    problems = [finding.problem for finding in catalogue.findings() if finding.topic in _RIGHTS]
    _run_or_refuse(connection, location, statements, problems, catalogue.expected_owner)
    left = {finding.problem for finding in Catalogue(connection, location.schema).findings()}
    gone = [problem for problem in problems if problem not in left]
    return [summarize(gone)] if gone else []


def make_missing_functions(connection: Connection, location: Location) -> list[str]:
    """Make functions that somebody has dropped, in a schema that has all migrations. Returns what was done."""
    catalogue = Catalogue(connection, location.schema)
    if not catalogue.exists or facts(connection, location.schema).migrations < SCHEMA:
        return []
    present = {function.name for function in catalogue.functions}
    missing = [name for name in our_functions() if name not in present]
    scripts = [function_script(name, location.schema) for name in missing]
    problems = [f"the function {name} is missing" for name in missing]
    if missing:
        statements = [script.statement for script in scripts if script is not None]
        statements += [f"REVOKE ALL ON FUNCTION {location.schema}.{name} FROM PUBLIC" for name in missing]
        _run_or_refuse(connection, location, statements, problems, catalogue.expected_owner)
    return problems


def problems_left(connection: Connection, location: Location) -> list[str]:
    """What is still not as recollect makes it, and is not for it to change."""
    findings = Catalogue(connection, location.schema).findings()
    return [finding.problem for finding in findings if finding.topic in (*_RIGHTS, "roles", "owners")]


def _table_repairs(catalogue: Catalogue) -> Iterator[str]:
    schema, unprotected = catalogue.schema, set(catalogue.unprotected())
    for relation in catalogue.relations:
        table = f'{schema}."{relation.name}"'
        if not relation.needs_policy or not _is_our_table(relation.name):
            continue
        if not relation.secured:
            yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
        if not relation.forced and relation.name != "search":
            yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
        if relation.name in unprotected:
            yield f"DROP POLICY IF EXISTS {POLICY} ON {table}"
            yield f"CREATE POLICY {POLICY} ON {table} USING {CONDITION}"


def _function_repairs(catalogue: Catalogue) -> Iterator[str]:
    for function in catalogue.changed_functions():
        if (script := function_script(function.name, catalogue.schema)) is not None:
            yield script.statement
    path = SEARCH_PATH.replace("=", " = ")
    for function in catalogue.functions:
        if function.name in our_functions() and not (function.definer and SEARCH_PATH in function.settings):
            yield f"ALTER FUNCTION {catalogue.schema}.{function.name} SECURITY DEFINER SET {path}"


def _revokes(catalogue: Catalogue) -> Iterator[str]:
    for grant in sorted(catalogue.wider_grants()):
        if grant.kind == "schema" or grant.name in our_functions() or _is_our_table(grant.name):
            yield _revoke(catalogue.schema, grant)


def _revoke(schema: str, grant: Grant) -> str:
    name = {
        "schema": f"SCHEMA {schema}",
        "table": f'TABLE {schema}."{grant.name}"',
        "function": f"FUNCTION {schema}.{grant.name}",
    }[grant.kind]
    column = f' ("{grant.column}")' if grant.column else ""
    role = grant.role if grant.role == "PUBLIC" else f'"{grant.role}"'
    return f"REVOKE {grant.privilege}{column} ON {name} FROM {role}"


def _is_ours(name: str, schema: str) -> bool:
    """Whether `TABLE schema."memories"` or the like is recollect's."""
    kind, _, rest = name.partition(" ")
    if kind == "SCHEMA":
        return True
    plain = rest.removeprefix(f"{schema}.")
    return plain in our_functions() if kind == "FUNCTION" else kind == "TABLE" and _is_our_table(plain.strip('"'))


def _is_our_table(name: str) -> bool:
    return name in _OUR_TABLES or (name.startswith("vectors_") and name.removeprefix("vectors_").isdecimal())


def _run_or_refuse(
    connection: Connection, location: Location, statements: list[str], problems: list[str], role: str | None
) -> None:
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s), 7265)", (location.schema,))
            if role is not None:
                connection.execute(f'SET LOCAL ROLE "{role}"')
            for statement in statements:
                connection.execute(statement)
    except Exception as error:
        if getattr(error, "sqlstate", None) not in _NO_RIGHT:
            raise
        raise AccessError(
            f"{location.shown}: {summarize(problems)}. The role {connection.info.user} may not repair that; nothing "
            "was changed. Run `recollect db upgrade` as a superuser of this server; where recollect's roles are "
            "missing, it makes them first"
        ) from error
