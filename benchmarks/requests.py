"""Whether requests to the memory in ordinary words are acted on, on the right memories, and nothing else is.

    python benchmarks/requests.py requests.jsonl ordinary.jsonl [--verbose]

A line of the first file has `before` (what is stored), `turn`, `act`, `about` (positions in `before`), `new` (words
that a corrected or remembered memory must have; `|` between alternatives) and `unclear` (a proposal is as good). Of
a turn in the second file nothing may be done, even where the memory has all that is stored in the first.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from recollect import Memory
from recollect.facets.conversations.persist import keep
from recollect.facets.requests import Heeded, heed
from recollect.policies.extraction import Said, extract
from recollect.text.statements.requests import requests


def read(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines() if line.strip()]


def has(text: str, words: list[str]) -> bool:
    return all(any(word.lower() in text.lower() for word in wanted.split("|")) for wanted in words)


def as_told(memory: Memory, before: list[str], turn: str) -> tuple[Heeded, list[str]]:
    """What a wrapped client does with the turn: act, and keep what else it says."""
    spoken = [*(Said("user", text) for text in before), Said("user", turn)]
    heeded = heed(memory._view, spoken, len(before))  # pyright: ignore[reportPrivateUsage]
    facts = [fact for fact in heeded.facts_left(extract(heeded.turns)) if fact.turn == len(before)]
    keep(memory._view, facts, None)  # pyright: ignore[reportPrivateUsage]
    return heeded, [record.text for record in memory.list()]


def judged(memory: Memory, item: dict[str, Any]) -> tuple[bool, bool, str]:
    """Whether it was acted on, and rightly; and what was done."""
    before = [memory.remember(text) for text in item["before"]]
    heeded, now = as_told(memory, item["before"], item["turn"])
    acts = [outcome.done for outcome in heeded.outcomes if outcome.act == item["act"]]
    meant = {before[at].id for at in item["about"]}
    touched = {before[n].id for n, text in enumerate(item["before"]) if text not in now}
    proposed = {ident for outcome in heeded.outcomes if outcome.proposal for ident in outcome.ids}
    if item["act"] in ("off", "on"):
        return bool(acts), bool(acts) and not touched, str(acts)
    if item["act"] == "remember":
        right = any(has(text, item["new"]) and memory.list(contains=text)[0].importance == 1.0 for text in now)
        return bool(acts), bool(acts) and right, str(acts)
    done = bool(touched or proposed or "not kept" in acts)
    right = touched == meant and (not item["new"] or any(has(text, item["new"]) for text in now))
    unclear = (item["unclear"] or len(meant) > 3) and not touched and meant <= proposed
    return done, right or unclear, str([(o.act, o.done) for o in heeded.outcomes])


def main(asked: str, ordinary: str, verbose: bool) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for item in read(asked):
        with tempfile.TemporaryDirectory() as folder, Memory(folder, embedder="none") as memory:
            acted, right, done = judged(memory, item)
        counts.update(((item["act"], "all"),))
        counts.update([(item["act"], name) for name, yes in (("acted", acted), ("right", right)) if yes])
        if verbose and not right:
            print(
                "MISSED" if not acted else "WRONG", item["act"], item["lang"], repr(item["turn"]), done, item["before"]
            )
    for act in ("forget", "correct", "remember", "off", "on"):
        every = counts[act, "all"]
        print(f"{act:9} {every:4} acted on {counts[act, 'acted']:4}  the right memories {counts[act, 'right']:4}")
    turns = [item["turn"] for item in read(ordinary)]
    false, done = acted_on(turns, sorted({text for item in read(asked) for text in item["before"]}))
    print(f"ordinary  {len(turns):4} taken for a request {len(false)}")
    print(f"          {len(turns):4} something done, where all that anybody told is remembered {len(done)}")
    for turn in (*false, *done):
        print("   ", repr(turn))


def acted_on(turns: list[str], known: list[str]) -> tuple[list[str], list[str]]:
    """Turns that are surely requests; and others to which something was done."""
    false = [turn for turn in turns if requests(turn)]
    with tempfile.TemporaryDirectory() as folder, Memory(folder, embedder="none") as memory:
        memory.remember_many(known)
        view = memory._view  # pyright: ignore[reportPrivateUsage]
        done = [turn for turn in turns if turn not in false and heed(view, [Said("user", turn)]).outcomes]
    return false, done


if __name__ == "__main__":
    paths = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    main(paths[0], paths[1], "--verbose" in sys.argv)
