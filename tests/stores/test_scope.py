"""Blocks that end in any case."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest
from support.interrupts import Interrupt

from recollect.stores.scope import Attempt, Scope


class Noted(Scope[str]):
    def __init__(self, notes: list[str], name: str = "", fails: str = "") -> None:
        self.notes = notes
        self.name = name
        self.fails = fails

    def _note(self, what: str) -> None:
        self.notes.append(f"{what} {self.name}".strip())
        if what == self.fails:
            raise ValueError(what)

    def enter(self) -> str:
        self._note("enter")
        return "entered"

    def leave(self, error: BaseException | None) -> None:
        self._note("leave" if error is None else f"leave with {type(error).__name__}")

    def abandon(self) -> None:
        self._note("abandon")


def test_it_is_entered_and_left() -> None:
    notes: list[str] = []
    with Noted(notes) as value:
        notes.append(value)
    assert notes == ["enter", "entered", "leave"]


def test_an_error_passes_through_and_is_told() -> None:
    notes: list[str] = []
    with pytest.raises(KeyError), Noted(notes):
        raise KeyError
    assert notes == ["enter", "leave with KeyError"]


@pytest.mark.parametrize("step", ["enter", "leave"])
def test_what_fails_is_abandoned(step: str) -> None:
    notes: list[str] = []
    with pytest.raises(ValueError, match=step), Noted(notes, fails=step):
        pass
    assert notes == ["enter", "leave", "abandon"] if step == "leave" else ["enter", "abandon"]


def test_an_interrupt_as_the_end_is_called_ends_it_while_the_traceback_is_kept() -> None:
    for at in range(1, 100):
        notes: list[str] = []

        def nested(notes: list[str] = notes) -> None:
            with Noted(notes, "outer"), Noted(notes, "inner"):
                pass

        interrupt = Interrupt(at, "stores/scope.py")
        error = interrupt.run(nested)
        if not interrupt.where:
            assert at > 4, "both are entered and left"
            return
        assert isinstance(error, KeyboardInterrupt)
        assert error.__traceback__ is not None
        for name in ("inner", "outer"):
            entered = f"enter {name}" in notes
            over = {f"leave {name}", f"leave with KeyboardInterrupt {name}", f"abandon {name}"} & {*notes}
            assert over or not entered, f"{name} is left open after {interrupt.where}"
    pytest.fail("no end of points")


def test_it_can_be_one_of_a_stack() -> None:
    notes: list[str] = []
    with ExitStack() as stack:
        assert stack.enter_context(Noted(notes)) == "entered"
    assert notes == ["enter", "leave"]


def test_an_attempt_takes_a_lock_that_nobody_has() -> None:
    lock = threading.RLock()
    with Attempt(lock) as taken:
        assert taken
        assert not _taken_elsewhere(lock)
    assert _taken_elsewhere(lock)


def test_an_attempt_leaves_a_lock_that_another_thread_has() -> None:
    lock, held, done = threading.RLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    attempt = Attempt(lock)
    with attempt as taken:
        assert not taken
    attempt.abandon()
    assert not _taken_elsewhere(lock)
    done.set()
    thread.join()
    assert _taken_elsewhere(lock)


def test_an_attempt_that_is_broken_off_leaves_no_lock_behind() -> None:
    lock = threading.RLock()
    attempt = Attempt(lock)
    attempt.enter()
    attempt.abandon()
    attempt.abandon()
    assert _taken_elsewhere(lock)


def _taken_elsewhere(lock: object) -> bool:
    """Whether another thread can have it."""
    answers: list[bool] = []

    def take() -> None:
        with Attempt(lock) as taken:  # pyright: ignore[reportArgumentType]
            answers.append(taken)

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return answers[0]
