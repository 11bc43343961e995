"""Erasing takes along earlier versions and sources, in stored rows and in what undo keeps, and nothing of others."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import psycopg
import pytest
from msgspec.structs import replace
from support.served import served
from support.stores import STORES, located, traces

from recollect import ConflictError, Memory, RecollectError, Record
from recollect.stores import open_store
from recollect.stores.copying.copy import copy
from recollect.values.record import MAX_SOURCES
from recollect.values.validation import MAX_REFERENCES
from recollect.verbs.forget import Receipt

WORD = "zanzibarnuts"


@pytest.fixture(params=STORES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "store" / "memory")


@pytest.fixture
def memory(location: str) -> Iterator[Memory]:
    with Memory(location, embedder="none") as memory:
        memory.remember("an ordinary memory that stays")
        yield memory


def check_erased(receipt: Receipt, location: str) -> None:
    """Only a server of PostgreSQL may say that it is not: it has a disk of its own."""
    assert receipt.erased or location.startswith("postgresql")
    assert traces(location, WORD.encode()) == []


def revised(memory: Memory) -> tuple[Record, Record]:
    old = memory.remember(f"a {WORD} bush", tags=["plant"])
    return old, memory.revise(old.id, content="a hazel bush", tags=["tree"])


def check_nothing_comes_back(memory: Memory) -> None:
    for entry in memory.audit.search(limit=50):
        try:
            memory.undo(entry.id)
        except RecollectError:
            continue
    assert not [record for record in memory.list(state=None) if WORD in record.text]


# Earlier versions


def damage(location: str, ident: str) -> None:
    """Change a memory's text behind the store's back, so that its checksum does not hold."""
    kind, _, path = location.partition(":")
    text = f"replace(text, '{WORD} bush', '{WORD} bosh')"
    if kind == "sqlite":
        (file,) = Path(path).rglob("default/memory.db")
        with sqlite3.connect(file) as database:
            assert database.execute(f"UPDATE memories SET text = {text} WHERE id = ?", [ident]).rowcount == 1
        database.close()
    elif kind == "postgresql":
        server, _, schema = location.rpartition("schema=")
        here = f"WHERE seq = (SELECT seq FROM \"{schema}\".memories WHERE id = '{ident}')"
        with psycopg.connect(server.rstrip("?&"), autocommit=True) as connection:
            changed = connection.execute(f'UPDATE "{schema}".contents SET text = {text} {here}'.encode())
            assert changed.rowcount == 1
    else:
        (file,) = [one for one in Path(path).rglob("memor*.jsonl") if WORD.encode() in one.read_bytes()]
        file.write_bytes(file.read_bytes().replace(b"nuts bush", b"nuts bosh"))


@pytest.mark.parametrize("since", ["", "forgotten", "compacted"])
def test_a_damaged_version_goes_with_its_successor(location: str, since: str) -> None:
    with Memory(location, embedder="none") as memory:
        old, new = revised(memory)
        if since == "compacted":
            memory.compact()
    damage(location, old.id)
    with Memory(location, embedder="none") as memory:
        assert memory.verify() or location.startswith("notebook"), "whose lines may be edited by hand"
        if since == "forgotten":
            memory.forget(new.id)
        receipt = memory.forget(new.id, erase=True)
        assert new.id in receipt.ids
        check_erased(receipt, location)
        assert memory.verify() == []


def test_a_line_that_cannot_be_read_is_named_in_the_receipt(location: str) -> None:
    """It may be a piece of any memory."""
    kind, _, path = location.partition(":")
    if kind not in ("ledger", "notebook"):
        pytest.skip("has no lines")
    with Memory(location, embedder="none") as memory:
        ident = memory.remember("a hazel bush").id
    (file,) = [one for one in Path(path).rglob("memor*.jsonl") if b"hazel" in one.read_bytes()]
    file.write_bytes(b'{"a piece of\n' + file.read_bytes())
    with Memory(location, embedder="none") as memory:
        receipt = memory.forget(ident, erase=True)
    assert receipt.unreached == ("a damaged line of which nobody can tell what it holds: see `recollect verify`",)


@pytest.mark.parametrize("condition", ["id", "tag"])
def test_versions_that_were_forgotten_together_are_erased_together(
    memory: Memory, location: str, condition: str
) -> None:
    old, new = revised(memory)
    memory.forget(new.id)
    receipt = memory.forget(new.id, erase=True) if condition == "id" else memory.forget(tag="tree", erase=True)
    assert set(receipt.ids) == {old.id, new.id}
    check_erased(receipt, location)
    check_nothing_comes_back(memory)


def test_a_version_that_was_forgotten_by_itself_is_erased_with_its_successor(memory: Memory, location: str) -> None:
    old, new = revised(memory)
    forgotten = memory.forget(old.id)
    receipt = memory.forget(new.id, erase=True)
    assert set(receipt.ids) == {old.id, new.id}
    check_erased(receipt, location)
    with pytest.raises(ConflictError):
        memory.undo(forgotten.entries[0])
    check_nothing_comes_back(memory)


def test_a_version_is_erased_where_only_the_log_knows_of_what_it_is_one(memory: Memory, location: str) -> None:
    """Erasing a neighbour drops the undo data of the change that they have in common."""
    first = memory.remember(f"a {WORD} bush")
    old = memory.revise(first.id, content=f"a {WORD} tree")
    new = memory.revise(old.id, content="a hazel bush")
    neighbour = memory.remember("a fox")
    memory.forget([new.id, neighbour.id])
    memory.forget(neighbour.id, erase=True)
    check_erased(memory.forget(new.id, erase=True), location)
    check_nothing_comes_back(memory)


def test_a_version_that_is_live_again_stays(memory: Memory) -> None:
    old, new = revised(memory)
    memory.archive(new.id)
    memory.undo()
    memory.undo()
    assert memory.get(old.id).superseded_by is None
    memory.forget(new.id, erase=True)
    assert memory.get(old.id) == old


def test_the_earlier_versions_of_a_source_go_with_it(memory: Memory, location: str) -> None:
    source = memory.revise(memory.remember(f"a {WORD} bush").id, content="a hazel bush")
    summary = memory.remember_many([{"content": "plants", "derived_from": [source.id]}])[0]
    memory.archive(source.id)
    receipt = memory.forget(summary.id, erase=True)
    assert source.id in receipt.sources
    check_erased(receipt, location)


def test_a_merged_memory_that_was_forgotten_takes_its_twin_along(memory: Memory, location: str) -> None:
    for _ in range(2):
        memory.archive(memory.remember(f"a {WORD} bush", again=True).id)
        memory.undo()
    memory.deduplicate()
    (stays,) = [record for record in memory.list() if WORD in record.text]
    memory.forget(stays.id)
    check_erased(memory.forget(stays.id, erase=True), location)


# Conversations


@pytest.mark.parametrize("name", ["id", "ref_code"])
def test_a_conversation_that_was_forgotten_is_erased_by_either_name(memory: Memory, location: str, name: str) -> None:
    started = memory.conversations.start(f"about {WORD}")
    memory.conversations.say(started.id, "user", f"hm {WORD}?")
    memory.at(conversation=started.id).scratchpad.write("food", WORD)
    memory.forget(conversation=getattr(started, name))
    receipt = memory.forget(conversation=getattr(started, name), erase=True)
    assert receipt.count == 1
    check_erased(receipt, location)


def test_a_ref_code_of_another_account_is_not_resolved(memory: Memory) -> None:
    ann = memory.at(account="ann")
    started = ann.conversations.start("private")
    ann.conversations.say(started.id, "user", "hm?")
    ann.forget(conversation=started.ref_code)
    assert memory.at(account="bob").forget(conversation=started.ref_code, erase=True).count == 0
    ann.undo()
    assert ann.conversations.get(started.ref_code).id == started.id


# Sources


def test_an_account_memory_takes_its_sources_from_every_workspace(location: str) -> None:
    """A notebook numbers the memories of each workspace anew, so that one id may name a source in several."""
    with Memory(location, embedder="none", preset="inklings") as memory:
        for workspace in ("one", "two", "three"):
            text = f"I prefer {WORD} to peanuts." if workspace != "three" else "I prefer tea to coffee."
            with memory.at(workspace=workspace).conversation("lunch") as conversation:
                conversation.say("user", text)
        (fact,) = [record for record in memory.list(state=None) if WORD in record.text]
        assert fact.tier == "account"
        check_erased(memory.forget(fact.id, erase=True), location)
        three = memory.at(workspace="three")
        three.undo(three.audit.search(action="conversation", limit=1)[0].id)
        assert "I prefer tea to coffee." in {record.text for record in three.list(kind="conversation")}


def test_a_source_that_is_shared_goes_only_with_who_may_forget_it(memory: Memory) -> None:
    """Else an agent that may not forget what is shared could do so by deriving from it."""
    shared = memory.remember("the office is in Porto")
    memory.archive(shared.id)
    for role, name in (("agent", "bot"), ("account", "ann")):
        mine = memory.at(**{role: name})
        mine.remember_many([{"content": "forged", "derived_from": [shared.id], "tags": ["y"]}])
        receipt = mine.forget(tag="y", erase=True)
        assert (receipt.sources, receipt.remaining) == ((), (shared.id,))
    assert memory.get(shared.id).text == "the office is in Porto"
    mine.remember_many([{"content": "forged", "derived_from": [shared.id], "tags": ["y"]}])
    assert mine.forget(tag="y", shared=True, erase=True).sources == (shared.id,)


def test_who_is_erased_takes_no_source_of_another_account_along(memory: Memory) -> None:
    ann, bob = memory.at(account="ann"), memory.at(account="bob")
    own = ann.remember("of ann")
    ann.archive(own.id)
    bob.remember_many([{"content": "forged", "derived_from": [own.id]}])
    receipt = memory.forget(account="bob", erase=True)
    assert (receipt.sources, receipt.remaining) == ((), (own.id,))
    assert ann.get(own.id).text == "of ann"


def test_over_http_a_source_that_is_shared_stays(tmp_path: Path) -> None:
    with (
        Memory(located("sqlite", tmp_path / "m"), embedder="none") as memory,
        served(memory) as server,
        server.memory("member", tenant="default", agent="bot") as bot,
    ):
        shared = memory.remember("the office is in Porto")
        memory.archive(shared.id)
        bot.remember_many([{"content": "forged", "derived_from": [shared.id], "tags": ["y"]}])
        assert bot.forget(tag="y", erase=True).remaining == (shared.id,)
        assert memory.get(shared.id).text == "the office is in Porto"


def test_a_cleared_turn_of_another_workspace_is_named_as_out_of_reach(location: str) -> None:
    with Memory(location, embedder="none", preset="inklings") as memory:
        for workspace in ("one", "two"):
            with memory.at(workspace=workspace).conversation("lunch") as conversation:
                conversation.say("user", f"I prefer {WORD} to peanuts.")
        one = memory.at(workspace="one")
        (fact,) = [record for record in one.list(state=None) if WORD in record.text]
        receipt = one.forget(fact.id, erase=True)
        assert receipt.remaining == ()
        (part,) = receipt.unreached
        assert any(ident in part for ident in fact.derived_from)


def test_a_workspace_that_is_forgotten_is_erased_as_far_as_anything_is(memory: Memory, location: str) -> None:
    shop = memory.at(workspace="shop")
    receipt = shop.forget(shop.remember(f"a {WORD} bush").id, erase=True)
    whole = shop.forget(workspace="shop")
    assert (whole.erased, whole.note) == (receipt.erased, receipt.note)
    nothing = memory.forget(tag="nothing", erase=True)
    assert (nothing.erased, nothing.note) == (receipt.erased, receipt.note)


def told_twice(memory: Memory, **changes: int) -> Record:
    """A fact that has just less than so many values of a field before it is told again."""
    for _ in range(2):
        with memory.conversation("lunch") as conversation:
            conversation.say("user", f"I am allergic to {WORD}.")
        (fact,) = [record for record in memory.list() if WORD in record.text]
        for field, count in changes.items():
            others = [f"{number:032x}" for number in range(count)]
            values = {field: tuple(dict.fromkeys((*getattr(fact, field), *others)))[:count]}
            if len(getattr(fact, field)) < count:
                memory._view.store.update(memory._view.place, [replace(fact, **values)])
    return fact


def test_a_memory_with_more_sources_than_it_can_name_is_not_called_erased(memory: Memory, location: str) -> None:
    fact = told_twice(memory, derived_from=MAX_SOURCES)
    assert len(fact.derived_from) == MAX_SOURCES
    receipt = memory.forget(fact.id, erase=True)
    assert not receipt.erased
    assert "oldest sources" in (receipt.note or "")
    assert traces(location, WORD.encode()) != []
    memory.compact()
    assert traces(location, WORD.encode()) == []


def test_a_memory_with_more_references_than_it_can_have_takes_its_sources_along(memory: Memory, location: str) -> None:
    fact = told_twice(memory, references=MAX_REFERENCES)
    assert (len(fact.references), len(fact.derived_from)) == (MAX_REFERENCES, 2)
    receipt = memory.forget(fact.id, erase=True)
    assert set(receipt.sources) == set(fact.derived_from)
    check_erased(receipt, location)


# Copies


@pytest.mark.parametrize("how", ["erased", "forgotten before the copy", "killed before it was scrubbed"])
def test_a_copy_that_is_finished_after_an_erasure_holds_no_trace_of_it(location: str, tmp_path: Path, how: str) -> None:
    if location.startswith("postgresql"):
        pytest.skip("a server has a disk of its own")
    origin = f"ledger:{tmp_path}/origin/memory"
    lossy = location.startswith("notebook")
    with Memory(origin, embedder="none") as memory:
        ident = memory.remember(f"a {WORD} bush").id
        memory.remember("an ordinary memory that stays")
        if how.startswith("forgotten"):
            memory.forget(ident)
    copy_store(origin, location, lossy, until="Verifying")
    with Memory(origin, embedder="none") as memory:
        assert memory.forget(ident, erase=True).erased
    if how.startswith("killed"):
        copy_store(origin, location, lossy, until="scrub")
    copy_store(origin, location, lossy)
    assert traces(location, WORD.encode()) == []
    with Memory(location, embedder="none") as memory:
        assert [record.text for record in memory.list(state=None)] == ["an ordinary memory that stays"]


class StoppedError(Exception):
    pass


def copy_store(origin: str, location: str, lossy: bool, until: str = "") -> None:
    """All of it, or until it comes to a part of its work."""

    def stop(what: object, *_: object) -> None:
        if until in (what, "scrub"):
            raise StoppedError

    stopped = pytest.raises(StoppedError) if until else nullcontext()
    with closing(open_store(origin)) as source, closing(open_store(location)) as target, stopped:
        if until == "scrub":
            target.scrub = stop  # type: ignore[attr-defined]
        copy(source, target, lossy=lossy, progress=None if until == "scrub" else stop)


def test_erasing_one_memory_leaves_the_others_of_the_change_to_undo(memory: Memory, location: str) -> None:
    erased, other = memory.remember(f"a {WORD} bush"), memory.remember("a fox", tags=["red"])
    memory.archive([erased.id, other.id])
    forgotten = memory.forget([erased.id, other.id])
    check_erased(memory.forget(erased.id, erase=True), location)
    memory.undo(forgotten.entries[0])
    assert [record.id for record in memory.list(state=None)][:-1] == [other.id]
    assert memory.get(other.id).tags == ("red",)


def test_erasing_a_person_leaves_the_others_of_the_change_to_undo(memory: Memory, location: str) -> None:
    """What an owner has forgotten of several people at once."""
    ada, bob = memory.at(account="ada"), memory.at(account="bob")
    hers, his = ada.remember(f"a {WORD} bush"), bob.remember("bob has a fox")
    forgotten = memory.forget([hers.id, his.id])
    memory.forget(account="ada", erase=True)
    memory.undo(forgotten.entries[0])
    assert [record.id for record in memory.list(state=None)][:-1] == [his.id]
