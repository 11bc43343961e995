"""Questions that nothing answers: how often nothing comes back, and what that costs where there is an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from recollect.evaluation.datasets import Corpus, Dataset, DatasetQuestion
from recollect.evaluation.measures import recall_at
from recollect.memory import Memory
from recollect.policies.importance import small_talk

GREETINGS = (
    "Good morning", "hi", "Hello there!", "How are you?", "thanks a lot", "ok", "see you tomorrow", "good night",
    "hey, what's up?", "Thank you so much!", "Hi, how are you doing today?", "cool, thanks!", "Good evening everyone",
    "yo", "Nice!", "got it", "sounds good", "bye", "you're welcome", "no problem",
)  # fmt: skip
NONSENSE = (
    "zzzqqq", "asdf jkl qwerty", "blorp fnord wibble", "xkcd 1234 qqq", "flurb the snizzle", "qwop qwop", "tttt",
    "gnarfle the garthok", "aaaaaa bbbbb", "wxyzzy plugh", "mimsy borogoves outgrabe", "hgjfkd slowitz", "qqq www eee",
    "florbiculate", "zxcvbnm", "oiuy trewq lkjh", "brillig slithy toves", "nnnnn", "grok the frabjous", "vbn mju tgb",
)  # fmt: skip
_OTHERS = 40
"""Questions about people of another conversation, for each."""
_DEPTH = 10
LEVELS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


class Point(msgspec.Struct, frozen=True):
    """What a least likelihood of an answer brings."""

    min_relevance: float
    empty: dict[str, float]
    """The share of questions of each kind for which nothing comes back."""
    recall_at_10: float = msgspec.field(name="recall@10")
    """Over the questions that have an answer."""


class Abstained(msgspec.Struct, frozen=True):
    asked: dict[str, int]
    curve: tuple[Point, ...]


class _Asked(msgspec.Struct, frozen=True):
    kind: str
    best: float
    """How likely an answer is among the first ten; 0 where nothing came back, or nothing was asked."""
    recall: float = 0.0
    """R@10."""


def abstaining(
    dataset: Dataset,
    view: Callable[[Corpus], Memory],
    at: Callable[[DatasetQuestion], None],
    tell: Callable[[int], None],
) -> Abstained:
    """Each question once, whatever its relevance; the curve is told from that."""
    asked: list[_Asked] = []
    for number, corpus in enumerate(dataset.corpora):
        memory = view(corpus)
        for kind, question in _questions(dataset, number):
            at(question)
            hits = memory.recall(question.text, limit=_DEPTH, touch=False, min_relevance=0.0)
            likely = 1.0 if hits.answered is None and hits else hits.answered or 0.0
            best = 0.0 if small_talk(question.text) else likely
            turns = [str(hit.memory.metadata["turn"]) for hit in hits]
            asked.append(_Asked(kind, best, recall_at(_DEPTH, turns, question.turns) if question.turns else 0.0))
            tell(len(asked))
    kinds = {
        kind: [answer for answer in asked if answer.kind == kind]
        for kind in dict.fromkeys(answer.kind for answer in asked)
    }
    return Abstained({kind: len(those) for kind, those in kinds.items()}, tuple(_point(kinds, at) for at in LEVELS))


def _point(kinds: dict[str, list[_Asked]], threshold: float) -> Point:
    def empty(question: _Asked) -> bool:
        return question.best < threshold or not question.best

    answered = kinds["answered"]
    recall = sum(answer.recall for answer in answered if not empty(answer)) / len(answered)
    return Point(threshold, {kind: sum(map(empty, those)) / len(those) for kind, those in kinds.items()}, recall)


def _questions(dataset: Dataset, number: int) -> Iterator[tuple[str, DatasetQuestion]]:
    corpus = dataset.corpora[number]
    yield from (("answered", question) for question in corpus.questions)
    yield from (("unanswered", question) for question in corpus.unanswered)
    others = dataset.corpora[(number + 1) % len(dataset.corpora)]
    if others is not corpus:
        step = max(len(others.questions) // _OTHERS, 1)
        yield from (("about others", question) for question in others.questions[::step][:_OTHERS])
    last = max(turn.at for turn in corpus.turns)
    for kind, texts in (("greeting", GREETINGS), ("nonsense", NONSENSE)):
        yield from ((kind, DatasetQuestion(text, kind, last, frozenset())) for text in texts)
