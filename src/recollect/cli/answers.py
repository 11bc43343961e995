"""Answers: which memories went into them, and how to correct or forget one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from recollect.cli import names, output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.lazy import Leaf
from recollect.cli.output import ID, QUIET, STRONG, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.context.answers import AnswerMemory, AnswerSources

_NO_QUESTION = "(its question was not kept)"


@click.command(cls=Leaf)
@click.argument("id", metavar="[ID]", required=False)
@takes("answers")
@scoped
def sources(target: Target, call: Call, id: str | None) -> None:
    """Show which memories went into an answer.

    Without ID, list the latest answers. ID is the id of a context, or the short one of the list.

    \b
    Example:
      recollect sources
      recollect sources 2b7bcfad
    """
    with target.open() as memory:
        if id is not None:
            answer = memory.sources(names.resolved(memory, "answer", id))
            return output.emit(answer) if target.json else _print_answer(answer)
        listed: list[AnswerSources] = call.run(memory)
    return output.emit(listed) if target.json else _print_answers(listed)


def _print_answers(answers: Sequence[AnswerSources]) -> None:
    if not answers:
        output.say("No memory went into an answer yet.")
        return
    now = utc_now()
    rows: list[list[Styled]] = [
        [text.short(answer.id), text.ago(answer.at, now), f"{len(answer.memories):,}", _question(answer)]
        for answer in answers
    ]
    columns = [Column("id", ID), Column("given"), Column("memories", right=True), Column("question", flexible=True)]
    output.table(columns, rows)


def _question(answer: AnswerSources) -> str:
    return text.one_line(answer.question or _NO_QUESTION)


def _print_answer(answer: AnswerSources) -> None:
    output.say((_question(answer), STRONG))
    output.say((f"{text.ago(answer.at, utc_now())}, {answer.tokens:,} tokens", QUIET))
    for memory in answer.memories:
        _print_memory(memory)
    if answer.erased:
        output.say((f"{text.count(answer.erased)} erased since", QUIET))
    for memory in answer.left_out:
        output.say((f"left out: {text.short(memory.id)} {text.one_line(memory.text, 60)}: {memory.why}", QUIET))


def _print_memory(memory: AnswerMemory) -> None:
    relevance = "" if memory.relevance is None else f"{memory.relevance:.2f}  "
    output.say("")
    output.say((text.short(memory.id), ID), f"  {relevance}{text.one_line(memory.text)}")
    if memory.replaced_by is not None:
        output.say((f"  was replaced by {text.short(memory.replaced_by)}", QUIET))
    elif memory.state in ("expired", "archived"):
        output.say((f"  is {memory.state}", QUIET))
    if memory.state not in ("forgotten", "hidden"):
        current = text.short(memory.replaced_by or memory.id)
        output.say((f'  recollect revise {current} "…"   recollect forget {current}', QUIET))
