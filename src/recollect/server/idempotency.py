"""A write that is sent twice under one key is done once, and answered twice."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from recollect.errors import (
    AccessError,
    ConcurrencyError,
    ConflictError,
    DiskFullError,
    InputError,
    NotFoundError,
    RecollectError,
)
from recollect.record import parse_time
from recollect.remote.wire import address_of
from recollect.server.access.caller import Caller
from recollect.server.access.vault import PLACE
from recollect.server.asked import Answer, Asked
from recollect.server.problems import DoneError, UnderWayError
from recollect.stores.port import Store
from recollect.stores.shelves import Thing

HEADER = "idempotency-key"
_SHELF = "answers"
_KEPT = timedelta(hours=24)
_UNDER_WAY = timedelta(seconds=60)
_LONGEST = 200
_ROOM = 64 * 1024 * 1024
"""Bytes of answers that are remembered; the oldest make way."""
_NOTHING_DONE = (InputError, AccessError, NotFoundError, ConflictError, ConcurrencyError, DiskFullError)
_CLEANING = timedelta(hours=1)
Again = Callable[[Sequence[str]], Answer | None] | None


class Answers:
    """What was answered to writes, for a day.

    The answers themselves are in memory only: what they hold may be forgotten meanwhile, and must be gone then. What
    outlasts the process, and is seen by others, is that it was done, and the ids of the memories that came of it.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._told: OrderedDict[str, Answer] = OrderedDict()
        self._size = 0
        self._here: set[str] = set()
        """What this process is working on."""
        self._cleaned = clock()

    def once(
        self, caller: Caller, asked: Asked, run: Callable[[], Answer], again: Again = None, *, secret: bool = False
    ) -> Answer:
        """`again` makes an answer anew, from the ids of memories. A `secret` one is kept nowhere."""
        given = asked.headers.get(HEADER, "")
        if not given:
            return run()
        if len(given) > _LONGEST:
            raise InputError(HEADER, f"must have at most {_LONGEST} characters")
        key = hashlib.sha256(f"{caller.id}\0{given}".encode()).hexdigest()
        where = msgspec.json.encode([asked.method, asked.path, list(asked.query), address_of(asked.headers)])
        request = hashlib.sha256(where + b"\0" + asked.body).hexdigest()
        if (known := self._known(key, request, again)) is not None:
            return known
        self._claim(key, request)
        self._here.add(key)
        try:
            answer = run()
            with contextlib.suppress(RecollectError):  # it was done, and whoever asked shall hear so
                self._keep(key, request, answer, secret)
        except _NOTHING_DONE:  # so it may be tried again; of anything else it is not known
            with contextlib.suppress(RecollectError):
                self._store.remove(PLACE, _SHELF, [key])
            raise
        finally:
            self._here.discard(key)
        return answer

    def _keep(self, key: str, request: str, answer: Answer, secret: bool) -> None:
        body = {"request": request, "status": answer.status, "ids": list(answer.ids)}
        self._store.keep(PLACE, Thing(_SHELF, key, body, created_at=self._clock(), changed_at=self._clock()))
        if not answer.ids and not secret:
            with self._lock:
                self._told[key] = answer
                self._size += len(answer.content) + _LONGEST
                while self._size > _ROOM:
                    self._size -= len(self._told.popitem(last=False)[1].content) + _LONGEST
        if self._clock() - self._cleaned > _CLEANING:
            self._cleaned = self._clock()
            self.clean()

    def _known(self, key: str, request: str, again: Again) -> Answer | None:
        found = self._store.find(PLACE, _SHELF, [key])
        if not found:
            return None
        body = found[0].body
        if body["request"] != request:
            raise ConflictError(f"{HEADER}: was used for another request before; use a new one")
        if "status" in body:
            if body["ids"]:  # of memories that may have been erased meanwhile
                told = again(body["ids"]) if again is not None else None
            else:
                with self._lock:
                    told = self._told.get(key)
            if told is None:
                raise DoneError(f"{HEADER}: this request was done already, and what came of it is not kept")
            return told._replace(status=body["status"], headers={**told.headers, "idempotent-replay": "true"})
        if key in self._here or self._clock() - parse_time(body["since"], "since") < _UNDER_WAY:
            raise UnderWayError(f"{HEADER}: the same request is being worked on; try again in a moment")
        raise DoneError(
            f"{HEADER}: the same request was interrupted, and it is not known whether it was done; look before "
            "you send it under a new key"
        )

    def _claim(self, key: str, request: str) -> None:
        body = {"request": request, "since": self._clock().isoformat()}
        try:
            self._store.keep(PLACE, Thing(_SHELF, key, body, created_at=self._clock()), expect=0)
        except ConflictError:
            raise UnderWayError(f"{HEADER}: the same request is being worked on; try again in a moment") from None

    def clean(self) -> int:
        """Forget those that are older than a day. How many."""
        until = self._clock() - _KEPT
        old: list[str] = []
        for thing in self._store.shelf(PLACE, _SHELF):
            if thing.created_at >= until:
                break
            old.append(thing.key)
        return self._store.remove(PLACE, _SHELF, old) if old else 0
