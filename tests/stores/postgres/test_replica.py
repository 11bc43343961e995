"""A replica answers reads as long as it has what this process wrote; the primary answers where it does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from support.postgres import DSN, Server

from recollect import InputError, Memory
from recollect.stores.postgres.connections import Location
from recollect.stores.postgres.replica import Replica
from recollect.stores.postgres.store import Postgres
from recollect.stores.postgres.tenants import moving

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(DSN), reason="needs servers of its own")]


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    with Server() as server:
        with Memory(server.url()) as memory:
            memory.remember("the schema is there")
        yield server


@pytest.fixture
def replica(primary: Server) -> Iterator[Server]:
    server = primary.replica()
    primary.caught_up(server)
    yield server
    server.resume()
    server.remove()


def answered(memory: Memory) -> int:
    return memory._view.store.server.replica.answered  # type: ignore[attr-defined]


def test_reads_go_to_the_replica(primary: Server, replica: Server) -> None:
    with Memory(primary.url(), replica_url=replica.url()).at(tenant="reads") as memory:
        for n in range(20):
            memory.remember(f"memory {n}")
        primary.caught_up(replica)
        before = answered(memory)
        assert len(memory.list(limit=100)) == 20
        assert memory.recall("memory")
        assert answered(memory) > before


def test_what_was_written_is_read_at_once(primary: Server, replica: Server) -> None:
    with Memory(primary.url(), replica_url=replica.url()).at(tenant="own") as memory:
        for n in range(100):
            kept = memory.remember(f"memory {n}")
            assert memory.get(kept.id).content == f"memory {n}"


def test_a_replica_that_lags_is_not_read(primary: Server, replica: Server) -> None:
    """Replay is stopped, so it answers, but with what was."""
    with Memory(primary.url(), replica_url=replica.url()).at(tenant="lag") as memory:
        memory.remember("the first")
        primary.caught_up(replica)
        replica.psql("SELECT pg_wal_replay_pause()")
        kept = memory.remember("the second")
        assert memory.get(kept.id).content == "the second"
        assert len(memory.list()) == 2
        with Memory(primary.url(), replica_url=replica.url()).at(tenant="lag") as other:
            assert [record.content for record in other.list()] == ["the first"]  # which wrote nothing itself
        replica.psql("SELECT pg_wal_replay_resume()")
        primary.caught_up(replica)
        before = answered(memory)
        assert len(memory.list()) == 2
        assert answered(memory) > before


@pytest.mark.parametrize("how", ["pause", "kill", "stop"])
def test_a_replica_that_goes_away_is_done_without(primary: Server, replica: Server, how: str) -> None:
    with Memory(primary.url(), replica_url=replica.url()).at(tenant=f"away-{how}") as memory:
        kept = memory.remember("still there")
        primary.caught_up(replica)
        memory.list()
        getattr(replica, how)()
        for _ in range(5):
            assert memory.get(kept.id).content == "still there"
        memory.remember("and goes on")
        assert len(memory.list()) == 2
        replica.resume() if how == "pause" else replica.start()
        primary.caught_up(replica)
        until, before = time.monotonic() + 20, answered(memory)
        while answered(memory) == before and time.monotonic() < until:
            assert len(memory.list()) == 2
            time.sleep(0.1)
        assert answered(memory) > before


def test_writers_and_readers_together_while_the_replica_is_restarted(primary: Server, replica: Server) -> None:
    problems: list[str] = []
    ended = threading.Event()
    with Memory(primary.url(), replica_url=replica.url()).at(tenant="crowd") as memory:

        def work(name: str) -> None:
            count = 0
            while not ended.is_set():
                kept = memory.remember(f"{name} {count}", tags=[name])
                count += 1
                if memory.get(kept.id).content != kept.content:
                    problems.append("own write not read")
                if len(memory.list(tags=[name], limit=1000)) != count:
                    problems.append(f"{name} did not see its {count}")

        threads = [threading.Thread(target=work, args=(f"w{n}",), daemon=True) for n in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            time.sleep(0.7)
            replica.restart()
        ended.set()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
    assert problems == []


def test_a_tenant_that_was_away_is_read_as_it_came_back(primary: Server, replica: Server) -> None:
    """What the replica has of it is from before it left: an erased memory would be there again, and one be missing."""
    with Server() as b:
        servers = {"b": b.url()}
        opened = Memory(primary.url(), replica_url=replica.url(), servers=servers)
        with opened.at(tenant="traveller") as memory, closing(Postgres(primary.url(), servers=servers)) as movers:

            def move(to: str) -> None:
                moving.move(movers._runner, "traveller", to)  # type: ignore[arg-type]

            erased = memory.remember("to be erased")
            primary.caught_up(replica)
            replica.psql("SELECT pg_wal_replay_pause()")
            move("b")
            memory.remember("written on b")
            memory.forget(erased.id, erase=True)
            move("home")
            for _ in range(3):
                assert [record.content for record in memory.list()] == ["written on b"]
            with Memory(primary.url(), replica_url=replica.url(), servers=servers).at(tenant="traveller") as other:
                assert [record.content for record in other.list()] == ["written on b"]
            replica.psql("SELECT pg_wal_replay_resume()")
            primary.caught_up(replica)
            before = answered(memory)
            assert [record.content for record in memory.list()] == ["written on b"]
            assert answered(memory) > before


def test_the_farthest_of_several_writes_counts(primary: Server) -> None:
    """Two threads that commit tell of it in any order."""
    replica = Replica(Location.of(primary.url()))
    for position in ("0/FF", "1/0", "0/A0"):
        replica.wrote(["acme"], position)
    assert replica._written["acme"] == "1/0"


def test_a_server_that_is_no_replica_is_not_read(primary: Server) -> None:
    with Server() as stranger, Memory(primary.url(), replica_url=stranger.url()).at(tenant="stranger") as memory:
        kept = memory.remember("here")
        assert memory.get(kept.id).content == "here"
        assert answered(memory) == 0


def test_other_stores_have_no_replica() -> None:
    with pytest.raises(InputError, match="replica_url: is not for a store of the kind sqlite"):
        Memory("./memory", replica_url="postgresql://localhost/x")
