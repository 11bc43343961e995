"""Undo reverts the last change, whatever verb or facet made it and wherever it is, or says that it cannot."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from support.common import LONG, Clock
from support.concepts import Concepts
from support.stores import STORES, located

from recollect import ConflictError, Memory, NotFoundError, RecollectError
from recollect.facets.proposals import propose

NEVER = datetime(2000, 1, 1, tzinfo=UTC)
"""Looking at it counts as a retrieval, which undo does not take back."""


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory(located(request.param, tmp_path / "memory"), embedder="none", clock=clock) as memory:
        yield memory


def state(memory: Memory) -> dict[str, Any]:
    """All that somebody could see. Versions of things count on, also where one is reverted."""
    memories = [replace(record, access_count=0, accessed_at=NEVER) for record in memory.list(state=None, limit=10_000)]
    talks = [talk for status in ("active", "idle", "archived") for talk in memory.conversations.list(status=status)]
    workflows = memory.workflows.list()
    return {
        "memories": sorted(memories, key=lambda record: record.id),
        "found": {word: {hit.memory.id for hit in memory.recall(word, limit=50)} for word in ("owl", "fox", "Oslo")},
        "channels": [(channel.name, channel.description) for channel in memory.channels.list()],
        "talks": sorted(talks, key=lambda talk: talk.id),
        "notes": {
            talk.id: [(note.key, note.value) for note in memory.at(conversation=talk.id).scratchpad.list()]
            for talk in talks
        },
        "cases": sorted(memory.cases.list(), key=lambda case: case.question),
        "proposals": sorted((one.id, one.ids) for one in memory.proposals()),
        "aliases": sorted((one.name, one.also) for one in memory.aliases.list()),
        "workflows": sorted((one.id, one.status, one.error) for one in workflows),
        "steps": sorted(
            (step.id, step.status, str(step.output)) for one in workflows for step in memory.workflows.steps(one.id)
        ),
        "documents": sorted((one.id, one.title, one.status, one.category, one.hash) for one in memory.knowledge.list()),
        "passages": {(passage.id, passage.text) for passage in memory.knowledge.search("owl", limit=50)},
        "allowed": memory.knowledge.allowed("ann"),
    }


def check_content_is_in_one_place(memory: Memory) -> None:
    """A memory is stored, or it is in the undo data of the entry that deleted it: never both, and never twice."""
    store = memory._view.store
    for place in store.places("default"):
        undos = [undo for _, undo in store.undos(place)]
        deleted = [record.id for undo in undos for record in undo.deleted]
        assert len(deleted) == len(set(deleted)), place
        assert store.get(place, deleted) == [], place
        assert all(values.fields.content is UNSET for undo in undos for values in undo.changed), place
        made = [thing for undo in undos for thing in undo.things if not thing.version]
        assert all(thing.body.keys() <= {"channel"} for thing in made), place


def some(memory: Memory, chance: random.Random, **conditions: Any) -> str:
    ids = sorted(record.id for record in memory.list(limit=10_000, **conditions))
    if not ids:
        raise NotFoundError("there is none")
    return chance.choice(ids)


def waiting(memory: Memory) -> str:
    return next((proposal.id for proposal in memory.proposals()), "none")


def talk(memory: Memory, chance: random.Random, status: str = "active") -> str:
    talks = memory.conversations.list(status=status)  # type: ignore[arg-type]
    if not talks:
        raise NotFoundError("there is none")
    return chance.choice(talks).id


def step(memory: Memory, chance: random.Random) -> str:
    running = [s.id for w in memory.workflows.list() for s in memory.workflows.steps(w.id) if s.status == "running"]
    if not running:
        raise NotFoundError("there is none")
    return chance.choice(running)


def workflow(memory: Memory, chance: random.Random) -> str:
    running = memory.workflows.list(status="running")
    if not running:
        raise NotFoundError("there is none")
    return chance.choice(running).id


def last_workflow(memory: Memory) -> str:
    return next((workflow.id for workflow in memory.workflows.list(status="running")), "0" * 32)


def document(memory: Memory, chance: random.Random) -> str:
    documents = memory.knowledge.list()
    if not documents:
        raise NotFoundError("there is none")
    return chance.choice(documents).id


Operation = Callable[[Memory, random.Random], object]
UNDONE: dict[str, Operation] = {
    "remember": lambda m, c: m.remember(f"an owl number {c.random()}", tags=["bird"]),
    "remember again": lambda m, c: m.remember("an owl sleeps"),
    "remember in the account": lambda m, c: m.remember(f"a fox number {c.random()}", tier="account"),
    "remember many": lambda m, c: m.remember_many([f"owl {c.random()}", {"content": "a fox", "tier": "account"}]),
    "revise": lambda m, c: m.revise(some(m, c, state="live"), content=f"a newer owl {c.random()}"),
    "forget": lambda m, c: m.forget(some(m, c), reason="no longer true"),
    "forget by tag": lambda m, c: m.forget(tag="bird"),
    "forget a person": lambda m, c: m.forget(account="ann"),
    "archive": lambda m, c: m.archive(some(m, c, state="live"), reason="old"),
    "restore": lambda m, c: m.restore(some(m, c, state="archived")),
    "channels.create": lambda m, c: m.channels.create(f"room{c.randrange(10**6)}", "for owls"),
    "conversations.start": lambda m, c: m.conversations.start(f"about owls {c.random()}"),
    "conversations.say": lambda m, c: m.conversations.say(
        talk(m, c), "user", f"I moved to Oslo {c.randrange(99)}, and I prefer owls to foxes."
    ),
    "conversations.end": lambda m, c: m.conversations.end(talk(m, c)),
    "conversations.archive": lambda m, c: m.conversations.archive(talk(m, c, c.choice(["active", "idle"]))),
    "conversations.observe": lambda m, c: m.conversations.observe(f"the owl is {c.random()}"),
    "forget a conversation": lambda m, c: m.forget(conversation=talk(m, c, c.choice(["active", "idle"]))),
    "scratchpad.write": lambda m, c: m.at(conversation=talk(m, c)).scratchpad.write("plan", c.random()),
    "scratchpad.clear": lambda m, c: m.at(conversation=talk(m, c)).scratchpad.clear(),
    "aliases.save": lambda m, c: m.aliases.save("owl", f"strix {c.randrange(3)}"),
    "aliases.remove": lambda m, c: m.aliases.remove(f"strix {c.randrange(3)}"),
    "confirm": lambda m, c: m.confirm(waiting(m)),
    "dismiss": lambda m, c: m.dismiss(waiting(m)),
    "cases.save": lambda m, c: m.cases.save(f"where is owl {c.randrange(3)}?", texts=[str(c.random())]),
    "cases.remove": lambda m, c: m.cases.remove(f"where is owl {c.randrange(3)}?"),
    "workflows.start": lambda m, c: m.workflows.start("feed owls"),
    "workflows.step": lambda m, c: m.workflows.step(workflow(m, c), "buy mice"),
    "workflows.complete": lambda m, c: m.workflows.complete(step(m, c), output={"mice": c.random()}),
    "workflows.fail": lambda m, c: m.workflows.fail(step(m, c), error="no mice"),
    "workflows.finish": lambda m, c: m.workflows.finish(last_workflow(m)),
    "knowledge.add": lambda m, c: m.knowledge.add(f"# Owls\n\nowl {c.random()}", title=f"t{c.randrange(3)}"),
    "knowledge.publish": lambda m, c: m.knowledge.publish(document(m, c)),
    "knowledge.withdraw": lambda m, c: m.knowledge.withdraw(document(m, c)),
    "knowledge.allow": lambda m, c: m.knowledge.allow("ann", c.choice([[], ["general"], ["law"], None])),
}
"""Operations that undo reverts."""
FINAL: dict[str, Operation] = {
    "erase": lambda m, c: m.forget(some(m, c), erase=True),
    "workflows.remove": lambda m, c: m.workflows.remove(m.workflows.list()[0].id if m.workflows.list() else "0" * 32),
    "knowledge.remove": lambda m, c: m.knowledge.remove(document(m, c)),
}
"""Operations that nothing reverts. Undo must not step over them to an earlier change."""


def prepared(memory: Memory) -> None:
    memory.remember("an owl sleeps", tags=["bird"])
    memory.archive(memory.remember("a dodo owl").id)
    memory.channels.create("ops")
    memory.at(account="ann").remember("ann has an owl")
    memory.at(account="ann").cases.save("whose owl?", texts=["owl"])
    memory.conversations.end(memory.conversations.start("foxes").id)
    started = memory.conversations.start("owls")
    memory.conversations.say(started.id, "user", "My name is Ada and I prefer owls.")
    memory.at(conversation=started.id).scratchpad.write("plan", 0)
    memory.cases.save("where is owl 0?", texts=["owl"])
    memory.aliases.save("owl", "strix 0")
    owls = [memory.remember(f"an owl eats {food}").id for food in ("mice", "frogs")]
    propose(memory._view, "forget", "forget what owls eat", owls, "")
    memory.workflows.step(memory.workflows.start("feed").id, "first")
    memory.workflows.start("sleep")
    memory.knowledge.publish(memory.knowledge.add("# Owls\n\nThe owl sleeps by day.", title="t0").id)
    memory.knowledge.add("# Draft\n\nThe owl is a draft.", title="t1")
    memory.knowledge.allow("ann", ["law"])


@pytest.mark.parametrize("name", UNDONE)
def test_a_change_that_is_undone_leaves_everything_as_it_was(memory: Memory, name: str) -> None:
    prepared(memory)
    before, seeds = state(memory), iter(range(20))
    UNDONE[name](memory, random.Random(next(seeds)))
    while state(memory) == before and name != "remember again":  # which counts a retrieval, and no more
        UNDONE[name](memory, random.Random(next(seeds)))  # another choice: the first made no difference
    check_content_is_in_one_place(memory)
    memory.undo()
    check_content_is_in_one_place(memory)
    assert state(memory) == before
    assert all(log.ok for log in memory.audit.verify())
    assert memory.doctor().ok


@pytest.mark.parametrize("name", FINAL)
def test_a_change_that_cannot_be_undone_is_a_conflict_and_not_stepped_over(memory: Memory, name: str) -> None:
    prepared(memory)
    memory.remember("the latest fox")
    FINAL[name](memory, random.Random(3))
    after = state(memory)
    with pytest.raises(ConflictError):
        memory.undo()
    assert state(memory) == after


def test_a_document_that_was_added_is_what_undo_takes_back(memory: Memory) -> None:
    note = memory.remember("x marks the spot")
    memory.knowledge.add("# Owls\n\nThe owl sleeps.", title="owls")
    memory.undo()
    assert memory.get(note.id).text == "x marks the spot"
    assert memory.knowledge.list() == []


def test_a_workspace_that_was_forgotten_is_a_conflict(tmp_path: Path) -> None:
    for kind in STORES:
        if kind == "notebook":
            continue
        with Memory(located(kind, tmp_path / kind / "memory"), embedder="none") as memory:
            note = memory.remember("x marks the spot")
            memory.at(workspace="shop").remember("a shop")
            memory.at(workspace="shop").forget(workspace="shop")
            with pytest.raises(ConflictError, match="can no longer be undone"):
                memory.undo()
            assert memory.get(note.id).text == "x marks the spot"


def test_the_end_of_a_conversation_is_one_change(memory: Memory) -> None:
    with memory.conversation("lunch") as conversation:
        conversation.say("user", "I moved to Oslo and I prefer tea to coffee.")
    assert {record.kind for record in memory.list()} <= {"fact", "preference"}
    memory.undo()
    assert [record.kind for record in memory.list()] == ["conversation"]
    assert memory.conversations.list()[0].status == "active"
    memory.undo()  # of what was said
    memory.undo()  # of the start, with the default channel
    assert memory.conversations.list() == []
    with pytest.raises(NotFoundError):
        memory.undo()


@pytest.mark.parametrize("kind", STORES)
def test_vectors_and_search_are_as_before(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), embedder=Concepts()) as memory:
        records = memory.remember_many(["The car is red", "The dog sleeps", "We drink tea"])
        memory.embed()
        before = [memory.get(record.id) for record in records]
        assert all(record.embedding for record in before)
        memory.forget([record.id for record in records[:2]])
        assert {hit.memory.id for hit in memory.recall("automobile dog")} <= {records[2].id}
        memory.undo()
        assert [memory.get(record.id) for record in records[:2]] == before[:2]
        assert memory.recall("automobile", limit=1)[0].memory.id == records[0].id
        assert memory.recall("dog", limit=1)[0].memory.id == records[1].id


def test_what_undo_took_back_can_be_erased(memory: Memory) -> None:
    note = memory.remember("a kingfisher")
    memory.undo()
    receipt = memory.forget(note.id, erase=True)
    assert receipt.ids == (note.id,)


def test_an_agent_that_ends_a_conversation_of_several_can_undo_it(memory: Memory) -> None:
    started = memory.at(account="u1").conversations.start("lunch")
    user, bot = memory.at(account="u1"), memory.at(account="u1", agent="bot")
    user.conversations.say(started.id, "user", "I moved to Oslo and I prefer tea to coffee.")
    bot.conversations.say(started.id, "assistant", "We decided to ship on Friday.")
    before = state(memory)
    bot.conversations.end(started.id)
    assert state(memory) != before
    bot.undo()
    assert state(memory) == before


def test_an_account_cannot_undo_what_others_did_to_shared_memories(memory: Memory) -> None:
    shared = memory.remember("the office is in Porto")
    memory.revise(shared.id, content="the office is in Lisbon")
    memory.at(account="u2").remember("u2 likes tea")
    before = state(memory)
    with pytest.raises(NotFoundError):
        memory.at(account="u1").undo()
    assert state(memory) == before


@pytest.mark.parametrize("seed", range(20) if LONG else [None])
def test_random_changes_are_undone_one_by_one(memory: Memory, clock: Clock, seed: int | None) -> None:
    """A walk: after each step undo leads back to the state before it, and sometimes the walk goes on.

    Where there is no time it is one walk, another in each run; its seed is printed if it fails.
    """
    seed = random.randrange(1_000_000) if seed is None else seed
    print(f"{seed=}")
    chance, walked = random.Random(seed), 0
    prepared(memory)
    while walked < (30 if LONG else 15):
        clock.forward(minutes=1)
        operations = UNDONE if chance.random() < 0.9 else FINAL
        name = chance.choice(sorted(operations))
        before, again = state(memory), chance.getstate()
        try:
            operations[name](memory, chance)
        except RecollectError:
            assert state(memory) == before, name
            continue
        walked += 1
        check_content_is_in_one_place(memory)
        after = state(memory)
        if after == before:
            continue
        if operations is FINAL:
            with pytest.raises(ConflictError):
                memory.undo()
            assert state(memory) == after, name
            continue
        memory.undo()
        assert state(memory) == before, name
        if chance.random() < 0.7:
            chance.setstate(again)
            operations[name](memory, chance)
    assert all(log.ok for log in memory.audit.verify())


@pytest.mark.parametrize("kind", STORES)
def test_a_view_of_a_workspace_does_not_undo_the_owners_documents(kind: str, tmp_path: Path) -> None:
    with Memory(located(kind, tmp_path / "m")) as memory:
        shop = memory.at(workspace="shop")
        note = shop.remember("of the shop")
        document = memory.knowledge.add("# Prices\n\nTea costs 3 euros.", title="Prices")
        shop.undo()
        assert [known.id for known in memory.knowledge.list()] == [document.id]
        assert shop.list() == []
        memory.undo()
        assert memory.knowledge.list() == []
        assert note.id not in {record.id for record in shop.list()}
