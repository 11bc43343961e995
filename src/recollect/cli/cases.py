"""Cases: questions that must go on finding what they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text
from recollect.cli.derived import derived
from recollect.cli.lazy import LazyGroup
from recollect.cli.output import STRONG, Column, Styled
from recollect.values.errors import NotFoundError

if TYPE_CHECKING:
    from recollect.facets.cases import Case
    from recollect.memory import Memory


@click.group(
    cls=LazyGroup,
    default="list",
    sections={"Commands": {"list": "cases:list_", "save": "cases:save", "remove": "cases:remove"}},
)
def cases() -> None:
    """Questions with what they must find. `recollect eval cases` asks them again.

    \b
    Example:
      recollect cases save "what does Ada drink?" --text tea
      recollect cases
    """


def _print_cases(cases: Sequence[Case]) -> None:
    if not cases:
        output.say("There are no cases yet.")
        return
    rows: list[list[Styled]] = [
        [text.one_line(case.question), text.one_line(", ".join((*case.texts, *map(text.short, case.ids))))]
        for case in cases
    ]
    output.table([Column("question", STRONG, wrap=True), Column("must find", wrap=True)], rows)


def _subject(memory: Memory, arguments: Mapping[str, Any]) -> str:
    question = arguments["question"].strip()
    if all(case.question != question for case in memory.cases.list()):
        raise NotFoundError(f"there is no case with the question {question!r}; `recollect cases` lists all")
    return f"the case {question}"


list_ = derived("cases.list", "List the cases, in the order in which they were saved.", "cases", show=_print_cases)
save = derived(
    "cases.save",
    "Save a case, in place of the one with the same question.",
    'cases save "what does Ada drink?" --text tea --limit 5',
    show=lambda case: output.say("Saved ", (case.question, STRONG)),
)
remove = derived(
    "cases.remove",
    "Remove the case with a question.",
    'cases remove "what does Ada drink?" --yes',
    show=lambda number: output.say(f"Removed {text.count(number, 'case', 'cases')}."),
    document=lambda number: {"removed": number},
    subject=_subject,
)
