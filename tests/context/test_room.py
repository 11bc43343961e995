"""No room of a block is left unused by a fixed count, and none is taken that the conversation needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from recollect import Memory
from recollect.presets import load
from recollect.text.tokens import estimate

QUESTION = {"role": "user", "content": "in which colour was the harbour painted?"}
USED = 0.93
"""Each entry is counted by itself, and rounded up."""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "m", embedder="none") as made:
        made.remember_many(
            {
                "content": f"Ann: the harbour of number {n} was painted in colour number {n}",
                "conversation": f"c{n // 20}",
            }
            for n in range(500)
        )
        yield made


@pytest.mark.parametrize(("budget", "room"), [(None, 1000), (1500, 1500), (2000, 2000), (4000, 4000), (50_000, 4000)])
def test_the_block_holds_as_many_as_have_room(memory: Memory, budget: int | None, room: int) -> None:
    made = memory.context([QUESTION], budget=budget)
    taken = estimate(made.text)
    assert USED * room <= taken <= room
    assert made.report.tokens <= (budget or 2 * room)
    assert len(made.memories) > 10


def test_a_long_conversation_leaves_less(memory: Memory) -> None:
    said = [
        {"role": "user", "content": "the harbour was painted in a colour " * 100},
        {"role": "assistant", "content": "yes " * 400},
    ]
    alone = memory.context([QUESTION], budget=4000)
    made = memory.context([*said, QUESTION], budget=4000)
    assert made.report.tokens <= 4000
    assert made.report.over == 0
    assert USED * 1000 <= estimate(made.text) < estimate(alone.text)
    assert not any(left.section == "turns" for left in made.report.left_out)


def test_a_limit_and_a_preset_say_how_many_at_most(memory: Memory, tmp_path: Path) -> None:
    assert len(memory.context([QUESTION], budget=4000, limit=7).memories) == 7
    rules = load("recollect")
    few = replace(rules, context=replace(rules.context, memories=3, most_tokens=200, tokens=200))
    with Memory(tmp_path / "m", embedder="none", preset=few) as again:
        assert len(again.context([QUESTION], budget=4000).memories) == 3
        assert len(again.context([QUESTION], budget=4000, limit=30).memories) < 10


def test_what_has_no_room_is_named_but_not_all_that_is_known(memory: Memory) -> None:
    left = [item for item in memory.context([QUESTION]).report.left_out if item.section == "memories"]
    assert 0 < len(left) <= 10
    assert all("the block is full at 1,000 tokens" in item.why for item in left)


def test_a_conversation_that_fits_keeps_its_turns(memory: Memory) -> None:
    said = [{"role": ("user", "assistant")[n % 2], "content": f"number {n} of the turns " * 4} for n in range(60)]
    whole = memory.context([*said, QUESTION], limit=1).report.tokens
    made = memory.context([*said, QUESTION], budget=whole + 500)
    assert not any(left.section == "turns" for left in made.report.left_out)
    assert len(made.messages) == 61
    assert 200 <= estimate(made.text) <= 600
    assert made.report.tokens <= whole + 500
