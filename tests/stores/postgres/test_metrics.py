"""What a store on PostgreSQL tells Prometheus: numbers that are right, few labels, and no name of anybody."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import plain
from support.command_line import called
from support.deployed import Deployment, deployed
from support.postgres import DSN, Server
from support.served import served
from support.stores import STORES, located

from recollect import ConcurrencyError, Memory
from recollect.conformance.samples import sample
from recollect.memory import view_of
from recollect.stores.metrics import Histogram
from recollect.stores.port import HasMetrics, Place
from recollect.stores.postgres import metrics
from recollect.stores.postgres.connections import Connections, Location
from recollect.stores.postgres.store import Postgres

pytestmark = pytest.mark.skipif("postgresql" not in STORES, reason="without PostgreSQL")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return located("postgresql", tmp_path / "m")


@pytest.fixture
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_FRESH", 0.0)


@pytest.fixture
def server_of_its_own() -> Iterator[Server]:
    if DSN:
        pytest.skip("needs a server of its own")
    with Server() as server:
        yield server


def numbers(store: HasMetrics) -> dict[str, float]:
    """By name and labels, without the server's; of a histogram how many were counted."""
    read: dict[str, float] = {}
    for metric in store.gauges() + store.counters():
        labels = ",".join(f"{name}={value}" for name, value in metric.labels if name != "server")
        name = metric.name.removeprefix("recollect_store_") + (f"{{{labels}}}" if labels else "")
        value = metric.value
        read[name] = sum(value.counts) if isinstance(value, Histogram) else value
    return read


def store_of(memory: Memory) -> Postgres:
    store = view_of(memory).store
    assert isinstance(store, Postgres)
    return store


def test_statements_are_counted_by_what_they_were_for(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember("a heron in the reeds")
        store = store_of(memory)
        for work, operation, others in (
            (lambda: memory.recall("heron"), "search", ("write",)),
            (lambda: memory.list(), "read", ("write", "search")),
            (lambda: store.put(Place("default", "default"), [sample()]), "write", ("read", "search")),
        ):
            before = numbers(store)
            work()
            after = numbers(store)
            for name in ("statements_total", "round_trip_seconds"):
                assert after[f"{name}{{operation={operation}}}"] > before[f"{name}{{operation={operation}}}"]
                for other in others:
                    assert after[f"{name}{{operation={other}}}"] == before[f"{name}{{operation={other}}}"]


def test_what_is_sent_together_is_one_round_trip(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember("a heron in the reeds")
        store = store_of(memory)
        before = numbers(store)
        with store.transaction(Place("default", "default")) as transaction:
            transaction.execute("SELECT 1")
        assert (
            numbers(store)["round_trip_seconds{operation=write}"] - before["round_trip_seconds{operation=write}"] == 3
        )


def test_a_read_inside_a_transaction_is_a_read(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        kept = memory.remember("a heron in the reeds")
        store, place = store_of(memory), Place("default", "default")
        with store.transaction(place):
            before = numbers(store)
            assert store.get(place, [kept.id])
            after = numbers(store)
        assert after["statements_total{operation=read}"] == before["statements_total{operation=read}"] + 1
        assert after["statements_total{operation=write}"] == before["statements_total{operation=write}"]


def test_errors_are_counted_by_their_class(url: str) -> None:
    place = Place("default", "default")
    with Memory(url, embedder="none") as memory, Memory(url, embedder="none") as other:
        memory.remember("a heron in the reeds")
        store, waiting = store_of(memory), store_of(other)
        assert waiting.places("default")
        with store.transaction(place), pytest.raises(ConcurrencyError), waiting._writing(place, seconds=0.05):
            pass
        assert numbers(waiting)["errors_total{kind=ConcurrencyError,operation=write}"] == 1
        assert not any(name.startswith("errors_total") for name in numbers(store))


def test_the_pool_tells_who_has_connections_and_who_waits(url: str) -> None:
    connections = Connections(Location.of(url), most=2)
    first, second = connections.take(), connections.take()
    assert connections.pool() == (2, 0, 0, 2)
    taken = []
    waiter = threading.Thread(target=lambda: taken.append(connections.take()))
    waiter.start()
    until = time.monotonic() + 10
    while connections.pool().waiting == 0:
        assert time.monotonic() < until
        time.sleep(0.01)
    time.sleep(0.3)
    connections.give_back(first)
    waiter.join()
    assert connections.pool() == (2, 0, 0, 2)
    assert sum(connections.waits.histogram().counts) == 3
    assert connections.waits.histogram().sum > 0.3
    connections.give_back(second)
    connections.give_back(taken[0])
    assert connections.pool() == (2, 2, 0, 2)
    connections.close()
    crowded = Connections(Location.of(url), most=0)
    with pytest.raises(ConcurrencyError):
        crowded.take(0.01)
    assert crowded.pool().waiting == 0


def sized(deployment: Deployment, **tenants: int) -> None:
    """Tenants that claim to have so many memories."""
    for tenant, memories in tenants.items():
        deployment.sql(
            f"INSERT INTO {{s}}.places (tenant, workspace, memories, live_memories) VALUES "
            f"('{tenant}', 'w', {memories}, {memories}), "
            f"('{tenant}', 'x', 0, 0)"
        )


@pytest.mark.usefixtures("always_fresh")
def test_tenants_are_counted_by_size_without_their_names() -> None:
    with deployed() as deployment:
        sized(deployment, small=1000, middle=1001, large=10_001, huge=100_001, heron=7)
        store = Postgres(deployment.owned)
        read = numbers(store)
        assert {name: n for name, n in read.items() if name.startswith("tenants")} == {
            "tenants{memories=<=1000}": 3,  # with the one of the deployment
            "tenants{memories=<=10000}": 1,
            "tenants{memories=<=100000}": 1,
            "tenants{memories=>100000}": 1,
        }
        names = {metric.name for metric in store.gauges()}
        for n in range(50):
            sized(deployment, **{f"one_of_many_{n}": n + 1})
        more = store.gauges()
        assert {metric.name for metric in more} == names
        assert not re.search("heron|one_of_many", repr(more))
        assert len(more) == len(read) - len(store.counters())
        store.close()


@pytest.mark.usefixtures("always_fresh")
def test_a_role_that_may_not_see_all_tenants_does_not_count_them() -> None:
    with deployed() as deployment:
        sized(deployment, acme=5)
        store = Postgres(deployment.location)
        names = {metric.name for metric in store.gauges()}
        assert "recollect_store_up" in names
        assert not names & {"recollect_store_tenants", "recollect_store_vector_indexes"}
        deployment.sql("GRANT recollect_admin TO {login}")
        assert {"recollect_store_tenants", "recollect_store_vector_indexes"} <= {m.name for m in store.gauges()}
        store.close()


@pytest.mark.usefixtures("always_fresh")
def test_indexes_are_missing_ready_or_stale() -> None:
    with deployed() as deployment:
        sized(deployment, missing=20_000, enough=19_999, lost=30_000, killed=30_000, shrunk=9_999, ready=30_000)
        model = "m:8"
        for tenant in ("lost", "killed", "shrunk", "ready"):
            deployment.sql(f"UPDATE {{s}}.places SET nearest = '{model}' WHERE tenant = '{tenant}' AND workspace = 'w'")
            name = metrics.index_name(Place(tenant, "w"), model)
            if tenant != "lost":
                deployment.sql(f"CREATE INDEX {name} ON {{s}}.places (tenant) WHERE tenant = '{tenant}'")
            if tenant == "killed":  # as a build that was broken off leaves it
                deployment.sql(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{{s}}.{name}'::regclass")
        store = Postgres(deployment.owned)
        read = numbers(store)
        assert [read[f"vector_indexes{{state={state}}}"] for state in ("missing", "ready", "stale")] == [1, 1, 3]
        store.close()


def test_the_server_is_asked_at_most_every_15_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    with deployed() as deployment:
        store = Postgres(deployment.owned)
        now = [1000.0]
        monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
        counts = []
        for after in (0.0, 14.0, 2.0):
            now[0] += after
            counts.append(numbers(store)["tenants{memories=<=1000}"])
            sized(deployment, **{f"tenant_{len(counts)}": 1})
        assert counts == [1, 1, 3]
        store.close()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "pause"])
def test_metrics_are_there_when_the_server_is_away(server_of_its_own: Server, how: str) -> None:
    server = server_of_its_own
    with (
        Memory(server.url(), embedder="none") as memory,
        served(memory, open_metrics=True) as http,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(metrics, "_FRESH", 0.0)
        memory.remember("a heron in the reeds")
        assert 'recollect_store_up{server="home"} 1' in plain.get(f"{http.url}/metrics").text
        getattr(server, how)()
        start = time.monotonic()
        away = plain.get(f"{http.url}/metrics", timeout=30)
        assert time.monotonic() - start < 9
        assert away.status_code == 200
        assert 'recollect_store_up{server="home"} 0' in away.text
        assert "recollect_store_tenants" not in away.text
        assert 'recollect_store_connections_limit{server="home"} 16' in away.text
        told = called("db", "metrics", "--store", server.url())
        assert told.returncode == 1
        assert "recollect_store_up" in told.stdout
        if how == "pause":
            server.resume()
        else:
            server.start()
        assert 'recollect_store_up{server="home"} 1' in plain.get(f"{http.url}/metrics").text


@pytest.mark.slow
@pytest.mark.usefixtures("always_fresh")
def test_a_replica_tells_what_it_answered_and_how_far_behind_it_is(server_of_its_own: Server) -> None:
    primary = server_of_its_own
    with Memory(primary.url(), embedder="none") as memory:
        memory.remember("the schema is there")
    replica = primary.replica()
    try:
        primary.caught_up(replica)
        store = Postgres(primary.url(), replica_url=replica.url())
        place = Place("default", "default")
        store.put(place, [sample()])
        primary.caught_up(replica)
        assert store.places("default")
        read = numbers(store)
        assert (read["replica_up"], read["replica_answered_total"]) == (1, 1)
        assert read["replica_fallbacks_total{reason=behind}"] == read["replica_fallbacks_total{reason=away}"] == 0
        replica.psql("SELECT pg_wal_replay_pause()")
        store.put(place, [sample()])
        time.sleep(0.2)
        assert store.places("default")
        read = numbers(store)
        assert read["replica_lag_bytes"] > 100
        assert read["replica_lag_seconds"] > 0.1
        assert read["replica_fallbacks_total{reason=behind}"] == 1
        replica.psql("SELECT pg_wal_replay_resume()")
        primary.caught_up(replica)
        read = numbers(store)
        assert (read["replica_lag_bytes"], read["replica_lag_seconds"]) == (0, 0)
        replica.stop()
        assert store.places("default")
        read = numbers(store)
        assert read["replica_up"] == 0
        assert "replica_lag_bytes" not in read
        assert read["replica_fallbacks_total{reason=away}"] == 1
        store.close()
    finally:
        replica.remove()


def test_the_command_prints_the_same_without_a_server() -> None:
    with deployed() as deployment:
        sized(deployment, acme=20_000)
        text = called("db", "metrics", "--store", deployment.owned).stdout
        assert (
            '# TYPE recollect_store_tenants gauge\nrecollect_store_tenants{memories="<=1000",server="home"} 1' in text
        )
        told = json.loads(called("db", "metrics", "--store", deployment.owned, "--json").stdout)
        by_name = {(m["name"], *sorted(m["labels"].items())): m["value"] for m in told["metrics"]}
        assert by_name["recollect_store_tenants", ("memories", "<=100000"), ("server", "home")] == 1
        assert by_name["recollect_store_vector_indexes", ("server", "home"), ("state", "missing")] == 1
        assert "acme" not in text
