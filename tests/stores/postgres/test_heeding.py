"""psycopg may come to an error of its own as it puts things in order after an interrupt: the interrupt is told."""

from __future__ import annotations

import psycopg
import pytest

from recollect.stores.postgres.connections import lost

CODE = """
def work():
    try:
        raise KeyboardInterrupt
    finally:
        raise OperationalError("cannot exit pipeline mode while busy")
"""


def _work(module: str) -> BaseException:
    names = {"__name__": module, "OperationalError": psycopg.OperationalError}
    exec(CODE, names)
    with pytest.raises(psycopg.OperationalError) as caught:
        names["work"]()  # pyright: ignore[reportCallIssue]
    return caught.value


def test_an_interrupt_inside_psycopg_is_not_taken_for_a_lost_connection() -> None:
    error = _work("psycopg._connection_base")
    with pytest.raises(KeyboardInterrupt):
        lost(error)


def test_one_that_the_caller_has_caught_before_is_none_of_it() -> None:
    assert lost(_work("a_program"))
