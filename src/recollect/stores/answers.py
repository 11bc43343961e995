"""The shelf of answers: which memories went into which context. Written late, bounded, erased with what it names."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from recollect.runtime import forking
from recollect.stores.port import Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.stores.write_timer import timer
from recollect.values.bodies import ANSWERS
from recollect.values.errors import ReadOnlyError

MOST_ANSWERS = 10_000
"""Answers that a place keeps; the oldest go first."""
_WAITING = 256
"""So many are written without waiting for the time."""
_MOST_WAITING = 2048
"""More are not kept in memory for a store that refuses them; the oldest go first."""
_TRIM = "00"
"""How the id of an answer ends whose writing also drops those that are too many: every 256th, whatever process has it.
"""
_log = logging.getLogger("recollect.answers")


class _PendingAnswer(NamedTuple):
    place: Place
    item: ShelfItem
    oldest: datetime
    """Answers from before this time are dropped when this one is written."""


class PendingAnswers:
    """Answers that are yet to be written: a context must not cost a disk flush, nor wait for a writer.

    They are written after some seconds, before this process reads or erases answers, and on close.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        """The parent writes its own."""
        self._lock = threading.Lock()
        self._writing = threading.RLock()
        self._waiting: deque[_PendingAnswer] = deque(maxlen=_MOST_WAITING)

    def add(self, place: Place, item: ShelfItem, oldest: datetime) -> None:
        with self._lock:
            self._waiting.append(_PendingAnswer(place, item, oldest))
            is_full = len(self._waiting) % _WAITING == 0
        timer.schedule(self, 0.0 if is_full else None)

    def settle(self) -> bool:
        """Write what waits. False where some could not be written, which is logged and tried again."""
        if not self._waiting:
            return True
        with self._writing:  # whoever comes second returns once all is written
            with self._lock:
                taken, self._waiting = list(self._waiting), deque(maxlen=_MOST_WAITING)
            refused = [waiting for place, some in _by_place(taken).items() for waiting in self._refused(place, some)]
            with self._lock:
                self._waiting = deque([*refused, *self._waiting], maxlen=_MOST_WAITING)
        return not refused

    def close(self) -> None:
        """Write what waits; what the store refuses now is lost."""
        self.settle()
        with self._lock:
            self._waiting.clear()
        timer.forget(self)

    def _refused(self, place: Place, waiting: Sequence[_PendingAnswer]) -> Sequence[_PendingAnswer]:
        """Writes those of one place. Returns what is to be tried again: all, or nothing."""
        try:
            self._write(place, waiting)
        except ReadOnlyError as error:
            _log.info("which memories went into %d answers was not kept: %s", len(waiting), error)
        except Exception as error:  # whatever it is: the context is made, and its caller must not fail
            _log.warning("which memories went into %d answers is not written yet: %s", len(waiting), error)
            return waiting
        return ()

    def _write(self, place: Place, waiting: Sequence[_PendingAnswer]) -> None:
        ids = {ident for pending in waiting for ident in named(pending.item.body)}
        # Asked before the transaction, too: that would make a workspace anew that was forgotten meanwhile.
        if not self._store.written(place) or not self._existing(place, ids):
            return
        with self._store.transaction(place):
            missing = ids - self._existing(place, ids)
            for _, item, oldest in waiting:
                # A memory that is gone may have been erased by another process, which did not know of this answer.
                item = without(item, missing)
                if item.body["memories"]:
                    self._store.keep(place, item)
                    if item.key.endswith(_TRIM):
                        drop(self._store, place, oldest)

    def _existing(self, place: Place, ids: Collection[str]) -> set[str]:
        places = dict.fromkeys((place, Place(place.tenant, None)))
        return {record.id for home in places for record in self._store.get(home, sorted(ids))}


def _by_place(waiting: Iterable[_PendingAnswer]) -> dict[Place, list[_PendingAnswer]]:
    places: dict[Place, list[_PendingAnswer]] = {}
    for pending in waiting:
        places.setdefault(pending.place, []).append(pending)
    return places


def named(body: Mapping[str, Any]) -> Iterator[str]:
    """The ids of the memories that an answer names."""
    for part in ("memories", "left_out"):
        for memory in body.get(part, ()):
            yield memory["id"]


def without(item: ShelfItem, ids: Collection[str]) -> ShelfItem:
    """An answer that no longer names these memories. Its question goes with them, because it may quote them."""
    if not any(ident in ids for ident in named(item.body)):
        return item
    body = {name: value for name, value in item.body.items() if name not in ("question", "question_sha256")}
    for part in ("memories", "left_out"):
        body[part] = [memory for memory in body.get(part, ()) if memory["id"] not in ids]
    erased = len(item.body.get("memories", ())) - len(body["memories"])
    return replace(item, body=body | {"erased": body.get("erased", 0) + erased})


def outdated(store: Store, place: Place, oldest: datetime) -> list[str]:
    """The keys of the answers that are too old or, the oldest first, too many."""
    items = sorted(store.shelf(place, ANSWERS), key=lambda item: item.created_at)
    over = len(items) - MOST_ANSWERS
    return [item.key for number, item in enumerate(items) if number < over or item.created_at < oldest]


def drop(store: Store, place: Place, oldest: datetime) -> int:
    """Remove the outdated answers of a place. Called in a transaction. Returns how many there were."""
    keys = outdated(store, place, oldest)
    return store.remove(place, ANSWERS, keys) if keys else 0


def erase_names(store: Store, place: Place, ids: Collection[str]) -> bool:
    """Take erased memories out of the answers of a place, and out of what undo would bring back.

    Called in a transaction. Returns whether there was any.
    """
    naming = [item for item in store.shelf(place, ANSWERS) if not set(named(item.body)).isdisjoint(ids)]
    for item in naming:
        store.keep(place, without(item, ids), exact=True)
    undone = {(item.shelf, item.key) for item in _undone(store, place) if not set(named(item.body)).isdisjoint(ids)}
    if undone:
        store.purge(place, documents=undone)
    return bool(naming or undone)


def names_any(store: Store, place: Place, ids: Collection[str]) -> bool:
    """Whether an answer of a place names one of these memories, or undo would bring one back that does."""
    items = (item for some in (store.shelf(place, ANSWERS), _undone(store, place)) for item in some)
    return any(not set(named(item.body)).isdisjoint(ids) for item in items)


def _undone(store: Store, place: Place) -> Iterator[ShelfItem]:
    """Answers in the undo data."""
    return (item for _, undo in store.undos(place) for item in undo.things if item.shelf == ANSWERS)
