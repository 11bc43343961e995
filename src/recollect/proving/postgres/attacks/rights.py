"""Rights that the application must not have, and what the catalogue says of them."""

from __future__ import annotations

from contextlib import suppress

from recollect.proving.postgres.isolation import Attack, Siege
from recollect.stores.postgres.admin.catalogue import Catalogue, summarize
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
        "every role, table, view, policy, function and grant of the schema was looked at, as `db status` does",
        by=_findings,
    )


def _findings(siege: Siege) -> str:
    with siege.connected() as connection:
        for statement in siege.beginning(siege.attacker.tenant):
            connection.execute(statement)
        findings = Catalogue(connection, siege.location.schema).findings()
    return summarize([finding.problem for finding in findings])
