"""The schema on a server: what is there, bringing it up to date, and the roles that keep tenants apart.

Numbered migrations, each with its record in one transaction, under a lock: of ten processes that start at once one
works and nine wait. A role that may not do it is told what somebody else has to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from recollect.stores.postgres.admin.grants import grants_script
from recollect.stores.postgres.admin.migrations import LOCK_TIMEOUT, build_indexes, parts_of, with_short_locks
from recollect.stores.postgres.connections import Connection, Location
from recollect.values.errors import AccessError, SchemaError

OWNER, APP, ADMIN = "recollect_owner", "recollect_app", "recollect_admin"
_SCRIPTS = Path(__file__).parents[1] / "schema"
_MIGRATIONS = tuple(sorted(_SCRIPTS.glob("[0-9]*.sql")))
SCHEMA = len(_MIGRATIONS)
_PARTITIONS = 16
# Nobody is granted anything on a partition; whoever were, would still see the rows of one tenant only.
_PART = """CREATE TABLE {schema}.{vectors}_{n} PARTITION OF {schema}.{vectors}
    FOR VALUES WITH (MODULUS {all}, REMAINDER {n});
ALTER TABLE {schema}.{vectors}_{n} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.{vectors}_{n} FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.{vectors}_{n}
    USING (tenant = nullif(current_setting('recollect.tenant', true), ''))"""
TABLES = ("places", "memories", "contents", "tags", "embeddings", "search", "audit", "undo_items", "things")
"""Those that are always there. `places` comes first: the others are kept where it is."""
MOVING = ("placements", "moves", "changes")
"""Those that say which server a tenant is on, and hold nothing of it."""
LIMITS = "limits"
"""The one that says how much a tenant may store."""

_FACTS = """SELECT current_setting('server_version_num')::int, current_user::text, r.rolsuper OR r.rolbypassrls,
    r.rolsuper OR r.rolcreaterole, has_database_privilege(current_database(), 'CREATE'), current_database()::text,
    (SELECT n.nspname::text FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
        JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = 'halfvec' WHERE e.extname = 'vector'),
    EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector'),
    EXISTS (SELECT FROM pg_extension WHERE extname = 'citus'),
    (SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = %(schema)s),
    (SELECT pg_has_role(current_user, nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = %(schema)s),
    current_setting('row_security')::boolean,
    to_regclass(%(migrations)s) IS NOT NULL, to_regclass(%(vectors)s) IS NOT NULL,
    (SELECT array_agg(rolname::text) FROM pg_roles
        WHERE rolname IN ('recollect_owner', 'recollect_app', 'recollect_admin')
        AND pg_has_role(current_user, oid, 'MEMBER')),
    (SELECT array_agg(rolname::text) FROM pg_roles
        WHERE rolname IN ('recollect_owner', 'recollect_app', 'recollect_admin'))
    FROM pg_roles r WHERE r.rolname = current_user"""


_ON_CITUS = [
    "SET LOCAL citus.propagate_set_commands = 'local'",
    # A function that is called for a row runs on the row's worker, and reads other rows of the tenant there.
    "SET LOCAL citus.allow_nested_distributed_execution = on",
]


class SetupFacts(msgspec.Struct, frozen=True):
    """What there is, as the connecting role sees it."""

    version: int
    user: str
    unbound: bool
    """Whether row-level security does not hold for it."""
    makes_roles: bool
    creates: bool
    database: str
    extensions: str | None
    """The schema that pgvector is in."""
    vector_available: bool
    citus: bool
    owner: str | None
    """Of our schema; None where there is none."""
    owns: bool | None
    """Whether it is that owner, or may act as it."""
    row_security: bool
    """Whether it is as it comes. Off, questions that row-level security would narrow are refused."""
    begun: bool
    vectors: bool
    """Whether there is a table of them."""
    member_of: tuple[str, ...]
    roles: tuple[str, ...]
    migrations: int = 0

    @property
    def role(self) -> str | None:
        """What each transaction becomes, so that row-level security holds for it whoever connects."""
        strong = self.unbound or self.owner == self.user or OWNER in self.member_of or ADMIN in self.member_of
        return APP if strong and APP in self.member_of else None

    @property
    def may_upgrade(self) -> bool:
        return self.creates if self.owner is None else bool(self.owns)

    @property
    def begin(self) -> list[str]:
        """What every transaction begins with after its BEGIN."""
        # On Citus the settings behind this one reach the workers, which run the statements.
        travels = _ON_CITUS if self.citus else []
        # Compiling a statement (JIT) takes seconds, and what is asked here takes milliseconds.
        return [*travels, "SET LOCAL jit = off", *([] if self.row_security else ["SET LOCAL row_security = on"])]


def facts(connection: Connection, schema: str) -> SetupFacts:
    names = {"schema": schema, "migrations": f"{schema}.migrations", "vectors": f"{schema}.vectors"}
    try:
        *plain, members, roles = connection.execute(_FACTS, names).fetchone()
        seen = SetupFacts(*plain, member_of=tuple(members or ()), roles=tuple(roles or ()))
        if not seen.begun:
            return seen
        (done,) = connection.execute(f"SELECT coalesce(max(number), 0) FROM {schema}.migrations").fetchone()
    except Exception as error:
        if getattr(error, "sqlstate", None) == "42501":
            user = connection.info.user
            raise AccessError(
                f"the role {user} may not use the schema {schema}: have an administrator run `GRANT {APP} TO {user}`, "
                f"or `GRANT {OWNER} TO {user}` for who is to upgrade it"
            ) from error
        raise
    return msgspec.structs.replace(seen, migrations=done)


def ready(connection: Connection, location: Location) -> SetupFacts:
    """The facts of a server that can be worked with: brought up to date if this role may do that."""
    seen = facts(connection, location.schema)
    if seen.migrations > SCHEMA:
        raise SchemaError(
            f"{location.shown} has schema {seen.migrations}; this recollect knows up to {SCHEMA}. "
            "Upgrade recollect; nothing was changed"
        )
    if seen.migrations == SCHEMA:
        return seen
    if not seen.may_upgrade:
        what = f"has the older schema {seen.migrations}" if seen.begun else "has no recollect schema yet"
        raise SchemaError(
            f"{location.shown} {what}, and the role {seen.user} may not change that: have an administrator run "
            "`recollect db upgrade`"
        )
    upgrade(connection, location)
    return facts(connection, location.schema)


def upgrade(connection: Connection, location: Location) -> list[str]:
    """Bring the schema up to date. Returns what was done."""
    schema, done = location.schema, list[str]()
    seen = facts(connection, schema)
    if seen.extensions is None and seen.vector_available and _may_extend(connection):
        done.append("installed the extension vector")
    done += _make_roles(connection, schema)
    _make_schema(connection, location)
    for number, script in enumerate(_MIGRATIONS, 1):
        if with_short_locks(partial(_migrate, connection, location, number, script)):
            done.append(f"migration {script.stem}")
    with_short_locks(partial(_add_vectors, connection, location))
    if facts(connection, schema).vectors and not seen.vectors:
        done.append("a table of vectors")
    with_short_locks(partial(_distribute, connection, location))
    with_short_locks(partial(grant, connection, location))
    seen = facts(connection, schema)
    if seen.may_upgrade:
        owner = None if seen.owner == seen.user else seen.owner
        done += [f"the index {name}" for name in build_indexes(connection, schema, owner, list(scripts().values()))]
    return done


def scripts() -> dict[str, str]:
    """The migrations by name, in their order."""
    return {script.stem: script.read_text() for script in _MIGRATIONS}


def _locked(connection: Connection, location: Location) -> SetupFacts:
    """Inside a transaction: nobody else changes the schema until it ends."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s), 7265)", (location.schema,))
    seen = facts(connection, location.schema)
    if seen.citus:
        # One schema at a time: two that are made at once wait for each other on different workers.
        connection.execute("SELECT pg_advisory_xact_lock(7265, 4)")
        # By default Citus changes the shards of a table at the same time, over several connections, after which the
        # transaction cannot change any object that they all depend on.
        connection.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
    # Not before: whoever waits for another upgrade waits for as long as it takes, and is in nobody's way.
    timeout = f"SET LOCAL lock_timeout = {int(LOCK_TIMEOUT * 1000)}"
    # To the workers goes nothing else: Citus changes their catalogue as somebody who may, and the role would follow.
    propagates = "SET LOCAL citus.propagate_set_commands = "
    for statement in (f"{propagates}'local'", timeout, f"{propagates}'none'") if seen.citus else (timeout,):
        connection.execute(statement)
    return seen


def _may_extend(connection: Connection) -> bool:
    """pgvector, if this role may install it. Without it recall is by words."""
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(7265, 1)")
            # Named, because there may be nothing on the search path.
            ((schema,),) = connection.execute("SELECT coalesce(current_schema(), 'public')").fetchall()
            connection.execute(f'CREATE EXTENSION IF NOT EXISTS vector SCHEMA "{schema}"')
    except Exception as error:
        if getattr(error, "sqlstate", None) in ("42501", "0A000", "3F000", "58P01", "XX000"):
            return False
        raise
    return True


def _make_roles(connection: Connection, schema: str) -> list[str]:
    seen = facts(connection, schema)
    if not seen.makes_roles:
        return []
    made = [role for role in (OWNER, APP, ADMIN) if role not in seen.roles]
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(7265, 2)")
        for statement in roles_sql(seen.user, seen.database, seen.citus):
            connection.execute(statement)
    return [f"the role {role}" for role in made]


def roles_sql(user: str, database: str, citus: bool) -> list[str]:
    """What an administrator runs where we may not: safe to run again."""
    # On Citus the coordinator connects to the workers as the current role, so each must be able to log in there.
    login = "LOGIN" if citus else "NOLOGIN"
    made = [
        f"""DO $$ BEGIN CREATE ROLE {role} {login} NOSUPERUSER NOBYPASSRLS;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"""
        for role in (OWNER, APP, ADMIN)
    ]
    if citus:
        made += [f"ALTER ROLE {role} LOGIN" for role in (OWNER, APP, ADMIN)]
    quoted = '"' + user.replace('"', '""') + '"'
    database = '"' + database.replace('"', '""') + '"'
    return [
        *made,
        f"GRANT CREATE ON DATABASE {database} TO {OWNER}",
        *(f"GRANT {role} TO {quoted}" for role in (OWNER, APP, ADMIN)),
    ]


def _migrate(connection: Connection, location: Location, number: int, script: Path) -> bool:
    schema = location.schema
    with connection.transaction():
        seen = _locked(connection, location)
        if seen.migrations >= number:
            return False
        _as_owner(connection, seen)
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {schema}.migrations (number integer PRIMARY KEY, name text NOT NULL, "
            "at timestamptz NOT NULL DEFAULT now())"
        )
        _run(connection, parts_of(script.read_text())[0], schema=schema)
        connection.execute(
            f"INSERT INTO {schema}.migrations (number, name) VALUES (%s, %s)",
            (number, script.stem),
        )
        if number == SCHEMA:  # with it, so that nobody finds an up-to-date schema that the application may not use
            _add_vectors(connection, location)
            _distribute(connection, location)
            grant(connection, location)
    return True


def _make_schema(connection: Connection, location: Location) -> None:
    """In a transaction of its own: Citus makes it on the workers when that ends, and needs it there for the tables."""
    with connection.transaction():
        seen = _locked(connection, location)
        if seen.owner is None:
            owner = OWNER if OWNER in seen.member_of else seen.user
            connection.execute(f'CREATE SCHEMA {location.schema} AUTHORIZATION "{owner}"')


def _as_owner(connection: Connection, seen: SetupFacts) -> None:
    if seen.owner != seen.user:
        connection.execute(f'SET LOCAL ROLE "{seen.owner}"')


def _run(connection: Connection, script: str, **names: str) -> None:
    for name, value in names.items():
        script = script.replace(f"{{{name}}}", value)
    for statement in statements_of(script):
        connection.execute(statement, prepare=False)


def statements_of(script: str) -> Iterator[str]:
    """The statements of a script, one by one: Citus sends the whole text of a command to the workers.

    In our scripts each begins on a line of its own and ends with a semicolon at the end of a line.
    """
    lines, in_body = list[str](), False
    for line in script.splitlines():
        if line.startswith("--") or not (line.strip() or lines):
            continue
        lines.append(line)
        in_body ^= line.count("$$") % 2 == 1
        if not in_body and line.endswith(";"):
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


_WITH_TENANT = """SELECT c.oid, c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r' AND a.attname = 'tenant'
    ORDER BY c.relname <> 'places', c.relname"""
_DISTRIBUTED = "SELECT logicalrelid::oid FROM pg_dist_partition"
_DEFAULTS = """SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = %s::regnamespace AND c.relname = 'places' AND a.atthasdef ORDER BY 1"""


def undistributed(connection: Connection, schema: str) -> list[str]:
    """On Citus: the tables of tenants that are on the coordinator alone. Compared here, by two plain questions."""
    spread = {oid for (oid,) in connection.execute(_DISTRIBUTED).fetchall()}
    return [name for oid, name in connection.execute(_WITH_TENANT, (schema,)).fetchall() if oid not in spread]


def _distribute(connection: Connection, location: Location) -> None:
    """On Citus: by tenant, all of a tenant on one worker."""
    schema = location.schema
    with connection.transaction():
        seen = _locked(connection, location)
        if not seen.citus or seen.migrations < SCHEMA or not seen.may_upgrade:
            return
        _as_owner(connection, seen)
        # A place is made by its name alone, and Citus would write these, for which the application has no right.
        for (column,) in connection.execute(_DEFAULTS, (schema,)).fetchall():
            connection.execute(f"ALTER TABLE {schema}.places ALTER COLUMN {column} DROP DEFAULT")
            connection.execute(f"ALTER TABLE {schema}.places ALTER COLUMN {column} DROP NOT NULL")
        for table in undistributed(connection, schema):
            with_whom = "none" if table == "places" else f"{schema}.places"
            # Rows that are there are copied to the workers, which is refused while the policies hold for the owner.
            connection.execute(f"ALTER TABLE {schema}.{table} NO FORCE ROW LEVEL SECURITY")
            connection.execute(
                "SELECT create_distributed_table(%s, 'tenant', colocate_with => %s)", (f"{schema}.{table}", with_whom)
            )
            if table != "search":
                connection.execute(f"ALTER TABLE {schema}.{table} FORCE ROW LEVEL SECURITY")


def _add_vectors(connection: Connection, location: Location) -> bool:
    """A table to compare vectors in, also where pgvector came later than the memories: those are embedded anew."""
    schema = location.schema
    with connection.transaction():
        seen = _locked(connection, location)
        if seen.vectors or seen.extensions is None:
            return False
        _as_owner(connection, seen)
        make_vectors(connection, schema, seen, "vectors", 0 if seen.citus else _PARTITIONS)
        # Row-level security is off for a moment, for the owner alone and in this transaction: all are to be embedded.
        _run(
            connection,
            """ALTER TABLE {schema}.memories NO FORCE ROW LEVEL SECURITY;
            UPDATE {schema}.memories SET embedded = NULL WHERE embedded IS NOT NULL;
            ALTER TABLE {schema}.memories FORCE ROW LEVEL SECURITY""",
            schema=schema,
        )
    return True


def make_vectors(connection: Connection, schema: str, seen: SetupFacts, table: str, partitions: int) -> None:
    """A table of vectors, as the owner. Without partitions where it is distributed."""
    whole = "PARTITION BY HASH (tenant)" if partitions else ""
    names = {"schema": schema, "extensions": f'"{seen.extensions}"', "partitioned": whole, "vectors": table}
    _run(connection, (_SCRIPTS / "vectors.sql").read_text(), **names)
    for n in range(partitions):
        _run(connection, _PART, schema=schema, vectors=table, n=str(n), all=str(partitions))


def grant(connection: Connection, location: Location) -> None:
    with connection.transaction():
        seen = _locked(connection, location)
        if not seen.may_upgrade or not {APP, ADMIN} <= set(seen.roles):
            return
        _as_owner(connection, seen)
        _run(connection, grants_script(seen.vectors), schema=location.schema, app=APP, admin=ADMIN)
