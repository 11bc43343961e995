"""Processes on one folder: only errors that say so may be tried again, and what was acknowledged is what is stored."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.common import LONG
from support.crowd import Agent, check
from support.stores import FILES as FILE_STORES
from support.watchdog import STACKS, ended, opened, took

if TYPE_CHECKING:
    from support.common import Script

    Start = Callable[..., Script]

MIXED = (
    STACKS
    + """
import json, sys
from recollect import ConcurrencyError, Memory
from support.crowd import Agent
url, name, acts, *tiers = sys.argv[1:]
done = 0
with Memory(url) as memory:
    agent = Agent(memory, name, tiers)
    while done < int(acts) or not agent.live:
        try:
            agent.act()
        except ConcurrencyError:  # another held the lock for too long; trying again is safe
            continue
        done += 1
print(json.dumps([[*key, text] for key, text in agent.live.items()]))
"""
)


ACTS = 150 if LONG else 50
"""What each process does: counted, because a busy machine does little in a second."""


def test_three_processes_do_everything_in_one_folder(url: str, store: str, start: Start) -> None:
    tiers = ("workspace",) if store == "notebook" else ("account", "workspace")
    with opened(url) as memory:
        processes = [start(MIXED, url, f"agent{n}", ACTS, *tiers) for n in range(3)]
        for n, process in enumerate(processes):
            agent = Agent(memory, f"agent{n}", tiers)
            agent.live = {(place, ident): text for place, ident, text in json.loads(ended(process, 120))}
            assert agent.live
            agent.check()
        check(memory)


HOLD = """
import fcntl, os, sqlite3, sys
held = []
for path in sys.argv[1:]:
    if path.endswith(".db"):
        held.append(sqlite3.connect(path, isolation_level=None))
        held[-1].execute("BEGIN IMMEDIATE")
    else:
        held.append(open(path, "r+b"))
        fcntl.flock(held[-1], fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
"""


def locks(root: Path) -> list[Path]:
    """The files by which writers of a folder keep each other out."""
    return [path for path in root.rglob("*") if path.name in ("memory.db", "account.db", "lock")]


@pytest.mark.parametrize("store", FILE_STORES, indirect=True)
def test_while_a_writer_is_stopped_others_read(store: str, url: str, start: Start) -> None:
    with opened(url) as memory:
        ann = memory.at(workspace="shop", account="ann")
        private = ann.remember("Ann has a heron", kind="preference", tier="account")
        record = ann.remember("a heron in the shop")
        ann.remember_many(f"egret {n} in the shop" for n in range(400))
        for question in ("heron", "egret"):
            ann.recall(question)
        held = locks(Path(url.partition(":")[2]))
        assert len(held) >= 2
        holder = start(HOLD, *held)
        assert holder.line() == "held"
        holder.send_signal(signal.SIGSTOP)
        reads: dict[str, Callable[[], object]] = {
            "recall when others have waited for long to be counted": lambda: ann.recall("heron"),
            "recall of more than may wait for it": lambda: ann.recall("egret", limit=400),
            "recall again": lambda: ann.recall("in the shop"),
            "list": ann.list,
            "get": lambda: (ann.get(record.id), ann.get(private.id)),
            "stats": ann.stats,
            "query": lambda: ann.query({"text": "heron"}),
            "context": lambda: ann.context([{"role": "user", "content": "heron?"}]),
        }
        try:
            time.sleep(1.1)
            times = {name: took(read) for name, read in reads.items()}
        finally:
            holder.kill()
            holder.wait()
        assert {name: seconds for name, seconds in times.items() if seconds >= 2} == {}
        assert took(lambda: ann.remember("an owl in the shop")) < 2
        ann.recall("heron")
    with opened(url) as memory:
        assert memory.at(workspace="shop", account="ann").get(record.id).access_count >= 3


FILES = 256 if LONG else 64
WORKSPACES = FILES * 3 // 2
OPENING = """
import resource, sys
from recollect import Memory
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
with Memory(sys.argv[1]) as memory:
    views = [memory.at(workspace=f"w{n}") for n in range(int(sys.argv[3]))]
    for n, view in enumerate(views):
        view.remember(f"a heron in {n}")
    for n, view in enumerate(views):
        (hit,) = view.recall("heron")
        assert hit.memory.text == f"a heron in {n}"
    assert len(memory.workspaces()) == len(views)
"""


@pytest.mark.parametrize("store", FILE_STORES, indirect=True)
def test_a_process_uses_more_workspaces_than_it_may_have_files_open(url: str, start: Start) -> None:
    ended(start(OPENING, url, FILES, WORKSPACES), 60)
