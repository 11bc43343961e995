"""A summary of older turns grows with the conversation instead of being made anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from recollect import Memory
from recollect.models.llm import Message, condensing
from recollect.text.tokens import estimate


class Writer:
    """A model that writes down how many turns it was given."""

    name = "writer"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> str:
        self.asked.append(messages[-1].content)
        return f"Summary number {len(self.asked)}."

    def stream(self, messages: Sequence[Message], **options: Any) -> Iterator[str]:
        raise NotImplementedError("nothing here streams")

    def close(self) -> None: ...


def talk(turns: int) -> list[dict[str, Any]]:
    said = [
        f"The code of room {n} is {n * 7919 % 10_000}, and the door of it is painted in colour {n}."
        for n in range(turns)
    ]
    return [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(said)]


def summary(memory: Memory, turns: int) -> str:
    context = memory.context(talk(turns), budget=900, system_messages="many")
    assert context.report.tokens <= 900
    return next(str(one["content"]) for one in context.messages if "Summary of" in str(one["content"]))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many turns or lines each summary by rules was made of."""
    sizes: list[int] = []
    summarise = condensing.summarise

    def counted(turns: Sequence[str], **options: Any) -> str:
        sizes.append(len(turns))
        return summarise(turns, **options)

    monkeypatch.setattr(condensing, "summarise", counted)
    return sizes


def test_only_what_is_new_is_read(tmp_path: Path, read: list[int]) -> None:
    with Memory(tmp_path / "m", embedder="none") as memory:
        summary(memory, 120)
        assert read == [100]
        for turns in range(122, 140, 2):
            assert f"Summary of {turns - 20} earlier turns" in summary(memory, turns)
        assert len(read) == 10
        assert max(read[1:]) < 40  # the lines of the summary, and two turns
        summary(memory, 138)
        assert len(read) == 10  # the same turns again: nothing is read


def test_another_conversation_is_read_whole(tmp_path: Path, read: list[int]) -> None:
    with Memory(tmp_path / "m", embedder="none") as memory:
        summary(memory, 60)
        other = talk(60)
        other[0] = {"role": "user", "content": "Something else was said at first."}
        memory.context(other, budget=900)
        assert read == [40, 40]


def test_a_model_is_asked_again_only_when_there_is_enough_that_is_new(tmp_path: Path) -> None:
    writer = Writer()
    with Memory(tmp_path / "m", embedder="none", llm=writer) as memory:
        assert "Summary number 1." in summary(memory, 60)
        for turns in (62, 64, 66):
            text = summary(memory, turns)
            assert "Summary number 1." in text
            assert f"room {turns - 21}" in text or f"room {turns - 22}" in text  # what is new, by rules
        assert len(writer.asked) == 1
        assert "Summary number 2." in summary(memory, 68)
        assert "Summary number 1." in writer.asked[1]
        assert len(writer.asked[1].splitlines()) < 15


def test_what_is_forgotten_is_not_remembered_in_a_summary(tmp_path: Path, read: list[int]) -> None:
    with Memory(tmp_path / "m", embedder="none") as memory:
        record = memory.remember("a heron")
        summary(memory, 60)
        memory.forget(record.id)
        summary(memory, 60)
        assert read == [40, 40]


def test_a_smaller_budget_makes_it_shorter(tmp_path: Path) -> None:
    with Memory(tmp_path / "m", embedder="none") as memory:
        long = summary(memory, 80)
        context = memory.context(talk(80), budget=760, system_messages="many")
        short = next((str(m["content"]) for m in context.messages if "Summary of" in str(m["content"])), "")
        assert context.report.tokens <= 760
        assert estimate(short) < estimate(long)
