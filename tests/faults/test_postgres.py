"""A PostgreSQL that fails: what was acknowledged is there once, what was refused is not, and the next call works."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psycopg
import pytest
from msgspec.structs import replace
from support import disks, keeper
from support.common import LONG, Clock
from support.postgres import DSN, Server, binary, unprivileged
from support.seeds import some_of
from support.watchdog import ended, together
from support.wire import Cut, Wire
from support.writers import Writer, check

from recollect import ConcurrencyError, DiskFullError, Memory, ReadOnlyError, SchemaError
from recollect.maintenance import leases
from recollect.stores.port import Place
from recollect.stores.postgres import connections
from recollect.stores.postgres.admin import setup
from recollect.stores.postgres.connections import Location
from recollect.stores.postgres.store import Postgres
from recollect.values.errors import AccessError, StoreError, UnavailableError
from recollect.values.record import Record

if TYPE_CHECKING:
    from support.common import Script

    Start = Callable[..., Script]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(DSN), reason="needs servers of its own")]
HERE = Place("default", "default")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(max_connections=60, deadlock_timeout="400ms", wal_writer_delay="10s") as server:
        yield server


@pytest.fixture
def schema(server: Server) -> Iterator[str]:
    """A schema that is there, with nothing in it."""
    name = f"faults_{random.randrange(1 << 40):x}"
    with Memory(at(server, name)) as memory:
        memory.list()
    yield name
    assert server.psql("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'") == [(0,)]


def at(server: Server, schema: str, **options: object) -> str:
    """Where it is, with settings of the session."""
    given = "".join(f" -c {name}={value}" for name, value in options.items()).strip()
    return f"{server.url()}?schema={schema}" + (f"&options={quote(given)}" if given else "")


def through(wire: Wire, schema: str) -> str:
    return f"{wire.url()}&schema={schema}"


def store_of(memory: Memory) -> Postgres:
    store = memory._view.store
    assert isinstance(store, Postgres)
    return store


@contextmanager
def writing(url: str, start: Start, threads: int = 3, processes: int = 2) -> Iterator[list[dict[str, list[str]]]]:
    """Several who write meanwhile. When it is over, the list has what each of them knows."""
    told: list[dict[str, list[str]]] = []
    stop = threading.Event()
    with Memory(url) as memory:
        others = [start("from support.writers import main; import sys; main(*sys.argv[1:])", url, f"process {n}")
                  for n in range(processes)]  # fmt: skip
        assert [other.line() for other in others] == ["ready"] * processes
        writers = [Writer(memory, f"thread {n}") for n in range(threads)]
        works = [threading.Thread(target=one.write, args=(stop.is_set,), daemon=True) for one in writers]
        for other in others:
            other.tell("go")
        for work in works:
            work.start()
        yield told
        stop.set()
        for other in others:
            other.tell("stop")
        for work in works:
            work.join(30)
            assert not work.is_alive()
        told += [writer.outcome() for writer in writers] + [json.loads(ended(other, 30)) for other in others]
        assert all(one["acknowledged"] for one in told)
        memory.remember("and the next call works")
        told.append({"acknowledged": ["and the next call works"], "refused": [], "unknown": [], "errors": []})


def kill_postmaster(server: Server) -> None:
    """The one that the others belong to, and nobody else: they find out by themselves."""
    first, *others = server.processes()
    first.kill()
    assert not keeper.still([first, *others], 15)
    server.kill()  # what it left


DOWN: dict[str, Callable[[Server], object]] = {
    "fast": lambda server: server.stop("fast"),
    "immediate": lambda server: server.stop("immediate"),
    "kill": Server.kill,
    "postmaster": kill_postmaster,
}


@pytest.mark.parametrize("how", DOWN)
def test_a_restart_under_load_loses_nothing_and_doubles_nothing(
    server: Server, schema: str, how: str, start: Start
) -> None:
    with writing(at(server, schema), start) as told:
        time.sleep(0.4)
        DOWN[how](server)
        server.start()
        time.sleep(0.4)
    check(Memory(at(server, schema)), told)
    errors = {error.partition(":")[0] for one in told for error in one["errors"]}
    assert errors <= {"UnavailableError"}, errors


def test_connections_that_are_cut_in_the_middle_of_anything(server: Server, schema: str, start: Start) -> None:
    cut = f"""SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE query LIKE '%{schema}%' AND pid <> pg_backend_pid() AND random() < 0.3"""
    with writing(at(server, schema), start) as told, psycopg.connect(server.url(), autocommit=True) as connection:
        until, number = time.monotonic() + 2, 0
        while time.monotonic() < until:
            number += connection.execute(cut.encode()).fetchone()[0]  # type: ignore[index]
            time.sleep(random.random() * 0.04)
        assert number > 5
    check(Memory(at(server, schema)), told)
    errors = {error.partition(":")[0] for one in told for error in one["errors"]}
    assert errors <= {"UnavailableError"}, errors


@pytest.mark.parametrize("how", ["before", "after", "late"])
def test_a_wire_that_is_cut_around_a_commit(server: Server, schema: str, how: Cut) -> None:
    """Whether it was committed is asked on another connection: a call that returns has written, one that fails not."""
    with Wire(server.port) as wire, Memory(through(wire, schema)) as memory:
        first = memory.remember("before it")
        writer = Writer(memory, how)
        for turn in range(2):
            wire.cut(how)
            if how == "before":
                with pytest.raises(UnavailableError, match="trying again is safe"):
                    memory.remember(f"lost {turn}")
                wire.cut(how, b"SAVEPOINT")  # in the middle of a transaction
                with pytest.raises(UnavailableError), store_of(memory).transaction(HERE):
                    memory.revise(first.id, content=f"lost as well {turn}")
            else:
                writer.acknowledged.append(memory.remember(f"resolved {turn}").text)
                wire.cut(how)
                memory.archive(first.id)
                wire.cut(how)
                memory.restore(first.id)
            writer.acknowledged.append(memory.remember(f"the next call {turn}").text)
        assert wire.cuts == {"before": 4}.get(how, 6)
        texts = [record.text for record in memory.list(limit=100)]
        assert sorted(texts) == sorted([first.text, *writer.acknowledged])
        assert memory.get(first.id).archived_at is None
        assert all(log.ok for log in memory.audit.verify())
        assert len(memory.audit.search(limit=100)) == len(texts) + (0 if how == "before" else 4)


@pytest.mark.parametrize("number", ["not given again", "given to another"])
def test_a_transaction_that_a_crash_has_lost_is_not_taken_for_another(server: Server, schema: str, number: str) -> None:
    """Its number was in memory only, so the server that comes back may give it to somebody else, who commits."""
    store = Postgres(at(server, schema))
    outcome: list[object] = []
    with Wire(server.port) as wire, Memory(through(wire, schema)) as memory:
        memory.remember("before it")
        server.psql("CHECKPOINT")
        wire.cut("unheard")

        def write() -> None:
            try:
                outcome.append(memory.remember("was never written"))
            except StoreError as error:
                outcome.append(error)

        wire.open.clear()  # whoever asks what became of it waits until it is to be told
        work = threading.Thread(target=write, daemon=True)
        work.start()
        while not wire.cuts:
            time.sleep(0.001)
        server.kill()
        server.start()
        if number == "given to another":
            for n in range(50):
                store.keep(Place("other", "w"), _thing(n))
        wire.open.set()
        work.join(20)
        (problem,) = outcome
        assert isinstance(problem, UnavailableError), problem
        assert "trying again is safe" in str(problem)
        memory.remember("the next call")
        assert {record.text for record in memory.list()} == {"before it", "the next call"}
        assert all(log.ok for log in memory.audit.verify())
    store.close()


def _thing(number: int) -> Any:
    from recollect.stores.shelves import ShelfItem

    now = datetime(2026, 1, 1, tzinfo=UTC)
    return ShelfItem("notes", f"n{number}", {}, created_at=now, changed_at=now)


def test_after_a_restart_no_call_pays_for_all_the_connections_that_are_gone(server: Server, schema: str) -> None:
    with Memory(at(server, schema)) as memory:
        connections = store_of(memory).server.connections
        held = [connections.take() for _ in range(14)]
        for one in held:
            connections.give_back(one)
        server.restart()
        begin = time.monotonic()
        memory.remember("after it")
        assert time.monotonic() - begin < 3
        assert len(memory.list()) == 1


def test_more_threads_than_connections_may_begin_at_once(server: Server, schema: str) -> None:
    """Each needs one, and one of them another to find out what the server is like."""
    with Memory(at(server, schema)) as memory:
        together(*(lambda n=n: memory.remember(f"of thread {n}") for n in range(24)), seconds=8)
        assert len(memory.list(limit=100)) == 24
        assert all(log.ok for log in memory.audit.verify())


def test_a_server_that_is_away_for_longer_than_anybody_waits(server: Server, schema: str) -> None:
    with Memory(at(server, schema)) as memory, Memory(at(server, schema)) as fresh:
        memory.remember("before it")
        server.stop()
        begin = time.monotonic()
        with pytest.raises(UnavailableError, match="Is the server running"):
            fresh.remember("never reached")  # nobody waits for a server that was never there
        assert time.monotonic() - begin < 3
        server.start()
        fresh.remember("after it")
        assert len(memory.list()) == 2


# What the server refuses


@contextmanager
def locked(server: Server, schema: str, workspace: str = "default") -> Iterator[None]:
    with psycopg.connect(server.url()) as connection:
        lock = f"SELECT FROM {schema}.places WHERE tenant = 'default' AND workspace = %s FOR UPDATE"
        connection.execute(lock.encode(), [workspace])
        yield


def test_a_statement_that_takes_too_long_is_refused_and_safe_to_try_again(server: Server, schema: str) -> None:
    with Memory(at(server, schema, statement_timeout=150)) as memory:
        memory.remember("before it")
        with locked(server, schema), pytest.raises(ConcurrencyError, match="longer than the server allows"):
            memory.remember("too slow")
        memory.remember("after it")
        assert {record.text for record in memory.list()} == {"before it", "after it"}
        assert all(log.ok for log in memory.audit.verify())


def test_a_lock_that_is_not_given_is_refused_and_reading_goes_on(server: Server, schema: str) -> None:
    with Memory(at(server, schema)) as memory:
        kept = memory.remember("before it")
        store = store_of(memory)
        with locked(server, schema):
            with (
                pytest.raises(ConcurrencyError, match="locked by somebody else"),
                store.server.writing((HERE,), 1, 0.2),
            ):
                pass
            begin = time.monotonic()
            assert [hit.memory.id for hit in memory.recall("before")] == [kept.id]
            assert len(memory.list()) == 1
            assert time.monotonic() - begin < 2
        memory.remember("after it")
        assert len(memory.list()) == 2


def test_of_a_deadlock_with_a_stranger_nobody_is_told(server: Server, schema: str) -> None:
    """Nothing was done when the locks were taken, so it is begun again."""
    a, b = Place("default", "a"), Place("default", "b")
    with Memory(at(server, schema)) as memory, psycopg.connect(server.url()) as stranger:
        store = store_of(memory)
        for place in (a, b):
            memory.at(workspace=place.workspace).remember("before it")
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"
        ((before,),) = server.psql(deadlocks)
        lock = f"SELECT FROM {schema}.places WHERE tenant = 'default' AND workspace = %s FOR UPDATE".encode()
        stranger.execute("SET deadlock_timeout = '30s'")
        stranger.execute(lock, ["b"])
        entered = threading.Event()

        def both() -> None:
            with store.transaction(a, b):
                entered.set()
                store.keep(a, _thing(1))
                store.keep(b, _thing(2))

        def cross() -> None:
            time.sleep(0.15)
            stranger.execute(lock, ["a"])
            assert not entered.is_set()
            stranger.commit()

        together(both, cross)
        server.psql("SELECT pg_stat_force_next_flush()")
        until = time.monotonic() + 5
        while server.psql(deadlocks) == [(before,)]:
            assert time.monotonic() < until, "there was no deadlock"
            time.sleep(0.05)
        assert [thing.key for place in (a, b) for thing in store.shelf(place, "notes")] == ["n1", "n2"]


def test_a_server_that_is_strict_about_order_by_default_changes_nothing(server: Server, schema: str) -> None:
    with Memory(at(server, schema, default_transaction_isolation="serializable")) as memory:
        writers = [Writer(memory.at(workspace=f"w{n % 2}"), f"thread {n}") for n in range(6)]
        until = time.monotonic() + 1.5
        together(*(lambda one=one: one.write(lambda: time.monotonic() > until) for one in writers), seconds=20)
        for n in range(2):
            check(memory.at(workspace=f"w{n}"), [one.outcome() for one in writers[n::2]])
        assert {error for one in writers for error in one.errors} == set()


def test_a_transaction_that_was_idle_for_too_long_is_lost_as_a_whole(server: Server, schema: str) -> None:
    with Memory(at(server, schema, idle_in_transaction_session_timeout=100)) as memory:
        memory.remember("before it")

        def in_one(*texts: str) -> None:
            with store_of(memory).transaction(HERE):
                for text in texts:
                    memory.remember(text)
                    time.sleep(0.4)

        with pytest.raises(UnavailableError, match="trying again is safe"):
            in_one("in it", "too late")
        with pytest.raises(UnavailableError, match="trying again is safe"):
            in_one("in it, and late with the end of it")
        memory.remember("after it")
        assert {record.text for record in memory.list()} == {"before it", "after it"}
        assert all(log.ok for log in memory.audit.verify())


def test_a_server_without_a_free_connection(server: Server, schema: str) -> None:
    with ExitStack() as crowd, Memory(at(server, schema)) as memory, Memory(at(server, schema)) as fresh:
        memory.remember("before it")
        store_of(memory).close()
        with suppress(psycopg.OperationalError):
            for _ in range(100):
                crowd.enter_context(psycopg.connect(server.url()))
        with pytest.raises(UnavailableError, match="no connection free"):
            fresh.remember("no room")
        done: list[Record] = []
        waiting = threading.Thread(target=lambda: done.append(memory.remember("waited")), daemon=True)
        waiting.start()
        time.sleep(0.3)
        assert not done
        crowd.close()
        waiting.join(10)
        fresh.remember("after it")
        assert {record.text for record in memory.list()} == {"before it", "waited", "after it"}


def test_a_role_without_a_free_connection_is_not_one_without_rights(server: Server, schema: str) -> None:
    server.psql("DROP ROLE IF EXISTS few; CREATE ROLE few LOGIN IN ROLE recollect_app CONNECTION LIMIT 1")
    url = f"{server.url(user='few')}?schema={schema}"
    refused = pytest.raises(UnavailableError, match="no connection free")
    with psycopg.connect(server.url(user="few")), Memory(url) as memory, refused:
        memory.remember("no room")
    # A server counts a connection until its process has ended, a moment after the client has left.
    _until(lambda: server.psql("SELECT FROM pg_stat_activity WHERE usename = 'few'") == [])
    with Memory(url) as memory:
        memory.remember("after it")
        assert len(memory.list()) == 1


def test_a_server_that_takes_no_writes_is_read(server: Server, schema: str) -> None:
    with Memory(at(server, schema)) as memory, Memory(at(server, schema)) as other:
        kept = memory.remember("before it")
        server.psql("ALTER SYSTEM SET default_transaction_read_only = on")
        server.psql("SELECT pg_reload_conf()")
        _until(lambda: server.psql("SHOW default_transaction_read_only") == [("on",)])
        try:
            for verb in (
                lambda: memory.remember("refused"),
                lambda: memory.revise(kept.id, content="refused"),
                lambda: memory.forget(kept.id),
                lambda: other.remember("refused"),
            ):
                with pytest.raises(ReadOnlyError, match="takes no writes"):
                    verb()
            for one in (memory, other):
                assert [hit.memory.id for hit in one.recall("before")] == [kept.id]
                assert one.stats().total == 1
            with pytest.raises(ReadOnlyError), Memory(f"{server.url()}?schema=not_there") as empty:
                empty.list()
        finally:
            _reset(server)
        memory.remember("after it")
        assert {record.text for record in memory.list()} == {"before it", "after it"}
        assert memory.get(kept.id).access_count == 1  # counted while it could not be written, and written now
        assert all(log.ok for log in memory.audit.verify())


def _reset(server: Server) -> None:
    server.psql("ALTER SYSTEM RESET default_transaction_read_only")
    server.psql("SELECT pg_reload_conf()")
    _until(lambda: server.psql("SHOW default_transaction_read_only") == [("off",)])


def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


class OnSmallDisk(Server):
    """Sees a small disk in its folder, where a tablespace is."""

    def _control(self, *arguments: str) -> None:
        if arguments[0] != "start":
            super()._control(*arguments)
            return
        who = unprivileged()
        self.space.mkdir(exist_ok=True)
        owned = f"size=24m,mode=0700,uid={who['user']},gid={who['group']}"
        small = disks.mounted(f"mount -t tmpfs -o {owned} tmpfs '{self.space}'")
        become = ("setpriv", f"--reuid={who['user']}", f"--regid={who['group']}", "--clear-groups")
        control = (binary("pg_ctl"), "-D", str(self.data), "-w", "-t", "60", *arguments)
        subprocess.run([*small, *become, *control], check=True, capture_output=True, cwd="/", timeout=120)

    @property
    def space(self) -> Path:
        return self.folder / "space"

    @property
    def ballast(self) -> Path:
        """A file on it, reached by way of the server."""
        return Path(f"/proc/{self.processes()[0].pid}/root{self.space}/ballast")


def test_a_full_disk_refuses_writes_and_loses_nothing() -> None:
    if os.geteuid():
        pytest.skip("A FULL DISK UNDER POSTGRESQL WAS NOT TRIED: only root may mount a small one for it")
    with OnSmallDisk() as server:
        server.psql(f"CREATE TABLESPACE small LOCATION '{server.space}'")
        server.psql("CREATE DATABASE small TABLESPACE small")
        with Memory(server.url("small")) as memory:
            kept = [record.id for record in memory.remember_many(f"heron number {n}" for n in range(200))]
            free = os.statvfs(server.ballast.parent)
            server.ballast.write_bytes(b"x" * (free.f_bavail * free.f_bsize - 400_000))

            def fill() -> None:
                for n in range(100_000):
                    noise = "".join(f"x{random.randrange(1 << 60):x} " for _ in range(200))
                    kept.append(memory.remember(f"heron {n} {noise}").id)

            with pytest.raises(DiskFullError, match="no room"):
                fill()
            for _ in range(3):
                with pytest.raises(DiskFullError):
                    memory.remember_many(
                        "".join(f"x{random.randrange(1 << 60):x} " for _ in range(2000)) for _ in range(30)
                    )
            assert {record.id for record in memory.list(limit=100_000)} == {*kept}
            assert memory.recall("heron number 7")
            assert all(log.ok for log in memory.audit.verify())
            server.ballast.unlink()
            kept.append(memory.remember("there is space again").id)
            assert {record.id for record in memory.list(limit=100_000)} == {*kept}
            assert all(log.ok for log in memory.audit.verify())
            assert memory.doctor().ok


# The schema


def migrations(server: Server, schema: str, database: str | None = None) -> list[int]:
    return [number for (number,) in server.psql(f"SELECT number FROM {schema}.migrations ORDER BY number", database)]


AT_ONCE = """
import sys
from recollect import Memory
print("ready", flush=True)
sys.stdin.readline()
with Memory(sys.argv[1]) as memory:
    memory.remember(f"of {sys.argv[2]}")
    assert len(memory.recall("of", limit=50)) >= 1
"""


@pytest.mark.clause("INK-22")
def test_ten_processes_may_start_at_once_on_an_empty_server(start: Start) -> None:
    """In two of its databases, which share their roles and nothing else."""
    with Server() as server:
        server.psql("CREATE DATABASE another")
        urls = [server.url(), server.url("another")]
        processes = [start(AT_ONCE, urls[n % 2], n) for n in range(10)]
        assert [process.line() for process in processes] == ["ready"] * 10
        for process in processes:
            process.tell("go")
        for process in processes:
            ended(process, 40)
        for url, database in zip(urls, ("postgres", "another"), strict=True):
            assert migrations(server, "recollect", database) == [*range(1, setup.SCHEMA + 1)]
            with Memory(url) as memory:
                assert len(memory.list()) == 5
                assert all(log.ok for log in memory.audit.verify())


KILLED = """
import os, signal, sys
import psycopg
from recollect import Memory
at, schema = int(sys.argv[2]), sys.argv[3]
plain, sent = psycopg.Connection.execute, 0
def execute(self, query, *more, **options):
    global sent
    if any(word in str(query) for word in ("CREATE", "INSERT", "GRANT", "ALTER", "SET")):
        sent += 1
    if sent == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self, query, *more, **options)
psycopg.Connection.execute = execute
from recollect.stores.postgres import connections
from recollect.stores.postgres.admin import setup
from recollect.stores.postgres.connections import Connections, Location
with Connections(Location.of(sys.argv[1])).lent() as connection:
    setup.ready(connection, Location.of(sys.argv[1]))
print(sent)
"""


@pytest.mark.clause("INK-22")
def test_a_migration_that_is_killed_anywhere_is_finished_by_the_next_process(server: Server, start: Start) -> None:
    complete = at(server, "complete")
    Memory(at(server, "roles")).list()  # the first on a server also makes the roles, which the others find there
    last = int(ended(start(KILLED, complete, -1, "complete"), 20))
    whole = _made(server, "complete")
    steps = [5, *some_of(range(6, last - 1)), last - 1, last]  # a migration after the first is some six of them
    schemas = {f"killed_{step}": step for step in steps}
    for some in range(0, len(steps), 4):  # two at a time for each of the cores
        batch = list(schemas.items())[some : some + 4]
        processes = [start(KILLED, at(server, schema), step, schema) for schema, step in batch]
        for process in processes:
            process.communicate(timeout=30)
            assert process.returncode == -9
    stages = set()
    for schema in schemas:
        there = server.psql(f"SELECT to_regclass('{schema}.migrations') IS NOT NULL") == [(True,)]
        stages.add(len(migrations(server, schema)) if there else 0)
        with Memory(at(server, schema)) as memory:
            kept = memory.remember("after it")
            assert memory.recall("after")[0].memory.id == kept.id
        assert migrations(server, schema) == [*range(1, setup.SCHEMA + 1)]
        assert _made(server, schema) == whole, schema
    assert setup.SCHEMA in stages, "it was not killed behind the last migration"
    if LONG:
        assert stages == {*range(setup.SCHEMA + 1)}, "it was not killed before, between and behind all migrations"
    else:
        assert len(stages) > 1, f"it was killed at {steps} only"


def _made(server: Server, schema: str) -> list[tuple[Any, ...]]:
    """Everything in a schema, with who may do what with it."""
    return server.psql(
        f"""SELECT relname::text, relkind::text, relrowsecurity, relforcerowsecurity, relacl::text FROM pg_class
        WHERE relnamespace = '{schema}'::regnamespace
        UNION ALL SELECT proname::text, 'function', false, false, proacl::text FROM pg_proc
        WHERE pronamespace = '{schema}'::regnamespace
        UNION ALL SELECT polname::text || tablename, 'policy', false, false, qual FROM pg_policies, pg_policy
        WHERE schemaname = '{schema}' AND policyname = polname AND polrelid = (schemaname || '.' || tablename)::regclass
        ORDER BY 1, 2"""
    )


@pytest.mark.clause("INK-22")
def test_a_newer_schema_is_refused_and_not_touched(server: Server, schema: str) -> None:
    with Memory(at(server, schema)) as memory:
        memory.remember("a heron")
    server.psql(f"INSERT INTO {schema}.migrations (number, name) VALUES ({setup.SCHEMA + 1}, 'of tomorrow')")
    before = _content(server, schema)
    with Memory(at(server, schema)) as memory:
        for verb in (
            lambda: memory.recall("heron"),
            lambda: memory.list(),
            lambda: memory.stats(),
            lambda: memory.remember("another"),
            lambda: memory.maintain(),
        ):
            with pytest.raises(SchemaError, match=f"schema {setup.SCHEMA + 1}.*Upgrade recollect"):
                verb()
    assert _content(server, schema) == before
    server.psql(f"DELETE FROM {schema}.migrations WHERE number > {setup.SCHEMA}")
    with Memory(at(server, schema)) as memory:
        assert len(memory.list()) == 1


def _content(server: Server, schema: str) -> list[tuple[Any, ...]]:
    rows = [
        (table, *row)
        for table in (*setup.TABLES, "migrations")
        for row in server.psql(f"SELECT t::text, xmin::text FROM {schema}.{table} t ORDER BY 1")
    ]
    return rows + _made(server, schema)


def older(server: Server, schema: str, source: str) -> None:
    """A schema as the first migration left it, with what is in another."""
    location = Location.of(at(server, schema))
    with psycopg.connect(location.url, autocommit=True) as connection:
        setup._make_schema(connection, location)  # type: ignore[arg-type]
        assert setup._migrate(connection, location, 1, setup._MIGRATIONS[0])  # type: ignore[arg-type]
        for table in (table for table in setup.TABLES if table != "undo_items"):  # which a later migration makes
            columns = connection.execute(
                """SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
                WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped""",
                [f"{schema}.{table}"],
            ).fetchone()
            assert columns
            copy = f"INSERT INTO {schema}.{table} ({columns[0]}) SELECT {columns[0]} FROM {source}.{table}"
            connection.execute(copy.encode())
        connection.execute(f"ALTER TABLE {schema}.memories OWNER TO recollect_owner".encode())


@pytest.mark.clause("INK-22")
def test_an_older_schema_is_upgraded_with_all_it_holds(server: Server, schema: str) -> None:
    with Memory(at(server, schema)) as memory:
        first = memory.remember("a heron of old", tags=["birds.wading"])
        second = memory.revise(first.id, content="a grey heron of old")
        memory.at(tenant="other").remember("a heron of others")
        listed = memory.list(state=None)
    older(server, f"{schema}_old", schema)
    assert migrations(server, f"{schema}_old") == [1]
    with Memory(at(server, f"{schema}_old")) as memory:
        # It did not know until when a memory was so.
        assert memory.list(state=None) == [replace(record, valid_until=None) for record in listed]
        assert [hit.memory.id for hit in memory.recall("heron")] == [second.id]
        assert [record.id for record in memory.history(second.id)] == [first.id, second.id]
        assert len(memory.at(tenant="other").list()) == 1
        memory.revise(second.id, content="a heron of today")
        assert all(log.ok for log in memory.audit.verify())
    assert migrations(server, f"{schema}_old") == [*range(1, setup.SCHEMA + 1)]


def test_a_role_that_may_not_upgrade_is_told_who_may(server: Server, schema: str) -> None:
    older(server, f"{schema}_old", schema)
    server.psql("DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN IN ROLE recollect_app")
    server.psql(f"GRANT USAGE ON SCHEMA {schema}_old TO plain; GRANT SELECT ON {schema}_old.migrations TO plain")
    refused = pytest.raises((SchemaError, AccessError), match="recollect db upgrade")
    with Memory(f"{server.url(user='plain')}?schema={schema}_old") as memory, refused:
        memory.remember("refused")
    assert migrations(server, f"{schema}_old") == [1]
    server.psql("DROP OWNED BY plain; DROP ROLE plain")


def test_what_was_acknowledged_is_kept_where_commits_are_not_waited_for() -> None:
    """The log is written every ten seconds only, and the server is killed at once."""
    with Server(synchronous_commit="off", wal_writer_delay="10s") as server, Memory(server.url()) as memory:
        memory.remember("the first")
        memory.at(workspace="other").remember("the second")
        server.kill()
        server.start()
        assert [record.text for record in memory.list()] == ["the first"]
        assert [record.text for record in memory.at(workspace="other").list()] == ["the second"]


def test_a_lost_connection_is_told_once(server: Server, schema: str, caplog: pytest.LogCaptureFixture) -> None:
    """By our error, or not at all where the read was repeated: psycopg has a line of its own for it, which is not."""
    with Memory(at(server, schema)) as memory:
        memory.remember("there")
        server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert len(memory.list()) == 1
    assert [record for record in caplog.records if record.name == "psycopg"] == []


# Connections


def test_a_full_server_keeps_nobody_from_the_connections_of_the_process(server: Server, schema: str) -> None:
    """Others have taken all that are left; a thread that finds none gets ours when it is given back."""
    with Memory(at(server, schema)) as memory, ExitStack() as others:
        memory.remember("there")
        pool = memory._view.store.server.connections
        with pool.lent() as held:
            with suppress(psycopg.OperationalError):
                while True:
                    others.enter_context(psycopg.connect(server.socket))
            found: list[object] = []
            asking = threading.Thread(target=lambda: found.extend(memory.list()))
            asking.start()
            time.sleep(0.3)
            assert not found
        asking.join(5)
        assert len(found) == 1
        assert pool.open == 1, held


# Silence


def test_a_server_that_stops_answering_is_given_up() -> None:
    """Its kernel still takes what it is sent, and no connection breaks."""
    with Server() as silent, Memory(silent.url()) as memory:
        memory.remember("before it")
        for act in (memory.list, lambda: memory.remember("meanwhile")):
            silent.pause()
            begun = time.monotonic()
            with pytest.raises(UnavailableError):
                act()
            assert time.monotonic() - begun < 25
            silent.resume()
            assert {record.text for record in memory.list()} <= {"before it", "meanwhile"}
        memory.remember("after it")
        assert all(log.ok for log in memory.audit.verify())


def test_a_server_that_is_only_busy_is_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_SILENCE", 0.2)
    with connections.Connections(Location.of(server.url())).lent() as connection:
        assert connection.execute("SELECT 1 FROM pg_sleep(1.5)").fetchall() == [(1,)]


# Clocks


def test_clocks_that_are_hours_apart_change_no_order(server: Server, schema: str) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    ahead, behind = Clock(now + timedelta(hours=5)), Clock(now - timedelta(hours=5))
    with Memory(at(server, schema), clock=ahead) as one, Memory(at(server, schema), clock=behind) as two:
        kept = [(one, two)[n % 2].remember(f"number {n}") for n in range(10)]
        entries = one.audit.search(limit=100)
        assert [entry.seq for entry in entries] == [*range(10, 0, -1)]
        numbers = server.psql(f"SELECT seq, id FROM {schema}.memories ORDER BY seq")
        assert numbers == [(n, record.id) for n, record in enumerate(kept, 1)]
        for memory in (one, two):
            assert all(log.ok for log in memory.audit.verify())
            assert {record.id for record in memory.list(limit=100)} == {record.id for record in kept}
        revised = two.revise(kept[0].id, content="number 0, revised by the one who is behind")
        assert [record.id for record in one.history(revised.id)] == [kept[0].id, revised.id]


def test_clocks_that_are_hours_apart_do_no_job_twice(server: Server, schema: str) -> None:
    """Each may take the lease of the other for one that is over, or absurd. Whoever has lost it changes nothing."""
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    ahead, behind = Clock(now + timedelta(hours=5)), Clock(now - timedelta(hours=5))
    with Memory(at(server, schema), clock=ahead) as one, Memory(at(server, schema), clock=behind) as two:
        one.remember("something")
        for first, second in ((one, two), (two, one)):
            lease = leases.take(first._view, HERE, "undo")
            assert lease is not None
            again = leases.take(second._view, HERE, "undo")
            assert again is not None, "a clock that is wrong must not hold a job for hours"
            with pytest.raises(leases.LeaseLostError):
                lease.check(first._view)
            leases.give_back(first._view, lease, done=True)
            again.check(second._view)
            leases.give_back(second._view, again, done=True)
            assert not leases.due(first._view, HERE, "undo", 24.0)
            assert not leases.due(second._view, HERE, "undo", 24.0)


def test_clocks_that_are_seconds_apart_share_a_lease(server: Server, schema: str) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    with Memory(at(server, schema), clock=Clock(now)) as one:
        one.remember("something")
        lease = leases.take(one._view, HERE, "undo")
        assert lease is not None
        for seconds in (-60, -0.001, 0.001, 60):
            with Memory(at(server, schema), clock=Clock(now + timedelta(seconds=seconds))) as two:
                assert leases.take(two._view, HERE, "undo") is None, seconds
        lease.check(one._view)


# Forks and interrupts

FORKED = """
import os, sys, threading
from recollect import Memory
from recollect.stores.port import Place
memory = Memory(sys.argv[1])
memory.remember("of the parent, before it")
store, place = memory._view.store, Place("default", "default")
stop, problems, kept = threading.Event(), [], []
def write(name):
    view, number = memory.at(workspace=name), 0
    while not stop.is_set():
        number += 1
        view.remember(f"{name} {number}")
    kept.append((name, number))
threads = [threading.Thread(target=write, args=(f"w{n}",)) for n in range(3)]
for thread in threads:
    thread.start()
for turn in range(4):
    with store.transaction(place):
        memory.remember(f"in a transaction {turn}")
        child = os.fork()
        if not child:
            try:
                assert store.server.transaction is None
                seen = {record.text for record in memory.list(limit=100)}
                assert f"in a transaction {turn}" not in seen, seen  # it is the parent's, and not committed
                memory.at(workspace="child").remember(f"of child {turn}")
                memory.close()
                os._exit(0)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(3)
        assert os.waitpid(child, 0)[1] == 0
        memory.remember(f"and after the fork {turn}")
stop.set()
for thread in threads:
    thread.join()
assert len(memory.list(limit=100)) == 9
assert len(memory.at(workspace="child").list()) == 4
for name, number in kept:
    assert len(memory.at(workspace=name).list(limit=100_000)) == number > 0
    assert all(log.ok for log in memory.at(workspace=name).audit.verify())
assert all(log.ok for log in memory.audit.verify())
memory.close()
"""


def test_a_fork_inside_a_transaction_leaves_it_to_the_parent(server: Server, schema: str, start: Start) -> None:
    ended(start(FORKED, at(server, schema), start_new_session=True), 30)


INTERRUPTED = """
import faulthandler
faulthandler.dump_traceback_later(20, exit=True)
import json, signal, sys, threading, time
from recollect import Memory
from recollect.values.errors import UnavailableError
from recollect.stores.port import Place
from support.writers import Writer
memory = Memory(sys.argv[1])
store, place = memory._view.store, Place("default", "mine")
mine = memory.at(workspace="mine")
mine.remember("first")
mine.recall("first")  # what is imported late is imported now: Python cannot be interrupted in the middle of that
until = time.monotonic() + float(sys.argv[2])
writers = [Writer(memory.at(workspace="theirs"), f"thread {n}") for n in range(2)]
threads = [threading.Thread(target=one.write, args=(lambda: time.monotonic() > until,)) for one in writers]
for thread in threads:
    thread.start()
kept, unsure, times, number = ["first"], [], 0, 0
inside = False  # a verb: the script itself is not to be interrupted
def told(number, frame):
    if inside:
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, told)
print("ready", flush=True)
while time.monotonic() < until:
    number += 1
    texts = [f"{number} a", f"{number} b"]
    unsure.append(texts)
    try:
        inside = True
        with store.transaction(place):
            for text in texts:
                mine.remember(text)
        inside = False
        kept += unsure.pop()
        inside = True
        mine.recall("first")
        inside = False
    except KeyboardInterrupt as error:
        inside = False
        times += 1
        interrupt = error  # as an interactive Python keeps it, with all that its frames hold
    except UnavailableError:  # psycopg makes it of the second of two that come at once
        inside = False
    assert store.server.transaction is None, "a transaction was left open"
for thread in threads:
    thread.join()
mine.remember("last")
assert store.server.connections.open <= 5, "connections were lost count of"
told = [one.outcome() for one in writers]
print(json.dumps({"kept": [*kept, "last"], "unsure": unsure, "times": times, "others": told}), flush=True)
memory.close()
"""


def test_an_interrupt_inside_a_transaction_takes_all_of_it_back(server: Server, schema: str, start: Start) -> None:
    url = at(server, schema)
    script = start(INTERRUPTED, url, 3)
    assert script.line() == "ready"
    until = time.monotonic() + 2.7
    while time.monotonic() < until:
        time.sleep(random.random() * 0.03)
        script.send_signal(signal.SIGINT)
    told = json.loads(ended(script, 30))
    assert told["times"] > 20
    with Memory(url) as memory:
        stored = [record.text for record in memory.at(workspace="mine").list(limit=100_000)]
        assert len(stored) == len({*stored})
        assert {*told["kept"]} <= {*stored}
        for pair in told["unsure"]:
            assert len({*pair} & {*stored}) in (0, 2), "a part of a transaction was written"
        assert {*stored} - {*told["kept"]} <= {text for pair in told["unsure"] for text in pair}
        assert all(log.ok for log in memory.at(workspace="mine").audit.verify())
        check(memory.at(workspace="theirs"), told["others"])
