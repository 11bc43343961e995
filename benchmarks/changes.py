"""Changes told in conversations: what a newer statement does to an older one, and which of them recall ranks first.

Reads pairs as JSON lines: {"old", "new", "change": bool, "days", "question", "class"}. Nothing of them comes with
recollect: give the path of your own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from recollect import Memory
from recollect.text.statements.changes import change

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def compared(pairs: list[dict[str, Any]]) -> None:
    """By the rules alone."""
    counts: Counter[str] = Counter()
    for pair in pairs:
        found = change(pair["old"], pair["new"])
        effect = "stays" if found is None else "possible" if found.effect == "possible" else "changes"
        counts[f"{effect} {pair['change']}"] += 1
    right, wrong = counts["changes True"], counts["changes False"]
    missed = counts["possible True"] + counts["stays True"]
    print(f"superseded: precision {_share(right, wrong)}, recall {_share(right, missed)}")
    print(f"possible changes: {counts['possible True']} of {missed} others, and {counts['possible False']} look-alikes")


def ranked(pairs: list[dict[str, Any]], embedder: str) -> None:
    """Both told in a talk, some time apart, among all that the others say; then the question is asked."""
    first = asked = kept = lookalikes = 0
    for pair in pairs:
        clock = [NOW - timedelta(days=pair["days"])]
        with (
            tempfile.TemporaryDirectory() as folder,
            Memory(folder, embedder=embedder, clock=partial(max, clock)) as view,
        ):
            old = view.conversations.observe(pair["old"])
            clock.append(NOW)
            new = view.conversations.observe(pair["new"])
            hits = [hit.memory.id for hit in view.recall(pair["question"], min_relevance=0.0, touch=False)]
            if pair["change"]:
                asked += 1
                first += new.id in hits and (old.id not in hits or hits.index(new.id) < hits.index(old.id))
            else:
                lookalikes += 1
                kept += view.get(old.id).superseded_by is None
    print(f"the newer first: {_share(first, asked - first)}")
    print(f"look-alikes that stay: {_share(kept, lookalikes - kept)}")


def _share(part: int, rest: int) -> str:
    return f"{part / (part + rest or 1):.3f} ({part} of {part + rest})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--embedder", default="local")
    chosen = parser.parse_args()
    for path in chosen.pairs:
        pairs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        print(f"{path.name}: {len(pairs)} pairs")
        compared(pairs)
        ranked(pairs, chosen.embedder)


if __name__ == "__main__":
    main()
