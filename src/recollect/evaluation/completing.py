"""Whether all that answers a question is in what a model gets, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from recollect.evaluation.datasets import Corpus, Dataset, DatasetQuestion
from recollect.memory import Memory
from recollect.text.fence import inside
from recollect.text.tokens import estimate

BUDGETS = (500, 1000, 2000, 4000)
_DEPTH = 300
"""So many of the best fill the largest budget."""


class BudgetPoint(msgspec.Struct, frozen=True):
    """Shares of the questions of which all answering turns are there."""

    budget: int
    context: float
    """In what `Memory.context` sends for the question alone, with ids and days; not what is cut short."""
    by_score: float
    """In the bare texts in the order of their scores, those that fit: the floor."""
    tokens: float
    """That the context took, on average."""


class _Answer(msgspec.Struct, frozen=True):
    complete: bool
    by_score: bool
    tokens: int


def completing(
    dataset: Dataset,
    view: Callable[[Corpus], Memory],
    at: Callable[[DatasetQuestion], None],
    tell: Callable[[int], None],
) -> tuple[BudgetPoint, ...]:
    answers: dict[int, list[_Answer]] = {budget: [] for budget in BUDGETS}
    asked = 0
    for corpus in dataset.corpora:
        memory = view(corpus)
        stored = memory.list(state=None, limit=len(corpus.turns))
        turns = {record.id: (str(record.metadata["turn"]), inside(record.text)) for record in stored}
        for question in corpus.questions:
            at(question)
            ranked = memory.recall(question.text, limit=_DEPTH, touch=False, min_relevance=0.0)
            texts = [(str(hit.memory.metadata["turn"]), hit.memory.text) for hit in ranked]
            for budget in BUDGETS:
                context = memory.context([{"role": "user", "content": question.text}], budget=budget)
                shown = {turn for turn, text in map(turns.__getitem__, context.memories) if text in context.text}
                fitting = _fitting(texts, budget - estimate(question.text))
                answers[budget].append(
                    _Answer(question.turns <= shown, question.turns <= fitting, context.report.tokens)
                )
            asked += 1
            tell(asked)
    return tuple(_point(budget, some) for budget, some in answers.items())


def _fitting(texts: Sequence[tuple[str, str]], room: int) -> set[str]:
    """The turns whose texts fit, best first."""
    turns = set[str]()
    for turn, text in texts:
        size = estimate(text) + 1
        if size <= room:
            turns.add(turn)
            room -= size
    return turns


def _point(budget: int, answers: Sequence[_Answer]) -> BudgetPoint:
    number = len(answers) or 1
    return BudgetPoint(
        budget,
        sum(answer.complete for answer in answers) / number,
        sum(answer.by_score for answer in answers) / number,
        sum(answer.tokens for answer in answers) / number,
    )
