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
