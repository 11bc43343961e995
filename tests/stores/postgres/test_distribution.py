"""On the distribution's own PostgreSQL: an older version, with JIT on as Debian has it, pgvector only if installed."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.command_line import called
from support.postgres import DSN, Server, distribution, distribution_programs, need_distribution
from support.stores import distribution_pool

from recollect import Memory
from recollect.conformance import StoreConformance
from recollect.proving.isolation import besieged
from recollect.stores import open_store
from recollect.stores.port import Store
from recollect.stores.postgres.admin.setup import SetupFacts

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(DSN), reason="needs servers of its own")]
ROOT = Path(__file__).parents[3]
COMPARING = {
    "test_a_search_inside_a_transaction_sees_its_writes",
    "test_vectors_of_the_same_model_and_size_are_compared",
    "test_vectors_that_come_and_go_are_compared_as_they_are_now",
}
"""Claims about comparing vectors, which takes pgvector. The others hold without it."""
AUTO_EXPLAIN = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_nested_statements": "on",
}
"""Let the server log the plan of every statement as it was run, with what it compiled."""


@pytest.fixture(scope="module")
def server() -> Server:
    return distribution()


@pytest.fixture
def location(server: Server) -> Iterator[str]:
    yield (location := distribution_pool().fresh_location())
    distribution_pool().give_back(location)


def has_pgvector(server: Server) -> bool:
    return server.psql("SELECT FROM pg_available_extensions WHERE name = 'vector'") != []


class TestDistribution(StoreConformance):
    """Every claim of the store port; those about comparing vectors where pgvector is installed."""

    @pytest.fixture
    def store(self, location: str, server: Server, request: pytest.FixtureRequest) -> Iterator[Store]:
        if request.node.name in COMPARING and not has_pgvector(server):
            pytest.skip("pgvector is not installed for this PostgreSQL")
        with closing(open_store(location)) as store:
            yield store

    @pytest.fixture
    def reopen(self, location: str) -> Callable[[], Store]:
        return lambda: open_store(location)


def test_the_server_is_the_distributions_and_compiles(server: Server) -> None:
    programs = distribution_programs()
    assert programs is not None
    ((version, compiles),) = server.psql("SELECT current_setting('server_version_num'), current_setting('jit')")
    assert int(version) // 10000 == int(programs.parent.name)
    assert compiles == "on"


def test_tenants_are_apart_and_status_agrees(server: Server, location: str) -> None:
    assert called("db", "upgrade", "--store", location).returncode == 0
    login = f"app_{secrets.token_hex(4)}"
    server.psql(f"CREATE ROLE {login} LOGIN IN ROLE recollect_app")
    url = location.replace("postgres@", f"{login}@")
    with besieged(url) as proof:
        assert [outcome for outcome in proof.outcomes() if outcome.verdict != "held"] == []
    status = called("db", "status", "--store", url)
    text = " ".join(status.stdout.split())
    assert status.returncode == 0, text
    assert "jit note the server compiles statements (JIT); each transaction of recollect switches that off" in text


def test_recall_over_some_hundreds(location: str) -> None:
    with Memory(location, embedder="none") as memory:
        memory.remember_many([f"the heron number {n} stands in reed bed {n % 7}" for n in range(400)])
        memory.remember("Alice sold the red bicycle")
        assert memory.recall("who sold a bicycle?")[0].memory.content == "Alice sold the red bicycle"
        assert memory.recall('"number 77"')[0].memory.content == "the heron number 77 stands in reed bed 0"
        assert len(memory.recall("heron", limit=300)) == 300
        assert memory.verify() == []


def plans(switched_off: bool) -> list[str]:
    """The plans of all statements that some verbs run, on a server that compiles everything it may compile."""
    need_distribution()
    with Server(programs=distribution_programs(), jit_above_cost=0, **AUTO_EXPLAIN) as server:
        with pytest.MonkeyPatch.context() as patch, Memory(server.url(), embedder="none") as memory:
            if not switched_off:
                patch.setattr(SetupFacts, "begin", property(lambda _: []))
            memory.remember("Alice prefers tabs")  # makes the schema
            begin = len(server.log.read_text())
            memory.remember_many([f"the heron number {n}" for n in range(50)])
            memory.remember("Bob prefers spaces", tags=["style"], embedding=[1.0, 0.5], embedding_model="test")
            assert memory.recall("who prefers spaces?")
            assert memory.list(tags=["style"])
        text = server.log.read_text()[begin:]
    return text.split("duration: ")[1:]


def test_no_statement_of_a_recall_or_a_remember_is_compiled() -> None:
    run = plans(switched_off=True)
    assert any("INSERT INTO" in plan and "memories" in plan for plan in run)
    assert any("postings(" in plan for plan in run)
    assert [plan for plan in run if "JIT:" in plan] == []


def test_without_the_setting_they_would_be() -> None:
    assert any("JIT:" in plan and "postings(" in plan for plan in plans(switched_off=False))


@pytest.mark.parametrize(("ci", "code", "summary"), [("", 0, "1 skipped"), ("true", 1, "1 error")])
def test_where_it_is_missing_that_is_said_and_in_ci_it_fails(tmp_path: Path, ci: str, code: int, summary: str) -> None:
    test = f"{Path(__file__).relative_to(ROOT)}::test_recall_over_some_hundreds"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", test],
        cwd=ROOT,
        env={**os.environ, "RECOLLECT_TEST_DISTRIBUTION": str(tmp_path), "CI": ci},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert summary in done.stdout
    assert "THE DISTRIBUTION'S POSTGRESQL IS NOT INSTALLED" in done.stdout
