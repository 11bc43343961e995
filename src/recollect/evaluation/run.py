"""Storing a data set and asking its questions, through the same `Memory` that everyone has."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from recollect.evaluation.abstaining import Abstained, abstaining
from recollect.evaluation.completing import BudgetPoint, completing
from recollect.evaluation.datasets import Corpus, Dataset, DatasetQuestion, DatasetTurn
from recollect.evaluation.measures import CUTS
from recollect.evaluation.reliability import Reliability, reliability
from recollect.memory import Memory
from recollect.presets import load
from recollect.values.errors import InputError, ModelError
from recollect.values.record import Record, utc_now

Tell = Callable[[int], None]
"""Called with how many are done."""
T = TypeVar("T")
Measure = Callable[[Dataset, Callable[[Corpus], Memory], Callable[[DatasetQuestion], None], Tell], T]

LIMIT = max(CUTS)
_SESSIONS_LIMIT = 5 * LIMIT
"""Several turns may be of one session: to rank so many sessions takes more turns."""

_BATCH = 128
_PATIENCE = 600.0
"""Seconds for a question's vector: what is measured is what is found, also on a busy machine."""


class Setup(msgspec.Struct, frozen=True):
    """What is measured."""

    preset: str = "recollect"
    store: str | None = None
    """A location as `Memory` takes it, without memories in it; a temporary folder if none."""
    embedder: str | None = None
    """Passed on to `Memory`; without one, `Memory` has its own default."""


class Stored(msgspec.Struct, frozen=True):
    memories: int
    refused: int
    """Turns that may not be stored: blank, too long for the preset, or looking like a credential."""
    seconds: float

    @property
    def per_second(self) -> float:
        return self.memories / self.seconds if self.seconds else 0.0


class VectorsMade(msgspec.Struct, frozen=True):
    """What there is to recall by meaning; nothing where there is no embedder."""

    number: int
    model: str | None
    seconds: float
    """That recall had to wait for them after all was stored."""


class Recalled(msgspec.Struct, frozen=True):
    """What a question brought up, best first."""

    question: DatasetQuestion
    turns: tuple[str, ...]
    sessions: tuple[str, ...]
    seconds: float


class Bench:
    """A memory to measure. Its clock stands still at the time at which a question was asked."""

    def __init__(self, memory: Memory, at: Callable[[datetime], None], *, embeds: bool) -> None:
        self.memory = memory
        self._at = at
        self._embeds = embeds

    def store(self, dataset: Dataset, tell: Tell) -> Stored:
        """Every turn as a memory, each corpus in a workspace of its own."""
        seconds, seen, stored = 0.0, 0, 0
        for corpus in dataset.corpora:
            view = self._view(corpus)
            self._at(max(turn.at for turn in corpus.turns))
            for start in range(0, len(corpus.turns), _BATCH):
                batch = corpus.turns[start : start + _BATCH]
                begun = time.perf_counter()
                records = _remember(view, [_fields(turn) for turn in batch])
                seconds += time.perf_counter() - begun
                seen, stored = seen + len(batch), stored + len(records)
                tell(seen)
        return Stored(stored, seen - stored, seconds)

    def embed(self, dataset: Dataset, tell: Tell) -> VectorsMade:
        """Wait until all vectors are there, which are made in the background, if any are made at all."""
        begun, number, model = time.perf_counter(), 0, None
        for corpus in dataset.corpora:
            view = self._view(corpus, empty=False)
            try:
                made = view.embed(progress=lambda here, before=number: tell(before + here))
            except (InputError, ModelError):
                if self._embeds:
                    raise
                break  # by words alone, as was asked
            number += made
            if made and model is None:
                model = next((record.embedding_model for record in view.list(state=None, limit=1)), None)
        return VectorsMade(number, model, time.perf_counter() - begun if number else 0.0)

    def ask(self, dataset: Dataset, tell: Tell) -> list[Recalled]:
        """No question changes what the next one finds: nothing counts as retrieved."""
        answers: list[Recalled] = []
        for corpus in dataset.corpora:
            view = self._view(corpus, empty=False)
            for question in corpus.questions:
                self._at(question.asked_at)
                answers.append(_answer(view, question))
                tell(len(answers))
        return answers

    def abstain(self, dataset: Dataset, tell: Tell) -> Abstained:
        """The same, and questions that nothing answers."""
        return self._measured(abstaining, dataset, tell)

    def complete(self, dataset: Dataset, tell: Tell) -> tuple[BudgetPoint, ...]:
        """How often all that answers is in a context."""
        return self._measured(completing, dataset, tell)

    def relate(self, dataset: Dataset, tell: Tell) -> Reliability:
        """How often what is said to be likely is right."""
        return self._measured(reliability, dataset, tell)

    def _measured(self, measure: Measure[T], dataset: Dataset, tell: Tell) -> T:
        return measure(
            dataset, lambda corpus: self._view(corpus, empty=False), lambda question: self._at(question.asked_at), tell
        )

    def _view(self, corpus: Corpus, *, empty: bool = True) -> Memory:
        view = self.memory.at(workspace=corpus.name)
        if empty and view.stats().total:
            raise InputError("store", f"there are memories in the workspace {corpus.name} already; give another folder")
        return view


@contextmanager
def opened(setup: Setup) -> Generator[Bench]:
    """The memory that the setup describes, closed at the end, and gone if its folder is a temporary one."""
    now = [utc_now()]
    options: dict[str, Any] = {} if setup.embedder is None else {"embedder": setup.embedder}
    with tempfile.TemporaryDirectory(prefix="recollect-eval-") as folder:
        store = setup.store or os.path.join(folder, "memory")
        rules = load(setup.preset)
        rules = replace(rules, recall=replace(rules.recall, patience=_PATIENCE))
        with Memory(store, preset=rules, clock=lambda: now[0], **options) as memory:
            yield Bench(memory, lambda when: now.__setitem__(0, when), embeds=setup.embedder not in (None, "none"))


def _fields(turn: DatasetTurn) -> dict[str, Any]:
    return {
        "content": turn.text,
        "created_at": turn.at,
        "conversation": turn.session,
        "role": turn.role,
        "metadata": {"turn": turn.id},
    }


def _remember(view: Memory, items: Sequence[dict[str, Any]]) -> list[Record]:
    """Those that may be stored; of many at once, one that may not keeps out all."""
    try:
        return view.remember_many(items)
    except InputError as error:
        if error.field != "content":
            raise
        if len(items) == 1:
            return []
    half = len(items) // 2
    return [*_remember(view, items[:half]), *_remember(view, items[half:])]


def _answer(view: Memory, question: DatasetQuestion) -> Recalled:
    begun = time.perf_counter()
    hits = view.recall(question.text, limit=LIMIT, touch=False)
    seconds = time.perf_counter() - begun
    turns = tuple(str(hit.memory.metadata["turn"]) for hit in hits)
    sessions: tuple[str, ...] = ()
    if question.sessions:
        more = view.recall(question.text, limit=_SESSIONS_LIMIT, touch=False)
        sessions = tuple(dict.fromkeys(hit.memory.address.conversation or "" for hit in more))[:LIMIT]
    return Recalled(question, turns, sessions, seconds)
