"""Measuring recall on LoCoMo and LongMemEval. Cases of one's own are in `regressions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from recollect.cli import output, text
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import QUIET, STRONG, Column
from recollect.cli.paths import PATH
from recollect.cli.progress import progress
from recollect.cli.target import Target, scoped
from recollect.values.errors import InputError
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.evaluation.abstaining import Abstained
    from recollect.evaluation.completing import BudgetPoint
    from recollect.evaluation.datasets import Dataset, Name
    from recollect.evaluation.reliability import Reliability
    from recollect.evaluation.report import EvaluationReport, Level
    from recollect.evaluation.run import Setup


@click.group(
    "eval",
    cls=LazyGroup,
    sections={
        "Data sets": {"locomo": "evaluate:locomo", "longmemeval": "evaluate:longmemeval"},
        "Your own": {"cases": "regressions:cases"},
    },
)
def evaluate() -> None:
    """Measure recall on LoCoMo, LongMemEval or your own cases.

    \b
    Example:
      recollect eval cases cases.jsonl
      recollect eval locomo locomo10.json
      recollect eval longmemeval longmemeval_s_cleaned.json --plot recall.svg
    """


def _measured(command: Callable[..., None]) -> Callable[..., None]:
    """The options that both have."""
    decorated: Callable[..., Any] = scoped(command)
    for option in (
        click.option(
            "--abstain", is_flag=True, help="Also ask what nothing answers, and say how often nothing came back."
        ),
        click.option(
            "--budget",
            is_flag=True,
            help="Also say how often a context of 500 to 4,000 tokens has all that answers.",
        ),
        click.option(
            "--reliability",
            metavar="FILE.svg",
            type=PATH,
            help="Also say, and draw, how often hits of each relevance are right.",
        ),
        click.option("--plot", metavar="FILE.svg", type=PATH, help="Also draw R@1 to R@20 by category."),
        click.option(
            "--limit-questions",
            metavar="N",
            type=click.IntRange(min=1),
            help="Ask only so many, evenly from the whole file.",
        ),
        click.argument("path", type=PATH),
    ):
        decorated = option(decorated)
    return decorated


@click.command(cls=Leaf)
@_measured
def locomo(target: Target, path: str, limit_questions: int | None, **more: Any) -> None:
    """Measure on LoCoMo: find the turns that answer a question.

    PATH is the file as published. Each conversation has a workspace of its own, in a temporary folder unless --store
    is given; RECOLLECT_STORE is not used, so your memory is not touched.

    \b
    Example:
      recollect eval locomo locomo10.json
      recollect eval locomo locomo10.json --preset atlas --json
    """
    _evaluate("locomo", target, path, limit_questions, **more)


@click.command(cls=Leaf)
@_measured
def longmemeval(target: Target, path: str, limit_questions: int | None, **more: Any) -> None:
    """Measure on LongMemEval: find the turns and sessions that answer a question.

    PATH is the file as published. The sessions of all questions are in one workspace, in a temporary folder unless
    --store is given; RECOLLECT_STORE is not used, so your memory is not touched.

    \b
    Example:
      recollect eval longmemeval longmemeval_oracle.json
      recollect eval longmemeval longmemeval_oracle.json --limit-questions 60 --plot recall.svg
    """
    _evaluate("longmemeval", target, path, limit_questions, **more)


def _evaluate(name: Name, target: Target, path: str, limit: int | None, **more: Any) -> None:
    from recollect.evaluation import datasets, reliability, report
    from recollect.evaluation.run import Setup

    drawn: dict[str, str] = {option: more[option] for option in ("plot", "reliability") if more[option] is not None}
    for option, file in drawn.items():
        if not Path(file).absolute().parent.is_dir():
            # Not after all the work.
            raise InputError(option, f"there is no folder {Path(file).parent} to write {Path(file).name} in")
    dataset = datasets.load(name, path)
    setup = Setup(target.preset or "recollect", _store(target), target.embedder)
    measured = _run(dataset if limit is None else dataset.limited(limit), setup, path, more)
    if "plot" in drawn:
        Path(drawn["plot"]).write_text(report.svg(measured), encoding="utf-8")
    if "reliability" in drawn and measured.reliability is not None:
        Path(drawn["reliability"]).write_text(reliability.svg(measured.reliability), encoding="utf-8")
    if target.json:
        output.emit(measured)
        return
    _print(measured)
    for number, file in enumerate(drawn.values()):
        output.say("\nDrew " if not number else "Drew ", (file, STRONG))


def _store(target: Target) -> str | None:
    """Only what was typed: a memory that the environment names is there to be used, not to be measured with."""
    typed = click.get_current_context().get_parameter_source("store") is ParameterSource.COMMANDLINE
    return target.store if typed else None


_MORE = {
    "abstain": ("abstained", "Asking what nothing answers", "abstain"),
    "budget": ("budgets", "Filling budgets", "complete"),
    "reliability": ("reliability", "Comparing what was said with what is right", "relate"),
}
"""What is measured where it is asked for: the field of the report, what it is called meanwhile, and what does it."""


def _run(dataset: Dataset, setup: Setup, path: str, asked: Mapping[str, Any]) -> EvaluationReport:
    from recollect import __version__
    from recollect.evaluation.report import EvaluationRun, report
    from recollect.evaluation.run import opened

    with opened(setup) as bench:
        turns = sum(len(corpus.turns) for corpus in dataset.corpora)
        with progress("Storing turns", turns) as tell:
            stored = bench.store(dataset, tell)
        with progress("Making vectors", stored.memories) as tell:
            vectors = bench.embed(dataset, tell)
        with progress("Asking questions", dataset.questions) as tell:
            answers = bench.ask(dataset, tell)
        more: dict[str, Any] = {}
        for option, (field, doing, measure) in _MORE.items():
            if asked[option]:
                with progress(doing, None) as tell:
                    more[field] = getattr(bench, measure)(dataset, tell)
    measured = report(EvaluationRun(dataset, setup, stored, vectors, answers), path, __version__, utc_now())
    return msgspec.structs.replace(measured, **more)


def _print(report: EvaluationReport) -> None:
    from recollect.evaluation.report import COVERAGE, RECALL

    left_out = f" ({report.left_out:,} that nothing answers were left out)" if report.left_out else ""
    refused = f", {text.count(report.ingest.refused, 'turn', 'turns')} refused" if report.ingest.refused else ""
    ingest, times = report.ingest, report.recall_ms
    vectors = f"; {ingest.vectors:,} vectors {ingest.vectors_seconds:,.2f} s later" if ingest.vectors else ""
    output.facts(
        [
            ("data set", (f"{report.dataset}, {report.file.name}, sha256 {report.file.sha256[:12]}")),
            ("questions", f"{report.questions:,}{left_out}"),
            ("memories", f"{ingest.memories:,}{refused}"),
            ("preset", report.preset),
            ("store", report.store),
            ("embedder", f"{report.embedder}; vectors: {report.model}"),
            ("date", f"{report.date:%Y-%m-%d %H:%M} UTC, recollect {report.recollect}"),
            ("ingest", f"{ingest.seconds:,.2f} s, {ingest.per_second:,.0f} memories a second{vectors}"),
            ("recall", f"p50 {times.p50:,.1f} ms, p95 {times.p95:,.1f} ms"),
        ]
    )
    levels: dict[str, Level | None] = {"Turns": report.turns, "Sessions": report.sessions}
    for title, level in levels.items():
        if level is None:
            continue
        for columns in (RECALL, COVERAGE):
            output.say("")
            output.say((title, STRONG), (", in percent", QUIET))
            _table(level, columns)
    if report.abstained is not None:
        _print_abstained(report.abstained)
    if report.budgets:
        _print_budgets(report.budgets)
    if report.reliability is not None:
        _print_reliability(report.reliability)


def _print_abstained(abstained: Abstained) -> None:
    output.say("")
    output.say(("Nothing came back", STRONG), (", in percent of the questions of each kind", QUIET))
    kinds = list(abstained.asked)
    heads = [
        Column("min relevance", right=True),
        *(Column(kind, right=True) for kind in kinds),
        Column("R@10", right=True),
    ]
    counts = ["asked", *(f"{abstained.asked[kind]:,}" for kind in kinds), ""]
    shares = [
        [
            f"{point.min_relevance:g}",
            *(f"{100 * point.empty[kind]:.1f}" for kind in kinds),
            f"{100 * point.recall_at_10:.2f}",
        ]
        for point in abstained.curve
    ]
    output.table(heads, [counts, *shares])


def _print_budgets(points: Sequence[BudgetPoint]) -> None:
    output.say("")
    output.say(("All that answers is there", STRONG), (", in percent of the questions", QUIET))
    heads = [Column(name, right=True) for name in ("budget", "in the context", "bare texts by score", "tokens taken")]
    output.table(
        heads,
        [
            [f"{point.budget:,}", f"{100 * point.context:.1f}", f"{100 * point.by_score:.1f}", f"{point.tokens:,.0f}"]
            for point in points
        ],
    )


def _print_reliability(measured: Reliability) -> None:
    for title, bins, error in (
        ("A hit is right", measured.hits, measured.error),
        ("An answer is among the first ten", measured.answered, measured.answered_error),
    ):
        output.say("")
        output.say((title, STRONG), (f", in percent; on average {100 * error:.1f} beside what was said", QUIET))
        heads = [Column(name, right=True) for name in ("asked", "said", "right")]
        output.table(
            heads, [[f"{some.number:,}", f"{100 * some.expected:.1f}", f"{100 * some.right:.1f}"] for some in bins]
        )


def _table(level: Level, columns: dict[str, Any]) -> None:
    from recollect.evaluation.report import rows

    heads = [Column("category"), Column("asked", right=True), *(Column(name, right=True) for name in columns)]
    *categories, overall = rows(level, columns)
    output.table(heads, [*categories, [(cell, STRONG) for cell in overall]])
