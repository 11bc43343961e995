"""Workers: as many processes as one likes look after all tenants, and none of them does what another has done."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.common import Clock
from support.stores import DATABASES, located
from support.watchdog import ended

from recollect import Memory
from recollect.maintenance import leases
from recollect.stores.port import Administered, Place

if TYPE_CHECKING:
    from support.common import Script

    Start = Callable[..., Script]

pytestmark = pytest.mark.slow
TENANTS = [f"tenant{n}" for n in range(12)]
RULES = """extends = "inklings"
[maintenance]
watch_minutes = 0.002
ask_share = 1.0
[retention]
quota = 10
"""


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(RULES)
    return str(path)


def fill(url: str) -> None:
    """In each tenant three that consolidation archives, and of each of two agents more than the quota."""
    with Memory(url, preset="inklings") as memory:  # without a quota
        for tenant in TENANTS:
            view = memory.at(tenant=tenant, workspace="shop")
            view.remember_many({"content": f"faint {n} of {tenant}", "importance": 0.001} for n in range(3))
            for agent in ("ann", "bob"):
                items = ({"content": f"{n} of {agent} in {tenant}", "importance": 0.5} for n in range(15))
                view.at(agent=agent).remember_many(items)


def entries(memory: Memory, tenant: str) -> Counter[str]:
    """How often each job has changed something, as the log has it."""
    found = memory.at(tenant=tenant, workspace="shop").audit.search(limit=1000)
    return Counter(entry.action for entry in found if entry.action not in ("remember", "note"))


def worker(url: str, rules: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "recollect", "maintain", "--all-tenants", "--json", "--store", url, "--preset"]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, rules, *more], stdout=pipe, stderr=pipe, text=True)


def told(printed: str) -> list[dict[str, Any]]:
    """What the workers have said that they did, round by round."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(printed.rstrip()):
        one, at = decoder.raw_decode(printed, at)
        found += one["workspaces"]
        at += len(printed[at:]) - len(printed[at:].lstrip())
    return found


def done(found: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter(
        (one["tenant"], job["job"]) for one in found for job in one["jobs"] if job["outcome"] == "done" and job["steps"]
    )


def test_workers_share_the_tenants_and_do_each_job_once(url: str, rules: str) -> None:
    fill(url)
    workers = [worker(url, rules) for _ in range(4)]
    shares = [done(told(ended(one, 90))) for one in workers]
    assert sum(shares, Counter()) == {(tenant, "consolidate"): 1 for tenant in TENANTS}
    with Memory(url, preset=rules) as memory:
        for tenant in TENANTS:
            assert entries(memory, tenant) == {"consolidate": 1}
            view = memory.at(tenant=tenant, workspace="shop")
            assert len(view.list(limit=100)) == 30
            assert all(log.ok for log in view.audit.verify())


def test_workers_that_go_on_spread_and_end_when_they_are_told(url: str, rules: str) -> None:
    """They are watched until all is done, and then for some rounds in which nothing is left to do."""
    fill(url)
    workers = [worker(url, rules, "--watch") for _ in range(3)]
    with Memory(url, preset=rules) as memory:
        until = time.monotonic() + 30
        while any(entries(memory, tenant) != {"consolidate": 1} for tenant in TENANTS):
            assert time.monotonic() < until
            time.sleep(0.1)
        time.sleep(1)
        for one in workers:
            one.send_signal(signal.SIGTERM)
        shares = [done(told(ended(one, 30))) for one in workers]
        assert sum(shares, Counter()) == {(tenant, "consolidate"): 1 for tenant in TENANTS}
        assert all(entries(memory, tenant) == {"consolidate": 1} for tenant in TENANTS)
        for tenant in TENANTS:  # nobody has kept a lease
            things = memory._view.store.shelf(Place(tenant, "shop"), leases.SHELF)
            assert [thing.key for thing in things if "until" in thing.body] == []


QUOTA = """
import random, sys
from recollect import Memory
url, rules, *tenants = sys.argv[1:]
with Memory(url, preset=rules) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(2):
        for tenant in random.sample(tenants, len(tenants)):
            for agent in random.sample(["ann", "bob"], 2):
                memory.at(tenant=tenant, workspace="shop", agent=agent).maintain(jobs=["quota"])
"""


def test_workers_that_keep_quotas_at_once_take_no_more_than_is_over(url: str, rules: str, start: Start) -> None:
    fill(url)
    workers = [start(QUOTA, url, rules, *TENANTS) for _ in range(3)]
    assert [one.line() for one in workers] == ["ready"] * 3
    for one in workers:
        one.tell("go")
    for one in workers:
        ended(one, 60)
    with Memory(url, preset=rules) as memory:
        for tenant in TENANTS:
            view = memory.at(tenant=tenant, workspace="shop")
            mine = Counter(record.address.agent for record in view.list(limit=100) if "of" in record.text)
            assert (mine["ann"], mine["bob"]) == (10, 10), tenant
            assert entries(memory, tenant) == {"quota": 2}
            assert all(log.ok for log in view.audit.verify())


KILLED = """
import os, signal, sys
from datetime import datetime
from recollect import Memory
from recollect.maintenance import schedule
now = datetime.fromisoformat(sys.argv[3])
run = schedule._run
def dying(view, job, place, plan, lease):
    if job.name == "consolidate":
        if sys.argv[4] == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        run(view, job, place, plan, lease)
        os.kill(os.getpid(), signal.SIGKILL)
    return run(view, job, place, plan, lease)
schedule._run = dying
with Memory(sys.argv[1], preset=sys.argv[2], clock=lambda: now) as memory:
    memory.at(tenant="tenant0", workspace="shop").maintain()
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_a_killed_worker_had_is_taken_over_when_its_lease_ends(
    url: str, rules: str, when: str, start: Start
) -> None:
    """Killed before its change was written, or before it could say that it was."""
    fill(url)
    clock = Clock(datetime.now(UTC))
    process = start(KILLED, url, rules, clock.now.isoformat(), when)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    with Memory(url, preset=rules, clock=clock) as memory:
        view = memory.at(tenant="tenant0", workspace="shop")
        assert entries(memory, "tenant0") == ({} if when == "before" else {"consolidate": 1})
        clock.forward(minutes=9)
        reports = [report for report in view.maintain().jobs if report.job == "consolidate" and report.workspace]
        assert [report.outcome for report in reports] == ["busy"]
        for tenant in TENANTS[1:3]:  # others are not held up by it
            assert [
                r.outcome for r in memory.at(tenant=tenant, workspace="shop").maintain().jobs if r.job == "consolidate"
            ] == ["done"]
        clock.forward(minutes=2)
        view.maintain()
        assert entries(memory, "tenant0") == {"consolidate": 1}
        assert not leases.due(view._view, Place("tenant0", "shop"), "consolidate", 24.0)
        clock.forward(hours=1)
        view.maintain()
        assert entries(memory, "tenant0") == {"consolidate": 1}
        assert all(log.ok for log in view.audit.verify())


def test_a_worker_that_was_slower_than_its_lease_changes_nothing(url: str, rules: str) -> None:
    fill(url)
    clock, slow = Clock(datetime.now(UTC)), Clock(datetime.now(UTC))
    with Memory(url, preset=rules, clock=clock) as memory, Memory(url, preset=rules, clock=slow) as other:
        view, late = (one.at(tenant="tenant0", workspace="shop") for one in (memory, other))
        from recollect.maintenance import schedule

        plain = schedule._run

        def overtaken(target: Any, job: Any, place: Place, plan: Any, lease: Any) -> Any:
            if target is late._view and job.name == "consolidate":
                clock.forward(minutes=11)
                assert [r.outcome for r in view.maintain().jobs if r.job == "consolidate"] == ["done"]
            return plain(target, job, place, plan, lease)

        schedule._run = overtaken
        try:
            reports = [report for report in late.maintain().jobs if report.job == "consolidate"]
        finally:
            schedule._run = plain
        assert [report.outcome for report in reports] == ["busy"]
        assert entries(memory, "tenant0") == {"consolidate": 1}


def test_a_job_that_another_did_after_one_looked_is_not_done_again(
    url: str, rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(url)
    with Memory(url, preset=rules) as memory, Memory(url, preset=rules) as other:
        view, quicker = (one.at(tenant="tenant0", workspace="shop") for one in (memory, other))
        plain, first = leases.take, threading.Event()

        def take(target: Any, place: Place, job: str) -> Any:
            if job == "undo" and place.workspace and not first.is_set():
                first.set()
                assert quicker.maintain(jobs=["undo"]).jobs == ()
                before.extend(memory._view.store.find(place, leases.SHELF, ["undo"]))
            return plain(target, place, job)

        before: list[Any] = []
        monkeypatch.setattr(leases, "take", take)
        view.maintain()
        (after,) = memory._view.store.find(Place("tenant0", "shop"), leases.SHELF, ["undo"])
        assert first.is_set()
        assert after.body["last_run"] == before[0].body["last_run"]


def test_what_is_wrong_with_one_tenant_keeps_no_worker_from_the_others(tmp_path: Path, rules: str) -> None:
    url = f"sqlite:{tmp_path / 'memory'}"
    fill(url)
    broken = next((tmp_path / "memory" / "tenant5").rglob("memory.db"))
    for left in broken.parent.glob("memory.db*"):
        left.unlink()
    broken.write_bytes(random.randbytes(9000))
    one = worker(url, rules)
    printed, problem = one.communicate(timeout=60)
    assert one.returncode == 1
    assert "tenant5/shop" in problem
    assert {tenant for tenant, _ in done(told(printed))} == {*TENANTS} - {"tenant5"}


def test_each_worker_goes_through_the_tenants_in_an_order_of_its_own(url: str) -> None:
    from recollect.server.upkeep import workspaces

    fill(url)
    with Memory(url) as memory:
        store = memory._view.store
        assert isinstance(store, Administered)
        orders = [[view.address.tenant for view in workspaces(store, memory)] for _ in range(6)]  # type: ignore[arg-type]
    assert all(sorted(order) == sorted(TENANTS) for order in orders)
    assert len({tuple(order) for order in orders}) > 1


@pytest.mark.parametrize("given", [("--tenant", "x"), ("--workspace", "x"), ("--review",), ("--agent", "x")])
def test_all_tenants_are_all_of_them(tmp_path: Path, rules: str, given: tuple[str, ...]) -> None:
    one = worker(f"sqlite:{tmp_path / 'memory'}", rules, *given)
    _, problem = one.communicate(timeout=60)
    assert one.returncode
    assert "leave out" in problem
