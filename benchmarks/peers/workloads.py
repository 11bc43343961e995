"""What is asked of every peer, as plain values: LoCoMo, LongMemEval, the precision suites, the freshness pairs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from recollect.evaluation import datasets
from recollect.text.tokens import estimate

BENCHMARKS = Path(__file__).parent.parent
sys.path.append(str(BENCHMARKS))

import freshness  # noqa: E402
import precision  # noqa: E402

Row = dict[str, Any]
DEEP = 100
"""So many are asked for when a budget of tokens is to be filled, not a number of places."""


class Question(NamedTuple):
    text: str
    now: str
    ks: tuple[int, ...]
    row: Row
    """What the results file says of it, beside what was found."""


class Job(NamedTuple):
    """One store: what is added to it, and what is asked then."""

    suite: str
    name: str
    items: list[Row]
    """In order. Those with `replaces` take the place of another."""
    questions: list[Question]
    tokens: dict[str, int]
    """Of each text, for the budget."""
    now: str
    """The time at which all is added."""


def public(name: datasets.Name, path: Path, sample: int | None) -> Iterator[Job]:
    dataset = datasets.load(name, path)
    for corpus in dataset.corpora[: 1 if sample else None]:
        asked = corpus.questions[:sample]
        turns = corpus.turns[: sample * 5] if sample else corpus.turns
        items = [
            {"id": turn.id, "text": turn.text, "time": turn.at.isoformat(), "session": turn.session, "role": turn.role}
            for turn in turns
            if turn.text.strip()
        ]
        questions = [
            Question(
                question.text,
                question.asked_at.isoformat(),
                (10, DEEP),
                {"category": question.category, "wanted": sorted(question.turns), "size": estimate(question.text)},
            )
            for question in asked
        ]
        yield Job(name, corpus.name, items, questions, sizes(items), max(turn["time"] for turn in items))


def sizes(items: list[Row]) -> dict[str, int]:
    return {item["id"]: estimate(item["text"]) + 1 for item in items}


def precise(sample: int | None) -> Iterator[Job]:
    """Each scope of each store is a job: nothing of one may come up in another."""
    for path in sorted(BENCHMARKS.glob("precision*.jsonl")):
        stores = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for store in stores[: 1 if sample else None]:
            for scope in sorted({case.get("scope", "all") for case in store["cases"]}):
                beliefs = [belief for belief in store["beliefs"] if belief.get("scope", "all") == scope]
                cases = [case for case in store["cases"] if case.get("scope", "all") == scope]
                beliefs.sort(key=lambda belief: -belief["days_ago"])
                name = f"{path.stem}/{store['store']}/{scope}"
                yield Job(
                    "precision",
                    name,
                    [*map(belief_item, beliefs)],
                    [*map(case_question, cases)],
                    {},
                    precision.NOW.isoformat(),
                )


def belief_item(belief: Row) -> Row:
    time = (precision.NOW - timedelta(days=belief["days_ago"])).isoformat()
    item = {"id": belief["id"], "text": belief["text"], "time": time, "session": None}
    return item | ({"replaces": belief["replaces"]} if "replaces" in belief else {})


def case_question(case: Row) -> Question:
    row = {"kind": case["kind"], "want": case["want"], "may": case.get("may", [])}
    return Question(case["ask"], precision.NOW.isoformat(), (10,), row)


def fresh(sample: int | None) -> Iterator[Job]:
    pairs = freshness.pairs()
    asked = [pair for pair in pairs if pair.label == "contradict"][:sample]
    for adjacent in (True, False):
        texts = freshness.order(asked if sample else pairs, adjacent)
        times = [(freshness.START + timedelta(minutes=10 * number)).isoformat() for number in range(len(texts) + 1)]
        items = [
            {"id": f"t{number}", "text": text, "time": times[number], "session": "stream"}
            for number, text in enumerate(texts)
        ]
        ids = {text: item["id"] for text, item in zip(texts, items, strict=True)}
        questions = [
            Question(
                pair.question,
                times[-1],
                (20,),
                {"kind": pair.kind, "newer": ids[pair.newer], "older": ids[pair.older]},
            )
            for pair in asked
        ]
        yield Job("freshness", "adjacent" if adjacent else "apart", items, questions, {}, times[-1])


def jobs(data: list[Path], sample: int | None) -> Iterator[Job]:
    yield from precise(sample)
    yield from fresh(sample)
    for name, path in zip(("locomo", "longmemeval"), data, strict=False):
        yield from public(name, path, sample)
