"""What is kept of turns in several languages, beside what people would keep.

    python benchmarks/languages.py LABELLED.jsonl … [--wrong]

A line is {"lang": "de", "text": …, "keep": [{"words": ["Lisbon", "May|may"]}, …]}: what is kept matches a label if it
contains all its words, in any case, each by one of its alternatives. Per language: precision (kept statements that
match a label), recall (labels that something kept matches), and the share of turns with nothing to keep of which
something was kept. `--wrong` prints what went wrong.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recollect.policies.extraction import Said, extract


@dataclass
class Tally:
    kept: int = 0
    right: int = 0
    labels: int = 0
    found: int = 0
    empty: int = 0
    junk: int = 0
    wrong: list[str] = field(default_factory=list[str])

    def add(self, row: dict[str, Any]) -> None:
        texts = [fact.text for fact in extract([Said("user", row["text"])])]
        labels = [label["words"] for label in row["keep"]]
        lost = [label for label in labels if not any(matches(text, label) for text in texts)]
        junk = [text for text in texts if not any(matches(text, label) for label in labels)]
        self.kept += len(texts)
        self.right += len(texts) - len(junk)
        self.labels += len(labels)
        self.found += len(labels) - len(lost)
        self.empty += not labels
        self.junk += bool(texts and not labels)
        self.wrong += [f"  LOST {label} of: {row['text']}" for label in lost]
        self.wrong += [f"  JUNK ({row.get('class')}): {text}" for text in junk]


def matches(text: str, words: list[str]) -> bool:
    low = text.lower()
    return all(any(other.lower() in low for other in word.split("|")) for word in words)


def share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "  –  "


def main(*arguments: str) -> None:
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    for path in arguments:
        if not path.startswith("--"):
            for line in Path(path).read_text("utf-8").splitlines():
                row = json.loads(line)
                tallies[row["lang"]].add(row)
    print("language  precision  recall  junk turns  (kept, labels, turns with nothing to keep)")
    for code, tally in sorted(tallies.items()):
        print(
            f"{code:8}  {share(tally.right, tally.kept):9}  {share(tally.found, tally.labels):6}  "
            f"{share(tally.junk, tally.empty):10}  ({tally.kept}, {tally.labels}, {tally.empty})"
        )
        if "--wrong" in arguments:
            print(*tally.wrong, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
