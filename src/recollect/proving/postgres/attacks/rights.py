"""Rights that the application must not have, and what the catalogue says of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from recollect.proving.postgres.isolation import Attack, Siege
from recollect.stores.postgres.admin.setup import ADMIN, APP, OWNER
from recollect.stores.postgres.connections import driver

_TRIGGER = "suppress_redundant_updates_trigger"


def attacks(siege: Siege) -> list[Attack]:
    return [*_rights(siege), *_becoming(), _catalogue()]


def _rights(siege: Siege) -> list[Attack]:
    tables = [f"{{s}}.{table}" for table in siege.tables]
    return [
        Attack(
            "switch it off",
            "row-level security was switched off: for the session, on the tables, by policies",
            [
                *(["SET LOCAL row_security = off", f"SELECT tenant FROM {table} WHERE {{others}}"] for table in tables),
                *([f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"] for table in tables),
                *([f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY"] for table in tables),
                *([f"CREATE POLICY spy ON {table} USING (true)"] for table in tables),
                *([f"DROP POLICY own_tenant ON {table}"] for table in tables),
                *([f"ALTER POLICY own_tenant ON {table} USING (true)"] for table in tables),
                ["SET LOCAL session_replication_role = replica"],
            ],
            "refused",
        ),
        Attack(
            "change the schema",
            "tables were emptied, dropped, renamed, given triggers and rules, and written that say what is set up",
            [
                *([f"TRUNCATE {table}"] for table in tables),
                *([f"DROP TABLE {table}"] for table in tables),
                ["ALTER TABLE {s}.memories RENAME TO old"],
                [f"CREATE TRIGGER spy AFTER INSERT ON {{s}}.contents EXECUTE FUNCTION {_TRIGGER}()"],
                ["CREATE RULE spy AS ON INSERT TO {s}.contents DO ALSO NOTIFY spy"],
                ["DROP SCHEMA {s} CASCADE"],
                ["INSERT INTO {s}.migrations VALUES (99, 'forged')"],
                ["UPDATE {s}.migrations SET name = 'forged'"],
                ["DELETE FROM {s}.migrations"],
            ],
            "refused",
        ),
    ]


def _becoming() -> list[Attack]:
    return [
        Attack(
            "become somebody else",
            "the session became the owner, the administrator, and whoever may do anything",
            [
                *([f"SET ROLE {role}", "SELECT 1"] for role in (OWNER, ADMIN)),
                *([f"SET SESSION AUTHORIZATION {role}", "SELECT 1"] for role in (OWNER, ADMIN)),
                [f"ALTER ROLE {APP} BYPASSRLS"],
                [f"GRANT {OWNER} TO {APP}"],
                ["SELECT pg_read_file('PG_VERSION')"],
                ["SELECT lo_import('/etc/passwd')"],
                ["COPY {s}.places TO PROGRAM 'cat'"],
            ],
            "refused",
            login=True,
        ),
        Attack(
            "leave the role",
            "RESET ROLE and SET ROLE NONE, then every table was read",
            by=_left,
            login=True,
        ),
    ]


def _left(siege: Siege) -> str:
    """What is left of a login when the role that it took on is laid down."""
    for leave in ("RESET ROLE", "SET ROLE NONE", "RESET SESSION AUTHORIZATION"):
        for table in siege.tables:
            script = [leave, f"SELECT {siege.columns(table)} FROM {{s}}.{table} WHERE {{others}}"]
            with suppress(driver().Error):
                if siege.answer(script, siege.victim, siege.attacker.tenant).rows:
                    return f"after {leave} the rows of others were there"
    return ""


def _catalogue() -> Attack:
    """What is in the schema, whatever it is: a table that somebody adds later is not forgotten here."""
    return Attack(
        "the catalogue",
        "every table, view, policy and function in the schema was looked at for one that lets others through",
        [[question] for question in _questions()],
        "nothing",
        control=False,
    )


def _questions() -> Sequence[str]:
    ours = "JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = {schema}"
    tables = f"FROM pg_class c {ours} AND c.relkind IN ('r', 'p', 'f')"
    kept = "AND c.relname <> 'migrations'"
    public = "SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee = 0"
    return (
        f"SELECT c.relname, 'has no row-level security' {tables} WHERE NOT c.relrowsecurity {kept}",
        f"""SELECT c.relname, 'does not force it' {tables}
            WHERE NOT c.relforcerowsecurity {kept} AND c.relname <> 'search'""",
        f"""SELECT c.relname, 'has no policy' {tables}
            WHERE NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid) {kept}""",
        f"""SELECT tablename, policyname, 'lets others through' FROM pg_policies WHERE schemaname = {{schema}}
            AND permissive = 'PERMISSIVE' AND (qual IS DISTINCT FROM {_POLICY} OR with_check IS NOT NULL)
            AND NOT (tablename IN ('places', 'placements') AND cmd = 'SELECT' AND roles = ARRAY['{ADMIN}']::name[])""",
        f"SELECT c.relname, 'is this role''s own' {tables} WHERE pg_has_role(c.relowner, 'USAGE')",
        f"SELECT c.relname, 'shows what its owner sees' FROM pg_class c {ours} AND c.relkind IN ('v', 'm')",
        "SELECT 'this role goes past row-level security' FROM pg_roles WHERE rolname = current_user AND "
        "(rolbypassrls OR rolsuper)",
        f"""SELECT 'this role is an administrator' FROM pg_roles
            WHERE rolname IN ('{ADMIN}', '{OWNER}') AND pg_has_role(oid, 'USAGE')""",
        "SELECT 'this role makes things in the schema' WHERE has_schema_privilege({schema}, 'CREATE')",
        f"""SELECT c.relname, 'can be written' {tables} AND c.relname = 'migrations'
            WHERE has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')""",
        f"""SELECT c.relname, 'can be emptied, or watched' {tables}
            WHERE has_table_privilege(c.oid, 'TRUNCATE, REFERENCES, TRIGGER')""",
        f"""SELECT p.proname, 'is anybody''s to run, or takes names from whoever calls it' FROM pg_proc p
            JOIN pg_namespace n ON n.oid = p.pronamespace AND n.nspname = {{schema}} WHERE EXISTS ({public})
            AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') -- not an extension's
            OR p.prosecdef AND NOT coalesce(p.proconfig, '{{}}') @> ARRAY['search_path=pg_catalog, pg_temp']""",
    )


_POLICY = "'(tenant = NULLIF(current_setting(''recollect.tenant''::text, true), ''''::text))'"
"""As the server writes it."""
