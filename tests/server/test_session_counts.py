"""A key counts of a ledger's sessions what it sees, and metrics of all sessions are for keys that are bound to none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.served import served

from recollect import AccessError, Memory

Connect = Callable[..., Memory]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Memory]:
    """A session with an entry of everybody, of an account, of a channel, and of an agent's journal."""
    with Memory(f"ledger:{tmp_path / 'm'}", embedder="none") as memory:
        memory.sessions.create("user1", session_id="s1")
        session = memory.at(workspace="s1")
        session.remember("the office is in Porto", kind="finding")
        gone = session.remember("the office was in Faro", kind="finding")
        session.forget(gone.id)
        session.at(account="ann").remember("ann is leaving", kind="decision")
        session.at(agent="gaia").journal.save("met Bob")
        session.channels.create("ops")
        session.at(channel="ops").remember("the disk is full", kind="finding", tier="channel")
        yield memory


@pytest.fixture
def connect(ledger: Memory) -> Iterator[Connect]:
    with ExitStack() as opened:
        server = opened.enter_context(served(ledger))
        yield lambda role, **bound: opened.enter_context(server.memory(role, tenant="default", **bound))


@pytest.mark.parametrize(
    ("bound", "counts"),
    [
        ({}, {"finding": 2, "decision": 1}),
        ({"account": "bob"}, {"finding": 2}),
        ({"account": "ann"}, {"finding": 2, "decision": 1}),
        ({"agent": "gaia"}, {"finding": 2, "decision": 1, "journal": 1}),
        ({"agent": "other"}, {"finding": 2, "decision": 1}),
        ({"channel": "lab"}, {"finding": 1, "decision": 1}),
    ],
    ids=repr,
)
def test_a_bound_key_counts_what_it_sees(connect: Connect, bound: dict[str, str], counts: dict[str, int]) -> None:
    owner = {part: name for part, name in bound.items() if part != "channel"}
    sessions = connect("reader", workspace="s1", **owner).at(channel=bound.get("channel")).sessions
    stats = sessions.stats("s1")
    for session in (sessions.load("s1"), *sessions.list(), stats.metadata):
        assert session.total_entries == sum(counts.values())
        counted = {kind.removesuffix("s"): number for kind, number in session.statistics.items() if number}
        assert counted == counts
        assert bool(session.total_size_bytes) == (not bound)
    assert stats.entries == sum(counts.values())
    assert stats.deleted == (0 if bound else 1)
    assert bool(stats.size_bytes) == (not bound)


def test_the_owner_counts_everything(connect: Connect, ledger: Memory) -> None:
    for memory in (ledger, connect("admin")):
        assert memory.sessions.load("s1").total_entries == 4
        assert memory.sessions.stats("s1").deleted == 1


def test_metrics_are_for_keys_that_are_bound_to_no_session(connect: Connect, ledger: Memory) -> None:
    for bound in ({"workspace": "s1"}, {"account": "bob"}, {"agent": "gaia"}):
        with pytest.raises(AccessError, match="metrics"):
            connect("reader", **bound).sessions.metrics()
    with pytest.raises(AccessError, match="metrics"):
        ledger.at(workspace="s1").sessions.metrics()
    for memory in (ledger, connect("reader")):
        assert memory.sessions.metrics()["memory.entries.total"] == 4
