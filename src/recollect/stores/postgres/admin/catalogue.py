"""What the server's catalogue must say of recollect's schema, compared with what it says.

This is the one list that `recollect db status`, `recollect db restore-check` and `recollect prove isolation` go by:
roles, owners, functions that run as their owner, row-level security, policies and grants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from recollect.stores.postgres.admin.functions import function_script
from recollect.stores.postgres.admin.grants import Grant, expected_grants, our_functions
from recollect.stores.postgres.admin.setup import ADMIN, APP, LIMITS, MOVING, OWNER, TABLES
from recollect.stores.postgres.connections import Connection

Topic = Literal["role", "roles", "owners", "functions", "isolation", "grants"]
SEARCH_PATH = "search_path=pg_catalog, pg_temp"
"""What a function that runs as its owner must have set, so that nobody puts names before those it uses."""
POLICY = "own_tenant"
CONDITION = "(tenant = NULLIF(current_setting('recollect.tenant'::text, true), ''::text))"
"""Of the policy, as the server writes it."""
_OF_ROLES: dict[tuple[str, str], tuple[object, ...]] = {
    ("places", "all_tenants"): (True, "SELECT", [ADMIN], "true", None),
    ("placements", "all_tenants"): (True, "SELECT", [ADMIN], "true", None),
}
"""The policies that `schema/grants.sql` makes for roles, by table and name: what they say, as the server writes it."""
_MIGRATIONS = "migrations"
_NOT_FORCED = "search"
"""The table that functions read as its owner, and nobody else may."""
_POWERFUL = (
    "pg_execute_server_program",
    "pg_read_all_data",
    "pg_read_server_files",
    "pg_write_all_data",
    "pg_write_server_files",
)
"""Roles that come with PostgreSQL and give rights that an application must not have."""


class SetupProblem(msgspec.Struct, frozen=True):
    """One thing that is not as recollect sets it up."""

    topic: Topic
    problem: str


class Relation(msgspec.Struct, frozen=True):
    """A table or view of the schema."""

    name: str
    kind: str
    owner: str
    secured: bool
    """Whether row-level security is enabled."""
    forced: bool

    @property
    def is_view(self) -> bool:
        return self.kind in ("v", "m")

    @property
    def needs_policy(self) -> bool:
        return not self.is_view and self.kind != "S" and self.name != _MIGRATIONS


class Function(msgspec.Struct, frozen=True):
    """A function of the schema."""

    name: str
    """With the types of its arguments."""
    owner: str
    definer: bool
    settings: list[str]
    body: str


class Policy(msgspec.Struct, frozen=True):
    """A policy of row-level security."""

    table: str
    name: str
    permissive: bool
    command: str
    roles: list[str]
    condition: str | None
    check: str | None

    @property
    def is_ours(self) -> bool:
        """Whether it is exactly as recollect makes it."""
        made = _OF_ROLES.get((self.table, self.name), (True, "ALL", ["public"], CONDITION, None))
        return (self.permissive, self.command, self.roles, self.condition, self.check) == made


class Role(msgspec.Struct, frozen=True):
    """A role of the server."""

    name: str
    superuser: bool
    bypasses: bool
    """Whether row-level security does not hold for it."""
    becomes: list[str]
    """Which of recollect's other roles it is a member of."""


class Catalogue:
    """What the server says of one schema. Reads only, and everything at once."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self.schema = schema
        self._connection = connection
        names = {"schema": schema, "roles": [OWNER, APP, ADMIN]}

        def read(sql: str) -> list[Any]:
            return connection.execute(sql, names).fetchall()

        self.schema_owner: str | None = next((owner for (owner,) in read(_SCHEMA_OWNER)), None)
        self.roles = {row[0]: Role(*row) for row in read(_ROLES)}
        self.relations = [Relation(*row) for row in read(_RELATIONS)]
        self.functions = [Function(*row) for row in read(_FUNCTIONS)]
        self.policies = [Policy(*row) for row in read(_POLICIES)]
        self.grants = {Grant(*row) for row in read(_GRANTS)}
        self.bypassing = {name for (name,) in read(_BYPASSING)}
        self.powers = [
            power for (power,) in connection.execute(_POWERS, {**names, "powerful": list(_POWERFUL)}).fetchall()
        ]

    @property
    def exists(self) -> bool:
        return self.schema_owner is not None

    @property
    def tables(self) -> set[str]:
        return {relation.name for relation in self.relations}

    @property
    def owners(self) -> dict[str, list[str]]:
        """By owner: what it owns, as `ALTER … OWNER TO` names it."""
        owners = defaultdict[str, list[str]](list)
        if self.schema_owner is not None:
            owners[self.schema_owner].append(f"SCHEMA {self.schema}")
        for relation in self.relations:
            owners[relation.owner].append(f'{_KINDS.get(relation.kind, "TABLE")} {self.schema}."{relation.name}"')
        for function in self.functions:
            owners[function.owner].append(f"FUNCTION {self.schema}.{function.name}")
        return dict(owners)

    @property
    def expected_owner(self) -> str:
        """recollect_owner; or whoever owns the schema, where nothing is recollect_owner's and that is no superuser."""
        plain = self.schema_owner is not None and self.schema_owner not in self.bypassing
        return self.schema_owner if plain and self.schema_owner and OWNER not in self.owners else OWNER

    def expected_grants(self) -> set[Grant]:
        return expected_grants(self.schema, "vectors" in self.tables, APP, ADMIN)

    def wider_grants(self) -> set[Grant]:
        """Rights that the application, an administrator or everybody has, and should not have."""
        usage = Grant("schema", self.schema, "", "PUBLIC", "USAGE")  # which the schema public comes with
        return self.grants - self.expected_grants() - {usage}

    def missing_grants(self) -> set[Grant]:
        wanted = {grant for grant in self.expected_grants() if grant.role in self.roles}
        # A right on the whole table includes its columns.
        return {grant for grant in wanted if not {grant, grant._replace(column="")} & self.grants}

    def findings(self) -> list[SetupProblem]:
        """Everything that is not as it should be."""
        if not self.exists:
            return []
        checks: dict[Topic, Iterable[str]] = {
            "role": self.powers,
            "roles": self._check_roles(),
            "owners": self._check_owners(),
            "functions": self._check_functions(),
            "isolation": [*self._check_tables(), *self._check_policies()],
            "grants": self._check_grants(),
        }
        return [SetupProblem(topic, problem) for topic, problems in checks.items() for problem in problems]

    def _check_roles(self) -> Iterator[str]:
        for name in (OWNER, APP, ADMIN):
            if name not in self.roles:
                yield f"there is no role {name}"
        for role in self.roles.values():
            if role.superuser or role.bypasses:
                yield f"{role.name} is a superuser or has BYPASSRLS"
            if role.becomes and role.name != OWNER:
                yield f"{role.name} is a member of {_listed(role.becomes)}"

    def _check_owners(self) -> Iterator[str]:
        expected = self.expected_owner
        for owner, objects in self.owners.items():
            if owner != expected:
                what = " (a superuser, or with BYPASSRLS)" if owner in self.bypassing else ""
                verb = "belongs" if len(objects) == 1 else "belong"
                yield f"{_counted(objects)} {verb} to {owner}{what} and not to {expected}"

    def _check_functions(self) -> Iterator[str]:
        present = {function.name for function in self.functions}
        for name in our_functions():
            if name not in present:
                yield f"the function {name} is missing"
        for function in self.functions:
            if function.definer and SEARCH_PATH not in function.settings:
                yield f"the function {function.name} runs as its owner without {SEARCH_PATH}"
            if function.name in our_functions() and not function.definer:
                yield f"the function {function.name} does not run as its owner"
        for function in self.changed_functions():
            yield f"the function {function.name} does something else than recollect's"

    def changed_functions(self) -> list[Function]:
        """Those of recollect whose body is not the one of the migrations."""
        scripts = {name: function_script(name, self.schema) for name in our_functions()}
        return [
            function
            for function in self.functions
            if (script := scripts.get(function.name)) is not None and script.body != function.body
        ]

    def _check_tables(self) -> Iterator[str]:
        for name in (*TABLES, *MOVING, LIMITS, _MIGRATIONS):
            if name not in self.tables:
                yield f"the table {name} is missing"
        for relation in self.relations:
            if relation.is_view:
                yield f"the view {relation.name} shows what its owner sees"
            elif relation.needs_policy and not relation.secured:
                yield f"row-level security is not enabled on {relation.name}"
            elif relation.needs_policy and not relation.forced and relation.name != _NOT_FORCED:
                yield f"row-level security is not forced on {relation.name}"

    def _check_policies(self) -> Iterator[str]:
        whole = {(policy.table, policy.name) for policy in self.policies if policy.is_ours}
        for table in self.unprotected():
            yield f"{table} has no policy {POLICY}, or a changed one"
        for table, name in _OF_ROLES if {APP, ADMIN} <= set(self.roles) else ():
            if table in self.tables and (table, name) not in whole:
                yield f"{table} has no policy {name}, or a changed one"
        for policy in self.policies:
            if policy.name != POLICY and (policy.table, policy.name) not in _OF_ROLES:
                yield f"the policy {policy.name} on {policy.table} is not recollect's"

    def unprotected(self) -> list[str]:
        """Tables whose policy is missing or not as recollect makes it."""
        whole = {policy.table for policy in self.policies if policy.is_ours and policy.name == POLICY}
        return [relation.name for relation in self.relations if relation.needs_policy and relation.name not in whole]

    def _check_grants(self) -> Iterator[str]:
        for (role, name), privileges in _grouped(self.wider_grants()):
            yield f"{role} may {privileges} {name}, which is more than recollect grants"
        for (role, name), privileges in _grouped(self.missing_grants()):
            yield f"{role} may not {privileges} {name}"


def summarize(problems: Sequence[str], most: int = 4) -> str:
    """Some problems as one sentence."""
    shown = "; ".join(problems[:most])
    return shown if len(problems) <= most else f"{shown}; and {len(problems) - most} more"


def _grouped(grants: Iterable[Grant]) -> list[tuple[tuple[str, str], str]]:
    groups = defaultdict[tuple[str, str], list[str]](list)
    for grant in sorted(grants):
        column = f" ({grant.column})" if grant.column else ""
        name = grant.name if grant.kind == "table" else f"{grant.kind} {grant.name}"
        groups[grant.role, name].append(f"{grant.privilege}{column}")
    return [(key, _listed(privileges)) for key, privileges in groups.items()]


def _counted(objects: Sequence[str]) -> str:
    """`the schema, 14 tables and 3 functions`, or the object itself if it is only one."""
    if len(objects) == 1:
        return objects[0].lower()
    counts = {kind: sum(1 for name in objects if name.startswith(kind)) for kind in _COUNTED}
    named = [
        f"{count} {_COUNTED[kind]}" if count > 1 else f"a {kind.lower()}" for kind, count in counts.items() if count
    ]
    schema = ["the schema"] if any(name.startswith("SCHEMA") for name in objects) else []
    return _listed([*schema, *named])


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_KINDS = {"v": "VIEW", "m": "MATERIALIZED VIEW", "S": "SEQUENCE", "f": "FOREIGN TABLE"}
_COUNTED = {"TABLE": "tables", "FUNCTION": "functions", "VIEW": "views", "SEQUENCE": "sequences"}

_SCHEMA_OWNER = "SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = %(schema)s"
_ROLES = """SELECT r.rolname::text, r.rolsuper, r.rolbypassrls, ARRAY(
        SELECT o.rolname::text FROM pg_roles o WHERE o.rolname = ANY(%(roles)s) AND o.oid <> r.oid
        AND NOT r.rolsuper AND pg_has_role(r.oid, o.oid, 'MEMBER') ORDER BY 1)
    FROM pg_roles r WHERE r.rolname = ANY(%(roles)s) ORDER BY 1"""
_BYPASSING = "SELECT rolname::text FROM pg_roles WHERE rolsuper OR rolbypassrls"
# What belongs to an extension is the extension's to look after: pgvector may be in the same schema.
_NOT_EXTENSION = "NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = {oid} AND d.deptype = 'e')"
_RELATIONS = f"""SELECT c.relname::text, c.relkind::text, pg_get_userbyid(c.relowner)::text, c.relrowsecurity,
        c.relforcerowsecurity
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND {_NOT_EXTENSION.format(oid="c.oid")} ORDER BY 1"""
_SIGNATURE = "p.proname || '(' || oidvectortypes(p.proargtypes) || ')'"
_FUNCTIONS = f"""SELECT {_SIGNATURE}, pg_get_userbyid(p.proowner)::text, p.prosecdef, coalesce(p.proconfig, '{{}}'),
        p.prosrc
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = %(schema)s AND {_NOT_EXTENSION.format(oid="p.oid")} ORDER BY 1"""
_POLICIES = """SELECT tablename::text, policyname::text, permissive = 'PERMISSIVE', cmd, roles::text[], qual, with_check
    FROM pg_policies WHERE schemaname = %(schema)s ORDER BY 1, 2"""
# Of everybody, of recollect's roles, and of whatever role the connecting one has the rights of. Others, such as a
# login for backups, are the administrator's to decide on.
_GRANTS = f"""SELECT a.kind, a.name, a.attribute, CASE a.grantee WHEN 0 THEN 'PUBLIC'
        ELSE pg_get_userbyid(a.grantee)::text END, a.privilege_type
    FROM (
        SELECT 'schema' AS kind, n.nspname::text AS name, '' AS attribute, n.nspowner AS owner, x.*
            FROM pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) x
            WHERE n.nspname = %(schema)s
        UNION ALL SELECT 'table', c.relname::text, '', c.relowner, x.*
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
            aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) x
            WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
            AND {_NOT_EXTENSION.format(oid="c.oid")}
        UNION ALL SELECT 'table', c.relname::text, t.attname::text, c.relowner, x.*
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) x WHERE n.nspname = %(schema)s
        UNION ALL SELECT 'function', {_SIGNATURE}, '', p.proowner, x.*
            FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace,
            aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x
            WHERE n.nspname = %(schema)s AND {_NOT_EXTENSION.format(oid="p.oid")}
    ) a JOIN pg_roles me ON me.rolname = current_user LEFT JOIN pg_roles r ON r.oid = a.grantee
    WHERE a.grantee <> a.owner AND (a.grantee = 0 OR r.rolname = ANY(%(roles)s)
        OR NOT me.rolsuper AND pg_has_role(a.grantee, 'USAGE'))"""
# What the role that transactions run as must not be able to do. A superuser can do everything, which is said once.
_POWERS = f"""WITH me AS (SELECT * FROM pg_roles WHERE rolname = current_user),
    tables AS (SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p', 'f'))
    SELECT current_user || ' goes past row-level security' FROM me WHERE rolsuper OR rolbypassrls
    UNION ALL SELECT session_user || ' may become ' || r.rolname || ', which goes past row-level security'
        FROM pg_roles r, pg_roles s WHERE s.rolname = session_user AND NOT s.rolsuper AND r.oid <> s.oid
        AND (r.rolsuper OR r.rolbypassrls) AND pg_has_role(s.oid, r.oid, 'MEMBER')
    UNION ALL SELECT session_user || ' is a member of ' || r.rolname FROM pg_roles r, pg_roles s
        WHERE s.rolname = session_user AND NOT s.rolsuper AND r.rolname = ANY(%(powerful)s)
        AND pg_has_role(s.oid, r.oid, 'MEMBER')
    UNION ALL SELECT current_user || ' owns ' || count(*) || ' of the tables' FROM tables, me
        WHERE NOT me.rolsuper AND pg_has_role(tables.relowner, 'USAGE') HAVING count(*) > 0
    UNION ALL SELECT current_user || ' has the rights of ' || r.rolname FROM pg_roles r, me
        WHERE NOT me.rolsuper AND r.rolname IN ('{OWNER}', '{ADMIN}') AND pg_has_role(r.oid, 'USAGE')
        AND r.rolname <> current_user
    UNION ALL SELECT current_user || ' may create things in the schema ' || n.nspname FROM pg_namespace n, me
        WHERE NOT me.rolsuper AND n.nspname = %(schema)s AND has_schema_privilege(n.oid, 'CREATE')
    UNION ALL SELECT current_user || ' may write to ' || relname FROM tables, me WHERE NOT me.rolsuper
        AND relname = '{_MIGRATIONS}' AND has_table_privilege(tables.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
    UNION ALL SELECT current_user || ' may empty, reference or put triggers on ' || relname FROM tables, me
        WHERE NOT me.rolsuper AND has_table_privilege(tables.oid, 'TRUNCATE, REFERENCES, TRIGGER')
    UNION ALL SELECT current_user || ' may read the statistics of the system' FROM me
        WHERE NOT me.rolsuper AND has_table_privilege('pg_statistic', 'SELECT')"""
