"""Blocks in which a thread has its turn to write to one SQLite file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from recollect.stores.scope import Scope
from recollect.values.errors import RecollectError

if TYPE_CHECKING:
    from recollect.stores.sqlite.database import Database


class Alone(Scope[Any]):
    """The turn of a thread to write, without a transaction."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def enter(self) -> Any:
        return self._database.take_alone()

    def leave(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, RecollectError | apsw.Error):
            self.abandon()
            return
        self._database.leave()
        if isinstance(error, apsw.Error):
            raise self._database.problem(error) from error

    def abandon(self) -> None:
        self._database.abandon()


class Settling(Scope[None]):
    """A transaction of nothing but what was put off: it need not be durable, and waits for others only so long."""

    __slots__ = ("_database", "_seconds")

    def __init__(self, database: Database, seconds: float) -> None:
        self._database = database
        self._seconds = seconds

    def enter(self) -> None:
        self._database.begin(seconds=self._seconds, durable=False)

    def leave(self, error: BaseException | None) -> None:
        self._database.end(error)

    def abandon(self) -> None:
        self._database.abandon()
