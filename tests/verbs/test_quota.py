"""A quota that several keep at once: nobody takes what is no longer over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import random
from typing import Any

import pytest
from support.common import Script
from support.stores import STORES, located
from support.watchdog import together

from recollect import Memory

QUOTA = 20


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


@pytest.fixture(params=["archive", "forget"])
def rules(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    retention = f'quota = {QUOTA}\nquota_order = "oldest"\nquota_action = "{request.param}"\n'
    path.write_text(f'extends = "recollect"\n[retention]\n{retention}')
    return str(path)


def fill(url: str, **workspaces: int) -> None:
    """With memories of Ann, and whatever the quota is."""
    with Memory(url, embedder="none") as memory:
        for name, number in workspaces.items():
            memory.at(workspace=name, agent="ann").remember_many([f"{n} of {name}" for n in range(number)])
            memory.at(workspace=name, agent="bob").remember_many([f"{n} of {name}" for n in range(number)])


def live(url: str, *workspaces: str) -> int:
    with Memory(url, embedder="none") as memory:
        views = [memory.at(workspace=name, agent="ann") for name in workspaces]
        return sum(record.address.agent == "ann" for view in views for record in view.list(limit=1000))


@pytest.mark.parametrize("by", ["remember", "maintain"])
def test_what_another_saw_to_after_it_was_counted_is_not_seen_to_again(
    url: str, rules: str, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    fill(url, shop=QUOTA - 5, home=9)
    with Memory(url, preset=rules, embedder="none") as memory, Memory(url, preset=rules, embedder="none") as other:
        store, places = memory._view.store, set[Any]()
        count = store.count

        def overtaken(where: Any, *by: Any) -> Any:
            counted = count(where, *by)
            places.add(where.seen_from)
            if len(places) == 2:  # both workspaces are counted, and nothing is chosen yet
                monkeypatch.undo()
                other.at(workspace="shop", agent="ann").remember("by another")
            return counted

        monkeypatch.setattr(store, "count", overtaken)
        view = memory.at(workspace="home", agent="ann")
        if by == "remember":
            view.remember("one more")
        else:
            view.maintain(jobs=["quota"])
        assert store.count == count, "it has counted"
    assert live(url, "shop", "home") == QUOTA


def test_threads_that_write_at_once_leave_as_many_as_the_quota(url: str, rules: str) -> None:
    fill(url, shop=QUOTA)
    with Memory(url, preset=rules, embedder="none") as memory:

        def write() -> None:
            for turn in range(8):
                memory.at(workspace="shop", agent="ann").remember_many([f"{turn} {random()}", f"{turn} {random()}"])

        together(*[write] * 6)
    assert_never_below(url, 2 * 8 * 6)


def test_threads_that_write_in_several_workspaces_do_not_wait_for_each_other(url: str, rules: str) -> None:
    fill(url, shop=QUOTA, home=0)
    with Memory(url, preset=rules, embedder="none") as memory:

        def write(workspace: str) -> None:
            for turn in range(8):
                memory.at(workspace=workspace, agent="ann").remember(f"{turn} {random()}")

        together(*[lambda name=name: write(name) for name in ("shop", "home") * 3])
    assert live(url, "shop", "home") == QUOTA


WRITER = """
import sys
from random import random
from recollect import Memory
with Memory(sys.argv[1], preset=sys.argv[2], embedder="none") as memory:
    view = memory.at(workspace="shop", agent="ann")
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(25):
        view.remember_many([f"{turn} {random()}", f"{turn} {random()}"])
"""


def test_processes_that_write_at_once_leave_as_many_as_the_quota(
    url: str, rules: str, start: Callable[..., Script]
) -> None:
    fill(url, shop=QUOTA)
    writers = [start(WRITER, url, rules) for _ in range(2)]
    assert [one.line() for one in writers] == ["ready"] * 2
    for one in writers:
        one.tell("go")
    for one in writers:
        one.finish()
    assert_never_below(url, 2 * 25 * 2)


def assert_never_below(url: str, written: int) -> None:
    """What was taken too much is made good by what is written next, so that only the log tells."""
    assert live(url, "shop") == QUOTA
    with Memory(url, embedder="none") as memory:
        entries = memory.at(workspace="shop", agent="ann").audit.search(limit=1000)
    there, gone = QUOTA, 0
    for entry in sorted(entries, key=lambda entry: entry.seq)[2:]:  # without what was there before
        if entry.action == "quota":
            going = len(entry.meta.get("changed", ())) + len(entry.meta.get("deleted", ()))
            there, gone = there - going, gone + going
        else:
            there += len(entry.meta["created"])
        assert there >= QUOTA, entry
    assert gone == written


def test_the_work_at_the_quota_does_not_grow_with_the_workspaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = tmp_path / "mine.toml"
    rules.write_text('extends = "recollect"\n[retention]\nquota = 400\nquota_order = "oldest"\n')
    with Memory(tmp_path / "memory", preset=str(rules), embedder="none") as memory:
        for number in range(40):
            memory.at(workspace=f"w{number:02}", agent="ann").remember_many([f"{n} of {number}" for n in range(10)])
        store = memory._view.store
        counts, places = list[Any](), list[int]()
        count, transaction = store.count, store.transaction

        def counting(*given: Any) -> Any:
            counts.append(given)
            return count(*given)

        def opening(*several: Any) -> Any:
            places.append(len(set(several)))
            return transaction(*several)

        monkeypatch.setattr(store, "count", counting)
        monkeypatch.setattr(store, "transaction", opening)
        view = memory.at(workspace="w00", agent="ann")
        for number in range(20):
            view.remember(f"one more, number {number}")
        assert max(places) <= 2
        assert len(places) <= 20 * 2 + 5 * 4
        assert len(counts) <= 5 * 40 * 4
    assert sum(live(f"sqlite:{tmp_path / 'memory'}", f"w{number:02}") for number in range(40)) <= 400


def test_a_workspace_that_cannot_be_read_does_not_fail_what_was_stored(
    tmp_path: Path, rules: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(f"sqlite:{tmp_path / 'memory'}", shop=QUOTA, home=3)
    (damaged,) = (tmp_path / "memory").glob("**/shop*/memory.db")
    damaged.write_bytes(b"no database at all" * 500)
    with Memory(tmp_path / "memory", preset=rules, embedder="none") as memory:
        stored = memory.at(workspace="home", agent="ann").remember("one more")
        assert memory.at(workspace="home", agent="ann").get(stored.id) == stored
    assert "quota of ann not kept yet" in caplog.text
