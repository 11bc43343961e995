"""Reading from a replica without missing what this process wrote before.

The position in the server's log after each commit is remembered by tenant. The replica answers if it has come that
far, at once or within a moment; else, and whenever it is away, the primary does.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recollect.runtime import forking
from recollect.stores.postgres.connections import Connection, Connections, Location, driver
from recollect.stores.postgres.statements import rows_of
from recollect.values.errors import RecollectError

if TYPE_CHECKING:
    from recollect.stores.tables.engine import Rows, Statement

_REACHED = "SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= %s::pg_lsn"
_PATIENCE = 0.05
"""Seconds that a read waits for the replica to come so far."""
_PAUSE = 0.005
_AWAY, _LONGEST_AWAY = 1.0, 60.0
"""Seconds for which one that failed is left alone: twice as many after each failure."""
_ANSWER = 2.0
"""Seconds in which it must answer. The primary is there, so nobody need wait for longer."""
_CONNECT = 1.0
_MOST = 10_000
"""Tenants whose last position is kept; for others that of the latest write counts."""
_START = "0/0"


class BehindError(Exception):
    """The replica has not come so far yet, or is none any more."""


class Replica:
    def __init__(self, location: Location) -> None:
        self.connections = Connections(location, answer=_ANSWER)
        self.answered = 0
        """How many reads it has answered."""
        self.fallbacks: Counter[str] = Counter()
        """How many reads the primary answered instead, by the reason: away or behind."""
        self._away_until, self._away = 0.0, _AWAY
        self._begin_anew()
        forking.watch(self)

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._written: OrderedDict[str, str] = OrderedDict()
        self._forgotten = _START

    def after_fork(self) -> None:
        written, forgotten = self._written, self._forgotten
        self._begin_anew()
        self._written, self._forgotten = written, forgotten

    def wrote(self, tenants: Sequence[str], position: str) -> None:
        """Threads tell in whatever order, so what is kept is the farthest."""
        with self._lock:
            for tenant in tenants:
                self._written[tenant] = max(self._written.get(tenant, _START), position, key=position_number)
                self._written.move_to_end(tenant)
            while len(self._written) > _MOST:
                self._forgotten = max(self._forgotten, self._written.popitem(last=False)[1], key=position_number)

    def read(
        self, tenant: str, prefix: Sequence[str], statements: Sequence[Statement], binary: bool, sql: Any
    ) -> list[Rows] | None:
        """None where the primary must answer."""
        if time.monotonic() < self._away_until:
            self.fallbacks["away"] += 1
            return None
        with self._lock:
            position = self._written.get(tenant, self._forgotten)
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                with self.connections.lent(_CONNECT) as connection:
                    rows = self._read(connection, position, prefix, statements, binary, sql)
                self.answered, self._away = self.answered + 1, _AWAY
                return rows
            except BehindError:
                if time.monotonic() + _PAUSE > until:
                    self.fallbacks["behind"] += 1
                    return None
                time.sleep(_PAUSE)
            except (driver().Error, RecollectError):
                self._away_until = time.monotonic() + self._away
                self._away = min(2 * self._away, _LONGEST_AWAY)
                self.fallbacks["away"] += 1
                return None

    def _read(
        self,
        connection: Connection,
        position: str,
        prefix: Sequence[str],
        statements: Sequence[Statement],
        binary: bool,
        sql: Any,
    ) -> list[Rows]:
        with connection.pipeline() as pipeline:
            # Before the transaction, so that all that it sees is at that position or later, also if it sees one moment.
            reached = connection.execute(_REACHED, (position,))
            pipeline.sync()
            for begin in prefix:
                connection.execute(begin, prepare=False)
            cursors = [
                connection.execute(sql(text), values or None, binary=binary, prepare=prepare)
                for text, values, prepare in statements
            ]
            connection.execute("COMMIT", prepare=False)
        if reached.fetchone() != (True,):
            raise BehindError
        return [rows_of(cursor) for cursor in cursors]

    def close(self) -> None:
        self.connections.close()


def position_number(position: str) -> int:
    """Positions in the order of the log."""
    high, _, low = position.partition("/")
    return int(high, 16) << 32 | int(low, 16)
