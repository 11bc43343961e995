"""The PostgreSQL servers that tests are given: they do what tests need of them, and none outlives its run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from support.common import Script
from support.postgres import RUN, Bouncer, Database, Server, bouncer_missing, shared
from support.stores import fresh_location, give_back, located, sweep

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        server.psql("CREATE TABLE kept (number int)")
        server.psql("INSERT INTO kept VALUES (1)")
        yield server


def test_a_server_is_reached_by_loopback_and_by_socket(server: Server) -> None:
    assert Database(server.url()).psql("SELECT number FROM kept") == [(1,)]
    assert Database(server.socket).psql("SELECT number FROM kept") == [(1,)]
    assert server.psql("SELECT name FROM pg_available_extensions WHERE name = 'vector'") == [("vector",)]


def test_a_server_is_the_same_after_a_restart_and_after_it_was_killed(server: Server) -> None:
    before = server.url()
    server.restart()
    assert server.psql("SELECT number FROM kept") == [(1,)]
    server.kill()
    assert not server.running()
    with pytest.raises(psycopg.OperationalError):
        server.psql("SELECT 1")
    server.start()
    assert (server.url(), server.psql("SELECT number FROM kept")) == (before, [(1,)])


def test_a_paused_server_answers_when_it_goes_on(server: Server) -> None:
    server.pause()
    try:
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.url(), connect_timeout=2)
    finally:
        server.resume()
    assert server.psql("SELECT number FROM kept") == [(1,)]


def test_each_server_has_data_of_its_own(server: Server) -> None:
    """The data folders are copies of one, which nobody writes to."""
    with Server() as first, Server() as second:
        first.psql("CREATE TABLE mine ()")
        for other in (server, second):
            assert other.psql("SELECT to_regclass('mine')::text") == [(None,)]
        assert second.psql("SELECT to_regclass('kept')::text") == [(None,)]
        assert len({each.data.stat().st_ino for each in (server, first, second)}) == 3


def test_a_server_may_ask_for_a_password() -> None:
    with Server(auth="scram-sha-256") as server:
        server.psql("CREATE ROLE somebody LOGIN PASSWORD 'p@ss/word'")
        with pytest.raises(psycopg.OperationalError):
            Database(server.url()).psql("SELECT 1")
        somebody = Database(server.url(user="somebody", password="p@ss/word"))
        assert somebody.psql("SELECT current_user::text") == [("somebody",)]


def test_a_replica_follows_and_is_only_read(server: Server) -> None:
    replica = server.replica()
    server.psql("CREATE TABLE later ()")
    server.caught_up(replica)
    assert replica.psql("SELECT to_regclass('later')::text") == [("later",)]
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        replica.psql("DROP TABLE later")
    replica.remove()
    assert not replica.running()


@pytest.mark.skipif(bool(bouncer_missing()), reason=bouncer_missing() or "it is there")
def test_a_pooler_gives_many_a_few_connections(server: Server) -> None:
    with Bouncer(server, pool_size=1) as bouncer:
        numbers = set()
        for _ in range(5):
            with psycopg.connect(bouncer.url()) as connection:
                numbers.add(connection.info.backend_pid)
                assert connection.execute("SELECT number FROM kept").fetchall() == [(1,)]
        seen = server.psql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
        assert len(numbers) == 5
        assert seen[0][0] <= 2


def test_a_location_is_one_for_a_path_and_empty_for_the_next_test(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    path = tmp_path / "test" / "memory"
    first = located("postgresql", path)
    assert located("postgresql", path) == first
    assert located("postgresql", tmp_path / "other") != first
    assert located("sqlite", path) == f"sqlite:{path}"
    schema = first.rpartition("=")[2]
    shared().psql(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
    shared().psql(f"CREATE TABLE {schema}.things (tenant text)")
    shared().psql(f"INSERT INTO {schema}.things VALUES ('acme')")
    (tmp_path / "test").rmdir()
    sweep()
    assert located("postgresql", path) == first
    assert shared().psql(f"SELECT * FROM {schema}.things") == []
    shared().psql(f"DROP SCHEMA {schema} CASCADE")


def test_a_location_is_never_given_to_two() -> None:
    both = [fresh_location(), fresh_location()]
    assert len(set(both)) == 2
    for one in both:
        give_back(one)
    assert fresh_location(untouched=True) not in both


BEGUN = """
import os, sys
from support import postgres
os.environ.pop(postgres.RUN, None)
postgres.begin()
shared, own = postgres.shared(), postgres.Server().start()
own.pause()
print(os.environ[postgres.RUN], *[process.pid for server in (shared, own) for process in server.processes()])
sys.stdout.flush()
sys.stdin.read()
"""


def test_a_run_that_is_killed_leaves_nothing_behind(start: Callable[..., Script]) -> None:
    script = start(BEGUN)
    folder, *processes = script.line().split()
    assert folder != os.environ[RUN]
    assert processes
    script.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20
    while os.path.exists(folder) and time.monotonic() < until:
        time.sleep(0.05)
    assert not os.path.exists(folder)
    assert not [number for number in processes if Path("/proc", number, "cmdline").exists() and _alive(number)]


def _alive(number: str) -> bool:
    """Whether a process does anything. One that is dead has no words left, though its number is not free yet."""
    return b"postgres" in Path("/proc", number, "cmdline").read_bytes()
