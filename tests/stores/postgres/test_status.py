"""`recollect db status` names what is not as recollect sets a server up; `prove isolation` goes by the same list."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import msgspec
import pytest
from support.command_line import called
from support.deployed import Deployment, deployed
from support.postgres import DSN, shared

from recollect.proving.postgres.attacks import attacks
from recollect.proving.postgres.isolation import Siege, TenantNames
from recollect.stores import open_store
from recollect.stores.postgres.admin.setup import SetupFacts
from recollect.stores.postgres.admin.status import check_version
from recollect.stores.postgres.store import Postgres

pytestmark = pytest.mark.clause("ATL-18")

HAVING = "FUNCTION {s}.having(text, text, text[])"
TENANT = "tenant = nullif(current_setting('recollect.tenant', true), '')"
BROKEN: dict[str, tuple[str, str, str]] = {
    "a table of a superuser": (
        "ALTER TABLE {s}.tags OWNER TO {super}",
        "owners",
        'table {s}."tags" belongs to {super} (a superuser, or with BYPASSRLS) and not to recollect_owner',
    ),
    "a schema of a superuser": ("ALTER SCHEMA {s} OWNER TO {super}", "owners", "schema {s} belongs to {super}"),
    "a table of somebody else": (
        "ALTER TABLE {s}.tags OWNER TO recollect_admin",
        "owners",
        "belongs to recollect_admin",
    ),
    "a function of a superuser": (
        f"ALTER {HAVING} OWNER TO {{super}}",
        "owners",
        "having(text, text, text[]) belongs to",
    ),
    "all of it a superuser's": (
        "ALTER SCHEMA {s} OWNER TO {super}; ALTER TABLE {s}.tags OWNER TO {super}; "
        f"ALTER TABLE {{s}}.audit OWNER TO {{super}}; ALTER {HAVING} OWNER TO {{super}}",
        "owners",
        "the schema, 2 tables and a function belong to {super}",
    ),
    "another function": (
        """CREATE OR REPLACE FUNCTION {s}.having(of_tenant text, of_workspace text, queries text[])
        RETURNS TABLE (number integer, seq bigint) LANGUAGE sql SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp AS 'SELECT 1, seq FROM {s}.search'""",
        "functions",
        "having(text, text, text[]) does something else than recollect's",
    ),
    "another search path": (f"ALTER {HAVING} SET search_path = public", "functions", "without search_path=pg_catalog"),
    "no search path": (f"ALTER {HAVING} RESET search_path", "functions", "without search_path=pg_catalog"),
    "a function that runs as its caller": (
        f"ALTER {HAVING} SECURITY INVOKER",
        "functions",
        "does not run as its owner",
    ),
    "a missing function": (
        "DROP FUNCTION {s}.drop_place(text, text)",
        "functions",
        "drop_place(text, text) is missing",
    ),
    "a function for everybody": (
        f"GRANT EXECUTE ON {HAVING} TO PUBLIC",
        "grants",
        "PUBLIC may EXECUTE function having(text, text, text[]), which is more",
    ),
    "no policy": ("DROP POLICY own_tenant ON {s}.tags", "isolation", "tags has no policy own_tenant"),
    "a changed policy": (
        "ALTER POLICY own_tenant ON {s}.tags USING (true)",
        "isolation",
        "tags has no policy own_tenant",
    ),
    "a policy for changes": (
        f"ALTER POLICY own_tenant ON {{s}}.tags USING ({TENANT}) WITH CHECK (true)",
        "isolation",
        "tags has no policy own_tenant, or a changed one",
    ),
    "a policy of nobody": ("CREATE POLICY spy ON {s}.tags USING (true)", "isolation", "policy spy on tags is not"),
    "no policy for administrators": ("DROP POLICY all_tenants ON {s}.places", "isolation", "no policy all_tenants"),
    "not enabled": ("ALTER TABLE {s}.tags DISABLE ROW LEVEL SECURITY", "isolation", "not enabled on tags"),
    "not forced": ("ALTER TABLE {s}.tags NO FORCE ROW LEVEL SECURITY", "isolation", "not forced on tags"),
    "a partition without": (
        "ALTER TABLE {s}.vectors_3 DISABLE ROW LEVEL SECURITY",
        "isolation",
        "enabled on vectors_3",
    ),
    "a view": ("CREATE VIEW {s}.everything AS SELECT * FROM {s}.contents", "isolation", "the view everything shows"),
    "a missing table": ("DROP TABLE {s}.changes", "isolation", "the table changes is missing"),
    "more rights": (
        "GRANT UPDATE, DELETE ON {s}.audit TO recollect_app",
        "grants",
        "recollect_app may DELETE and UPDATE audit, which is more than recollect grants",
    ),
    "a right on a column": (
        "GRANT UPDATE (sealed) ON {s}.places TO recollect_app",
        "grants",
        "recollect_app may UPDATE (sealed) places, which is more",
    ),
    "rights of everybody": ("GRANT SELECT ON {s}.contents TO PUBLIC", "grants", "PUBLIC may SELECT contents"),
    "rights of the login itself": (
        "GRANT SELECT ON {s}.search TO {login}",
        "grants",
        "may SELECT search, which is more",
    ),
    "fewer rights": ("REVOKE SELECT ON {s}.tags FROM recollect_app", "grants", "recollect_app may not SELECT tags"),
    "a login that makes tables": ("GRANT CREATE ON SCHEMA {s} TO {login}", "role", "may create things in the schema"),
    "a login that owns a table": ("ALTER TABLE {s}.tags OWNER TO {login}", "role", "owns 1 of the tables"),
    "a login that reads everything": ("GRANT pg_read_all_data TO {login}", "role", "is a member of pg_read_all_data"),
    "a login that may become a superuser": (
        "GRANT {super} TO {login}",
        "role",
        "may become {super}, which goes past",
    ),
    "system tables that can be read": ("GRANT SELECT ON pg_statistic TO {login}", "role", "read the statistics"),
}


def checks(deployment: Deployment) -> dict[str, dict[str, Any]]:
    answer = called("db", "status", "--json", "--store", deployment.location)
    report = json.loads(answer.stdout)
    problems = [check for check in report["checks"] if check["level"] == "problem"]
    assert (answer.returncode == 0, report["ok"]) == (not problems, not problems)
    return {check["name"]: check for check in report["checks"]}


def proven(deployment: Deployment) -> str:
    """What `prove isolation` says of the catalogue. Its tenants are not made: what is broken may not let them."""
    with closing(open_store(deployment.location)) as store:
        assert isinstance(store, Postgres)
        names = TenantNames("nobody", "default", "id", 1, "id", "shelf", "key", "id")
        siege = Siege(store.server, "nobody", names, names, names, "secret")
        (catalogue,) = [attack for attack in attacks(siege) if attack.name == "the catalogue"]
        assert catalogue.by is not None
        return catalogue.by(siege)


def test_as_it_is_set_up_nothing_is_wrong() -> None:
    with deployed() as deployment:
        assert {check["level"] for check in checks(deployment).values()} - {"note"} == {"ok"}
        assert proven(deployment) == ""


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_broken_is_named_by_the_status_and_by_the_proof(broken: str) -> None:
    superuser = shared().psql("SELECT current_user::text")[0][0]
    sabotage, topic, problem = (part.replace("{super}", superuser) for part in BROKEN[broken])
    if DSN and "vectors_" in sabotage:
        pytest.skip("vectors may not be partitioned there")
    with deployed(sabotage) as deployment:
        check, proof = checks(deployment)[topic], proven(deployment)
    expected = problem.replace("{s}", deployment.schema)
    assert check["level"] == "problem"
    assert any(expected in detail for detail in check["details"]), check
    assert expected in proof


def test_the_output_shows_a_line_for_each_check() -> None:
    with deployed("GRANT DELETE ON {s}.audit TO recollect_app") as deployment:
        answer = called("db", "status", "--store", deployment.location)
    lines = [line.split()[:2] for line in answer.stdout.splitlines() if line[:1].strip()]
    names = ["server", "schema", "role", "roles", "owners", "functions", "isolation", "grants", "meaning"]
    assert [name for name, _ in lines][: len(names)] == names
    assert ["grants", "problem"] in lines
    assert "run `recollect db upgrade` as a superuser" in " ".join(answer.stdout.split())


def test_a_server_that_is_too_old_is_named() -> None:
    seen = SetupFacts(
        140012, "app", False, False, False, "d", None, False, False, None, None, True, False, False, (), ()
    )
    check = check_version(seen)
    assert (check.level, "PostgreSQL 14.12" in check.told, "15 or newer" in check.told) == ("problem", True, True)
    assert all(check_version(_at(seen, version)).level == "ok" for version in (150000, 160004, 170002, 180006))


def _at(seen: SetupFacts, version: int) -> SetupFacts:
    return msgspec.structs.replace(seen, version=version)
