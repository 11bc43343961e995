"""From `pg_dump` to a server that works: with recollect's roles made before `pg_restore`, and without."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import called
from support.concepts import Concepts
from support.postgres import DSN, Server

from recollect import Memory
from recollect.proving.isolation import besieged

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(DSN), reason="needs servers of its own")]
TENANTS = ("acme", "globex")


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a database with two tenants."""
    path = tmp_path_factory.mktemp("dump") / "memories.dump"
    with Server() as server:
        server.psql("CREATE DATABASE memories")
        with Memory(server.url("memories"), embedder=Concepts()) as memory:
            for tenant in TENANTS:
                view = memory.at(tenant=tenant)
                view.remember("Ute sold her automobile", tags=["sales"])
                view.remember_many([f"{tenant} keeps number {n}" for n in range(5)])
                view.forget(view.remember("to be forgotten").id)
                view.conversations.start("about cars")
                view.embed()
        server.dump(path, "memories")
    return path


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.psql("CREATE DATABASE memories")
        yield server


@pytest.fixture(scope="module")
def other() -> Iterator[Server]:
    """One that tests of single faults share, each in a database of its own, with the roles made."""
    with Server() as server:
        called("db", "upgrade", "--store", server.url())
        yield server


@pytest.fixture
def restored(other: Server, dump: Path) -> tuple[Server, str]:
    database = f"db_{secrets.token_hex(4)}"
    other.psql(f"CREATE DATABASE {database}")
    assert other.restore(dump, database) == ""
    return other, database


def check(url: str) -> tuple[int, dict[str, Any]]:
    answer = called("db", "restore-check", "--json", "--store", url)
    checks = json.loads(answer.stdout)["checks"]
    return answer.returncode, {check["name"]: check for check in checks}


def problems(checks: dict[str, Any]) -> set[str]:
    return {name for name, check in checks.items() if check["level"] == "problem"}


def works(server: Server) -> None:
    """An application reads and writes there, both tenants apart."""
    server.psql("CREATE ROLE app LOGIN IN ROLE recollect_app", "memories")
    url = server.url("memories", user="app")
    with Memory(url, embedder=Concepts()) as memory:
        for tenant in TENANTS:
            view = memory.at(tenant=tenant)
            view.remember("a new one after the restore")
            view.embed()
            assert [hit.memory.content for hit in view.recall("car")] == ["Ute sold her automobile"]
            assert len(view.list()) == 7
            assert {record.content for record in view.list(contains="keeps")} == {
                f"{tenant} keeps number {n}" for n in range(5)
            }
            assert view.verify() == []
            assert all(log.ok for log in view.audit.verify())
            assert view.undo() is not None
    status = called("db", "status", "--json", "--store", url)
    assert status.returncode == 0, status.stdout
    with besieged(url) as proof:
        assert [outcome for outcome in proof.outcomes() if outcome.verdict != "held"] == []
    assert check(server.url("memories"))[0] == 0


def test_with_the_roles_made_first(server: Server, dump: Path) -> None:
    url = server.url("memories")
    server.psql(called("db", "roles", "--store", url).stdout, "memories")
    assert server.restore(dump, "memories") == ""
    assert check(url)[0] == 0
    upgraded = json.loads(called("db", "upgrade", "--json", "--store", url).stdout)
    assert upgraded == {"done": [], "repaired": [], "left": []}
    works(server)


def test_without_the_roles(server: Server, dump: Path) -> None:
    url = server.url("memories")
    assert 'role "recollect_owner" does not exist' in server.restore(dump, "memories")
    for words in (("db", "restore-check"), ("db", "status")):
        answer = called(*words, "--json", "--store", url)
        checks = {one["name"]: one for one in json.loads(answer.stdout)["checks"]}
        assert answer.returncode == 1
        assert {"roles", "owners"} <= problems(checks)
        assert "functions belong to postgres (a superuser" in checks["owners"]["told"]
    proof = called("prove", "isolation", "--store", url)
    assert (proof.returncode, "Nothing is proven for postgres" in proof.stdout, proof.stderr) == (1, True, "")
    upgraded = json.loads(called("db", "upgrade", "--json", "--store", url).stdout)
    assert "the role recollect_owner" in upgraded["done"]
    assert any("belong to postgres" in line for line in upgraded["repaired"])
    assert check(url)[0] == 0
    works(server)


def test_without_owners_and_privileges(other: Server, dump: Path) -> None:
    database = f"db_{secrets.token_hex(4)}"
    other.psql(f"CREATE DATABASE {database}")
    other.restore(dump, database, "--no-owner", "--no-privileges")
    code, checks = check(other.url(database))
    assert (code, {"owners", "grants"} <= problems(checks)) == (1, True)
    assert called("db", "upgrade", "--store", other.url(database)).returncode == 0
    assert check(other.url(database))[0] == 0


def test_who_may_not_repair_is_told_what_to_run(other: Server, dump: Path) -> None:
    database = f"db_{secrets.token_hex(4)}"
    other.psql(f"CREATE DATABASE {database}")
    other.restore(dump, database, "--no-owner")
    other.psql(f"CREATE ROLE {database} LOGIN IN ROLE recollect_owner, recollect_app")
    url = other.url(database, user=database)
    before = other.psql("SELECT relname, relowner, relacl FROM pg_class ORDER BY oid", database)
    answer = called("db", "upgrade", "--store", url)
    assert answer.returncode == 1
    assert "Run `recollect db upgrade` as a superuser of this server" in answer.stderr
    assert "belong to postgres" in answer.stderr
    assert other.psql("SELECT relname, relowner, relacl FROM pg_class ORDER BY oid", database) == before


REPAIRED = {
    "a table of a superuser": "ALTER TABLE recollect.tags OWNER TO postgres",
    "a partition of a superuser": "ALTER TABLE recollect.vectors_3 OWNER TO postgres",
    "a schema of a superuser": "ALTER SCHEMA recollect OWNER TO postgres",
    "a function of a superuser": "ALTER FUNCTION recollect.having(text, text, text[]) OWNER TO postgres",
    "a function with another path": "ALTER FUNCTION recollect.having(text, text, text[]) SET search_path = public",
    "another function": """CREATE OR REPLACE FUNCTION recollect.having(
        of_tenant text, of_workspace text, queries text[])
        RETURNS TABLE (number integer, seq bigint) LANGUAGE sql SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp AS 'SELECT 1, seq FROM recollect.search'""",
    "a function for everybody": "GRANT EXECUTE ON FUNCTION recollect.having(text, text, text[]) TO PUBLIC",
    "more rights": "GRANT UPDATE, DELETE ON recollect.audit TO recollect_app",
    "a right on a column": "GRANT UPDATE (sealed) ON recollect.places TO recollect_app",
    "rights of everybody": "GRANT SELECT ON recollect.contents TO PUBLIC",
    "fewer rights": "REVOKE SELECT ON recollect.tags FROM recollect_app",
    "no row-level security": "ALTER TABLE recollect.tags DISABLE ROW LEVEL SECURITY",
    "not forced": "ALTER TABLE recollect.tags NO FORCE ROW LEVEL SECURITY",
    "no policy": "DROP POLICY own_tenant ON recollect.tags",
    "a changed policy": "ALTER POLICY own_tenant ON recollect.tags USING (true)",
    "no policy for administrators": "DROP POLICY all_tenants ON recollect.places",
    "no function": "DROP FUNCTION recollect.having(text, text, text[])",
    "a right on a table that has rights on columns": "GRANT SELECT ON recollect.search TO recollect_app",
}


@pytest.mark.parametrize("broken", REPAIRED)
def test_an_upgrade_repairs_it(restored: tuple[Server, str], broken: str) -> None:
    server, database = restored
    server.psql(REPAIRED[broken], database)
    assert check(server.url(database))[0] == 1
    upgraded = called("db", "upgrade", "--store", server.url(database))
    assert upgraded.returncode == 0, upgraded.stderr
    assert check(server.url(database))[0] == 0
    with Memory(server.url(database)) as memory:
        assert memory.at(tenant="acme").recall("automobile")
        memory.at(tenant="acme").forget(memory.at(tenant="acme").remember("to be forgotten").id)


def test_an_upgrade_names_what_it_leaves_to_the_administrator(restored: tuple[Server, str]) -> None:
    server, database = restored
    server.psql("CREATE POLICY sneaky ON recollect.memories TO recollect_app USING (true)", database)
    server.psql("DROP POLICY own_tenant ON recollect.tags", database)
    upgraded = " ".join(called("db", "upgrade", "--store", server.url(database)).stdout.split())
    repaired, _, left = upgraded.partition("left as it is")
    assert "tags has no policy" in repaired
    assert "sneaky" not in repaired
    assert "the policy sneaky on memories is not recollect's" in left


def test_a_table_that_was_dropped_is_not_advised_to_be_upgraded(restored: tuple[Server, str]) -> None:
    server, database = restored
    server.psql("DROP TABLE recollect.tags", database)
    refused = called("db", "upgrade", "--store", server.url(database))
    assert refused.returncode == 1
    assert "restore it from a backup" in " ".join(refused.stderr.split())


LOST = {
    "contents": (
        "DELETE FROM recollect.contents WHERE seq = 2",
        "rows",
        "acme/default: 1 memories have lost their content",
    ),
    "words": ("DELETE FROM recollect.search WHERE seq = 2", "rows", "missing from the text index"),
    "vectors as given": ("DELETE FROM recollect.embeddings WHERE seq = 2", "rows", "have lost their vector"),
    "memories": ("DELETE FROM recollect.memories WHERE seq = 2", "rows", "1 contents belong to no memory"),
    "places": ("DELETE FROM recollect.places", "rows", "memories have no row in places"),
    "a counter of memories": ("UPDATE recollect.places SET memories = 1", "counters", "memories are counted up to 1"),
    "a counter of documents": ("UPDATE recollect.places SET things = 0", "counters", "documents are counted up to 0"),
    "a counter of entries": (
        "UPDATE recollect.places SET entries = 1",
        "counters",
        "audit entries are counted up to 1",
    ),
    "the end of the log": (
        "DELETE FROM recollect.audit a WHERE seq = (SELECT max(seq) FROM recollect.audit WHERE tenant = a.tenant)",
        "audit",
        "audit entries are missing",
    ),
    "an entry of the log": ("DELETE FROM recollect.audit WHERE seq = 1", "audit", "1 of "),
    "the seal of the log": ("UPDATE recollect.places SET sealed = 'x'", "audit", "is not the one that was sealed"),
    "pgvector": (
        "DROP EXTENSION vector CASCADE; DROP TABLE IF EXISTS recollect.vectors",
        "meaning",
        "cannot be compared",
    ),
}


@pytest.mark.parametrize("lost", LOST)
def test_what_a_restore_has_lost_is_named(restored: tuple[Server, str], lost: str) -> None:
    sql, topic, problem = LOST[lost]
    server, database = restored
    url = server.url(database)
    assert check(url)[0] == 0
    server.psql(sql, database)
    before = server.psql("SELECT xmin::text, * FROM recollect.places ORDER BY tenant", database)
    code, checks = check(url)
    assert code == 1
    named = [checks[topic]["told"], *checks[topic]["details"]]
    assert any(problem in text for text in named), checks
    assert server.psql("SELECT xmin::text, * FROM recollect.places ORDER BY tenant", database) == before


def test_a_member_of_the_administrators_can_look_and_an_application_cannot(restored: tuple[Server, str]) -> None:
    server, database = restored
    server.psql(f"CREATE ROLE {database}_a LOGIN IN ROLE recollect_admin, recollect_app")
    server.psql(f"CREATE ROLE {database}_b LOGIN IN ROLE recollect_app")
    server.psql("DELETE FROM recollect.contents WHERE seq = 2", database)
    code, checks = check(server.url(database, user=f"{database}_a"))
    assert (code, problems(checks)) == (1, {"rows"})
    answer = called("db", "restore-check", "--store", server.url(database, user=f"{database}_b"))
    assert (answer.returncode, "may not see which tenants there are" in answer.stderr) == (1, True)
