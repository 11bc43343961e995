"""Through pgbouncer, which gives each transaction another session: nothing of one reaches the next."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from support.postgres import DSN, Bouncer, Server, bouncer_missing
from support.watchdog import together
from support.writers import Writer, check

from recollect import ConflictError, Memory
from recollect.conformance.samples import sample
from recollect.stores.port import Place
from recollect.stores.postgres.store import Postgres
from recollect.values.record import Address, Record

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(DSN), reason="needs servers of its own"),
    pytest.mark.skipif(bool(bouncer_missing()), reason=bouncer_missing()),
]
POOL = 3


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(log_min_duration_statement=0) as server:
        yield server


@pytest.fixture
def bouncer(server: Server) -> Iterator[Bouncer]:
    with Bouncer(server, pool_size=POOL) as bouncer:
        yield bouncer


def store_of(memory: Memory) -> Postgres:
    store = memory._view.store
    assert isinstance(store, Postgres)
    return store


def backends(server: Server) -> int:
    ((number,),) = server.psql(
        """SELECT count(*) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND client_addr IS NOT NULL AND pid <> pg_backend_pid()"""
    )
    return number


def test_every_verb_works(bouncer: Bouncer) -> None:
    with Memory(bouncer.url()).at(tenant="verbs", workspace="w", account="ann") as memory:
        for turn in range(8):  # more often than it takes for a statement to be prepared
            first = memory.remember(f"a heron in the reeds {turn}", tags=["birds.wading"], kind="fact")
            memory.remember_many([f"an owl {turn}", f"a finch {turn}"])
            memory.remember(f"Ann likes herons {turn}", kind="preference", tier="account")
            assert memory.get(first.id).text == first.text
            assert memory.recall("heron reeds")
            assert memory.list(tags=["birds"])
            assert memory.query({"text": "owl"})
            assert memory.context([{"role": "user", "content": "where is the heron?"}])
            revised = memory.revise(first.id, content=f"a grey heron {turn}")
            assert len(memory.history(revised.id)) == 2
            memory.archive(revised.id)
            memory.restore(revised.id)
            memory.forget(revised.id)
            memory.undo()
            assert memory.get(revised.id).text == f"a grey heron {turn}"
        assert memory.stats().total == 8 * 5
        memory.maintain()
        assert memory.doctor().ok
        assert all(log.ok for log in memory.audit.verify())
        assert memory.workspaces()
        assert store_of(memory).server.connections.pooled
        assert store_of(memory).tenants()


def test_nothing_is_prepared_or_left_set(server: Server, bouncer: Bouncer) -> None:
    """What one session prepared, or set for longer than a transaction, the next client would trip over."""
    with Memory(bouncer.url()).at(tenant="nothing") as memory:
        for turn in range(12):
            memory.remember(f"number {turn}")
            memory.recall("number")
        seen = set()
        for _ in range(40):
            with psycopg.connect(bouncer.url(), autocommit=True, prepare_threshold=None) as stranger:
                row = stranger.execute(
                    """SELECT pg_backend_pid(), (SELECT count(*) FROM pg_prepared_statements),
                    coalesce(current_setting('recollect.tenant', true), ''), current_user = session_user,
                    current_setting('lock_timeout')"""
                ).fetchone()
                assert row is not None
                assert row[1:] == (0, "", True, "0")
                seen.add(row[0])
        assert seen
    said = server.log.read_text()
    assert "prepared statement" not in said
    assert re.findall(r"(?:parse|bind|execute) _pg3_\w+", said) == []
    assert "parse <unnamed>" in said


def test_many_threads_over_many_tenants_with_few_sessions(server: Server, bouncer: Bouncer) -> None:
    most = 0
    stop = threading.Event()
    problems: list[str] = []
    with Memory(bouncer.url()) as memory:
        memory.remember("the schema is there")

        def work(tenant: str) -> None:
            view = memory.at(tenant=tenant)
            for number in range(12):
                view.remember(f"{tenant} keeps secret {number}")
                texts = [record.text for record in view.list(limit=100)]
                texts += [hit.memory.text for hit in view.recall("secret", limit=50)]
                if foreign := [text for text in texts if not text.startswith(f"{tenant} ")]:
                    problems.append(f"{tenant} saw {foreign[0]}")
                if len(view.list(limit=100)) != number + 1:
                    problems.append(f"{tenant} did not see its {number + 1}")

        def watch() -> None:
            nonlocal most
            while not stop.is_set():
                most = max(most, backends(server))
                time.sleep(0.02)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        together(*(lambda n=n: work(f"tenant{n}") for n in range(12)), seconds=60)
        stop.set()
        watcher.join()
        assert problems == []
        assert 1 < most <= POOL
        for n in range(12):
            view = memory.at(tenant=f"tenant{n}")
            assert len(view.list(limit=100)) == 12
            assert all(log.ok for log in view.audit.verify())


def in_one(store: Postgres, place: Place, *records: Record) -> None:
    with store.transaction(place):
        for record in records:
            store.put(place, [record])


def test_transactions_and_savepoints(bouncer: Bouncer) -> None:
    store = Postgres(bouncer.url())
    place, other = Place("steps", "w"), Place("other", "w")

    def one(text: str, place: Place = place) -> Record:
        return sample(text, address=Address(*place))

    kept, taken, both = one("kept"), one("taken back"), one("of the other tenant", other)
    with store.transaction(place, other):
        store.put(place, [kept])
        with pytest.raises(ConflictError):
            in_one(store, place, taken, kept)
        store.put(other, [both])
    ids = [kept.id, taken.id, both.id]
    assert [record.text for record in store.get(place, ids)] == ["kept"]
    assert [record.text for record in store.get(other, ids)] == ["of the other tenant"]
    with pytest.raises(ConflictError):
        in_one(store, place, taken, kept)
    assert [record.text for record in store.get(place, ids)] == ["kept"]
    store.close()


def test_a_pooler_that_is_killed_and_comes_back(server: Server) -> None:
    bouncer = Bouncer(server, pool_size=POOL)
    bouncer.start()
    try:
        with Memory(bouncer.url()).at(tenant="killed") as memory:
            memory.list()
            stop = threading.Event()
            writers = [Writer(memory, f"thread {n}") for n in range(4)]
            works = [threading.Thread(target=one.write, args=(stop.is_set,), daemon=True) for one in writers]
            for work in works:
                work.start()
            for _ in range(2):
                time.sleep(0.4)
                bouncer.stop()  # in the middle of whatever it carries
                time.sleep(0.1)
                bouncer.start()
            time.sleep(0.4)
            stop.set()
            for work in works:
                work.join(30)
                assert not work.is_alive()
            told = [one.outcome() for one in writers]
            assert all(one["acknowledged"] for one in told)
            assert {error.partition(":")[0] for one in told for error in one["errors"]} <= {"UnavailableError"}
            check(memory, told)
            memory.remember("and the next call works")
    finally:
        bouncer.stop()
