"""An interrupt (Ctrl-C) at any point of a verb: nothing that was acknowledged is lost, and all goes on.

The error is kept, as an interactive Python keeps it: with its traceback, and all that the frames in that hold.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from support.common import LONG
from support.interrupts import Interrupt
from support.stores import STORES, located
from support.watchdog import together

from recollect import ConflictError, Memory, UnavailableError
from recollect.models.backlog import Backlog
from recollect.models.embedders.native import native
from recollect.runtime import forking
from recollect.stores.port import Place
from recollect.stores.scope import Scope

Verb = Callable[[Memory, str], object]
_interrupts: list[BaseException] = []


class AlarmError(Exception):
    """What a program's own handler of a signal may raise."""


ERRORS = (KeyboardInterrupt, AlarmError)
_OTHERS = (UnavailableError, TypeError)


def _oldest(memory: Memory) -> str:
    return memory.list(limit=1000)[-1].id


def _both(memory: Memory, name: str) -> None:
    place = Place.of(memory.list(limit=1)[0])
    with memory._view.store.transaction(place):
        memory.remember(f"{name} a")
        memory.remember(f"{name} b")


def _inner(memory: Memory, name: str) -> None:
    """The outer transaction goes on after an interrupt in the inner one."""
    place = Place.of(memory.list(limit=1)[0])
    with memory._view.store.transaction(place):
        try:
            _both(memory, name)
        except ERRORS as error:
            _interrupts.append(error)
        memory.remember(f"{name} outer")


def _refused(memory: Memory, name: str) -> None:
    first = memory.list(limit=1000, newest_first=False, state="superseded")[0]
    with suppress(ConflictError):
        memory.revise(first.id, content=f"{name} a")


WRITES: dict[str, Verb] = {
    "remember": lambda memory, name: memory.remember(f"{name} a"),
    "remember many": lambda memory, name: memory.remember_many([f"{name} a", f"{name} b"]),
    "two in a transaction": _both,
    "two in a transaction in another": _inner,
    "recall": lambda memory, name: memory.recall("first"),
    "compact": lambda memory, name: memory.compact(),
    "a change that is refused": _refused,
    "forget a workspace": lambda memory, name: memory.at(workspace="other").forget(workspace="other"),
}
CHANGES: dict[str, Verb] = {
    "revise": lambda memory, name: memory.revise(_oldest(memory), content=f"{name} a"),
    "forget": lambda memory, name: memory.forget(_oldest(memory)),
    "erase": lambda memory, name: memory.forget(_oldest(memory), erase=True),
    "undo": lambda memory, name: memory.undo(),
}
"""Each takes one memory away."""
VERBS = WRITES | CHANGES


def _texts(memory: Memory) -> set[str]:
    return {record.text for record in memory.list(limit=1000)}


def _interrupted(url: str, memory: Memory, verb: Verb, interrupt: Interrupt, name: str) -> Interrupt:
    """One interrupt, and a look at everything after it."""
    memory.remember(f"{name} before")
    memory.at(workspace="other").remember("elsewhere")
    acknowledged = _texts(memory)
    error = interrupt.run(lambda: verb(memory, name))
    where = interrupt.where
    _interrupts[:] = [*_interrupts[-3:], *([error] if error else [])]
    # psycopg tells of a lost connection where an error has come as it put things in order, or if somebody has caught an
    # interrupt inside a transaction; and Python's tracing, too, has an error of its own.
    once = interrupt.error is KeyboardInterrupt and not interrupt.twice and verb is not _inner
    told = ERRORS if once else (*ERRORS, *_OTHERS)
    assert error is None or isinstance(error, told), f"{error!r} after {where}"
    found = _texts(memory)
    gone = len(acknowledged - found)
    assert gone in ((0, 1) if verb in CHANGES.values() else (0,)), f"{acknowledged - found} lost after {where}"
    assert len(found & {f"{name} a", f"{name} b"}) in ((0, 1) if verb in _single else (0, 2)), f"half, after {where}"
    assert error or verb is not _inner or f"{name} outer" in found, f"the rest of the transaction, after {where}"
    memory.remember(f"{name} after")
    together(lambda: memory.remember(f"{name} beside"))
    with Memory(url, embedder="none") as other:
        # What was interrupted may be found until the next write takes it back, if a second interrupt kept it from that.
        unsure = {f"{name} a"} if interrupt.twice else set[str]()
        expected = {*found, f"{name} after", f"{name} beside"}
        assert _texts(other) - unsure == expected - unsure, f"not for others, after {where}"
        assert all(log.ok for log in other.audit.verify()), f"the log is broken after {where}"
    return interrupt


_single = (WRITES["remember"], WRITES["a change that is refused"], CHANGES["revise"])


def _every(
    kind: str,
    folder: Path,
    verb: Verb,
    first: int,
    step: int,
    *,
    within: str = "stores",
    again: int = 0,
    kinds: Sequence[type[BaseException]] = ERRORS[:1],
) -> int:
    """Interrupt it at the first point, at the one so many steps later, and so on. How many there are."""
    at = first
    while True:
        url = located(kind, folder / f"from-{at}")
        with Memory(url, embedder="none") as memory:
            memory.revise(memory.remember("earlier").id, content="first")
            memory.recall("first")  # what is imported late is imported now
            for trial in range(20):
                interrupt = Interrupt(at, within, again, kinds[trial % len(kinds)])
                _interrupted(url, memory, verb, interrupt, f"{trial}")
                if not interrupt.where:
                    return interrupt.points
                at += step


PAIRS = [(kind, verb) for at, kind in enumerate(STORES) for n, verb in enumerate(VERBS) if LONG or (at + n) % 2 == 0]
"""Stores and verbs: all of them where there is time, else each verb on every second store."""


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python tells of what an interrupt has left open. But letting go must not fail where nobody sees it."""
    failed: list[BaseException | None] = []

    def note(told: sys.UnraisableHookArgs) -> None:
        if getattr(told.object, "__func__", None) is Scope.break_off and not isinstance(told.exc_value, ERRORS):
            failed.append(told.exc_value)

    monkeypatch.setattr(sys, "unraisablehook", note)
    yield
    _interrupts.clear()
    gc.collect()  # now, and not in a test that knows nothing of it
    assert failed == []


@pytest.mark.parametrize(("kind", "verb"), PAIRS)
def test_an_interrupt_at_the_edge_of_a_transaction(kind: str, verb: str, tmp_path: Path) -> None:
    step = 1 if LONG else 31
    _every(kind, tmp_path, VERBS[verb], random.randint(1, step), step, within="stores/scope.py", kinds=ERRORS)


@pytest.mark.parametrize(("kind", "verb"), PAIRS)
def test_an_interrupt_anywhere(kind: str, verb: str, tmp_path: Path) -> None:
    step = 1 if LONG else 997
    assert _every(kind, tmp_path, VERBS[verb], random.randint(1, step), step) > 10


@pytest.mark.parametrize("again", range(1, 13) if LONG else ["drawn"])
@pytest.mark.parametrize("verb", ["remember", "a change that is refused"])
@pytest.mark.parametrize("kind", STORES)
def test_a_second_interrupt_while_the_first_is_told(
    kind: str, verb: str, again: int | Literal["drawn"], tmp_path: Path
) -> None:
    step = 1 if LONG else 397
    calls_later = random.randint(1, 12) if again == "drawn" else again
    _every(kind, tmp_path, VERBS[verb], random.randint(1, step), step, again=calls_later, kinds=ERRORS)


@pytest.mark.parametrize("verb", ["remember", "recall", "a change that is refused", "compact", "forget a workspace"])
@pytest.mark.parametrize("kind", STORES)
def test_an_interrupt_in_a_lock_that_is_python_code(kind: str, verb: str, tmp_path: Path) -> None:
    """Conditions and events take their locks in Python, where an interrupt can leave them taken."""
    step = 1 if LONG else 10
    _every(kind, tmp_path, VERBS[verb], random.randint(1, step), step, within=threading.__file__)


def _entered(gate: AbstractContextManager[None]) -> None:
    with gate:
        pass


LOCKS: dict[str, Callable[[], object]] = {
    "the gate before forks": lambda: _entered(forking.importing),
    "the gate of models": lambda: _entered(native),
    "those who wait for vectors": lambda: backlog.wait_for(Place("t", "w"), 0.0),
    "the worker's wish": lambda: backlog.stir(),
}
backlog = Backlog()


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("within", [threading.__file__, "forking.py", "models"])
def test_an_interrupt_leaves_no_lock_that_all_threads_share(lock: str, within: str) -> None:
    for at in range(1, 100):
        interrupt = Interrupt(at, within)
        interrupt.run(LOCKS[lock])
        together(LOCKS[lock], LOCKS[lock])
        if not interrupt.where:
            return
    pytest.fail("no end of points")


@pytest.mark.parametrize("kind", ["sqlite", "ledger", "notebook"])
def test_a_connection_that_an_interrupt_left_closed_or_in_a_transaction_is_replaced(kind: str, tmp_path: Path) -> None:
    """A second interrupt may come just as the first one's connection is closed, or before it is."""
    with Memory(located(kind, tmp_path / "store"), embedder="none") as memory:
        kept = [memory.remember("first").id]
        store: Any = memory._view.store
        for leave in (lambda writer: writer.close(), lambda writer: writer.execute("BEGIN IMMEDIATE")):
            memory.archive(memory.remember("opens the writer").id)
            (handle,) = (handle for place, handle in store._handles.items() if place == memory._view.place)
            leave(handle._writer)
            kept.append(memory.remember(f"after it {len(kept)}").id)
        assert {record.id for record in memory.list()} >= set(kept)
        assert all(log.ok for log in memory.audit.verify())


def test_the_entries_of_an_unfinished_write_are_not_counted_on_closing(tmp_path: Path) -> None:
    """The next one takes the write back, and must not find an entry missing that was never acknowledged."""
    with Memory(f"notebook:{tmp_path}/store.jsonl", embedder="none") as memory:
        memory.remember("first")
        store: Any = memory._view.store
        audit = store.log(memory._view.place).audit
        audit.note()
        assert audit.noted() == audit.last()[0] == 1
        memory.remember("second")
        unfinished = SimpleNamespace(began={"audit.jsonl": (1, 1)})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(audit._fileset), "note", lambda fileset: unfinished)
            audit.note()
        assert audit.noted() == 1
