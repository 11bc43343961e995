"""Whatever people and agents did before, in whatever order: who is erased leaves no byte, and nobody else loses any."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.common import LONG, Clock
from support.seeds import drawn
from support.stores import STORES, located, traces

from recollect import Memory, RecollectError

WORDS = {"u1": "zanzibarnuts", "u2": "quetzalfruit", None: "marmaladeship"}
"""A word of each person, and of nobody."""
Step = Callable[[Memory, str, random.Random], object]


def any_of(memory: Memory, chance: random.Random, **conditions: object) -> str:
    records = memory.list(state=None, limit=1000, **conditions)  # type: ignore[arg-type]
    own = [record.id for record in records if record.address.account == memory.address.account]
    return chance.choice(own or ["0" * 32])


def talk(memory: Memory, chance: random.Random) -> str:
    talks = [one.id for one in memory.conversations.list() if one.account == memory.address.account]
    return chance.choice(talks or ["nothing"])


def flow(memory: Memory, word: str, chance: random.Random) -> str:
    return chance.choice([one.id for one in memory.workflows.list(contains=word)] or ["0" * 32])


STEPS: dict[str, Step] = {
    "remember": lambda m, w, c: m.remember(f"I like {w} {c.random()}", tags=[c.choice(["a", "b"])]),
    "remember the same": lambda m, w, c: m.remember(f"I like {w}"),
    "remember for the account": lambda m, w, c: m.remember(f"I prefer {w} {c.random()}", tier="account"),
    "remember in a channel": lambda m, w, c: m.at(channel="ops").remember(f"{w} in ops {c.random()}"),
    "remember data": lambda m, w, c: m.remember({"food": [w, c.random()]}, metadata={"of": w}, source=f"from {w}"),
    "revise": lambda m, w, c: m.revise(any_of(m, c), content=f"now {w} {c.random()}"),
    "archive": lambda m, w, c: m.archive(any_of(m, c), reason=f"of {w}"),
    "restore": lambda m, w, c: m.restore(any_of(m, c)),
    "forget": lambda m, w, c: m.forget(any_of(m, c), reason=f"no {w}"),
    "forget by tag": lambda m, w, c: m.forget(tag="a"),
    "erase": lambda m, w, c: m.forget(any_of(m, c), erase=True),
    "undo": lambda m, w, c: m.undo(),
    "start": lambda m, w, c: m.conversations.start(f"on {w}"),
    "say": lambda m, w, c: m.conversations.say(talk(m, c), "user", f"I moved to {w.title()}, and I prefer {w}."),
    "idle": lambda m, w, c: m.conversations.end(talk(m, c)),
    "archive a talk": lambda m, w, c: m.conversations.archive(talk(m, c)),
    "forget a talk": lambda m, w, c: m.forget(conversation=talk(m, c)),
    "note": lambda m, w, c: m.at(conversation=talk(m, c)).scratchpad.write(c.choice("xy"), w),
    "clear": lambda m, w, c: m.at(conversation=talk(m, c)).scratchpad.clear(),
    "alias": lambda m, w, c: m.aliases.save(w, c.choice("xyz")),
    "remove an alias": lambda m, w, c: m.aliases.remove(c.choice("xyz")),
    "context": lambda m, w, c: m.context([{"role": "user", "content": f"what of {w}?"}]),
    "case": lambda m, w, c: m.cases.save(f"{w} {c.randrange(3)}?", texts=[w]),
    "remove a case": lambda m, w, c: m.cases.remove(f"{w} {c.randrange(3)}?"),
    "workflow": lambda m, w, c: m.workflows.start(f"buy {w}", goal=w),
    "step": lambda m, w, c: m.workflows.complete(m.workflows.step(flow(m, w, c), f"find {w}").id, output=w),
    "record": lambda m, w, c: m.audit.record("note", f"saw {w}", {"what": w}),
    "merge": lambda m, w, c: m.deduplicate(),
    "recall": lambda m, w, c: m.recall(w),
}


def others(memory: Memory) -> object:
    """All that is not u1's, as far as somebody can see it."""
    return (
        sorted(
            (one.id, one.text, one.state(datetime(2030, 1, 1, tzinfo=UTC)), one.tags)
            for workspace in ("default", "shop")
            for one in memory.at(workspace=workspace).list(state=None, limit=10_000)
            if one.address.account != "u1"
        ),
        sorted(
            (one.id, one.title, one.status)
            for workspace in ("default", "shop")
            for one in memory.at(workspace=workspace).conversations.list()
            if one.account != "u1"
        ),
        sorted(one.name for one in memory.at(account="u2").workflows.list() if WORDS["u1"] not in one.name),
        sorted(one.question for one in memory.at(account="u2").cases.list()),
        sorted((one.name, one.also) for one in memory.at(account="u2").aliases.list()),
    )


@pytest.mark.parametrize("seed", range(40) if LONG else drawn("erasing people").sample(range(40), 2))
@pytest.mark.parametrize("store", STORES)
def test_who_is_erased_leaves_no_byte_and_nobody_else_loses_any(
    store: str, seed: int, tmp_path: Path, clock: Clock
) -> None:
    location, chance = located(store, tmp_path / "store" / "memory"), random.Random(seed)
    with Memory(location, embedder="none", clock=clock) as memory:
        memory.channels.create("ops", "for all")
        for _ in range(80):
            clock.forward(minutes=1)
            account = chance.choice(list(WORDS))
            view = memory.at(workspace="default" if store == "notebook" else chance.choice(["default", "shop"]))
            view = view if account is None else view.at(account=account)
            with suppress(RecollectError):
                STEPS[chance.choice(list(STEPS))](view, WORDS[account], chance)
        before = others(memory)
        receipt = memory.at(account="u1").forget(account="u1", erase=True, reason="asked")
        assert receipt.erased or store == "postgresql"
        assert others(memory) == before
        assert all(log.ok for log in memory.audit.verify())
        assert memory.doctor().ok
        for word in (WORDS["u1"], WORDS["u1"].title()):
            assert traces(location, word.encode()) == []
