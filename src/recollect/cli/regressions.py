"""Asking cases again: whether questions still find what they found."""

from __future__ import annotations

import click

from recollect.cli import output, text
from recollect.cli.lazy import Leaf
from recollect.cli.output import QUIET, STRONG
from recollect.cli.paths import PATH
from recollect.cli.target import Target, scoped


@click.command(cls=Leaf)
@click.argument("path", type=PATH)
@scoped
def cases(target: Target, path: str) -> None:
    """Ask your own cases of a memory, and fail if one finds less than it must.

    PATH is a file with a case a line: a question, the ids or texts that must be among the first memories recalled, and
    how many those are. The recall lab of the web page saves such files. Nothing counts as retrieved. It ends with 1 if
    a case fails.

    \b
    Example:
      echo '{"question": "what does Ada drink?", "texts": ["tea"], "limit": 5}' > cases.jsonl
      recollect eval cases cases.jsonl
      recollect eval cases cases.jsonl --preset atlas --json
    """
    from recollect.evaluation.cases import load, run

    wanted = load(path)
    with target.open() as memory:
        outcomes = run(memory, wanted)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if target.json:
        output.emit({"cases": len(outcomes), "failed": len(failed), "outcomes": outcomes})
    else:
        for outcome in outcomes:
            output.say(
                (" ok   " if outcome.passed else " FAIL ", QUIET if outcome.passed else STRONG), outcome.question
            )
            for expected, why in outcome.missing.items():
                output.say(f"{expected}: {why}", indent=6)
        output.say((f"{text.count(len(outcomes), 'case', 'cases')}, {len(failed):,} failed", STRONG))
    if failed:
        click.get_current_context().exit(1)
