"""The life of a conversation, each step beside the work inside it.

    python benchmarks/conversations.py [ROUNDS]

Orientation on 10,000 memories against the recall and the three lists that it contains; starting and ending an empty
conversation against one durable write of the same store each; and the end of a conversation of 200 turns.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from corpus import questions, sentences

from recollect import Memory

_MEMORIES = 10_000
_TURNS = 200
_KINDS = ("preference", "procedure", "task")


def times(rounds: int, *works: Callable[[int], object]) -> list[list[float]]:
    """Milliseconds of each, alternately."""
    found: list[list[float]] = [[] for _ in works]
    for number in range(rounds):
        for at, work in enumerate(works):
            begun = time.perf_counter()
            work(number)
            found[at].append((time.perf_counter() - begun) * 1000)
    return found


def told(name: str, ours: list[float], floor: list[float]) -> None:
    p50, p95 = np.percentile(ours, [50, 95])
    f50, f95 = np.percentile(floor, [50, 95])
    print(
        f"{name}: p50 {p50:.1f} ms, p95 {p95:.1f} ms; floor {f50:.1f}, {f95:.1f} ms; "
        f"ratio {p50 / f50:.2f}, {p95 / f95:.2f}"
    )


def orientation(rounds: int, folder: str) -> None:
    texts = sentences(_MEMORIES)
    kinds = ("fact", "decision", *_KINDS)
    asked = questions(rounds, texts, seed=1)
    with Memory(f"{folder}/orient", embedder="none") as memory:
        memory.remember_many([{"content": text, "kind": kinds[n % 5]} for n, text in enumerate(texts)])

        def floor(number: int) -> None:
            memory.recall(asked[number], limit=15)
            for kind in _KINDS:
                memory.list(kind=kind, limit=5)

        told("orient on 10,000", *times(rounds, lambda number: memory.orient(asked[number]), floor))


def edges(rounds: int, folder: str) -> None:
    """Starting and ending are one durable write each."""
    with Memory(f"{folder}/edges", embedder="none") as memory:

        def both(number: int) -> None:
            started = memory.conversations.start(f"topic {number}")
            memory.conversations.end(started.id)

        def floor(number: int) -> None:
            memory.remember(f"first {number}")
            memory.remember(f"second {number}")

        told("start and end", *times(rounds, both, floor))


def ending(rounds: int, folder: str) -> None:
    texts = sentences(_TURNS * rounds)
    found: list[float] = []
    with Memory(f"{folder}/ending", embedder="none") as memory:
        for number in range(rounds):
            started = memory.conversations.start()
            for at, text in enumerate(texts[number * _TURNS : (number + 1) * _TURNS]):
                memory.conversations.say(started.id, "assistant" if at % 2 else "user", text)
            begun = time.perf_counter()
            memory.conversations.end(started.id)
            found.append((time.perf_counter() - begun) * 1000)
        kept = memory.stats().total
    print(f"end of {_TURNS} turns: {', '.join(f'{one:.0f}' for one in found)} ms; {kept} memories kept in all")


def main() -> None:
    rounds = int((*sys.argv[1:], "100")[0])
    with tempfile.TemporaryDirectory() as folder:
        orientation(rounds, folder)
        edges(rounds, folder)
        ending(5, folder)


if __name__ == "__main__":
    main()
