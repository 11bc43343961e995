"""The rights that recollect's roles have on its tables, schema and functions: granted from one script, and compared.

`schema/grants.sql` is the only place that says who may do what. `db upgrade` runs it; `db status` reads it to see
whether the server still has exactly these rights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_SCRIPT = Path(__file__).parents[1] / "schema" / "grants.sql"
_VECTORS = "GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.vectors TO {app};\n"
_GRANT = re.compile(r"GRANT (.+) ON (SCHEMA |FUNCTION )?(.+) TO (.+)", re.DOTALL)
_PRIVILEGE = re.compile(r"([A-Z]+)(?: \(([^)]*)\))?")


class Grant(NamedTuple):
    """One right of one role."""

    kind: str
    """schema, table or function."""
    name: str
    """A function's name has the types of its arguments."""
    column: str
    """Empty for the whole table."""
    role: str
    privilege: str


def grants_script(vectors: bool) -> str:
    """The SQL that grants all rights, with `{schema}`, `{app}` and `{admin}` to be filled in."""
    return _SCRIPT.read_text("utf-8") + (_VECTORS if vectors else "")


def expected_grants(schema: str, vectors: bool, app: str, admin: str) -> set[Grant]:
    """The rights that the script grants."""
    script = re.sub(r"--.*", "", grants_script(vectors))
    statements = (" ".join(statement.split()) for statement in script.split(";"))
    grants = {grant for statement in statements for grant in _parsed(statement)}
    names = {"{app}": app, "{admin}": admin, "{schema}": schema}
    return {
        grant._replace(name=names.get(grant.name, grant.name), role=names.get(grant.role, grant.role))
        for grant in grants
    }


@cache
def our_functions() -> tuple[str, ...]:
    """The functions that recollect makes, with the types of their arguments: somebody is granted each of them."""
    grants = expected_grants("", False, "", "")
    return tuple(sorted({grant.name for grant in grants if grant.kind == "function"}))


def _parsed(statement: str) -> Iterator[Grant]:
    match = _GRANT.fullmatch(statement)
    if match is None:
        return
    privileges, kind, objects, roles = match.groups()
    plain_kind = (kind or "table ").strip().lower()
    names = [objects] if plain_kind == "schema" else [part.strip(" ,") for part in objects.split("{schema}.")[1:]]
    for privilege, columns in _PRIVILEGE.findall(privileges):
        for column in columns.split(", "):  # one that is empty where no columns are named
            for name in names:
                for role in roles.split(", "):
                    yield Grant(plain_kind, name, column, role, privilege)
