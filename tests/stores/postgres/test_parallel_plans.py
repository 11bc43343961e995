"""`prove isolation` on a server that makes parallel plans: rows come in any order, and nothing of that is a leak."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from support.deployed import Deployment, deployed
from support.postgres import DSN

from recollect.proving.isolation import besieged
from recollect.proving.postgres.attacks import attacks
from recollect.proving.postgres.isolation import ScriptOutput

pytestmark = [
    pytest.mark.slow,
    pytest.mark.clause("ATL-18"),
    pytest.mark.skipif(bool(DSN), reason="plans are forced on a server of our own"),
]

ROWS = 3000
TABLES = ("places", "memories", "contents", "tags", "audit", "things")
SETTINGS = {
    "max_parallel_workers_per_gather": "2",
    "min_parallel_index_scan_size": "0",
    "min_parallel_table_scan_size": "0",
    "parallel_setup_cost": "0",
    "parallel_tuple_cost": "0",
}


def make_parallel(deployment: Deployment) -> None:
    """Let the login have parallel plans only, over tables with enough rows for several workers."""
    ((version,),) = deployment.sql("SELECT current_setting('server_version_num')::int")
    forced = "debug_parallel_query" if version >= 160000 else "force_parallel_mode"
    for name, value in {**SETTINGS, forced: "on"}.items():
        deployment.sql(f"ALTER ROLE {{login}} SET {name} = {value}")
    deployment.sql(
        f"""INSERT INTO {{s}}.places (tenant, workspace) SELECT 'neighbour' || n % 40, 'w' || n
            FROM generate_series(1, {ROWS}) n;
        INSERT INTO {{s}}.tags SELECT 'neighbour' || n % 40, 'w', 'tag' || n, n FROM generate_series(1, {ROWS}) n;
        INSERT INTO {{s}}.contents SELECT 'neighbour' || n % 40, 'w', n, repeat('word ', 90),
            NULL, NULL, NULL, NULL, '', 1, NULL FROM generate_series(1, {ROWS}) n"""
    )
    for table in TABLES:
        deployment.sql(f"ALTER TABLE {{s}}.{table} SET (parallel_workers = 2)")
        deployment.sql(f"ANALYZE {{s}}.{table}")


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with deployed() as deployment:
        make_parallel(deployment)
        with psycopg.connect(deployment.libpq) as connection:
            plan = connection.execute(f"EXPLAIN SELECT * FROM {deployment.schema}.contents".encode()).fetchall()
            assert any("Gather" in line for (line,) in plan)
        yield deployment


def test_nothing_leaks_by_the_order_of_rows(deployment: Deployment) -> None:
    with besieged(deployment.location) as proof:
        outcomes = list(proof.outcomes())
    assert [outcome for outcome in outcomes if outcome.verdict != "held"] == []


def test_a_table_without_row_level_security_still_leaks(deployment: Deployment) -> None:
    names = {"read", "count", "COPY TO", "plans", "the catalogue"}
    deployment.sql("ALTER TABLE {s}.contents DISABLE ROW LEVEL SECURITY")
    try:
        with besieged(deployment.location) as proof:
            siege = proof.siege
            verdicts = {attack.name: siege.suffer(attack).verdict for attack in attacks(siege) if attack.name in names}
    finally:
        deployment.sql("ALTER TABLE {s}.contents ENABLE ROW LEVEL SECURITY")
    assert verdicts == dict.fromkeys(names, "leaked")


def test_a_plan_is_compared_without_its_workers(deployment: Deployment) -> None:
    """How many of them start depends on what else the server does."""
    with besieged(deployment.location) as proof:
        siege = proof.siege
        (plans,) = [attack for attack in attacks(siege) if attack.name == "plans"]
        for script in plans.tries:
            answer = siege.answer(script, siege.victim, siege.victim.tenant)
            assert "Scan" in answer.text
            assert "Gather" not in answer.text


def test_an_answer_in_another_order_is_the_same() -> None:
    first = ScriptOutput((("a", 1), ("b", 2)), ("seen: a", "seen: b", "SELECT 2"))
    other = ScriptOutput((("b", 2), ("a", 1)), ("seen: b", "seen: a", "SELECT 2"))
    assert first.text == other.text
    assert first.text != first._replace(rows=(("a", 1),)).text


def test_an_error_of_a_worker_is_the_error_of_its_leader(deployment: Deployment) -> None:
    script = ["SELECT 1 / (n - 1) FROM {s}.numbers"]
    deployment.sql("CREATE TABLE {s}.numbers (n integer); GRANT SELECT ON {s}.numbers TO {login}")
    deployment.sql("INSERT INTO {s}.numbers VALUES (1); ALTER TABLE {s}.numbers SET (parallel_workers = 1)")
    errors = set[str]()
    with besieged(deployment.location) as proof:
        for workers in (0, 1):  # without the leader's help the worker meets the row
            settings = [f"SET LOCAL max_parallel_workers_per_gather = {workers}"]
            settings.append("SET LOCAL parallel_leader_participation = off")
            errors.add(proof.siege.answer([*settings, *script], proof.siege.victim, None).error)
    assert errors == {"division by zero"}
