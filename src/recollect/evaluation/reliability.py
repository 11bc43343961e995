"""Whether relevance means what it says: of hits with a relevance of 0.3, three in ten should be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from recollect.evaluation.datasets import Corpus, Dataset, DatasetQuestion
from recollect.memory import Memory

_DEPTH = 10
_EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_SIZE, _MARGIN, _GAP = 300, 52, 60
_DARK, _LIGHT, _POINT = "#444444", "#dddddd", "#0072b2"


class Bin(msgspec.Struct, frozen=True):
    """What was said to be about equally likely."""

    number: int
    expected: float
    """The mean of what was said."""
    right: float
    """The share that was right."""


class Reliability(msgspec.Struct, frozen=True):
    hits: tuple[Bin, ...]
    """By `hit.relevance`, of the first ten of each question."""
    answered: tuple[Bin, ...]
    """By `Hits.answered`: whether an answer is among the first ten, also of questions that nothing answers."""
    error: float
    """How far `hit.relevance` is from the share that is right, on average over all hits."""
    answered_error: float


def reliability(
    dataset: Dataset,
    view: Callable[[Corpus], Memory],
    at: Callable[[DatasetQuestion], None],
    tell: Callable[[int], None],
) -> Reliability:
    hits: list[tuple[float, bool]] = []
    answers: list[tuple[float, bool]] = []
    for corpus in dataset.corpora:
        memory = view(corpus)
        for question in (*corpus.questions, *corpus.unanswered):
            at(question)
            recalled = memory.recall(question.text, limit=_DEPTH, touch=False, min_relevance=0.0)
            right = [str(hit.memory.metadata["turn"]) in question.turns for hit in recalled]
            hits += [(hit.relevance or 0.0, is_right) for hit, is_right in zip(recalled, right, strict=True)]
            answers.append((recalled.answered or 0.0, any(right)))
            tell(len(answers))
    return measured(hits, answers)


def measured(hits: Sequence[tuple[float, bool]], answers: Sequence[tuple[float, bool]]) -> Reliability:
    """From pairs of what was said and whether it was right."""
    of_hits, of_answers = tuple(_bins(hits)), tuple(_bins(answers))
    return Reliability(of_hits, of_answers, _error(of_hits), _error(of_answers))


def _bins(pairs: Sequence[tuple[float, bool]]) -> Iterator[Bin]:
    for low, high in pairwise(_EDGES):
        here = [pair for pair in pairs if low <= pair[0] < high or (pair[0] == high == 1.0)]
        if here:
            likely, right = (sum(values) / len(here) for values in zip(*here, strict=True))
            yield Bin(len(here), likely, right)


def _error(bins: Sequence[Bin]) -> float:
    total = sum(group.number for group in bins)
    return sum(group.number * abs(group.expected - group.right) for group in bins) / (total or 1)


def svg(measured: Reliability) -> str:
    """Two panels: on the diagonal, what is said is what is right. The larger a point, the more there are of it."""
    panels = {"a hit is right (hit.relevance)": measured.hits, "an answer is there (Hits.answered)": measured.answered}
    width, height = len(panels) * (_SIZE + _MARGIN) + _GAP, _SIZE + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        "<title>How often what is said to be likely is right</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for place, (title, bins) in enumerate(panels.items()):
        lines += _panel(_MARGIN + place * (_SIZE + _MARGIN), title, bins)
    return "\n".join([*lines, "</svg>", ""])


def _panel(left: int, title: str, bins: Sequence[Bin]) -> Iterator[str]:
    bottom = _MARGIN + _SIZE
    yield f'<text x="{left}" y="{_MARGIN - 20}" font-weight="bold">{title}</text>'
    for percent in range(0, 101, 20):
        along = _SIZE * percent / 100
        yield f'<line x1="{left}" y1="{bottom - along}" x2="{left + _SIZE}" y2="{bottom - along}" stroke="{_LIGHT}"/>'
        yield f'<text x="{left - 6}" y="{bottom - along + 4}" text-anchor="end" fill="{_DARK}">{percent}</text>'
        yield f'<text x="{left + along}" y="{bottom + 16}" text-anchor="middle" fill="{_DARK}">{percent}</text>'
    yield f'<text x="{left + _SIZE / 2}" y="{bottom + 34}" text-anchor="middle" fill="{_DARK}">% said</text>'
    right = left + _SIZE
    yield f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{_MARGIN}" stroke="{_DARK}" stroke-dasharray="4 3"/>'
    most = max((group.number for group in bins), default=1)
    for group in bins:
        x, y = round(left + _SIZE * group.expected, 1), round(bottom - _SIZE * group.right, 1)
        label = f"{group.number:,}: {100 * group.expected:.1f} % said, {100 * group.right:.1f} % right"
        radius = round(3 + 7 * (group.number / most) ** 0.5, 1)
        circle = f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{_POINT}" fill-opacity="0.7">'
        yield f"{circle}<title>{label}</title></circle>"
