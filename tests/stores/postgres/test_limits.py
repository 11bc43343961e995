"""What a tenant may store: exact at the limit, whoever writes, and never in the way of deleting."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest
from support import plain
from support.command_line import CLEAN, called
from support.deployed import Deployment, deployed
from support.postgres import not_on_citus
from support.served import served
from support.stores import STORES, fresh_location

from recollect import ConflictError, LimitError, Memory
from recollect.conformance.samples import sample
from recollect.memory import view_of
from recollect.server import limits as rates
from recollect.stores.port import Place
from recollect.stores.postgres.admin import setup
from recollect.stores.postgres.connections import Connections, Location
from recollect.stores.postgres.server import Server
from recollect.stores.postgres.store import Postgres
from recollect.stores.postgres.tenants import moving
from recollect.stores.postgres.tenants.limits import set_limits
from recollect.stores.postgres.tenants.servers import Servers
from recollect.values.errors import InputError
from recollect.values.filters import Filter
from recollect.values.record import Address, utc_now

pytestmark = pytest.mark.skipif("postgresql" not in STORES, reason="without PostgreSQL")


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with deployed() as deployment:
        yield deployment


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    return f"t{abs(hash(request.node.name)) % 10**8}"


@pytest.fixture
def memory(deployment: Deployment, tenant: str) -> Iterator[Memory]:
    """As the application has it."""
    with Memory(deployment.location, embedder="none").at(tenant=tenant) as memory:
        yield memory
        assert memory.verify() == [], "the counters are not what the rows say"


def limit(deployment: Deployment, tenant: str, *words: str) -> dict[str, Any]:
    told = called("tenants", "limit", tenant, *words, "--store", deployment.owned, "--json")
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def counters(deployment: Deployment, tenant: str) -> dict[str, tuple[int | None, int | None]]:
    rows = deployment.sql(
        f"SELECT workspace, live_memories, content_bytes FROM {{s}}.places WHERE tenant = '{tenant}' ORDER BY 1"
    )
    return {workspace: (live, size) for workspace, live, size in rows}


def test_at_the_limit_one_more_is_refused_until_one_is_deleted(
    deployment: Deployment, memory: Memory, tenant: str
) -> None:
    limit(deployment, tenant, "--memories", "3")
    kept = [memory.remember(f"memory {n}") for n in range(3)]
    entries = len(memory.audit.search(limit=100))
    for _ in range(2):
        with pytest.raises(LimitError, match="may have 3 memories and has 3; 1 more") as refused:
            memory.remember("one too many")
        error = refused.value
        assert (error.limit, error.allowed, error.used, error.adding) == ("memories", 3, 3, 1)
    with pytest.raises(LimitError):
        memory.at(workspace="another").remember("the limit is the tenant's, not the workspace's")
    assert len(memory.list()) == 3
    assert not memory.recall("too many")
    assert len(memory.audit.search(limit=100)) == entries
    memory.forget(kept[0].id)
    memory.remember("there is room again")
    with pytest.raises(LimitError):
        memory.remember("one too many")


def test_of_many_at_once_all_or_none_are_stored(deployment: Deployment, memory: Memory, tenant: str) -> None:
    limit(deployment, tenant, "--memories", "5")
    memory.remember_many([{"content": f"memory {n}"} for n in range(3)])
    with pytest.raises(LimitError, match="has 3; 3 more"):
        memory.remember_many([{"content": f"more {n}"} for n in range(3)])
    memory.remember_many([{"content": f"more {n}"} for n in range(2)])
    assert len(memory.list()) == 5


@pytest.mark.parametrize(
    ("content", "size"),
    [("heron", 5), ("Ärger 😀", 11), ("a\0b", 5 + len(b'"a\\u0000b"')), ({"name": "heron"}, None)],
)
def test_bytes_are_those_of_texts_and_data(
    deployment: Deployment, memory: Memory, tenant: str, content: Any, size: int | None
) -> None:
    view_of(memory).store.put(Place(tenant, "default"), [sample(tenant=tenant, workspace="default", content=content)])
    counted = counters(deployment, tenant)["default"][1]
    assert counted is not None
    assert size is None or counted == size
    limit(deployment, tenant, "--bytes", str(2 * counted))
    view_of(memory).store.put(Place(tenant, "default"), [sample(tenant=tenant, workspace="default", content=content)])
    with pytest.raises(LimitError, match=f"may have {2 * counted} bytes and has {2 * counted}; 1 more"):
        memory.remember("x")
    assert limit(deployment, tenant)["bytes"] == 2 * counted


def test_above_the_limit_everything_that_shrinks_is_allowed(
    deployment: Deployment, memory: Memory, tenant: str
) -> None:
    kept = [memory.remember(f"memory {n}", tags=["old"] if n < 3 else []) for n in range(8)]
    limit(deployment, tenant, "--memories", "2", "--bytes", "1")
    memory.archive(kept[7].id)
    memory.recall("memory")
    memory.forget(kept[6].id)
    memory.forget(tag="old")
    memory.forget(kept[5].id, erase=True)
    assert len(memory.list(limit=100)) == 2
    with pytest.raises(LimitError):
        memory.remember("x")
    other = memory.at(workspace="other")
    with pytest.raises(LimitError):
        other.remember("x")
    memory.forget(workspace="default")
    limit(deployment, tenant, "--bytes", "1000")
    memory.remember("there is room again")


def test_undo_at_the_limit_is_refused_and_changes_nothing(deployment: Deployment, memory: Memory, tenant: str) -> None:
    limit(deployment, tenant, "--memories", "2")
    first = memory.remember("the first")
    memory.remember("the second")
    memory.forget(first.id)
    (forgotten, *_) = memory.audit.search(limit=1)
    third = memory.remember("the third")
    with pytest.raises(LimitError, match="may have 2 memories and has 2"):
        memory.undo(forgotten.id)
    assert {record.content for record in memory.list()} == {"the second", "the third"}
    memory.forget(third.id)
    memory.undo(forgotten.id)
    assert {record.content for record in memory.list()} == {"the first", "the second"}


def test_what_moves_between_places_at_the_limit_is_not_refused(
    deployment: Deployment, memory: Memory, tenant: str
) -> None:
    store, here, there = view_of(memory).store, Place(tenant, "b"), Place(tenant, "a")
    record = sample(tenant=tenant, workspace="b")
    for place in (there, here):  # both are there, so that the first in order is the one that grows
        store.put(place, [sample(tenant=tenant, workspace=place.workspace), record])
    store.delete(there, [r.id for r in store.scan(Filter(Address(tenant, workspace="a"), utc_now(), None))])
    limit(deployment, tenant, "--memories", "2")
    with store.transaction(here, there):
        store.delete(here, [record.id])
        store.put(there, [sample(tenant=tenant, workspace="a")])
    assert [count for count, _ in counters(deployment, tenant).values()] == [1, 1]
    with pytest.raises(LimitError), store.transaction(here, there):
        store.put(here, [record])
    assert store.get(here, [record.id]) == []


def test_above_the_limit_fewer_and_longer_ones_are_allowed(deployment: Deployment, memory: Memory, tenant: str) -> None:
    store, place = view_of(memory).store, Place(tenant, "default")
    records = [sample("x", tenant=tenant, workspace="default") for _ in range(4)]
    store.put(place, records)
    limit(deployment, tenant, "--memories", "1")
    with store.transaction(place):
        store.delete(place, [records[0].id, records[1].id])
        store.put(place, [sample("a longer text", tenant=tenant, workspace="default")])
    assert counters(deployment, tenant)["default"] == (3, 15)


@not_on_citus("what a test sends by itself says nothing to the workers")
def test_who_commits_waits_until_others_of_the_tenant_have(deployment: Deployment, tenant: str) -> None:
    limit(deployment, tenant, "--memories", "1")
    refusals: list[Exception] = []

    def put() -> None:
        with closing(Postgres(deployment.location)) as store:
            try:
                store.put(Place(tenant, "b"), [sample(tenant=tenant, workspace="b")])
            except LimitError as error:
                refusals.append(error)

    with psycopg.connect(deployment.libpq) as first:
        first.execute(f"SET LOCAL recollect.tenant = '{tenant}'".encode())
        first.execute(f"INSERT INTO {deployment.schema}.places (tenant, workspace) VALUES ('{tenant}', 'a')".encode())
        first.execute(f"SELECT {deployment.schema}.write_head('{tenant}', 'a', 1, 0, 0, '', 1, 1)".encode())
        second = threading.Thread(target=put)
        second.start()
        second.join(1.0)
        assert second.is_alive(), "the second one did not wait to learn what the first adds"
        first.commit()
    second.join()
    assert [str(error).count("has 1; 1 more") for error in refusals] == [1]


def test_deleting_waits_for_no_limit(deployment: Deployment, memory: Memory, tenant: str) -> None:
    record = memory.remember("a heron")
    limit(deployment, tenant, "--memories", "1")
    with psycopg.connect(deployment.owned.partition("schema=")[0].rstrip("?&")) as owner:
        owner.execute(f"SELECT 1 FROM {deployment.schema}.limits WHERE tenant = '{tenant}' FOR UPDATE".encode())
        forgetting = threading.Thread(target=memory.forget, args=(record.id,))
        forgetting.start()
        forgetting.join(5.0)
        assert not forgetting.is_alive()


_WRITER = """
import os, sys
from recollect import LimitError, Memory
from recollect.values.errors import InputError
from recollect.stores.postgres.tenants.limits import set_limits
from recollect.stores.postgres.connections import Location
location, tenant, workspace = sys.argv[1:]
stored = 0
with Memory(location, embedder="none").at(tenant=tenant, workspace=workspace) as memory:
    memory.list()
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(100):
        try:
            memory.remember(f"memory {n} of {os.getpid()}")
            stored += 1
        except LimitError:
            break
print(stored)
"""


def test_of_several_processes_at_the_limit_together_none_passes_it(deployment: Deployment, tenant: str) -> None:
    limit(deployment, tenant, "--memories", "40")
    places = ["a", "b", "c", "a"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, deployment.location, tenant, place],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=CLEAN,
        )
        for place in places
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    stored = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert sum(stored) == 40
    assert min(stored) < 40
    assert limit(deployment, tenant)["memories"] == 40
    ((rows,),) = deployment.sql(f"SELECT count(*) FROM {{s}}.memories WHERE tenant = '{tenant}'")
    assert rows == 40


def test_counters_follow_every_change(deployment: Deployment, memory: Memory, tenant: str) -> None:
    """The fixture compares them with the rows at the end, and this after each step."""
    store = view_of(memory).store

    def check(live: int) -> None:
        assert memory.verify() == []
        assert sum(count or 0 for count, _ in counters(deployment, tenant).values()) == live

    first = memory.remember("a heron in the reeds")
    check(1)
    memory.revise(first.id, content="two herons")
    check(2)
    memory.undo()
    check(1)
    memory.undo()
    check(0)
    memory.remember_many([{"content": f"memory {n}"} for n in range(10)])
    check(10)
    document = io.BytesIO()
    memory.export(document)
    memory.forget(workspace="default")
    check(0)
    memory.import_(io.BytesIO(document.getvalue()))
    check(10)
    place, record = Place(tenant, "default"), sample(tenant=tenant, workspace="default")
    with suppress(KeyError), store.transaction(place):
        store.put(place, [record])
        raise KeyError
    check(10)
    with store.transaction(place):
        store.put(place, [record])
        with suppress(KeyError), store.transaction(place):
            store.put(place, [sample(tenant=tenant, workspace="default")])
            store.delete(place, [record.id])
            raise KeyError
    check(11)
    with pytest.raises(ConflictError):
        store.put(place, [sample(tenant=tenant, workspace="default"), record])
    check(11)
    memory.forget(memory.list()[0].id, erase=True)
    check(10)
    with deployed() as other:
        told = called("copy", deployment.location, other.location, "--tenant", tenant)
        assert told.returncode == 0, told.stderr
        assert counters(other, tenant) == counters(deployment, tenant)
    store.drop(place)
    check(0)


@not_on_citus("what a test sends by itself says nothing to the workers")
def test_a_limit_holds_for_one_tenant_and_is_seen_by_it_alone(
    deployment: Deployment, memory: Memory, tenant: str
) -> None:
    limit(deployment, tenant, "--memories", "0", "--requests-per-second", "7.5")
    with pytest.raises(LimitError, match="may have 0 memories"):
        memory.remember("one")
    with Memory(deployment.location, embedder="none").at(tenant=f"{tenant}x") as other:
        other.remember("one")
        store = view_of(other).store
        assert isinstance(store, Postgres)
        assert store.limits(tenant).requests_per_second == 7.5
        assert store.limits(f"{tenant}x").memories is None
    with psycopg.connect(deployment.libpq, autocommit=True) as connection:
        for sql, allowed in (
            (f"SELECT * FROM {deployment.schema}.limits", True),
            (f"UPDATE {deployment.schema}.limits SET memories = 1000", False),
            (f"DELETE FROM {deployment.schema}.limits", False),
            (f"INSERT INTO {deployment.schema}.limits VALUES ('{tenant}', 9)", False),
            (f"SELECT * FROM {deployment.schema}.limits FOR UPDATE", False),
        ):
            with connection.transaction():
                connection.execute(f"SET LOCAL recollect.tenant = '{tenant}x'".encode())
                if allowed:
                    assert connection.execute(sql.encode()).fetchall() == []
                else:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                        connection.execute(sql.encode())


def test_only_the_owner_limits(deployment: Deployment, tenant: str) -> None:
    told = called("tenants", "limit", tenant, "--memories", "5", "--store", deployment.location)
    assert told.returncode != 0
    assert "only the owner of the tables" in told.stderr


def test_limits_are_set_one_by_one_shown_and_taken_away(deployment: Deployment, memory: Memory, tenant: str) -> None:
    memory.remember("a heron")
    assert limit(deployment, tenant)["limits"] == {"memories": None, "bytes": None, "requests_per_second": None}
    limit(deployment, tenant, "--memories", "5")
    use = limit(deployment, tenant, "--bytes", "100")
    assert use["limits"] == {"memories": 5, "bytes": 100, "requests_per_second": None}
    assert (use["memories"], use["bytes"], use["server"]) == (1, 7, "home")
    listed = json.loads(called("tenants", "list", "--store", deployment.owned, "--json").stdout)
    (mine,) = [one for one in listed if one["tenant"] == tenant]
    assert (mine["memories"], mine["bytes"], mine["limits"]["memories"]) == (1, 7, 5)
    assert "1 of 5" in called("tenants", "list", "--store", deployment.owned).stdout
    assert limit(deployment, tenant, "--none")["limits"]["memories"] is None
    assert called("tenants", "limit", tenant, "--none", "--bytes", "1", "--store", deployment.owned).returncode == 2
    for n in range(6):
        memory.remember(f"no limit {n}")


def test_over_http_it_is_insufficient_storage(deployment: Deployment, tenant: str) -> None:
    limit(deployment, tenant, "--memories", "1")
    with Memory(deployment.location, embedder="none") as memory, served(memory) as server:
        headers = server.headers("member", tenant=tenant)
        assert plain.post(f"{server.url}/v1/memories", json={"content": "x"}, headers=headers).status_code == 201
        refused = plain.post(f"{server.url}/v1/memories", json={"content": "x2"}, headers=headers)
        assert (refused.status_code, refused.json()["title"]) == (507, "LimitError")
        assert "may have 1 memories and has 1" in refused.json()["detail"]
        with server.memory("member", tenant=tenant) as remote:
            with pytest.raises(LimitError) as error:
                remote.remember("one too many")
            assert (error.value.limit, error.value.allowed, error.value.used) == ("memories", 1, 1)
            (kept,) = remote.list()
            remote.forget(kept.id)
            remote.remember("there is room again")


def test_requests_a_second_come_from_the_same_row(
    deployment: Deployment, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates.TenantRates, "_FRESH", 0.0)
    with Memory(deployment.location, embedder="none") as memory, served(memory) as server:
        headers = server.headers("reader", tenant=tenant)
        ask = lambda: plain.get(f"{server.url}/v1/stats", headers=headers).status_code  # noqa: E731
        assert [ask() for _ in range(12)] == [200] * 12
        limit(deployment, tenant, "--requests-per-second", "0.1")
        assert [ask() for _ in range(11)] == [200] * 10 + [429]
        limit(deployment, tenant, "--none")
        assert [ask() for _ in range(12)] == [200] * 12


@not_on_citus("what a test sends by itself says nothing to the workers")
def test_a_process_of_the_version_before_leaves_it_to_the_next_to_count(
    deployment: Deployment, memory: Memory, tenant: str
) -> None:
    memory.remember("a heron")
    with psycopg.connect(deployment.libpq) as connection:
        connection.execute(f"SET LOCAL recollect.tenant = '{tenant}'".encode())
        sql = f"SELECT {deployment.schema}.write_head(tenant, workspace, memories, things, entries, sealed) "
        connection.execute(f"{sql} FROM {deployment.schema}.places WHERE workspace = 'default'".encode())
    assert counters(deployment, tenant)["default"] == (None, None)
    assert memory.verify() == []
    limit(deployment, tenant, "--memories", "2")
    with pytest.raises(LimitError, match="has 1; 2 more"):  # counted, though another place asks
        memory.at(workspace="other").remember_many([{"content": "x"}, {"content": "y"}])
    with pytest.raises(LimitError, match="has 1; 2 more"):
        memory.remember_many([{"content": "x"}, {"content": "y"}])
    memory.remember("x")
    assert counters(deployment, tenant)["default"] == (2, 8)


def test_wrong_counters_are_found_and_corrected(deployment: Deployment, tenant: str) -> None:
    with Memory(deployment.location, embedder="none").at(tenant=tenant) as memory:
        memory.remember("a heron")
        deployment.sql(f"UPDATE {{s}}.places SET live_memories = 9 WHERE tenant = '{tenant}'")
        (damage,) = memory.verify()
        assert "recollect db recount" in damage.problem
        assert not memory.doctor().ok
        told = json.loads(called("db", "recount", "--store", deployment.owned, "--json").stdout)
        (changed,) = [place for place in told["changed"] if place["tenant"] == tenant]
        assert (changed["memories_before"], changed["memories"], changed["bytes"]) == (9, 1, 7)
        assert memory.verify() == []
    assert "All counts are right." in called("db", "recount", "--store", deployment.owned).stdout
    assert called("db", "recount", "--store", deployment.location).returncode != 0


def test_an_upgrade_counts_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    location = Location.of(fresh_location(untouched=True))
    older = [script for script in setup._MIGRATIONS if script.stem < "007_limits"]
    with closing(Connections(location)) as connections, connections.lent() as connection:
        setup._make_roles(connection, location.schema)
        setup._make_schema(connection, location)
        for number, script in enumerate(older, 1):
            assert setup._migrate(connection, location, number, script)
        for n in range(3):
            connection.execute(
                f"""INSERT INTO {location.schema}.memories (tenant, workspace, seq, created_at, accessed_at,
                access_count, importance, length, id, tier, kind, lifetime, speaker)
                VALUES ('acme', 'w', {n}, 0, 0, 0, 0, 5, 'id{n}', 'workspace', 'fact', 'permanent', '')"""
            )
            connection.execute(
                f"""INSERT INTO {location.schema}.contents (tenant, workspace, seq, text, tags, refs, metadata,
                checksum, schema_version) VALUES ('acme', 'w', {n}, 'heron', '[]', '[]', '{{}}', '', 1)"""
            )
        connection.execute(
            f"INSERT INTO {location.schema}.places (tenant, workspace, memories) VALUES ('acme', 'w', 3)"
        )
        url = f"{location.url}{'&' if '?' in location.url else '?'}schema={location.schema}"
        told = json.loads(called("db", "upgrade", "--store", url, "--json").stdout)
        assert "migration 007_limits" in told["done"]
        assert "counters of 1 workspaces" in told["done"]
        sql = f"SELECT live_memories, content_bytes FROM {location.schema}.places"
        assert connection.execute(sql).fetchall() == [(3, 15)]
        connection.execute(f"DROP SCHEMA {location.schema} CASCADE")


def test_limits_and_counters_move_with_the_tenant(tenant: str) -> None:
    with deployed() as home, deployed() as other:
        limit(home, tenant, "--memories", "2")
        with Memory(home.owned, embedder="none", servers={"b": other.owned}).at(tenant=tenant) as memory:
            memory.remember("a heron")
            servers = Servers(Server(Location.of(home.owned)), {"b": Server(Location.of(other.owned))})
            moving.move(servers, tenant, "b")
            assert counters(other, tenant)["default"] == (1, 7)
            assert home.sql(f"SELECT count(*) FROM {{s}}.limits WHERE tenant = '{tenant}'") == [(0,)]
            memory.remember("the second")
            with pytest.raises(LimitError, match="may have 2 memories"):
                memory.remember("the third")
            assert memory.verify() == []
            words = ["--store", home.owned, "--server", f"b={other.owned}", "--json"]
            use = json.loads(called("tenants", "limit", tenant, "--memories", "3", *words).stdout)
            assert (use["server"], use["memories"]) == ("b", 2)
            memory.remember("the third")
            servers.close()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0.0])
def test_a_rate_that_is_no_number_of_requests_is_refused(deployment: Deployment, tenant: str, value: float) -> None:
    with closing(_servers(deployment)) as servers, pytest.raises(InputError, match="requests_per_second"):
        set_limits(servers, tenant, requests_per_second=value)


def test_a_number_that_no_server_can_count_to_is_refused(deployment: Deployment, tenant: str) -> None:
    with closing(_servers(deployment)) as servers, pytest.raises(InputError, match="memories"):
        set_limits(servers, tenant, memories=10**23)


def _servers(deployment: Deployment) -> Servers:
    return Servers(Server(Location.of(deployment.owned)), {})
