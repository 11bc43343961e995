"""The right memories and nothing else: questions over small stores of beliefs, asked through `Memory.recall`.

The stores and questions in `precision*.jsonl` are our own, written before the rules that they check; nothing is chosen
by those whose name ends in `_held`. A question passes if all that it wants comes, and nothing but that
and what it may have.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from recollect import Memory
from recollect.evaluation.reliability import measured

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Answer(NamedTuple):
    store: str
    case: dict[str, Any]
    found: list[str]
    """The ids that came, best first."""
    report: str
    relevances: list[float]
    closest: list[tuple[float, bool]]
    """Of the first ten, however they compare: the relevance, and whether it is wanted."""
    answered: float

    @property
    def right(self) -> int:
        return len(set(self.case["want"]) & set(self.found))

    @property
    def tolerated(self) -> int:
        return len(set(self.found) & {*self.case["want"], *self.case.get("may", ())})

    @property
    def passes(self) -> bool:
        return self.right == len(self.case["want"]) and self.tolerated == len(self.found)


def filled(memory: Memory, store: dict[str, Any]) -> dict[str, str]:
    """Store the beliefs, oldest first. Returns which belief each memory is."""
    names: dict[str, str] = {}
    ids: dict[str, str] = {}
    for belief in sorted(store["beliefs"], key=lambda belief: -belief["days_ago"]):
        view, born = scoped(memory, belief), NOW - timedelta(days=belief["days_ago"])
        before = ids.get(belief.get("replaces", ""))
        if before is None:
            record = view.remember(belief["text"], created_at=born)
        else:
            record = view.revise(before, content=belief["text"])
        ids[belief["id"]] = record.id
        names[record.id] = belief["id"]
    return names


def scoped(memory: Memory, thing: dict[str, Any]) -> Memory:
    return memory.at(workspace=thing.get("scope", "all").lower())


def answers(store: dict[str, Any], embedder: str) -> Iterator[Answer]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(folder, embedder=embedder, clock=lambda: NOW) as memory,
    ):
        names = filled(memory, store)
        if embedder != "none":
            for scope in sorted({belief.get("scope", "all") for belief in store["beliefs"]}):
                memory.at(workspace=scope.lower()).embed()
        for case in store["cases"]:
            hits = scoped(memory, case).recall(case["ask"])
            found = [names[hit.memory.id] for hit in hits]
            closest = scoped(memory, case).recall(case["ask"], min_relevance=0.0)
            wanted = [(hit.relevance or 0.0, names[hit.memory.id] in case["want"]) for hit in closest]
            relevances = [hit.relevance or 0.0 for hit in hits]
            yield Answer(store["store"], case, found, hits.report, relevances, wanted, closest.answered or 0.0)


def told(all_answers: list[Answer]) -> None:
    kinds: dict[str, list[Answer]] = defaultdict(list)
    for answer in all_answers:
        kinds[answer.case["kind"]].append(answer)
    for kind, some in sorted(kinds.items()):
        print(f"  {kind:<12} {sum(answer.passes for answer in some):>3} of {len(some)}")
    asked = [answer for answer in all_answers if answer.case["want"]]
    nothing = [answer for answer in all_answers if not answer.case["want"]]
    hits = sum(len(answer.found) for answer in asked)
    recall = sum(answer.right / len(answer.case["want"]) for answer in asked) / len(asked)
    tolerated = sum(answer.tolerated for answer in asked)
    passed = sum(answer.passes for answer in all_answers)
    print(
        f"  passed {passed} of {len(all_answers)} ({100 * passed / len(all_answers):.0f} %); recall {recall:.2f}, "
        f"precision {tolerated / max(hits, 1):.2f}, {hits / len(asked):.1f} hits each; "
        f"empty where nothing is known {sum(not answer.found for answer in nothing)} of {len(nothing)}"
    )


def print_reliability(answers: list[Answer]) -> None:
    of_all = measured(
        [pair for answer in answers for pair in answer.closest],
        [(answer.answered, any(right for _, right in answer.closest)) for answer in answers],
    )
    for title, bins, error in (
        ("a hit is wanted", of_all.hits, of_all.error),
        ("one is there", of_all.answered, of_all.answered_error),
    ):
        print(f"  {title}; on average {100 * error:.1f} beside what was said")
        for some in bins:
            print(f"    {some.number:>5}  said {100 * some.expected:5.1f}  right {100 * some.right:5.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="JSON Lines of stores; those beside this file")
    parser.add_argument("--embedder", action="append", choices=["local", "none"])
    parser.add_argument("--reliability", action="store_true", help="print how often what is said to be likely is right")
    parser.add_argument("--failures", action="store_true", help="print what failed, and how")
    options = parser.parse_args()
    here = Path(__file__).parent
    for path in options.files or sorted(here.glob("precision*.jsonl")):
        stores = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for embedder in options.embedder or ["local", "none"]:
            everything = [answer for store in stores for answer in answers(store, embedder)]
            print(f"{path.name}, embedder {embedder}")
            told(everything)
            if options.reliability:
                print_reliability(everything)
            for answer in everything if options.failures else ():
                if not answer.passes:
                    case, scores = answer.case, [f"{value:.3f}" for value in answer.relevances]
                    print(f"    {case['kind']}: {case['ask']!r} wants {case['want']}, got {answer.found} {scores}")


if __name__ == "__main__":
    main()
