"""Precision and recall of the finders of personal data on labelled texts.

    python benchmarks/personal.py labelled.jsonl [--errors]

Each line is JSON with `text`, `type` (card, iban, ssn, passport, pin, password or none) and `sensitive`
(a topic, or false). Codes of doors count as pins.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from recollect.policies.personal import find_personal
from recollect.policies.sensitive_topics import topics


def labels(row: dict[str, object]) -> set[str]:
    return {str(row[field]) for field in ("type", "sensitive") if row.get(field) and row[field] != "none"}


def main(path: str, show_errors: bool) -> None:
    right, extra, missed = Counter[str](), Counter[str](), Counter[str]()
    for line in Path(path).read_text("utf-8").splitlines():
        row = json.loads(line)
        wanted = labels(row)
        types = {"pin" if finding.type == "code" else finding.type for finding in find_personal(row["text"])}
        found = {*types, *topics(row["text"])}
        right.update(wanted & found)
        extra.update(found - wanted)
        missed.update(wanted - found)
        if show_errors and wanted != found:
            print(f"missed {sorted(wanted - found)} extra {sorted(found - wanted)}: {row['text']}")
    print(f"{'':12}{'labelled':>9}{'precision':>11}{'recall':>8}")
    for name in sorted({*right, *extra, *missed}):
        print(_row(name, right[name], extra[name], missed[name]))
    print(_row("all", right.total(), extra.total(), missed.total()))


def _row(name: str, right: int, extra: int, missed: int) -> str:
    precision = f"{right / (right + extra):.2f}" if right + extra else "-"
    recall = f"{right / (right + missed):.2f}" if right + missed else "-"
    return f"{name:12}{right + missed:9}{precision:>11}{recall:>8}"


if __name__ == "__main__":
    main(sys.argv[1], "--errors" in sys.argv)
