"""Erased means: no byte, here or in what it was derived from. The bytes of the whole store are searched."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.common import Clock, Script
from support.stores import STORES, located, traces

from recollect import AccessError, ConflictError, InputError, Memory, NotFoundError, Record
from recollect.facets.proposals import propose
from recollect.verbs.forget import Receipt

WORD = "zanzibarnuts"


class Reader:
    """A model that always answers the same."""

    name = "reader"

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def complete(self, messages: object, *, max_tokens: int = 1024, temperature: float = 0.0) -> str:
        return self.answer

    def close(self) -> None:
        pass


@pytest.fixture(params=STORES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "store" / "memory")


@pytest.fixture
def memory(location: str) -> Iterator[Memory]:
    with Memory(location, embedder="none") as memory:
        memory.remember("an ordinary memory that stays")
        yield memory


def is_erased(receipt: Receipt, location: str) -> bool:
    """A server of PostgreSQL has a disk of its own, of which nobody here can say so."""
    return receipt.erased or location.startswith("postgresql")


def fact(memory: Memory) -> Record:
    return next(record for record in memory.list(state=None) if WORD in record.text)


def talk(memory: Memory) -> None:
    with memory.conversation("lunch") as conversation:
        conversation.say("user", f"I am allergic to {WORD}.")


# What was derived


def test_erasing_a_fact_erases_the_turns_that_it_was_taken_from(memory: Memory, location: str) -> None:
    talk(memory)
    kept = fact(memory)
    assert len(kept.derived_from) == 1
    receipt = memory.forget(kept.id, erase=True)
    assert is_erased(receipt, location)
    assert receipt.sources == kept.derived_from
    assert receipt.remaining == ()
    assert traces(location, WORD.encode()) == []
    memory.undo(memory.audit.search(action="conversation", limit=1)[0].id)  # the end, but for what was erased
    assert traces(location, WORD.encode()) == []
    assert memory.recall(WORD) == []
    assert memory.doctor().ok
    assert all(log.ok for log in memory.audit.verify())


def test_a_source_that_is_live_is_named_and_stays(memory: Memory, location: str) -> None:
    source = memory.remember(f"we spoke of {WORD} for an hour")
    summary = memory.remember_many([{"content": f"summary: {WORD}", "derived_from": [source.id]}])[0]
    receipt = memory.forget(summary.id, erase=True)
    assert receipt.remaining == (source.id,)
    assert receipt.sources == ()
    assert memory.get(source.id) == source


def test_what_was_derived_from_the_erased_and_lives_is_named(memory: Memory) -> None:
    source = memory.remember(f"we spoke of {WORD} for an hour")
    summary = memory.remember_many([{"content": "summary: an hour", "derived_from": [source.id]}])[0]
    receipt = memory.forget(source.id, erase=True)
    assert receipt.remaining == (summary.id,)


@pytest.mark.parametrize("state", ["archived", "superseded"])
def test_a_source_that_is_no_longer_live_goes_as_well(memory: Memory, location: str, state: str) -> None:
    source = memory.remember(f"we spoke of {WORD} for an hour")
    summary = memory.remember_many([{"content": f"summary: {WORD}", "derived_from": [source.id]}])[0]
    if state == "archived":
        memory.archive(source.id)
    else:
        memory.revise(source.id, content="we spoke for an hour")
    receipt = memory.forget(summary.id, erase=True)
    assert is_erased(receipt, location)
    assert receipt.sources == (source.id,)
    assert traces(location, WORD.encode()) == []


def test_sources_of_sources_in_another_workspace_go_as_well(memory: Memory, location: str) -> None:
    """A preference is kept in the account, and the talk that it was told in was in another workspace."""
    shop = memory.at(workspace="shop")
    with shop.conversation("lunch") as conversation:
        conversation.say("user", f"I prefer {WORD} to peanuts.")
    turns = fact(shop).derived_from
    if location.startswith("notebook"):  # whose ids are those of one file, so that no other can name them
        receipt = shop.forget(fact(shop).id, erase=True)
        assert (receipt.erased, receipt.sources) == (True, turns)
        assert traces(location, WORD.encode()) == []
        return
    copy = memory.remember_many([{"content": f"likes {WORD}", "derived_from": [fact(shop).id]}])[0]
    shop.forget(fact(shop).id)
    receipt = memory.forget(copy.id, erase=True)
    assert is_erased(receipt, location)
    assert set(turns) < set(receipt.sources)
    assert traces(location, WORD.encode()) == []


DERIVING: dict[str, Callable[[Memory], object]] = {
    "the end of a conversation": talk,
    "the same told twice": lambda m: (talk(m), talk(m)),
    "revise": lambda m: m.revise(m.remember(f"a {WORD} bush").id, content=f"a {WORD} tree"),
    "archive and restore": lambda m: m.restore(m.archive(m.remember(f"a {WORD} bush").id)[0].id),
    "merge": lambda m: (m.remember(f"a {WORD} bush"), m.remember(f"a {WORD} bush", again=True), m.deduplicate()),
    "import": lambda m: _round_trip(m),
}


def _round_trip(memory: Memory) -> None:
    ident = memory.remember(f"a {WORD} bush").id
    out = io.BytesIO()
    memory.export(out)
    memory.forget(ident)
    memory.import_(io.BytesIO(out.getvalue()))


@pytest.mark.parametrize("undone", [False, True], ids=["", "undone"])
@pytest.mark.parametrize("verb", DERIVING)
def test_no_byte_is_left_of_what_a_verb_derived(location: str, verb: str, undone: bool) -> None:
    """Also where the verb was undone, which brings back what it was derived from."""
    with Memory(location, embedder="none") as memory:
        if verb == "import" and (location.startswith("notebook") or undone):
            pytest.skip("a notebook gives ids of its own" if not undone else "there is nothing to import any more")
        DERIVING[verb](memory)
        if undone:
            memory.undo()
        while ids := [record.id for record in memory.list(state=None) if WORD in record.text]:
            receipt = memory.forget(ids, erase=True)
            assert is_erased(receipt, location)
        for conversation in memory.conversations.list():
            memory.forget(conversation=conversation.id, erase=True)
        assert traces(location, WORD.encode()) == []
        assert memory.doctor().ok


def test_a_consolidated_journal_entry_goes_with_the_core_memory_of_it(location: str, clock: Clock) -> None:
    with Memory(location, embedder="none", preset="journal", clock=clock) as memory:
        ann = memory.at(agent="ann")
        entry = ann.journal.save(f"today I ate {WORD}")
        clock.forward(days=8)
        (core,) = ann.journal.consolidate()
        assert core.derived_from == (entry.id,)
        assert ann.forget(core.id, erase=True).remaining == (entry.id,)
        assert ann.forget(entry.id, erase=True).remaining == ()
        assert traces(location, WORD.encode()) == []


def test_what_a_model_read_out_of_turns_names_them(location: str) -> None:
    answer = f'[{{"kind": "fact", "text": "I am allergic to {WORD}.", "turn": 0}}]'
    with Memory(location, embedder="none", llm=Reader(answer)) as memory:
        talk(memory)
        kept = fact(memory)
        assert memory.forget(kept.id, erase=True).sources == kept.derived_from != ()
        assert traces(location, WORD.encode()) == []


# Forgotten before


def test_what_was_forgotten_is_erased_by_its_id(memory: Memory, location: str) -> None:
    ident = memory.remember(f"a {WORD} bush").id
    memory.forget(ident)
    receipt = memory.forget(ident, erase=True)
    assert is_erased(receipt, location)
    assert receipt.ids == (ident,)
    assert traces(location, WORD.encode()) == []
    with pytest.raises(NotFoundError):
        memory.forget("0" * 32, erase=True)
    with pytest.raises(ConflictError):
        memory.undo()


def test_what_was_forgotten_and_can_no_longer_be_undone_is_erased_by_its_id(memory: Memory, location: str) -> None:
    ident = memory.remember(f"a {WORD} bush").id
    memory.forget(ident)
    store, place = memory._view.store, memory._view.place
    store.purge(place, seqs=None)
    receipt = memory.forget(ident, erase=True)
    assert is_erased(receipt, location)
    assert traces(location, WORD.encode()) == []


def test_what_was_forgotten_is_erased_by_the_conditions_that_it_meets(memory: Memory, location: str) -> None:
    ident = memory.remember(f"a {WORD} bush", tags=["plant"]).id
    other = memory.remember("a fox", tags=["animal"]).id
    memory.forget([ident])
    memory.forget([other])
    receipt = memory.forget(tag="plant", erase=True)
    assert receipt.ids == (ident,)
    assert traces(location, WORD.encode()) == []
    assert memory.undo(memory.audit.search(action="forget")[0].id).action == "undo"
    assert memory.get(other).text == "a fox"


def test_what_has_the_same_id_in_another_place_is_left_alone(memory: Memory, location: str) -> None:
    """A notebook counts the notes of each of its files."""
    account = memory.remember(f"I prefer {WORD}", tier="account", kind="preference")
    for _ in range(3):
        memory.forget(memory.remember("a note that goes").id)
    memory.forget(account.id)
    assert memory.forget(account.id, erase=True).ids == (account.id,)
    assert traces(location, WORD.encode()) == []
    assert [record.text for record in memory.list()] == ["an ordinary memory that stays"]


def test_another_view_cannot_erase_what_it_could_not_see(memory: Memory, location: str) -> None:
    ident = memory.at(account="ann").remember(f"a {WORD} bush").id
    memory.at(account="ann").forget(ident)
    with pytest.raises(NotFoundError):
        memory.at(account="bob").forget(ident, erase=True)
    assert memory.at(account="ann").undo().action == "undo"
    assert memory.at(account="ann").get(ident).text == f"a {WORD} bush"


KILLED = """
import os, sys
from recollect import Memory
from recollect.verbs import forget
forget.scrub = lambda *given: os.kill(os.getpid(), 9)
with Memory(sys.argv[1], embedder="none") as memory:
    memory.at(account="u1").forget(account="u1", erase=True)
"""


def test_an_erasure_that_was_killed_is_finished_by_the_next(location: str, start: Callable[..., Script]) -> None:
    if location.startswith("postgresql"):
        return  # there is nothing to be done after the transaction
    with Memory(location, embedder="none") as memory:
        for number in range(20):
            memory.at(account="u1").remember(f"{number} {WORD} " * 50)
    script = start(KILLED, location)
    script.communicate()
    assert script.returncode == -9
    with Memory(location, embedder="none") as memory:
        assert memory.list(state=None) == []
        receipt = memory.forget(account="u1", erase=True)
        assert (receipt.count, receipt.erased) == (0, True)
        assert traces(location, WORD.encode()) == []


# Whose it is


@pytest.mark.clause("JRN-11")
@pytest.mark.parametrize("who", ["account", "agent"])
def test_a_bulk_forget_leaves_what_is_shared(memory: Memory, who: str) -> None:
    shared = memory.remember("the office is in Porto")
    mine = memory.at(**{who: "u1"})
    own = mine.remember("my birthday is in May")
    other = memory.at(**{who: "u2"}).remember("u2 likes tea")
    assert mine.forget(since="2000-01-01", erase=True).ids == (own.id,)
    assert {record.id for record in memory.list()} >= {shared.id, other.id}
    assert mine.forget(since="2000-01-01", shared=True).count == 2
    assert [record.id for record in memory.list()] == [other.id]


def everything(memory: Memory, who: str, name: str) -> None:
    """Whatever a person or an agent may leave, in two workspaces."""
    for workspace in ("default", "shop"):
        me = memory.at(workspace=workspace).at(**{who: name})
        me.remember(f"I like {WORD}")
        me.remember(f"I prefer {WORD}", kind="preference", tier="account")
        me.revise(me.remember(f"{WORD} for tea").id, content=f"{WORD} for breakfast")
        me.forget(me.remember(f"never again {WORD}").id, reason=f"too many {WORD}")
        me.archive(me.remember("nuts").id, reason=f"of {WORD}")
        me.channels.create("kitchen", f"for {WORD}")
        with me.conversation(f"about {WORD}") as conversation:
            conversation.say("user", f"my favourite food is {WORD}")
            conversation.memory.scratchpad.write("food", WORD)
        started = me.conversations.start(f"more {WORD}")
        me.conversations.say(started.id, "user", f"{WORD} again")
        me.at(conversation=started.id).scratchpad.write(WORD, 1)
        me.at(conversation=started.id).scratchpad.clear()
        me.context([{"role": "user", "content": f"who likes {WORD}?"}])
        me.cases.save(f"who likes {WORD}?", texts=[WORD])
        me.cases.save(f"who hates {WORD}?", texts=[WORD])
        me.cases.remove(f"who hates {WORD}?")
        me.aliases.save(WORD, "a treat")
        me.aliases.save(f"old {WORD}", "a treat")
        me.aliases.remove(f"old {WORD}")
        liked = me.remember(f"{WORD} with milk").id
        propose(me._view, "forget", f"forget all about {WORD}", [liked], "")
        me.dismiss(propose(me._view, "correct", f"not {WORD}", [liked], f"less {WORD}"))
        workflow = me.workflows.start(f"buy {WORD}", goal=f"have {WORD}")
        step = me.workflows.step(workflow.id, f"find {WORD}")
        me.workflows.complete(step.id, output={"bought": WORD})
        me.workflows.finish(workflow.id, error=f"no {WORD}")
        me.audit.record("shop", f"went for {WORD}", {"what": WORD})


@pytest.mark.parametrize("by", ["owner", "person"])
@pytest.mark.parametrize("who", ["account", "agent"])
def test_one_call_erases_everything_of_a_person(memory: Memory, location: str, who: str, by: str) -> None:
    if location.startswith("notebook"):
        pytest.skip("a notebook has one workspace")
    everything(memory, who, "u1")
    other = memory.at(**{who: "u2"}).remember("u2 likes tea")
    assert traces(location, WORD.encode()) != []
    view = memory if by == "owner" else memory.at(**{who: "u1"})
    receipt = view.forget(**{who: "u1"}, erase=True, reason="asked to")
    assert is_erased(receipt, location)
    assert receipt.unreached
    assert traces(location, WORD.encode()) == []
    assert {record.text for record in memory.list(state=None)} == {"an ordinary memory that stays", other.text}
    for workspace in ("default", "shop"):
        assert memory.at(workspace=workspace).conversations.list() == []
        assert memory.at(workspace=workspace).cases.list() == []
        assert memory.at(workspace=workspace).aliases.list() == []
        assert memory.at(workspace=workspace).answers() == []
        assert memory.at(workspace=workspace).proposals() == []
    assert memory.workflows.list() == []
    assert memory.doctor().ok
    assert all(log.ok for log in memory.audit.verify())
    if who == "account":
        assert traces(location, b'"u1"') == []


@pytest.mark.parametrize("who", ["account", "agent"])
def test_one_call_forgets_everything_of_a_person_and_undo_brings_it_back(
    memory: Memory, location: str, who: str
) -> None:
    if location.startswith("notebook"):
        pytest.skip("a notebook has one workspace")
    everything(memory, who, "u1")

    def state() -> object:
        views = [memory.at(workspace=name) for name in ("default", "shop")]
        return [
            (
                sorted((record for record in view.list(state=None, limit=1000)), key=lambda record: record.id),
                sorted(view.conversations.list(), key=lambda one: one.id),
                view.cases.list(),
                view.aliases.list(),
                sorted(view.answers(), key=lambda one: one.id),
                [workflow.name for workflow in view.workflows.list()],
            )
            for view in views
        ]

    before = state()
    receipt = memory.forget(**{who: "u1"})
    assert not receipt.erased
    assert state() != before
    memory.undo()
    assert state() == before


def test_what_was_said_in_a_persons_conversation_goes_whoever_wrote_it_down(memory: Memory, location: str) -> None:
    started = memory.at(account="u1").conversations.start("lunch")
    memory.conversations.say(started.id, "user", f"I like {WORD}")
    memory.at(conversation=started.id).scratchpad.write("food", WORD)
    ended = memory.at(account="u1").conversations.start("dinner")
    memory.conversations.say(ended.id, "user", f"how about {WORD}?")
    memory.conversations.end(ended.id)
    receipt = memory.forget(account="u1", erase=True)
    assert is_erased(receipt, location)
    assert traces(location, WORD.encode()) == []


def test_a_conversation_of_the_same_name_stays_with_its_own_account(memory: Memory, location: str) -> None:
    for account in ("u1", "u2"):
        mine = memory.at(account=account, conversation="today")
        mine.conversations.start("lunch")
        mine.conversations.say("today", "user", f"{account} is here")
        mine.scratchpad.write("who", account)
    memory.forget(account="u1", erase=True)
    assert [record.text for record in memory.list(conversation="today")] == ["u2 is here"]
    assert memory.at(account="u2", conversation="today").scratchpad.read("who") == "u2"
    assert traces(location, b"u1 is here") == []


def test_nobody_forgets_for_another(memory: Memory) -> None:
    for who in ("account", "agent"):
        memory.at(**{who: "u2"}).remember(f"of u2, an {who}")
        with pytest.raises(AccessError, match=f"{who}: this view is bound to u1"):
            memory.at(**{who: "u1"}).forget(**{who: "u2"}, erase=True)
    assert len(memory.list()) == 3


def test_a_view_of_one_workspace_forgets_a_person_there_only(memory: Memory, location: str) -> None:
    if location.startswith("notebook"):
        pytest.skip("a notebook has one workspace")
    for workspace in ("default", "shop"):
        memory.at(workspace=workspace, account="u1").remember(f"in {workspace}")
    receipt = memory.at(workspace="shop").forget(account="u1", erase=True)
    assert receipt.count == 1
    assert any("other workspaces" in part for part in receipt.unreached)
    assert [record.text for record in memory.at(account="u1").list()] == ["in default", "an ordinary memory that stays"]


# The audit log


def test_words_beside_the_log_are_found_checked_and_erased(memory: Memory, location: str) -> None:
    entry = memory.at(account="u1").audit.record("note", f"bought {WORD}", {"price": 3})
    assert memory.audit.search(WORD) == [entry]
    assert memory.audit.search(WORD.upper())[0].meta == {"details": {"price": 3}}
    assert all(log.ok for log in memory.audit.verify())
    ident = memory.remember("nuts").id
    memory.forget(ident, reason=f"no more {WORD}")
    assert [one.message for one in memory.audit.search(WORD)] == [f"forgot 1 memory: no more {WORD}", f"bought {WORD}"]
    assert memory.diagnose(ident).reason == f"forgot 1 memory: no more {WORD}"
    memory.forget(ident, erase=True)
    assert [one.message for one in memory.audit.search(WORD)] == [f"bought {WORD}"]
    memory.forget(account="u1", erase=True)
    assert memory.audit.search(WORD) == []
    assert traces(location, WORD.encode()) == []
    assert [one.action for one in memory.audit.search(limit=3)] == ["erase", "erase", "forget"]
    assert all(log.ok for log in memory.audit.verify())


def test_words_beside_the_log_that_were_changed_are_noticed(memory: Memory) -> None:
    from msgspec.structs import replace

    memory.audit.record("note", "paid 3 euros")
    store, place = memory._view.store, memory._view.place
    (thing,) = store.shelf(place, "audit_texts")
    store.keep(place, replace(thing, body=thing.body | {"message": "paid 9 euros"}))
    (problem,) = [broken.problem for log in memory.audit.verify() for broken in log.breaks]
    assert "the text beside entry" in problem


# What others tried


def test_workspaces_of_a_notebook_that_number_alike_are_told_apart(memory: Memory, location: str) -> None:
    for workspace in ("one", "two"):
        memory.at(workspace=workspace, account="u1").remember(f"{WORD} in {workspace}")
    other = memory.at(workspace="three", account="u2")
    ident = other.remember("of u2").id
    other.forget(ident)
    receipt = memory.forget(account="u1", erase=True)
    assert receipt.count >= 1
    assert traces(location, WORD.encode()) == []
    other.undo()
    assert other.get(ident).text == "of u2"


def test_nobody_erases_another_accounts_memory_by_deriving_from_it(memory: Memory) -> None:
    mine, other = memory.at(account="u1"), memory.at(account="u2")
    ident = mine.remember("private").id
    mine.forget(ident)
    forged = other.remember_many([{"content": "forged", "derived_from": [ident]}])[0]
    assert other.forget(forged.id, erase=True).sources == ()
    mine.undo()
    assert mine.get(ident).text == "private"


def test_a_note_about_a_memory_of_the_account_goes_with_it(memory: Memory, location: str) -> None:
    mine = memory.at(account="u1")
    record = mine.remember("shoe size", tier="account", kind="preference")
    mine.audit.record("note", f"the {WORD} thing", {"memory": record.id})
    mine.forget(record.id, erase=True)
    assert traces(location, WORD.encode()) == []


def test_an_agent_that_is_erased_takes_no_words_of_a_person_along(memory: Memory) -> None:
    bot = memory.at(agent="bot")
    started = bot.conversations.start("help")
    said = memory.at(account="u2").conversations.say(started.id, "user", "my order is late")
    memory.forget(agent="bot", erase=True)
    assert memory.get(said.id).text == "my order is late"


def test_undo_is_not_kept_back_by_an_older_change_elsewhere(memory: Memory) -> None:
    mine = memory.at(account="u1")
    record = mine.remember("size 42", tier="account", kind="preference")
    memory.forget(record.id, erase=True)
    noted = mine.remember("a note")
    mine.undo()
    assert noted.id not in {one.id for one in memory.list(state=None)}


def test_an_erasure_that_found_nothing_is_not_undone(memory: Memory) -> None:
    memory.at(account="u1").remember("a")
    memory.at(workspace="w2", account="u1").remember("b")
    memory.forget(account="u1")
    memory.forget(account="u1", erase=True)
    with pytest.raises(ConflictError):
        memory.undo()


def test_duplicates_merged_in_two_places_are_one_change(memory: Memory) -> None:
    for tier in ("workspace", "account"):
        for _ in range(2):
            memory.remember("an owl sleeps", tier=tier, kind="preference", again=True)  # type: ignore[arg-type]
    before = sorted((one.id, one.superseded_by) for one in memory.list(state=None))
    memory.deduplicate()
    assert sorted((one.id, one.superseded_by) for one in memory.list(state=None)) != before
    memory.undo()
    assert sorted((one.id, one.superseded_by) for one in memory.list(state=None)) == before


@pytest.mark.parametrize("shelf", ["channels", "conversations", "scratchpad", "audit_texts", "anything"])
def test_an_import_puts_nothing_on_a_shelf_that_nobody_can_read(memory: Memory, shelf: str) -> None:
    out = io.BytesIO()
    memory.export(out)
    times = '"created_at":"2026-01-01T00:00:00Z","changed_at":"2026-01-01T00:00:00Z"'
    thing = f'{{"shelf":"{shelf}","key":"k","body":{{"a":1}},{times}}}'
    data = out.getvalue().replace(b"\n]}", b'\n],"things":[\n' + thing.encode() + b"\n]}")
    with pytest.raises(InputError):
        memory.import_(io.BytesIO(data))
    assert memory.channels.list()
    assert memory.conversations.start("after it").status == "active"
