"""A real Citus cluster, where RECOLLECT_TEST_DSN names its coordinator: what only a cluster can show.

What every statement needs for it is shown without one in test_statements.py.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from support import postgres
from support.concepts import Concepts
from support.deployed import Deployment, deployed

from recollect import Memory
from recollect.stores import open_store
from recollect.stores.postgres.admin.nearest import Indexer
from recollect.stores.postgres.admin.status import status
from recollect.stores.postgres.connections import Location
from recollect.stores.postgres.store import Postgres
from recollect.stores.tables.engine import Statement
from recollect.values.errors import InputError

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not postgres.DSN, reason="RECOLLECT_TEST_DSN names no cluster")]


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    if not postgres.on_citus():
        pytest.skip("the server that RECOLLECT_TEST_DSN names is not Citus")
    with deployed() as deployment:
        yield deployment


def test_every_table_with_a_tenant_is_distributed_and_a_tenant_is_on_one_worker(deployment: Deployment) -> None:
    tables = "table_name::text LIKE '{s}.%'"
    groups = deployment.sql(f"SELECT distribution_column, colocation_id FROM citus_tables WHERE {tables}")
    assert len(groups) == 14
    assert {column for column, _ in groups} == {"tenant"}
    assert len({group for _, group in groups}) == 1


def test_row_level_security_is_forced_on_the_shards(deployment: Deployment) -> None:
    """The coordinator checks nothing: a worker's own policy is what keeps tenants apart."""
    shards = (
        "SELECT count(*) FILTER (WHERE relrowsecurity AND (relforcerowsecurity OR relname LIKE ''search\\_%'')), "
        "count(*) FROM pg_class WHERE relnamespace = ''{s}''::regnamespace AND relkind = ''r'' "
        "AND relname ~ ''_[0-9]+$''"
    )
    asked = f"SELECT format(''%s of %s'', a, b) FROM ({shards}) x (a, b)"
    answers = deployment.sql(f"SELECT result FROM run_command_on_workers('{asked}')")
    assert answers
    for (answer,) in answers:
        protected, total = answer.split(" of ")
        assert protected == total
        assert int(total) >= 14


def test_a_shard_without_row_level_security_is_seen_by_the_status(deployment: Deployment) -> None:
    location = Location.of(deployment.owned)
    assert {check.name: check.level for check in status(location)}["citus"] == "ok"
    (host, port, shard) = deployment.sql(
        """SELECT nodename, nodeport, shard_name FROM citus_shards WHERE table_name = '{s}.tags'::regclass
        ORDER BY 3 LIMIT 1"""
    )[0]
    switch = "SET citus.enable_manual_changes_to_shards = on"
    with psycopg.connect(f"host={host} port={port} user=postgres dbname=postgres", autocommit=True) as worker:
        worker.execute(switch)
        worker.execute(f"ALTER TABLE {shard} NO FORCE ROW LEVEL SECURITY".encode())
        try:
            (check,) = [check for check in status(location) if check.name == "citus"]
        finally:
            worker.execute(f"ALTER TABLE {shard} FORCE ROW LEVEL SECURITY".encode())
    assert check.level == "problem"
    assert f"{host}:{port}" in check.told
    assert "tags_" in check.told


@pytest.mark.parametrize("question", ["owl sleeps", '"the owl"', "ow*", "what did we say of birds?"])
def test_a_recall_asks_one_worker(deployment: Deployment, question: str) -> None:
    statements: list[Statement] = []
    with closing(open_store(deployment.location)) as store:
        assert isinstance(store, Postgres)
        server, read = store.server, store.server.read
        memory = Memory(store, embedder=Concepts()).at(tenant="small", account="ann")
        memory.remember_many([{"content": f"the owl number {n} sleeps", "tags": ["bird"]} for n in range(30)])
        memory.embed()

        def recorded(tenant: str, some: Any, *more: Any, **named: Any) -> Any:
            statements.extend(some)
            return read(tenant, some, *more, **named)

        server.read = recorded  # type: ignore[method-assign]
        memory.recall(question, tags=["bird"])
        prefix = server.prefix("small")
        asked = [statement for statement in statements if not statement.sql.startswith("SET ")]
        texts = [(server.sql(statement.sql), statement.values) for statement in asked]
    assert texts
    with psycopg.connect(deployment.libpq, autocommit=True) as connection:
        for statement in prefix:
            connection.execute(statement.encode())
        for sql, values in texts:
            rows = connection.execute(f"EXPLAIN (COSTS OFF) {sql}".encode(), values or None).fetchall()
            tasks = [line.strip() for (line,) in rows if "Task Count" in line]
            assert tasks == ["Task Count: 1"], sql


def test_an_index_of_vectors_is_built_on_the_workers_and_used(deployment: Deployment) -> None:
    with Memory(deployment.owned, embedder=Concepts()).at(tenant="indexed") as memory:
        memory.remember_many([f"the owl number {n} sleeps" for n in range(120)])
        memory.embed()
        exact = [hit.memory.id for hit in memory.recall("which owl sleeps?")]
        location = Location.of(deployment.owned)
        (built,) = Indexer(location, above=100).run()
        assert (built.tenant, built.vectors, built.action) == ("indexed", 120, "build")
        assert (built.recall or 0.0) >= 0.9
        assert [hit.memory.id for hit in memory.recall("which owl sleeps?")] == exact
        (dropped,) = Indexer(location, above=1000).run()
        assert dropped.action == "drop"


def test_a_replica_of_the_coordinator_is_refused(deployment: Deployment) -> None:
    with pytest.raises(InputError, match="Citus"):
        Memory(deployment.location, replica_url=deployment.libpq, embedder="none").at(tenant="x").remember("y")


def test_a_tenants_shards_move_to_another_worker_while_it_is_written(deployment: Deployment) -> None:
    """With forced row-level security Citus copies the rows of a shard only while nobody writes to it."""
    acknowledged: list[str] = []
    stop = threading.Event()
    with Memory(deployment.location, embedder="none") as memory:
        view = memory.at(tenant="moved")
        view.remember("the first")

        def write() -> None:
            while not stop.is_set():
                acknowledged.append(view.remember(f"number {len(acknowledged)}").id)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(2):
                deployment.sql(
                    """SELECT citus_move_shard_placement(s.shardid, n.nodename, n.nodeport, o.nodename, o.nodeport,
                        shard_transfer_mode => 'block_writes')
                    FROM (SELECT get_shard_id_for_distribution_column('{s}.places', 'moved') AS shardid) s
                    JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)
                    CROSS JOIN LATERAL (SELECT * FROM pg_dist_node WHERE isactive AND groupid NOT IN (0, n.groupid)
                        LIMIT 1) o"""
                )
                moved = len(acknowledged)
                while len(acknowledged) < moved + 5:
                    assert writer.is_alive()
        finally:
            stop.set()
            writer.join()
        assert {record.id for record in view.list(limit=1_000_000)} >= set(acknowledged)
        assert len(acknowledged) >= 10
        assert all(log.ok for log in view.audit.verify())
