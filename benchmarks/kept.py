"""How much of what the automatic memory keeps is right, and how much of what it should keep it keeps.

    python benchmarks/kept.py FILE.jsonl … [--show]

Each line of a file is a text with labels, `{"text", "class", "keep"}`, or a turn of a conversation,
`{"conversation", "role", "text", "keep"}`, in order. A label is a list of words, or an object with `words`;
alternatives are parted by `|`.

A statement is right if it contains all words of a label of its turn. A label is found if a statement of its turn
has all its words; a statement of several sentences finds one label only. `--show` prints what was wrong and what was
missed.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from recollect.policies.extraction import Extracted, Said, extract
from recollect.text.sentences import sentences

Label = tuple[str, ...]


class Tally(NamedTuple):
    right: int = 0
    kept: int = 0
    found: int = 0
    labels: int = 0

    def plus(self, other: Tally) -> Tally:
        return Tally(*(one + two for one, two in zip(self, other, strict=True)))

    def __str__(self) -> str:
        precision = self.right / self.kept if self.kept else 1.0
        recall = self.found / self.labels if self.labels else 1.0
        return (
            f"precision {precision:.3f} ({self.right}/{self.kept})  recall {recall:.3f} ({self.found}/{self.labels})"
            f"  junk {1 - precision:.3f}"
        )


def contains(text: str, word: str) -> bool:
    """Numbers stand alone, and short words begin a word: 6 is not in 16, and "Ana" not in "banana"."""
    text, word = text.lower().replace("’", "'"), word.lower().replace("’", "'")
    if word.isdigit():
        return re.search(rf"(?<!\d){word}(?!\d)", text) is not None
    if word.isalpha() and len(word) <= 3:
        return (
            re.search(rf"(?<![^\W\d_]){re.escape(word)}" + ("" if len(word) == 3 else r"(?![^\W\d_])"), text)
            is not None
        )
    return word in text


def matches(text: str, label: Label) -> bool:
    return all(any(contains(text, way) for way in words.split("|") if way) for words in label)


def measure(kept: list[Extracted], labels: list[Label]) -> tuple[Tally, list[str], list[Label]]:
    """The numbers of one turn, the statements that were wrong, and the labels that were missed."""
    wrong = [one.text for one in kept if not any(matches(one.text, label) for label in labels)]
    single = [one.text for one in kept if len(sentences(one.text)) <= 1]
    several = [one.text for one in kept if len(sentences(one.text)) > 1]
    open_labels = [label for label in labels if not any(matches(text, label) for text in single)]
    for text in several:
        first = next((label for label in open_labels if matches(text, label)), None)
        if first is not None:
            open_labels.remove(first)
    tally = Tally(len(kept) - len(wrong), len(kept), len(labels) - len(open_labels), len(labels))
    return tally, wrong, open_labels


def conversations(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    if "conversation" not in rows[0]:
        yield from ([row] for row in rows)
        return
    for _, turns in groupby(rows, key=lambda row: row["conversation"]):
        yield list(turns)


def labels_of(row: dict[str, Any]) -> list[Label]:
    keep: list[Any] = row["keep"]
    return [tuple[str, ...](label if isinstance(label, list) else label["words"]) for label in keep]


def run(path: Path, show: bool) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    classes: defaultdict[str, Tally] = defaultdict(Tally)
    spent = 0.0
    for turns in conversations(rows):
        begun = time.process_time()
        kept = extract([Said(row.get("role", "user"), row["text"]) for row in turns])
        spent += time.process_time() - begun
        for at, row in enumerate(turns):
            tally, wrong, missed = measure([one for one in kept if one.turn == at], labels_of(row))
            name = row.get("class") or f"{row['series']}, {row['role']}"
            classes[name] = classes[name].plus(tally)
            if show and (wrong or missed):
                print(f"\n[{name}] {row['text'][:400]!r}")
                print("".join(f"  JUNK   {text!r}\n" for text in wrong), end="")
                print("".join(f"  MISSED {' + '.join(label)}\n" for label in missed), end="")
    print(f"\n{path.name}: {len(rows)} texts, {spent * 1000:.0f} ms of processor time")
    for name, tally in sorted(classes.items()):
        print(f"  {name:22} {tally}")
    total = Tally()
    for tally in classes.values():
        total = total.plus(tally)
    print(f"  {'ALL':22} {total}")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if not argument.startswith("--"):
            run(Path(argument), "--show" in sys.argv)
