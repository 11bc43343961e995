"""How long it takes to put memory before the model."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable

from corpus import questions, sentences

from recollect import Memory
from recollect.policies.ranking import words

_NOTES = 500
_CALLS = 500
_MEMORIES = 10_000
_ASKED = 200
_GOAL = 2.0
"""Milliseconds."""


def timed(act: Callable[[int], object], calls: int = _CALLS) -> list[float]:
    """Milliseconds of each call, fastest first."""
    taken: list[float] = []
    for number in range(calls):
        start = time.perf_counter()
        act(number)
        taken.append((time.perf_counter() - start) * 1000.0)
    return sorted(taken)


def shown(what: str, taken: list[float], goal: str = "") -> None:
    median, slow = statistics.median(taken), taken[int(len(taken) * 0.95)]
    print(f"{what:<58} p50 {median:6.3f} ms  p95 {slow:6.3f} ms{goal}")


def notes() -> None:
    """Injection from a notebook: 500 notes against the last message, at most 10 of them and 2,000 characters.

    The floor is the document's score alone: the words of 500 notes that are known already, and sorting.
    """
    texts = [text[:500] for text in sentences(_NOTES)]
    asked = questions(_CALLS, texts)
    talks = [[{"role": "system", "content": "You are an agent."}, {"role": "user", "content": one}] for one in asked]
    known = [words(text) for text in texts]

    def floor(number: int) -> list[tuple[int, int]]:
        message = words(asked[number])
        return sorted(((len(one & message), at) for at, one in enumerate(known)), reverse=True)[:10]

    with tempfile.TemporaryDirectory() as folder, Memory(f"notebook:{folder}", preset="aegis") as memory:
        memory.remember_many(texts)
        start = time.perf_counter()
        memory.context(talks[0])
        cold = (time.perf_counter() - start) * 1000.0
        found = [len(memory.context(talk).memories) for talk in talks]
        print(f"{_NOTES} notes, {statistics.mean(found):.1f} of them shown a call; the first call took {cold:.1f} ms")
        taken = timed(lambda number: memory.context(talks[number]))
        met = "met" if statistics.median(taken) <= _GOAL else "NOT MET"
        shown("context of a notebook", taken, f"  goal: p50 <= {_GOAL:g} ms, {met}")
        shown("the score alone", timed(floor))


def block() -> None:
    """The default block: 10,000 memories and a conversation of 200 turns, against the recall inside it.

    Both take turns. Once as it is, and once with a budget that makes older turns one message.
    """
    texts = sentences(_MEMORIES)
    asked = questions(_ASKED, texts)
    said = sentences(199, seed=7)
    turns = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(said)]
    talks = [[*turns, {"role": "user", "content": question}] for question in asked]
    with tempfile.TemporaryDirectory() as folder, Memory(folder, embedder="none") as memory:
        memory.remember_many({"content": text, "conversation": f"c{at // 20}"} for at, text in enumerate(texts))
        for name, budget in (("all of it", None), ("older turns summarised", 4000)):
            recall: list[float] = []
            context: list[float] = []
            for question, talk in zip(asked, talks, strict=True):
                recall += timed(lambda _, question=question: memory.recall(question), 1)
                context += timed(lambda _, talk=talk, budget=budget: memory.context(talk, budget=budget), 1)
            low, high = statistics.median(recall), statistics.median(context)
            most = 1.2 * low + 3.0
            print(f"{_MEMORIES:,} memories, 200 turns, {name}:")
            shown("  recall", sorted(recall))
            verdict = "met" if high <= most else "NOT MET"
            goal = f"  goal: 1.2 × recall + 3 ms = {most:.1f} ms, {verdict}" if budget is None else ""
            shown("  context", sorted(context), goal)


if __name__ == "__main__":
    notes()
    block()
