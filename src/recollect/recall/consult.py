"""One question to everything that may know: memories, audit log and further sources, at once, each with a deadline."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from recollect.audit import AuditLog
from recollect.policies.ranking import Evidence, Part, Score, WeightedSum, dedupe
from recollect.policies.secrets import Screen, find
from recollect.presets import Preset
from recollect.recall.hits import Explanation
from recollect.recall.recall import recall
from recollect.recall.sources import Bound, Found, Source
from recollect.runtime import forking
from recollect.stores.audit import Entry
from recollect.text.query_parser import parse_query
from recollect.values import validation
from recollect.values.errors import InputError, NotFoundError
from recollect.values.record import EPOCH, Record
from recollect.view import View

MEMORY, AUDIT = "memory", "audit"
DEADLINE = 5.0
"""Seconds. A recall may spend one of them waiting for the vectors of new memories."""
MOST = {MEMORY: 10, AUDIT: 10, "workflow": 5, "knowledge": 5}
"""How many a source gives at most. Any other is asked for ten, or more where more are wanted."""
_PATIENCE = 32
"""Threads that may wait for one source."""
_LONGEST_REASON = 200
_ENOUGH = 0.5
"""The share of a question's words that an audit entry must have."""
_MOST_WORDS = 12
_MOST_SIMILAR = WeightedSum(similarity=1.0, recency=0.0, importance=0.0, source=0.0)
"""How a source chooses. Importance and recency count afterwards, when what all sources chose is merged."""


class Result(msgspec.Struct, frozen=True):
    """What a source found, and what its score is made of."""

    source: str
    text: str
    scored: Score
    at: datetime | None
    id: str | None
    meta: dict[str, Any] = {}
    record: Record | None = None
    """The memory, where it is one."""

    @property
    def score(self) -> float:
        return self.scored.value

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.scored.parts

    @property
    def similarity(self) -> float:
        return next(part.value for part in self.parts if part.name == "similarity")

    def explain(self) -> Explanation:
        return Explanation(self.scored.value, self.scored.how, self.scored.parts)


class Failure(msgspec.Struct, frozen=True):
    """A source that gave no answer."""

    source: str
    reason: str


class Consulted(msgspec.Struct, frozen=True):
    """The best of all sources, best first, and those that could not be asked."""

    results: tuple[Result, ...] = ()
    failures: tuple[Failure, ...] = ()

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __str__(self) -> str:
        lines = [f"{result.score:.3f}  {result.source}: {result.text}" for result in self.results]
        return "\n".join([*lines, *(f"{failure.source} gave no answer: {failure.reason}" for failure in self.failures)])


def consult(
    view: View, query: str, *, limit: int = 5, sources: Iterable[str] | None = None, deadline: float = DEADLINE
) -> Consulted:
    limit = validation.count(limit, "limit", high=1000)
    answers, failures = gather(view, query, limit=limit, sources=sources, deadline=deadline)
    best = merged(view, query, answers)[:limit]
    touch(view, best)
    return Consulted(tuple(best), tuple(failures))


def touch(view: View, results: Iterable[Result]) -> None:
    """Count the memories that are shown as retrieved."""
    if records := [result.record for result in results if result.record is not None]:
        view.touch(records)


# Asking


def gather(
    view: View,
    query: str,
    *,
    limit: int = 5,
    most: Mapping[str, int] = MOST,
    sources: Iterable[str] | None = None,
    deadline: float = DEADLINE,
) -> tuple[dict[str, list[Found]], list[Failure]]:
    """What each source found, and which failed. A source that answers too late is ignored, and nothing is written."""
    query = validation.query(query)
    _check_deadline(deadline)
    asked = {source.name: source for source in _chosen(view, sources)}
    if not query.strip():
        return {}, []
    answers: SimpleQueue[tuple[str, list[Found] | str]] = SimpleQueue()

    def ask(name: str, source: Source) -> None:
        try:
            answer = _answer(source, query, most.get(name, max(limit, 10)))
        except BaseException as error:  # report every failure: a source must not be missing silently
            answer = _reason(error)
        finally:
            _waiting.leave(source)
        answers.put((name, answer))

    for name, source in asked.items():
        if not _waiting.enter(source):
            answers.put((name, f"busy: {_PATIENCE} earlier questions are not answered yet"))
            continue
        try:
            # Not a ThreadPoolExecutor: Python waits for the threads of one before it exits.
            threading.Thread(target=ask, args=(name, source), name=f"recollect-{name}", daemon=True).start()
        except RuntimeError as error:  # there are too many
            _waiting.leave(source)
            answers.put((name, _reason(error)))
    collected = _collected(answers, len(asked), time.monotonic() + deadline)
    late = f"no answer within {deadline:g} s"
    by_source = {name: collected.get(name, late) for name in asked}
    results = {name: outcome for name, outcome in by_source.items() if not isinstance(outcome, str)}
    return results, [Failure(name, outcome) for name, outcome in by_source.items() if isinstance(outcome, str)]


class _Waiting:
    """Counts the threads that wait for each source, so that a source that hangs cannot hold ever more of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[int, int] = {}
        forking.watch(self)

    def after_fork(self) -> None:
        self._lock, self._threads = threading.Lock(), {}

    def enter(self, source: Source) -> bool:
        key = _key(source)
        with self._lock:
            number = self._threads.get(key, 0)
            if number >= _PATIENCE:
                return False
            self._threads[key] = number + 1
        return True

    def leave(self, source: Source) -> None:
        key = _key(source)
        with self._lock:
            self._threads[key] -= 1
            if not self._threads[key]:
                del self._threads[key]


_waiting = _Waiting()


def _key(source: Source) -> int:
    """Nothing else can have it while a thread is at the source."""
    return id(source.source if isinstance(source, _Delayed) else source)


def _collected(
    answers: SimpleQueue[tuple[str, list[Found] | str]], number: int, until: float
) -> dict[str, list[Found] | str]:
    collected: dict[str, list[Found] | str] = {}
    while len(collected) < number:
        try:
            name, answer = answers.get(timeout=max(until - time.monotonic(), 0.0))
        except Empty:
            break
        collected[name] = answer
    return collected


def _chosen(view: View, names: Iterable[str] | None) -> list[Source]:
    own: list[Source] = [_Memories(view), _Audit(view)]
    available = {source.name: source for source in [*own, *map(_bound(view), view.sources)]}
    if names is None:
        return list(available.values())
    wanted = dict.fromkeys(validation.label(name, "sources") for name in validation.sequence(names, "sources"))
    for name in wanted:
        if name not in available:
            raise NotFoundError(f"there is no source {name}; known: {', '.join(available)}")
    return [available[name] for name in wanted]


class _Delayed(msgspec.Struct, frozen=True):
    """A source for the address that asks, found by the thread that searches it: that may fail or be slow too."""

    source: Any
    view: View

    @property
    def name(self) -> str:
        return self.source.name

    def search(self, query: str, limit: int) -> Sequence[Found]:
        return self.source.at(self.view.address).search(query, limit)


def _bound(view: View) -> Callable[[Source], Source]:
    return lambda source: _Delayed(source, view) if isinstance(source, Bound) else source


def _answer(source: Source, query: str, limit: int) -> list[Found]:
    items = list(source.search(query, limit))[:limit]
    for item in items:
        if not isinstance(item, Found):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("search", f"must return Found, not {type(item).__name__}")
    return items


def _check_deadline(deadline: float) -> None:
    number = isinstance(deadline, int | float) and not isinstance(deadline, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not number or not math.isfinite(deadline) or not 0.0 < deadline <= 600.0:
        raise InputError("deadline", "must be a number of seconds above 0, and at most 600")


def _reason(error: BaseException) -> str:
    """Others' messages may quote a password, whatever the preset screens, or be a page of HTML."""
    text = str(error)
    if find(text, Screen()):
        text = ""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text[:2000]).split())
    if len(line) > _LONGEST_REASON:
        line = line[: _LONGEST_REASON - 1] + "…"
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


# Merging


def formula(preset: Preset) -> WeightedSum:
    """The preset's, if it is one that can weigh sources against each other."""
    return preset.ranking if isinstance(preset.ranking, WeightedSum) else WeightedSum()


def merged(view: View, query: str, answers: dict[str, list[Found]]) -> list[Result]:
    """The items of all sources as results, each text once, best first."""
    rank, decay, now = formula(view.preset), view.decay, view.now()

    def result(source: str, item: Found) -> Result:
        record = item.record if isinstance(item, _Remembered) else None
        evidence = Evidence(record or _stand_in(view, item), query, vector=float(item.similarity), source=source)
        return Result(source, item.text, rank.score(evidence, decay, now), item.at, item.id, item.meta, record)

    results = [result(source, item) for source, those in answers.items() for item in those]
    once = dedupe(results, lambda entry: entry.text, lambda entry: entry.score)
    return sorted(once, key=lambda entry: -entry.score)


def _stand_in(view: View, item: Found) -> Record:
    """A record that stands for an item of a source, so that it can be ranked like a memory."""
    at = item.at or EPOCH
    return Record(item.id or "", view.address, "workspace", "found", item.text, float(item.importance), at, at)


# What there is to ask in every memory


class _Remembered(Found, frozen=True, kw_only=True):
    record: Record


class _Memories(msgspec.Struct, frozen=True):
    """What the view recalls: never another agent's, nor what is expired, archived or superseded.

    Where the preset says so, for an agent only what is its own.
    """

    view: View
    name: str = MEMORY

    def search(self, query: str, limit: int) -> list[Found]:
        agent = self.view.address.agent if self.view.preset.recall.own_only else None
        hits = recall(self.view, query, {"agent": agent}, limit=limit, touch=False, ranking=_MOST_SIMILAR)
        return [
            _Remembered(
                text=hit.memory.text,
                similarity=next(part.value for part in hit.scored.parts if part.name == "similarity"),
                at=hit.memory.created_at,
                importance=hit.memory.importance,
                id=hit.memory.id,
                meta={"kind": hit.memory.kind},
                record=hit.memory,
            )
            for hit in hits
        ]


class _Audit(msgspec.Struct, frozen=True):
    view: View
    name: str = AUDIT

    def search(self, query: str, limit: int) -> list[Found]:
        entries = AuditLog(self.view).search(query, limit=limit)
        matched = [(entry, 1.0) for entry in entries] or noted(self.view, query, limit)
        # Only the details that a caller gave: those of the engine may name memories of others.
        return [
            Found(
                text=entry.message,
                similarity=share,
                at=entry.at,
                id=entry.id,
                meta={**entry.meta.get("details", {}), "action": entry.action, "actor": entry.actor},
            )
            for entry, share in matched
        ]


def noted(view: View, query: str, limit: int) -> list[tuple[Entry, float]]:
    """Entries that agents wrote and that have at least half of the question's words, with the share they have.

    What the engine notes itself ("forgot 2 memories") would match too many questions.
    """
    asked = parse_query(query)
    words = tuple(dict.fromkeys(word.casefold() for word in (*asked.phrases, *asked.words)))[:_MOST_WORDS]
    log = AuditLog(view)
    entries = {entry.id: entry for entry in log.matching(words, limit=10 * limit * len(words))} if words else {}
    shares = {ident: _share(entry, words) for ident, entry in entries.items() if "details" in entry.meta}
    order = sorted((ident for ident in shares if shares[ident] >= _ENOUGH), key=lambda i: (shares[i], i), reverse=True)
    return [(entries[ident], shares[ident]) for ident in order[:limit]]


def _share(entry: Entry, words: Sequence[str]) -> float:
    message = entry.message.casefold()
    return sum(word in message for word in words) / len(words)
