"""How often each place was asked, day by day. Counted in memory, and now and then added to what the server keeps."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from recollect.server.access.account_store import PLACE
from recollect.stores.port import Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.values.errors import ConflictError, RecollectError

_SHELF = "recalls"
_SECONDS = 30.0
"""After which what was counted is written, if somebody asks again. What is lost with the process is no more."""
_KEPT = timedelta(days=400)
_AGAIN = 20


class Recalls:
    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._new: Counter[tuple[Place, str]] = Counter()
        self._written = time.monotonic()

    def count(self, place: Place) -> bool:
        """One more. Whether it is time to write."""
        with self._lock:
            self._new[place, f"{self._clock():%Y-%m-%d}"] += 1
            due = time.monotonic() - self._written > _SECONDS
            if due:
                self._written = time.monotonic()
        return due

    def write(self) -> None:
        """Add what is new to what others have counted. What cannot be written is counted on."""
        with self._lock:
            new, self._new = self._new, Counter()
        places: dict[Place, Counter[str]] = {}
        for (place, day), number in new.items():
            places.setdefault(place, Counter())[day] += number
        for place, days in places.items():
            try:
                self._add(place, days)
            except RecollectError:
                with self._lock:
                    self._new.update({(place, day): number for day, number in days.items()})

    def daily(self, place: Place, days: int) -> dict[str, int]:
        """For each of the last days in UTC, the latest last."""
        self.write()
        items = self._things(place)
        counted: dict[str, int] = items[0].body["days"] if items else {}
        today = self._clock().date()
        wanted = (today - timedelta(days=back) for back in range(days - 1, -1, -1))
        return {f"{day}": counted.get(f"{day}", 0) for day in wanted}

    def _things(self, place: Place) -> list[ShelfItem]:
        return self._store.find(PLACE, _SHELF, [_key(place)])

    def _add(self, place: Place, days: Counter[str]) -> None:
        oldest = f"{self._clock().date() - _KEPT}"
        for _ in range(_AGAIN):  # as often as another process was quicker
            items = self._things(place)
            before: dict[str, int] = items[0].body["days"] if items else {}
            body = {"days": {day: n for day, n in (Counter(before) + days).items() if day >= oldest}}
            item = ShelfItem(_SHELF, _key(place), body, created_at=self._clock(), changed_at=self._clock())
            with contextlib.suppress(ConflictError):
                self._store.keep(PLACE, item, expect=items[0].version if items else 0)
                return
        raise ConflictError("recalls are being counted by others; later")


def _key(place: Place) -> str:
    return msgspec.json.encode(place).decode()
