"""Work that several threads share."""

from __future__ import annotations

import threading

import pytest

from recollect.models.thread_pool import ThreadPool


@pytest.mark.parametrize("most", [1, 2, 5, 20])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_each_item_is_worked_on_once(most: int, count: int) -> None:
    done: list[int] = []

    ThreadPool().each(range(count), done.append, most)

    assert sorted(done) == list(range(count))


def test_several_are_at_work_at_once() -> None:
    both = threading.Barrier(2, timeout=60)

    ThreadPool().each(range(2), lambda _: both.wait(), 2)  # with one thread, the first would wait for ever


def test_nothing_is_under_way_when_it_returns_and_no_more_is_begun_after_an_error() -> None:
    pool = ThreadPool()
    begun, ended = list[int](), list[int]()
    second = threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            second.wait(60)  # until another thread is at it, too
            raise ValueError("the first fails")
        second.set()
        threading.Event().wait(0.05)
        ended.append(number)

    with pytest.raises(ValueError, match="the first fails"):
        pool.each(range(1000), work, 2)

    assert sorted(ended) == sorted(set(begun) - {0})
    assert len(begun) < 1000
    pool.each(range(3), begun.append, 2)  # and the pool goes on


def test_an_error_of_another_thread_is_raised_to_the_caller() -> None:
    mine = threading.get_ident()
    helper_failed = threading.Event()

    def work(_: int) -> None:
        if threading.get_ident() != mine:
            helper_failed.set()
            raise ValueError("in the other thread")
        helper_failed.wait(60)

    with pytest.raises(ValueError, match="in the other thread"):
        ThreadPool().each(range(4), work, 2)
