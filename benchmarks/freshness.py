"""How often a newer fact comes before an older one that it contradicts, asked through `Memory.recall`.

The pairs in `freshness.tsv` are our own, and so are the lookalikes, which do not contradict and must stay as they are.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from recollect import Memory
from recollect.presets import load

START = datetime(2024, 1, 1, tzinfo=UTC)


class Pair(NamedTuple):
    label: str
    kind: str
    question: str
    older: str
    newer: str


def pairs() -> list[Pair]:
    with Path(__file__).with_name("freshness.tsv").open(encoding="utf-8", newline="") as file:
        return [Pair(*row) for row in list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]]


def order(found: Sequence[Pair], adjacent: bool) -> list[str]:
    """Each contradiction right after what it contradicts, or all of them at the end."""
    if adjacent:
        return [text for pair in found for text in (pair.older, pair.newer)]
    return [pair.older for pair in found] + [pair.newer for pair in found]


def newer_first(texts: Sequence[str], found: Sequence[Pair], embedder: str, fresh: bool) -> list[bool]:
    preset = load("recollect")
    preset = replace(preset, ranking=replace(preset.ranking, fresh=fresh))
    now = START + timedelta(minutes=10 * len(texts))
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(folder, preset=preset, embedder=embedder, clock=lambda: now) as memory,
    ):
        memory.remember_many(
            {"content": text, "conversation": "stream", "created_at": START + timedelta(minutes=10 * number)}
            for number, text in enumerate(texts)
        )
        if embedder != "none":
            memory.embed()
        results: list[bool] = []
        for pair in found:
            ranks = {hit.memory.text: place for place, hit in enumerate(memory.recall(pair.question, limit=20))}
            results.append(ranks.get(pair.newer, 99) < ranks.get(pair.older, 99))
        return results


def groups(found: Sequence[Pair]) -> dict[str, list[int]]:
    """The positions of each sort of pair."""
    sorts = {
        "contradictions": lambda pair: pair.label == "contradict" and pair.kind != "reworded",
        "changes in other words": lambda pair: pair.kind == "reworded",
        "lookalikes": lambda pair: pair.label == "lookalike" and pair.kind != "other's",
        "facts of another": lambda pair: pair.kind == "other's",
    }
    return {name: [place for place, pair in enumerate(found) if is_one(pair)] for name, is_one in sorts.items()}


def main() -> None:
    found = pairs()
    for embedder in sys.argv[1:] or ["local", "none"]:
        for adjacent in (True, False):
            texts = order(found, adjacent)
            before = newer_first(texts, found, embedder, fresh=False)
            after = newer_first(texts, found, embedder, fresh=True)
            told = "one after the other" if adjacent else "long apart"
            print(f"embedder {embedder}, told {told}")
            for name, chosen in groups(found).items():
                if found[chosen[0]].label == "contradict":
                    share = 100 * sum(after[place] for place in chosen) / len(chosen)
                    without = 100 * sum(before[place] for place in chosen) / len(chosen)
                    print(
                        f"  {name}: newer first in {share:.0f} % of {len(chosen)} ({without:.0f} % without freshness)"
                    )
                else:
                    alone = 100 * sum(after[place] == before[place] for place in chosen) / len(chosen)
                    print(f"  {name}: {alone:.0f} % of {len(chosen)} left as they were")


if __name__ == "__main__":
    main()
