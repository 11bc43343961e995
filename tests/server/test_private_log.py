"""The audit log of an agent's journal is read by whoever reads the journal: the agent's own key, and admins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support import plain
from support.served import Served, served
from support.stores import STORES, located

from recollect import Memory

WHY = "the affair is over"
Connect = Callable[..., Memory]


@pytest.fixture(params=STORES)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    with Memory(located(request.param, tmp_path / "m"), embedder="none") as memory, served(memory) as server:
        yield server


@pytest.fixture
def connect(server: Served) -> Iterator[Connect]:
    with ExitStack() as opened:
        yield lambda role, **bound: opened.enter_context(server.memory(role, tenant="default", **bound))


@pytest.fixture
def ids(connect: Connect) -> list[str]:
    """Of journal entries and core memories: stored, revised, archived, forgotten, brought back and erased."""
    gaia = connect("member", agent="gaia")
    stored = gaia.journal.save("met Bob")
    revised = gaia.journal.edit(stored.id, "met Bob again")
    core = gaia.journal.save_core("I like Bob")
    gaia.archive(core.id, reason=WHY)
    gaia.restore(core.id)
    gaia.forget(core.id, reason=WHY)
    gaia.undo()
    gaia.forget(core.id, erase=True, reason=WHY)
    gaia.forget(revised.id, reason=WHY)
    return [stored.id, revised.id, core.id]


@pytest.mark.clause("JRN-09", "JRN-12")
@pytest.mark.parametrize("bound", [{}, {"agent": "bob"}, {"account": "x"}, {"workspace": "default"}], ids=repr)
def test_others_read_nothing_of_a_journal_in_the_log(
    connect: Connect, server: Served, ids: list[str], bound: dict[str, str]
) -> None:
    other = connect("member", **bound)
    everything = str(other.audit.search(limit=1000))
    assert WHY not in everything
    assert not any(ident in everything for ident in ids)
    assert other.audit.search("affair") == other.audit.matching(["affair", "journal", "core"], limit=100) == []
    assert "affair" not in str(other.consult("the affair"))
    for ident in ids:
        assert other.audit.search(about=ident) == []
        diagnosis = other.diagnose(ident)
        assert (diagnosis.status, diagnosis.at) == ("unknown", None)
        assert other.ids_like(ident[:8]) == []
    with plain.Client(base_url=server.url, headers=server.headers("member", tenant="default", **bound)) as client:
        for path in ("/audit", "/audit?q=affair", f"/memories/{ids[0]}"):
            page = client.get(path).text
            assert WHY not in page
            assert not any(ident in page for ident in ids if ident not in path)


@pytest.mark.clause("JRN-09", "JRN-12")
def test_the_agent_and_admins_read_it(connect: Connect, ids: list[str]) -> None:
    for own in (connect("member", agent="gaia"), connect("admin")):
        assert {entry.action for entry in own.audit.search("affair")} >= {"forget", "erase"}
        assert own.audit.search(about=ids[1])
        assert own.diagnose(ids[1]).status == "forgotten"
    assert connect("admin").audit.verify()[0].ok


def test_of_an_entry_about_shared_memories_too_others_read_that_it_happened(connect: Connect, server: Served) -> None:
    gaia = connect("member", agent="gaia")
    secret, fact = gaia.journal.save("met Bob"), gaia.remember("the sky is blue")
    gaia.forget([secret.id, fact.id], reason=WHY)
    other = connect("member")
    (entry,) = other.audit.search(action="forget")
    assert (entry.message, entry.meta) == ("forgot 2 memories", {})
    assert other.diagnose(secret.id).status == "unknown"
    assert connect("admin").audit.search("affair")


def test_an_import_of_a_journal_is_private_too(connect: Connect, tmp_path: Path) -> None:
    gaia = connect("member", agent="gaia")
    secret = gaia.journal.save("met Bob")
    gaia.export(tmp_path / "journal.json")
    gaia.forget(secret.id, erase=True)
    gaia.import_(tmp_path / "journal.json")
    assert connect("member").audit.search(action="import") == []
    assert connect("admin").audit.search(action="import")
