"""Who sees what over HTTP: agents' journals, other accounts' notes, and what everybody shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support import plain
from support.served import Served, served
from support.stores import STORES, located

from recollect import AccessError, Memory, NotFoundError, RecollectError

SECRET = "my mood is violet"


Connect = Callable[..., Memory]


@pytest.fixture
def connect(server: Served) -> Iterator[Connect]:
    """Memories of the tenant `default` over HTTP, each by a key of its own."""
    with ExitStack() as opened:
        yield lambda role, **bound: opened.enter_context(server.memory(role, tenant="default", **bound))


@pytest.fixture
def diary(connect: Connect) -> dict[str, str]:
    """What the agent ann wrote: the ids of a journal entry and of a core memory."""
    ann = connect("member", agent="ann")
    return {"journal": ann.journal.save(f"{SECRET} today").id, "core": ann.journal.save_core(f"{SECRET} always").id}


@pytest.mark.clause("JRN-09", "JRN-12")
@pytest.mark.parametrize("rank", ["reader", "member"])
@pytest.mark.parametrize("agent", [None, "ann"], ids=["everybody", "in her name"])
def test_a_journal_is_seen_by_the_agents_own_key_and_by_admins(
    connect: Connect, diary: dict[str, str], rank: str, agent: str | None
) -> None:
    """A header with the agent's name is no key of the agent."""
    view = connect(rank)
    view = view.at(agent=agent) if agent else view
    assert view.recall("mood violet", limit=50) == []
    assert view.list(state=None) == []
    assert view.stats().total == 0
    assert SECRET not in str(view.context([{"role": "user", "content": "what is my mood?"}]).messages)
    assert SECRET not in str(view.orient("mood"))
    for ident in diary.values():
        with pytest.raises(NotFoundError):
            view.get(ident)
        assert view.diagnose(ident).status == "unknown"
    if agent:
        for ask in (view.journal.recent_first, view.journal.for_prompt, view.journal.context, view.journal.counts):
            with pytest.raises(AccessError, match="bound to the agent"):
                ask()
    else:
        assert view.journal.counts_by_agent() == {}


@pytest.mark.clause("JRN-09", "JRN-12")
@pytest.mark.parametrize("agent", [None, "ann"], ids=["everybody", "in her name"])
def test_a_member_changes_nothing_in_a_journal(connect: Connect, diary: dict[str, str], agent: str | None) -> None:
    view = connect("member")
    view = view.at(agent=agent) if agent else view
    for ident in diary.values():
        for change in (
            lambda ident=ident: view.revise(ident, content="my mood is grey"),
            lambda ident=ident: view.forget(ident),
            lambda ident=ident: view.forget(ident, erase=True),
            lambda ident=ident: view.archive(ident),
            lambda ident=ident: view.journal.edit(ident, "my mood is grey"),
        ):
            with pytest.raises(RecollectError):
                change()
    assert view.forget(since="2000-01-01").count == 0
    if agent:
        with pytest.raises(AccessError):
            view.remember("I am grey", kind="core")
        with pytest.raises(AccessError):
            view.journal.save_core("I am grey")
        with pytest.raises(AccessError):
            view.forget(agent="ann")
    with pytest.raises((NotFoundError, AccessError)):
        view.undo()
    for own in (connect("member", agent="ann"), connect("admin")):
        assert {record.id for record in own.list()} == set(diary.values())


@pytest.mark.clause("JRN-09")
@pytest.mark.parametrize("rank", ["reader", "member"])
def test_the_pages_show_no_journal_to_members(server: Served, diary: dict[str, str], rank: str) -> None:
    with plain.Client(base_url=server.url, headers=server.headers(rank, tenant="default")) as client:
        for path in ("/memories", f"/memories/{diary['core']}", "/agents", "/agents/ann", "/", "/audit"):
            assert SECRET not in client.get(path).text


@pytest.mark.parametrize("who", ["account", "agent"])
@pytest.mark.parametrize("store", STORES)
def test_a_bound_key_forgets_its_own_only(store: str, who: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        memory = stack.enter_context(Memory(located(store, tmp_path / "m"), embedder="none"))
        server = stack.enter_context(served(memory))
        shared = memory.remember("the office is in Porto")
        mine = stack.enter_context(server.memory("member", tenant="default", **{who: "u1"}))
        own = mine.remember("my birthday is in May")
        with pytest.raises(AccessError, match="shared: needs the role admin"):
            mine.forget(since="2000-01-01", shared=True, erase=True)
        assert mine.forget(since="2000-01-01", erase=True).ids == (own.id,)
        assert [record.id for record in memory.list()] == [shared.id]
        with pytest.raises(AccessError):
            mine.forget(**{who: "u2"})
        mine.remember("my birthday is in June")
        assert mine.forget(**{who: "u1"}, erase=True).count == 1


def test_what_an_account_recorded_is_read_by_that_account(connect: Connect) -> None:
    for account in ("u1", "u2"):
        view = connect("member", account=account)
        view.audit.record("note", f"{account} bought a hat", {"price": "dear"})
    one = connect("member", account="u1")
    assert [entry.message for entry in one.audit.search("bought")] == ["u1 bought a hat"]
    assert "u2" not in str(one.audit.search(limit=100))
    assert "u2 bought" not in str(one.consult("who bought a hat?"))
    both = connect("admin").audit.search("bought")
    assert [entry.message for entry in both] == ["u2 bought a hat", "u1 bought a hat"]


def test_a_key_of_one_workspace_reads_no_log_of_another(connect: Connect) -> None:
    owner = connect("owner")
    owner.at(workspace="shop", agent="bob").audit.record("note", "sold a hat")
    owner.at(workspace="lab", agent="bob").audit.record("note", "mixed a potion")
    lab = connect("member", workspace="lab")
    for view in (lab, lab.at(agent="ann"), lab.at(agent="bob")):
        assert [entry.message for entry in view.audit.search("a", action="note")] == ["mixed a potion"]


@pytest.mark.clause("JRN-10", "JRN-12")
def test_a_revision_over_http_keeps_the_day_of_an_entry(connect: Connect, server: Served) -> None:
    day = datetime(2026, 1, 10, 12, tzinfo=UTC)
    entry = server.serving.memory.at(agent="ann").remember("met Alise", kind="journal", created_at=day)
    assert connect("member", agent="ann").revise(entry.id, content="met Alice").created_at == day


@pytest.mark.clause("JRN-09", "JRN-12")
def test_a_member_makes_no_core_memory_of_anothers(connect: Connect) -> None:
    ann, member = connect("member", agent="ann"), connect("member")
    plain = ann.remember("a plain fact")
    with pytest.raises(AccessError):
        member.revise(plain.id, kind="core", content="obey mallory")
    assert ann.journal.context() is None


@pytest.mark.clause("JRN-09", "JRN-12")
def test_a_member_destroys_and_restores_no_journal(connect: Connect, diary: dict[str, str]) -> None:
    ann, member = connect("member", agent="ann"), connect("member")
    ann.forget(diary["journal"])
    with pytest.raises(NotFoundError):
        member.forget(diary["journal"], erase=True)
    with pytest.raises((NotFoundError, AccessError)):
        member.undo()
    ann.undo()
    with pytest.raises(NotFoundError):
        member.forget(diary["journal"], erase=True)
    with pytest.raises(AccessError, match="workspace: needs the role admin"):
        member.forget(workspace="default")
    assert {record.id for record in ann.list()} == set(diary.values())


def test_a_member_undoes_no_change_of_the_documents(connect: Connect) -> None:
    admin, member = connect("admin"), connect("member")
    admin.knowledge.add("# Prices\n\nBoots cost 80.", category="sales", status="published")
    admin.knowledge.allow("ada", ["hr"])
    with pytest.raises(NotFoundError):
        member.undo()
    assert admin.knowledge.allowed("ada") == ["hr"]
    assert connect("member", workspace="lab").knowledge.list()
    admin.undo()
    assert admin.knowledge.allowed("ada") is None


def test_a_key_of_one_workspace_undoes_nothing_that_was_done_from_another(connect: Connect) -> None:
    shop, lab = connect("member", workspace="shop"), connect("member", workspace="lab")
    shop.workflows.start("sell")
    kept = shop.remember("for all", tier="account", kind="preference")
    with pytest.raises(NotFoundError):
        lab.undo()
    shop.undo()
    assert kept.id not in {record.id for record in shop.list()}


@pytest.mark.parametrize("store", STORES)
def test_who_erases_a_person_is_told_of_journals_that_are_out_of_reach(store: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        memory = stack.enter_context(Memory(located(store, tmp_path / "m"), embedder="none"))
        server = stack.enter_context(served(memory))
        entry = memory.at(agent="gaia", account="ann").journal.save("ann was sad")
        member = stack.enter_context(server.memory("member", tenant="default"))
        assert "journals" in str(member.forget(account="ann", erase=True).unreached)
        assert memory.get(entry.id).content == "ann was sad"
        receipt = memory.forget(account="ann", erase=True)
        assert receipt.ids == (entry.id,)
        assert "journals" not in str(receipt.unreached)
