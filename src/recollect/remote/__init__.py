"""A memory on a server, by the same operations."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_deferred: ContextVar[bool] = ContextVar("recollect_deferred", default=False)


@contextmanager
def deferred() -> Generator[None]:
    """A memory on a server that is made in the block asks the server nothing before its first verb."""
    token = _deferred.set(True)
    try:
        yield
    finally:
        _deferred.reset(token)


def is_deferred() -> bool:
    return _deferred.get()
