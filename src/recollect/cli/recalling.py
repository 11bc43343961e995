"""Recall, and the parts of each score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text
from recollect.cli.conditions import conditions
from recollect.cli.ids import resolve
from recollect.cli.lazy import Leaf
from recollect.cli.output import ID, QUIET, STRONG, Column, Styled
from recollect.cli.records import empty_hint
from recollect.cli.target import Target, scoped
from recollect.cli.times import past
from recollect.record import utc_now

if TYPE_CHECKING:
    from recollect.policies.ranking import Part
    from recollect.recall.hits import Explanation, Hit, Hits

_BAR = 20
_NOTHING = "Nothing relevant. --min-relevance 0 shows what comes closest."
_SHOWN_CHARS = 600


@click.command(cls=Leaf)
@click.argument("query", nargs=-1, required=True)
@click.option("--explain", "-x", is_flag=True, help="Show the parts of each score.")
@click.option("--limit", "-n", type=int, help="At most this many.  [default: the preset's]")
@click.option("--min-relevance", type=float, metavar="0..1", help="Only what is at least this relevant; 0 for all.")
@click.option("--no-touch", is_flag=True, help="Do not count this as a retrieval.")
@click.option("--as-of", metavar="TIME", help="Answer as at that time.")
@click.option("--why-not", metavar="ID", help="Say what kept this memory out.")
@conditions
@scoped
def recall(
    target: Target,
    query: tuple[str, ...],
    explain: bool,
    limit: int | None,
    min_relevance: float | None,
    no_touch: bool,
    as_of: str | None,
    why_not: str | None,
    where: dict[str, Any],
) -> None:
    """Find the memories that best answer a question.

    By words, and by meaning where `recollect models pull` has installed a model. "Quoted phrases" must occur as they
    are; auth* and colo?r match words; last week or in May 2023 count.

    \b
    Example:
      recollect recall "which indentation does Alice want?" --explain
    """
    with target.open() as memory:
        named = None if why_not is None else resolve(memory, why_not)
        then = past(as_of, "as_of")
        asked = " ".join(query)
        hits = memory.recall(
            asked,
            limit=limit,
            touch=not no_touch,
            as_of=then,
            why_not=named,
            min_relevance=min_relevance,
            **where,
        )
        hint = "" if hits or hits.report else empty_hint(memory)
    if target.json:
        found = [document(hit) for hit in hits]
        output.emit(found if why_not is None else {"hits": found, "absence": hits.absence})
        return
    _print(hits, explain, hint)
    if hits.absence is not None:
        output.say((f"{text.short(hits.absence.id)}: ", ID), hits.absence.reason)


def _print(hits: Hits, explain: bool, hint: str) -> None:
    if hits.report:
        output.note(hits.report[0].upper() + hits.report[1:] + ".")
    if not hits:
        output.say(_NOTHING if hits.report else f"Nothing matched.{hint}")
    elif explain:
        print_explained(hits)
    else:
        _print_hits(hits)


def document(hit: Hit) -> dict[str, Any]:
    """A hit as JSON: the memory, its score, and the parts of the score."""
    explanation = hit.explain()
    parts = {"how": explanation.how, "parts": explanation.parts, "text": str(explanation)}
    return {"score": hit.score, "relevance": hit.relevance, "memory": hit.memory, "explanation": parts}


def _print_hits(hits: Hits) -> None:
    now = utc_now()
    columns = [
        Column("score", right=True),
        Column("id", ID),
        Column("made"),
        Column("memory", flexible=True, wrap=True),
    ]
    rows: list[list[Styled]] = [
        [shown_score(hit.score), text.short(hit.memory.id), text.ago(hit.memory.created_at, now), shown_content(hit)]
        for hit in hits
    ]
    output.table(columns, rows)


def shown_score(score: float) -> str:
    """Formulas differ in scale: fused ranks are a few hundredths, a diary counts days."""
    return f"{score:.3f}" if score >= 0.1 or not score else f"{score:.5f}"


def shown_content(hit: Hit) -> str:
    return text.one_line(hit.memory.text, _SHOWN_CHARS if output.terminal() else None)


def print_explained(hits: Hits) -> None:
    now = utc_now()
    for place, hit in enumerate(hits):
        if place:
            output.say("")
        record = hit.memory
        score = shown_score(hit.score)
        about = [text.short(record.id), record.kind, text.ago(record.created_at, now), text.tags(record)]
        output.hanging((score, STRONG), shown_content(hit))
        output.say((" · ".join(word for word in about if word), QUIET), indent=len(score) + 2)
        for line in _part_lines(hit.explain()):
            output.say(*line, indent=len(score) + 2)


def _part_lines(explanation: Explanation) -> list[list[Styled]]:
    """Each part with what it contributed."""
    parts = explanation.parts
    longest = max((len(part.name) for part in parts), default=0)
    product = explanation.how == "product"
    told = [shown_score(part.value) if product else _term(part) for part in parts]
    widest = max(map(len, told), default=0)
    lines: list[list[Styled]] = []
    for place, part in enumerate(parts):
        sign = " " if not place else "×" if product else "+"
        share = min(part.value, 1.0) if product else part.share / (explanation.score or 1.0)
        terms = f"{part.name.ljust(longest)}  {told[place].ljust(widest)}  "
        lines.append([(f"{sign} ", QUIET), terms, (_bar(share), ID)])
    return lines


def _term(part: Part) -> str:
    return shown_score(part.share) if part.weight == 1.0 else f"{part.value:.2f} × {part.weight:<4g} = {part.share:.3f}"


def _bar(share: float) -> str:
    return "━" * round(_BAR * max(share, 0.0))
