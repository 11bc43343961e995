"""The number of partitions of vectors can be changed, and nothing else changes by that."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from support.command_line import recollect
from support.concepts import Concepts
from support.deployed import Deployment, deployed
from support.postgres import not_on_citus

from recollect import Memory
from recollect.stores.postgres.admin import partitions
from recollect.stores.postgres.admin.nearest import Indexer
from recollect.stores.postgres.admin.partitions import partition_count, repartition
from recollect.stores.postgres.admin.status import status
from recollect.stores.postgres.connections import Location
from recollect.values.errors import AccessError, InputError

pytestmark = not_on_citus("the table of vectors has shards and no partitions")
TENANTS = [f"tenant{number}" for number in range(9)]


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed() as deployment:
        with Memory(deployment.location, embedder=Concepts()) as memory:
            for tenant in TENANTS:
                view = memory.at(tenant=tenant)
                view.remember_many([f"{tenant} saw the owl number {n}" for n in range(12)])
                view.embed()
        yield deployment


def answers(deployment: Deployment) -> list[list[tuple[str, float]]]:
    with Memory(deployment.location, embedder=Concepts()) as memory:
        views = [memory.at(tenant=tenant) for tenant in TENANTS]
        return [[(hit.memory.id, round(hit.score, 6)) for hit in view.recall("which owl was seen?")] for view in views]


def vectors(deployment: Deployment) -> list[tuple[object, ...]]:
    return deployment.sql("SELECT tenant, workspace, seq, model, v::text FROM {s}.vectors ORDER BY 1, 2, 3")


@pytest.mark.parametrize("number", [1, 5, 64])
def test_the_same_vectors_are_in_another_number_of_partitions(deployment: Deployment, number: int) -> None:
    location = Location.of(deployment.owned)
    before, rows = answers(deployment), vectors(deployment)
    heard: list[tuple[int, int]] = []
    done = repartition(location, number, lambda *progress: heard.append(progress))
    assert (done.before, done.partitions, done.vectors) == (16, number, len(rows))
    assert heard[-1] == (done.tenants, done.tenants)
    assert partition_count(location) == number
    assert vectors(deployment) == rows
    assert answers(deployment) == before
    with Memory(deployment.location, embedder=Concepts()).at(tenant="tenant0") as memory:
        memory.remember("one more owl")
        memory.embed()
        assert len(vectors(deployment)) == len(rows) + 1
    checks = {check.name: check.level for check in status(Location.of(deployment.location))}
    assert "problem" not in checks.values()
    assert repartition(location, number) == partitions.Repartitioning(number, number)


def test_a_run_that_is_broken_off_has_changed_nothing(deployment: Deployment) -> None:
    before, rows = answers(deployment), vectors(deployment)

    def stop(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repartition(Location.of(deployment.owned), 3, stop)
    assert partition_count(Location.of(deployment.owned)) == 16
    assert vectors(deployment) == rows
    assert answers(deployment) == before


def test_readers_go_on_while_it_copies_and_a_writer_waits(deployment: Deployment) -> None:
    copying, go_on = threading.Event(), threading.Event()

    def pause(done: int, total: int) -> None:
        copying.set()
        assert go_on.wait(60)

    worker = threading.Thread(target=lambda: repartition(Location.of(deployment.owned), 3, pause))
    worker.start()
    try:
        assert copying.wait(60)
        assert all(answers(deployment))
        with psycopg.connect(deployment.libpq) as connection:
            connection.execute("SET LOCAL recollect.tenant = 'tenant0'")
            connection.execute("SET LOCAL lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                connection.execute(f"DELETE FROM {deployment.schema}.vectors WHERE tenant = 'tenant0'".encode())
    finally:
        go_on.set()
        worker.join()
    assert partition_count(Location.of(deployment.owned)) == 3


def test_indexes_of_large_places_are_named_and_made_again(deployment: Deployment) -> None:
    location = Location.of(deployment.owned)
    Indexer(location, above=10).run()
    done = repartition(location, 2)
    assert done.indexes_dropped == len(TENANTS)
    assert [change.action for change in Indexer(location, above=10).run()] == ["build"] * len(TENANTS)


@pytest.mark.parametrize("number", [0, -1, 1025])
def test_a_number_that_cannot_be_is_refused(deployment: Deployment, number: int) -> None:
    with pytest.raises(InputError, match="1 to 1024"):
        repartition(Location.of(deployment.owned), number)


def test_the_application_may_not(deployment: Deployment) -> None:
    with pytest.raises(AccessError, match="recollect_owner"):
        repartition(Location.of(deployment.location), 2)


def test_from_the_command_line(deployment: Deployment) -> None:
    assert "16 partitions" in recollect("db", "partitions", "--store", deployment.owned).stdout
    said = recollect("db", "partitions", "4", "--store", deployment.owned)
    assert "108 vectors of 10 tenants are in 4 partitions now" in " ".join(said.stdout.split())
    assert '"partitions":4' in recollect("db", "partitions", "--store", deployment.owned, "--json").stdout.replace(
        " ", ""
    )
