"""What was measured: as values that become JSON, as rows of tables, and as a plot."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from xml.sax.saxutils import escape

import msgspec

from recollect.evaluation.abstaining import Abstained
from recollect.evaluation.completing import BudgetPoint
from recollect.evaluation.datasets import Dataset
from recollect.evaluation.measures import CUTS, Measures, percentile, scores
from recollect.evaluation.reliability import Reliability
from recollect.evaluation.run import Recalled, Setup, Stored, VectorsMade
from recollect.presets import load

Values = Callable[[Measures], float]

_RANKED = (5, 10, 20)
RECALL: dict[str, Values] = {
    **{f"R@{k}": lambda measures, k=k: measures.recall[k] for k in CUTS},
    "NDCG@10": lambda measures: measures.ndcg_at_10,
    "MRR@10": lambda measures: measures.mrr_at_10,
}
COVERAGE: dict[str, Values] = {
    **{f"any@{k}": lambda measures, k=k: measures.any[k] for k in _RANKED},
    **{f"all@{k}": lambda measures, k=k: measures.all[k] for k in _RANKED},
}
"""The columns of the two tables that people see. JSON has every k."""


class File(msgspec.Struct, frozen=True):
    name: str
    sha256: str


class Ingest(msgspec.Struct, frozen=True):
    memories: int
    refused: int
    seconds: float
    per_second: float
    vectors: int
    vectors_seconds: float
    """How much longer it took until all vectors were there."""


class Latency(msgspec.Struct, frozen=True):
    """Of a recall, in milliseconds."""

    p50: float
    p95: float


class Level(msgspec.Struct, frozen=True):
    """The scores of turns, or of sessions."""

    overall: Measures
    categories: dict[str, Measures]


class EvaluationReport(msgspec.Struct, frozen=True, omit_defaults=True):
    dataset: str
    file: File
    date: datetime
    recollect: str
    preset: str
    store: str
    embedder: str
    model: str
    questions: int
    left_out: int
    ingest: Ingest
    recall_ms: Latency
    turns: Level
    sessions: Level | None = None
    abstained: Abstained | None = None
    """Where it was asked for."""
    budgets: tuple[BudgetPoint, ...] = ()
    reliability: Reliability | None = None


class EvaluationRun(msgspec.Struct, frozen=True):
    """All that a run leaves behind."""

    dataset: Dataset
    setup: Setup
    stored: Stored
    vectors: VectorsMade
    answers: Sequence[Recalled]


def report(run: EvaluationRun, file: str | os.PathLike[str], version: str, at: datetime) -> EvaluationReport:
    dataset, setup, stored, vectors, answers = run.dataset, run.setup, run.stored, run.vectors, run.answers
    with_sessions = any(answer.question.sessions for answer in answers)
    times = [1000 * answer.seconds for answer in answers]
    return EvaluationReport(
        dataset=dataset.title,
        file=File(Path(file).name, hashlib.sha256(Path(file).read_bytes()).hexdigest()),
        date=at,
        recollect=version,
        preset=setup.preset,
        store=setup.store or f"{load(setup.preset).store}, in a temporary folder",
        embedder=setup.embedder or "not given",
        model=vectors.model or "none",
        questions=len(answers),
        left_out=dataset.left_out,
        ingest=Ingest(
            stored.memories,
            stored.refused,
            round(stored.seconds, 3),
            round(stored.per_second, 1),
            vectors.number,
            round(vectors.seconds, 3),
        ),
        recall_ms=Latency(round(percentile(0.5, times), 3), round(percentile(0.95, times), 3)),
        turns=_level(answers, lambda answer: (answer.turns, answer.question.turns)),
        sessions=_level(answers, lambda answer: (answer.sessions, answer.question.sessions)) if with_sessions else None,
    )


def _level(answers: Sequence[Recalled], ranking: Callable[[Recalled], tuple[Sequence[str], frozenset[str]]]) -> Level:
    names = sorted({answer.question.category for answer in answers})
    per = {name: scores(ranking(each) for each in answers if each.question.category == name) for name in names}
    return Level(scores(map(ranking, answers)), per)


def rows(level: Level, columns: dict[str, Values]) -> Iterator[list[str]]:
    """A line for each category and one for all, in percent."""
    for name, measures in (*level.categories.items(), ("all", level.overall)):
        yield [name, f"{measures.questions:,}", *(_percent(value(measures)) for value in columns.values())]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if share < 1 else "100"


# The plot

_WIDTH, _HEIGHT, _LEFT, _TOP, _KEY, _FOOT = 420, 280, 52, 56, 250, 76
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6d31", "#999999")
"""Told apart by the colour-blind, too."""


def svg(report: EvaluationReport) -> str:
    """R@k of each category and of all, in a panel for turns and one for sessions if they were scored."""
    panels = {"turns": report.turns, "sessions": report.sessions}
    shown = {name: level for name, level in panels.items() if level is not None}
    width, height = len(shown) * (_LEFT + _WIDTH) + _KEY, _TOP + _HEIGHT + _FOOT
    feet = (
        f"{report.questions:,} questions · {report.date:%Y-%m-%d} · recollect {report.recollect} · "
        f"preset {report.preset}",
        f"store {report.store} · vectors: {report.model}",
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escape(report.dataset)}: recall at k</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for place, (name, level) in enumerate(shown.items()):
        left = _LEFT + place * (_LEFT + _WIDTH)
        lines += _axes(left, f"{report.dataset}, {name}: R@k in percent")
        for number, (category, values) in enumerate(_curves(level)):
            lines += _curve(left, category, values, number)
    lines += _key(width - _KEY + 24, [name for name, _ in _curves(report.turns)])
    for y, foot in zip((height - 30, height - 14), feet, strict=True):
        lines.append(f'<text x="{_LEFT}" y="{y}" font-size="11" fill="#666666">{escape(foot)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _curves(level: Level) -> list[tuple[str, Measures]]:
    return [("all", level.overall), *level.categories.items()]


def _x(left: int, place: int) -> float:
    return round(left + 20 + place * (_WIDTH - 40) / (len(CUTS) - 1), 1)


def _y(share: float) -> float:
    return round(_TOP + _HEIGHT * (1 - share), 1)


def _axes(left: int, title: str) -> Iterator[str]:
    yield f'<text x="{left}" y="{_TOP - 22}" font-size="15" font-weight="bold">{escape(title)}</text>'
    for percent in range(0, 101, 20):
        y = _y(percent / 100)
        yield f'<line x1="{left}" y1="{y}" x2="{left + _WIDTH}" y2="{y}" stroke="#dddddd"/>'
        yield f'<text x="{left - 8}" y="{y + 4}" text-anchor="end" fill="#444444">{percent}</text>'
    for place, k in enumerate(CUTS):
        yield f'<text x="{_x(left, place)}" y="{_y(0) + 20}" text-anchor="middle" fill="#444444">k = {k}</text>'


def _curve(left: int, name: str, results: Measures, number: int) -> Iterator[str]:
    points = [(_x(left, place), _y(results.recall[k])) for place, k in enumerate(CUTS)]
    path = " ".join(f"{x},{y}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" {_stroke(number)}><title>{escape(name)}</title></polyline>'
    for (x, y), k in zip(points, CUTS, strict=True):
        label = f"{escape(name)}: R@{k} {100 * results.recall[k]:.1f}"
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{_colour(number)}"><title>{label}</title></circle>'


def _key(left: int, names: Sequence[str]) -> Iterator[str]:
    for number, name in enumerate(names):
        y = _TOP + 10 + 22 * number
        yield f'<line x1="{left}" y1="{y}" x2="{left + 22}" y2="{y}" {_stroke(number)}/>'
        yield f'<text x="{left + 30}" y="{y + 4}">{escape(name)}</text>'


def _stroke(number: int) -> str:
    dashes = ' stroke-dasharray="5 3"' if number > len(_COLOURS) else ""
    return f'stroke="{_colour(number)}" stroke-width="{2 if number else 3.5}"{dashes}'


def _colour(number: int) -> str:
    """The first line is that of all questions."""
    return _COLOURS[(number - 1) % len(_COLOURS)] if number else "#000000"
