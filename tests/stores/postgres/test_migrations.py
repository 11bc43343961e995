"""Bringing a schema up to date while others read and write: they go on, and the next run finishes a killed one."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.command_line import CLEAN, called
from support.deployed import Deployment, deployed
from support.postgres import not_on_citus
from support.stores import STORES, fresh_location

from recollect import ConcurrencyError, Memory
from recollect.stores.postgres.admin import migrations, setup
from recollect.stores.postgres.admin.plan import _locks, upgrade_plan
from recollect.stores.postgres.admin.status import bring_up_to_date
from recollect.stores.postgres.connections import Connections, Location

pytestmark = pytest.mark.skipif("postgresql" not in STORES, reason="without PostgreSQL")
SIZED = ("audit", "things", "tags", "places")
_NEXT = """-- A column and two indexes.
ALTER TABLE {schema}.memories ADD COLUMN colour text;
ALTER TABLE {schema}.places ADD COLUMN colour text;
-- outside a transaction
CREATE INDEX CONCURRENTLY memories_by_colour ON {schema}.memories (tenant, workspace, colour);
CREATE INDEX CONCURRENTLY places_by_colour ON {schema}.places (tenant, colour);
"""


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed() as deployment:
        yield deployment


@pytest.fixture
def pending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A migration that comes after those that there are; call `known` to have this process know it."""
    script = tmp_path / "999_colour.sql"
    script.write_text(_NEXT)
    return script


def known(monkeypatch: pytest.MonkeyPatch, script: Path) -> None:
    monkeypatch.setattr(setup, "_MIGRATIONS", (*setup._MIGRATIONS, script))
    monkeypatch.setattr(setup, "SCHEMA", setup.SCHEMA + 1)


def index_states(deployment: Deployment) -> dict[str, bool]:
    rows = deployment.sql(
        "SELECT c.relname::text, i.indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid "
        "WHERE c.relnamespace = '{s}'::regnamespace AND c.relname LIKE '%by_colour'"
    )
    return dict(rows)


_WRITER = """
import sys, threading
from recollect import Memory
location, workspace, acknowledged = sys.argv[1:]
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
memory = Memory(location, embedder="none").at(tenant="acme", workspace=workspace)
with memory, open(acknowledged, "w") as file:
    n = 0
    while not stop.is_set():
        print(memory.remember(f"memory {n} of {workspace}").id, file=file, flush=True)
        if n == 0:
            print("writing", flush=True)
        assert memory.recall(f"memory {n}")
        n += 1
"""


@not_on_citus("a change of tables on several workers may end a writer's transaction as a deadlock: ConcurrencyError")
def test_writers_and_readers_go_on_during_an_upgrade(
    deployment: Deployment, pending: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Memory(deployment.location, embedder="none").at(tenant="acme") as memory:
        memory.remember_many([{"content": f"there before {n}"} for n in range(2000)])
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, deployment.location, workspace, tmp_path / workspace],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=CLEAN,
        )
        for workspace in ("a", "b")
    ]  # fmt: skip
    assert [process.stdout.readline() for process in writers if process.stdout] == ["writing\n"] * 2
    known(monkeypatch, pending)
    done = bring_up_to_date(Location.of(deployment.owned)).made
    assert [what for what in done if "colour" in what] == [
        "migration 999_colour",
        "the index memories_by_colour",
        "the index places_by_colour",
    ]
    time.sleep(0.3)
    ends = [process.communicate("stop\n", timeout=60) for process in writers]
    assert [process.returncode for process in writers] == [0, 0], [error for _, error in ends]
    acknowledged = {ident for workspace in ("a", "b") for ident in (tmp_path / workspace).read_text().split()}
    stored = {ident for (ident,) in deployment.sql("SELECT id FROM {s}.memories WHERE workspace IN ('a', 'b')")}
    assert stored == acknowledged
    assert len(stored) > 4
    assert index_states(deployment) == {"memories_by_colour": True, "places_by_colour": True}


@not_on_citus("a change of tables on several workers may end a writer's transaction as a deadlock: ConcurrencyError")
def test_writers_do_not_queue_behind_an_upgrade_that_waits(
    deployment: Deployment, pending: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody's long transaction holds the lock that the upgrade needs. PostgreSQL would have all others wait, too."""
    problems: list[Exception] = []

    def upgrade() -> None:
        try:
            bring_up_to_date(Location.of(deployment.owned))
        except Exception as error:
            problems.append(error)

    plain = deployment.owned.partition("schema=")[0].rstrip("?&")
    with Memory(deployment.location, embedder="none").at(tenant="acme") as memory:
        memory.remember("the first")
        with psycopg.connect(plain) as holder:
            holder.execute(f"SELECT count(*) FROM {deployment.schema}.places".encode())
            known(monkeypatch, pending)
            upgrading = threading.Thread(target=upgrade)
            upgrading.start()
            slowest, until = 0.0, time.monotonic() + 3.0
            while time.monotonic() < until:
                start = time.monotonic()
                memory.remember(f"memory at {start}")
                slowest = max(slowest, time.monotonic() - start)
            assert upgrading.is_alive()
            assert slowest < 2.5
        upgrading.join()
    assert problems == []
    assert index_states(deployment) == {"memories_by_colour": True, "places_by_colour": True}


def test_an_upgrade_that_never_gets_a_lock_gives_up_and_changes_nothing(
    deployment: Deployment, pending: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, pending)
    monkeypatch.setattr(migrations, "_PATIENCE", 1.0)
    plain = deployment.owned.partition("schema=")[0].rstrip("?&")
    with psycopg.connect(plain) as holder:
        holder.execute(f"SELECT count(*) FROM {deployment.schema}.places".encode())
        with pytest.raises(ConcurrencyError, match="trying again is safe"):
            bring_up_to_date(Location.of(deployment.owned))
    columns = "SELECT count(*) FROM information_schema.columns WHERE table_schema = '{s}' AND column_name = 'colour'"
    assert deployment.sql(columns) == [(0,)]
    assert deployment.sql("SELECT max(number) FROM {s}.migrations") == [(setup.SCHEMA - 1,)]


def test_an_index_whose_build_was_killed_is_built_again(
    deployment: Deployment, pending: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = Location.of(deployment.owned)
    plain = deployment.owned.partition("schema=")[0].rstrip("?&")
    known(monkeypatch, pending)
    killed: list[Exception] = []

    def upgrade() -> None:
        try:
            bring_up_to_date(location)
        except Exception as error:
            killed.append(error)

    with monkeypatch.context() as patch:  # the migration, and nothing of its indexes
        patch.setattr(setup, "build_indexes", lambda *_: [])
        upgrade()
    with psycopg.connect(plain) as holder:  # a build waits for transactions that have written
        holder.execute(f"DELETE FROM {deployment.schema}.memories WHERE tenant = 'nobody'".encode())
        holder.execute("SELECT pg_current_xact_id()")
        upgrading = threading.Thread(target=upgrade)
        upgrading.start()
        busy = (
            "SELECT pid FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY memories_by_colour ON {s}%'"
        )
        until = time.monotonic() + 20
        while index_states(deployment) != {"memories_by_colour": False}:
            assert time.monotonic() < until
            time.sleep(0.02)
        ((pid,),) = deployment.sql(busy)
        deployment.sql(f"SELECT pg_terminate_backend({pid})")
        upgrading.join()
    assert killed
    assert index_states(deployment) == {"memories_by_colour": False}
    (left, *_) = [migration for migration in upgrade_plan(location) if not migration.transaction]
    assert left.name == "999_colour"
    bring_up_to_date(location)
    assert index_states(deployment) == {"memories_by_colour": True, "places_by_colour": True}
    assert bring_up_to_date(location).made == []


def test_an_index_that_a_later_migration_drops_is_not_built_again() -> None:
    made = "-- outside a transaction\nCREATE INDEX CONCURRENTLY one ON {schema}.places (tenant);\n"
    assert [index.name for index in migrations.concurrent_indexes([made, "ALTER TABLE x;"])] == ["one"]
    assert migrations.concurrent_indexes([made, "DROP INDEX {schema}.one;"]) == []


_MODES = ("ACCESS SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "ACCESS EXCLUSIVE")
_HELD = "SELECT relation, mode FROM pg_locks WHERE pid = pg_backend_pid() AND granted AND locktype = 'relation'"


def strongest_locks(connection: Any, tables: dict[int, str]) -> dict[str, str]:
    modes = {mode.title().replace(" ", "") + "Lock": mode for mode in _MODES}
    strongest: dict[str, str] = {}
    for relation, mode in connection.execute(_HELD).fetchall():
        if relation in tables:
            table, held = tables[relation], modes[mode]
            strongest[table] = max(strongest.get(table, held), held, key=_MODES.index)
    return strongest


def test_the_plan_names_the_locks_that_postgresql_takes() -> None:
    """Each migration is run on the schema before it, and its locks are looked at before it ends."""
    location = Location.of(fresh_location(untouched=True))
    tables = """SELECT oid::bigint, relname::text FROM pg_class
        WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'p') AND relname <> 'migrations'"""
    with closing(Connections(location)) as connections, connections.lent() as connection:
        setup._make_roles(connection, location.schema)
        setup._make_schema(connection, location)
        for number, script in enumerate(setup._MIGRATIONS, 1):
            planned = upgrade_plan(location)[0]
            assert planned.name == script.stem
            there = dict(connection.execute(tables, (location.schema,)).fetchall())
            with connection.transaction():
                for statement in setup.statements_of(migrations.parts_of(script.read_text())[0]):
                    connection.execute(statement.replace("{schema}", location.schema))
                held = strongest_locks(connection, there)
                raise psycopg.Rollback
            assert {table.table: table.lock for table in planned.tables} == held, script.stem
            assert setup._migrate(connection, location, number, script)
        assert upgrade_plan(location) == []
        connection.execute(f"DROP SCHEMA {location.schema} CASCADE")


def test_a_table_that_is_only_read_is_named_with_its_scan() -> None:
    script = (
        "INSERT INTO {schema}.audit\nSELECT * FROM {schema}.things;\nALTER TABLE {schema}.tags ALTER x TYPE text;\n"
    )
    locks = {lock.table: (lock.lock, lock.work, lock.seconds) for lock in _locks(script, dict.fromkeys(SIZED, 10**9))}
    assert locks == {
        "audit": ("ROW EXCLUSIVE", "none", 0.0),
        "things": ("ACCESS SHARE", "scan", 10.0),
        "tags": ("ACCESS EXCLUSIVE", "rewrite", 10.0),
    }


def test_the_command_shows_the_plan(deployment: Deployment, pending: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["db", "upgrade", "--plan", "--store", deployment.owned]
    assert called(*words).stdout == "The schema is up to date.\n"
    known(monkeypatch, pending)
    told = json.loads(called(*words, "--json").stdout)["pending"]
    assert [(migration["name"], migration["transaction"]) for migration in told] == [
        ("999_colour", True),
        ("grants", True),
        ("999_colour", False),
    ]
    by_table = {table["table"]: (table["lock"], table["work"]) for table in told[0]["tables"]}
    assert by_table == {"memories": ("ACCESS EXCLUSIVE", "none"), "places": ("ACCESS EXCLUSIVE", "none")}
    assert {(table["lock"], table["work"]) for table in told[2]["tables"]} == {("SHARE UPDATE EXCLUSIVE", "scan")}
    assert all(table["bytes"] > 0 for table in told[2]["tables"])
    shown = called(*words).stdout
    assert "memories     ACCESS EXCLUSIVE" in shown
    assert "SHARE UPDATE EXCLUSIVE, scan of some" in shown
    assert deployment.sql("SELECT max(number) FROM {s}.migrations") == [(setup.SCHEMA - 1,)]
