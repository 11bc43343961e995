"""Recall, and the parts of each score."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.lazy import Leaf
from recollect.cli.output import ID, QUIET, STRONG, Column, Styled
from recollect.cli.records import empty_hint
from recollect.cli.target import Target, scoped
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.policies.ranking import Part
    from recollect.recall.hits import Explanation, Hit, Hits

_BAR = 20
_CLOSEST = "--min-relevance 0 shows what comes closest."
_SHOWN_CHARS = 600


@click.command(cls=Leaf)
@takes("recall", hide=("agent", "tag"), spelled={"conversation": "--from-conversation"})
@click.option("--explain", "-x", is_flag=True, help="Show the parts of each score.")
@scoped
def recall(target: Target, call: Call, explain: bool) -> None:
    """Find the memories that best answer a question.

    By words, and by meaning where `recollect models pull` has installed a model. What has the "quoted phrases" comes
    first; auth* and colo?r match words; last week or in May 2023 count. Where nothing answers, nothing is shown, and
    beside what answers only what is nearly as relevant.

    \b
    Example:
      recollect recall "which indentation does Alice want?" --explain
    """
    # For one question numpy takes longer to start its threads than they save. It reads this when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with target.open() as memory:
        hits: Hits = call.run(memory)
        hint = "" if hits else empty_hint(target, memory)
    if target.json:
        documents = [document(hit) for hit in hits]
        about = {"absence": hits.absence, "answered": hits.answered, "report": hits.report}
        output.emit(documents if hits.absence is None else {"hits": documents, **about})
        if hits.report:
            output.note(f"{_sentence(hits.report)}.")
        return
    _print(hits, explain, hint)
    if hits.absence is not None:
        output.say((f"{text.short(hits.absence.id)}: ", ID), hits.absence.reason)


def _print(hits: Hits, explain: bool, hint: str) -> None:
    sentence = _sentence(hits.report)
    irrelevant = not hits and "nothing relevant" in hits.report
    if sentence and not irrelevant:
        output.note(f"{sentence}.")
    if irrelevant:
        output.say(f"{sentence}.", (f" {_CLOSEST}", QUIET))
    elif not hits:
        output.say(f"Nothing matched.{hint}")
    elif explain:
        print_explained(hits)
    else:
        print_hits(hits)


def _sentence(report: str) -> str:
    return report[:1].upper() + report[1:]


def document(hit: Hit) -> dict[str, Any]:
    """A hit as JSON: the memory, its score, and the parts of the score."""
    explanation = hit.explain()
    parts = {"how": explanation.how, "parts": explanation.parts, "text": str(explanation)}
    return {"score": hit.score, "relevance": hit.relevance, "memory": hit.memory, "explanation": parts}


def print_hits(hits: Hits) -> None:
    now = utc_now()
    columns = [
        Column("score", right=True),
        Column("id", ID),
        Column("made"),
        Column("memory", flexible=True, wrap=True),
    ]
    scores = shown_scores([hit.score for hit in hits])
    rows: list[list[Styled]] = [
        [score, text.short(hit.memory.id), text.ago(hit.memory.created_at, now), shown_content(hit)]
        for score, hit in zip(scores, hits, strict=True)
    ]
    output.table(columns, rows)


def shown_scores(scores: Sequence[float]) -> list[str]:
    """All with as many decimals and as wide, so that they stand in a column.

    Formulas differ in scale: fused ranks are a few hundredths, a diary counts days.
    """
    largest = max(map(abs, scores), default=0.0)
    shown = [f"{score:.{3 if largest >= 0.1 or not largest else 5}f}" for score in scores]
    width = max(map(len, shown), default=0)
    return [score.rjust(width) for score in shown]


def shown_content(hit: Hit) -> str:
    return text.one_line(hit.memory.text, _SHOWN_CHARS if output.terminal() else None)


def print_explained(hits: Hits) -> None:
    now = utc_now()
    scores = shown_scores([hit.score for hit in hits])
    explained = [hit.explain() for hit in hits]
    longest = max((len(part.name) for explanation in explained for part in explanation.parts), default=0)
    widest = max((len(value) for explanation in explained for value in _values(explanation)), default=0)
    for place, (score, hit) in enumerate(zip(scores, hits, strict=True)):
        if place:
            output.say("")
        record = hit.memory
        relevance = "" if hit.relevance is None else f"relevance {hit.relevance:.3f}"
        about = [text.short(record.id), record.kind, text.ago(record.created_at, now), text.tags(record), relevance]
        output.hanging((score, STRONG), shown_content(hit))
        output.say((" · ".join(word for word in about if word), QUIET), indent=len(score) + 2)
        for line in _part_lines(explained[place], longest, widest):
            output.say(*line, indent=len(score) + 2)


def _values(explanation: Explanation) -> list[str]:
    parts = explanation.parts
    return shown_scores([part.value for part in parts]) if explanation.how == "product" else _terms(parts)


def _part_lines(explanation: Explanation, longest: int, widest: int) -> list[list[Styled]]:
    """Each part with what it contributed."""
    values, product = _values(explanation), explanation.how == "product"
    lines: list[list[Styled]] = []
    for place, part in enumerate(explanation.parts):
        sign = " " if not place else "×" if product else "+"
        share = min(part.value, 1.0) if product else part.share / (explanation.score or 1.0)
        terms = f"{part.name.ljust(longest)}  {values[place].rjust(widest)}  "
        lines.append([(f"{sign} ", QUIET), terms, (_bar(share), ID)])
    return lines


def _terms(parts: Sequence[Part]) -> list[str]:
    """What each part adds, below each other, behind what that is made of."""
    made = ["" if part.weight == 1.0 else f"{part.value:.2f} × {part.weight:<4g} = " for part in parts]
    width = max(map(len, made), default=0)
    shares = shown_scores([part.share for part in parts])
    return [f"{how.rjust(width)}{share}" for how, share in zip(made, shares, strict=True)]


def _bar(share: float) -> str:
    return "━" * round(_BAR * max(share, 0.0))
