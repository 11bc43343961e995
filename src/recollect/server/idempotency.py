"""A write that is sent twice under one key is done once, and answered twice."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from recollect.remote.wire import address_of
from recollect.server.access.account_store import PLACE
from recollect.server.access.caller import Caller
from recollect.server.problems import DoneError, UnderWayError
from recollect.server.web import Answer, HttpRequest
from recollect.stores.audit import Entry, on_request
from recollect.stores.port import Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.values.errors import (
    AccessError,
    ConcurrencyError,
    ConflictError,
    DiskFullError,
    InputError,
    NotFoundError,
    RecollectError,
)
from recollect.values.record import new_id, parse_time

HEADER = "idempotency-key"
_SHELF = "answers"
_KEPT = timedelta(hours=24)
_UNDER_WAY = timedelta(seconds=60)
_LONGEST = 200
_ROOM = 64 * 1024 * 1024
"""Bytes of answers that are remembered; the oldest make way."""
_NOTHING_DONE = (InputError, AccessError, NotFoundError, ConflictError, ConcurrencyError, DiskFullError)
_CLEANING = timedelta(hours=1)
_NAMED = 5
Again = Callable[[Sequence[str], Sequence[Entry]], Answer | None]
"""Makes an answer anew: from the ids of the memories in it, or from the audit entries of what was done."""


def _nothing_again(ids: Sequence[str], entries: Sequence[Entry]) -> Answer | None:
    return None


class _Kept(NamedTuple):
    """An answer that is in memory, and how much had been logged where it comes from when it was given."""

    answer: Answer
    ident: str
    written: tuple[tuple[Place, int], ...]


class Answers:
    """The answers to writes, for a day.

    The answers themselves are in memory only: what they hold may be forgotten meanwhile, and must be gone then. What
    outlasts the process, and is seen by others, is that the write was done, and the ids of the memories in its answer.
    A process may be killed between a change and the note that it was done. So every audit entry of the change names
    the request, in the same transaction: if such an entry is there, the write was done.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, _Kept] = OrderedDict()
        self._size = 0
        self._here: set[str] = set()
        """Keys of the requests that this process is working on."""
        self._cleaned = clock()

    def once(
        self,
        caller: Caller,
        request: HttpRequest,
        run: Callable[[], Answer],
        again: Again = _nothing_again,
        *,
        tenant: str = PLACE.tenant,
        secret: bool = False,
    ) -> Answer:
        """Run it, unless it was run before. `tenant` is whose audit logs tell of it. A `secret` answer is not kept."""
        client_key = request.headers.get(HEADER, "")
        if not client_key:
            return run()
        if len(client_key) > _LONGEST:
            raise InputError(HEADER, f"must have at most {_LONGEST} characters")
        key = hashlib.sha256(f"{caller.id}\0{client_key}".encode()).hexdigest()
        where = msgspec.json.encode([request.method, request.path, list(request.query), address_of(request.headers)])
        fingerprint = hashlib.sha256(where + b"\0" + request.body).hexdigest()
        if (answer := self._replayed(key, fingerprint, again, tenant)) is not None:
            return answer
        ident = self._claim(key, fingerprint)
        self._here.add(key)
        try:
            with on_request(ident):
                answer = run()
            with contextlib.suppress(RecollectError):  # the write was done, so the client gets its answer
                self._keep(key, fingerprint, answer, ident, tenant, secret)
        except _NOTHING_DONE:  # so it may be tried again; of anything else it is not known
            with contextlib.suppress(RecollectError):
                self._store.remove(PLACE, _SHELF, [key])
            raise
        finally:
            self._here.discard(key)
        return answer

    def _keep(self, key: str, fingerprint: str, answer: Answer, ident: str, tenant: str, secret: bool) -> None:
        body = {"request": fingerprint, "status": answer.status, "ids": list(answer.ids), "ident": ident}
        self._store.keep(PLACE, ShelfItem(_SHELF, key, body, created_at=self._clock(), changed_at=self._clock()))
        if not answer.ids and not secret:
            written = tuple((place, self._store.written(place)) for place in self._store.places(tenant))
            with self._lock:
                self._answers[key] = _Kept(answer, ident, written)
                self._size += len(answer.content) + _LONGEST
                while self._size > _ROOM:
                    self._drop(next(iter(self._answers)))
        if self._clock() - self._cleaned > _CLEANING:
            self._cleaned = self._clock()
            self.clean()

    def _drop(self, key: str) -> None:
        """With the lock held."""
        if (gone := self._answers.pop(key, None)) is not None:
            self._size -= len(gone.answer.content) + _LONGEST

    def _replayed(self, key: str, fingerprint: str, again: Again, tenant: str) -> Answer | None:
        """The answer of the first time; None if there was none."""
        stored = self._store.find(PLACE, _SHELF, [key])
        if not stored:
            return None
        body = stored[0].body
        if body["request"] != fingerprint:
            raise ConflictError(f"{HEADER}: was used for another request before; use a new one")
        if "status" not in body:
            if key not in self._here and self._was_taken_back(body.get("ident", ""), tenant):
                self._store.remove(PLACE, _SHELF, [key])
                return None
            return _marked(self._interrupted(key, body, again, tenant))
        answer = again(body["ids"], ()) if body["ids"] else self._in_memory(key, tenant)
        if answer is None:
            answer = self._from_log(body, again, tenant)
        if answer is None:
            raise DoneError(f"{HEADER}: this request was done already, and what came of it is not kept")
        return _marked(answer._replace(status=body["status"]))

    def _in_memory(self, key: str, tenant: str) -> Answer | None:
        """Unless something was deleted since: the answer may hold its text."""
        with self._lock:
            in_memory = self._answers.get(key)
        if in_memory is None:
            return None
        entries = self._entries(in_memory.ident, tenant)
        own = frozenset(name for entry in entries for name in entry.meta.get("things_changed") or ())
        if not any(self._deleted_since(place, written, own) for place, written in in_memory.written):
            return in_memory.answer
        with self._lock:
            self._drop(key)
        return None

    def _deleted_since(self, place: Place, written: int, own: frozenset[str]) -> bool:
        """Whether a memory was deleted there, or one of the request's own things was changed or removed."""
        if self._store.written(place) < written:  # the workspace was dropped, and perhaps begun anew
            return True
        for entry in self._store.entries(place, newest_first=True):
            if entry.seq <= written:
                return False
            if entry.meta.get("deleted") or own.intersection(entry.meta.get("things_changed") or ()):
                return True
        return False

    def _was_taken_back(self, ident: str, tenant: str) -> bool:
        """Whether the request was interrupted between two places, so that it is safe to run it again: the half of it
        was taken back, or it deleted in some places only, and deletes the rest now."""
        entries = self._entries(ident, tenant)
        parts = {entry.meta["part_of"]: entry.meta["parts"] for entry in entries if "parts" in entry.meta}
        for whole, expected in parts.items():
            if sum(entry.meta.get("part_of") == whole for entry in entries) < expected:
                return True
        return bool(entries) and all(self._is_unfinished(entry, tenant) for entry in entries)

    def _is_unfinished(self, entry: Entry, tenant: str) -> bool:
        return any(
            other.meta.get("unfinished") and other.meta.get("of") == entry.id  # not what somebody wanted undone
            for place in self._store.places(tenant)
            for other in self._store.entries(place, about=entry.id)
        )

    def _interrupted(self, key: str, body: dict[str, Any], again: Again, tenant: str) -> Answer:
        """The answer to a request of which it was never noted that it was done."""
        if key not in self._here and (answer := self._from_log(body, again, tenant)) is not None:
            return answer
        if key in self._here or self._clock() - parse_time(body["since"], "since") < _UNDER_WAY:
            raise UnderWayError(f"{HEADER}: the same request is being worked on; try again in a moment")
        raise DoneError(
            f"{HEADER}: the same request was interrupted, and the audit log holds no change of it; look before you "
            "send it under a new key"
        )

    def _from_log(self, body: dict[str, Any], again: Again, tenant: str) -> Answer | None:
        """The answer made anew, from what the audit log tells of the request. None if there is nothing of it.

        DoneError names the entries if an answer cannot be made of them.
        """
        entries = self._entries(body.get("ident", ""), tenant)
        if not entries:
            return None
        if (answer := again(_ids(entries), entries)) is not None:
            return answer
        named = ", ".join(entry.id for entry in entries[:_NAMED])
        raise DoneError(f"{HEADER}: this request was done already; in the audit log it is {named}")

    def _entries(self, ident: str, tenant: str) -> list[Entry]:
        """The audit entries of a request, the first first."""
        if not ident:
            return []
        entries = [
            entry
            for place in dict.fromkeys((*self._store.places(tenant), PLACE))
            for entry in self._store.entries(place, about=ident)
            if entry.action != "refuse" and entry.meta.get("request") == ident
        ]
        return sorted(entries, key=lambda entry: entry.id)

    def _claim(self, key: str, fingerprint: str) -> str:
        """The id under which audit entries name the request. A key may be used for another one after a day."""
        ident = new_id()
        body = {"request": fingerprint, "since": self._clock().isoformat(), "ident": ident}
        try:
            self._store.keep(PLACE, ShelfItem(_SHELF, key, body, created_at=self._clock()), expect=0)
        except ConflictError:
            raise UnderWayError(f"{HEADER}: the same request is being worked on; try again in a moment") from None
        return ident

    def clean(self) -> int:
        """Forget those that are older than a day. How many."""
        until = self._clock() - _KEPT
        old: list[str] = []
        for item in self._store.shelf(PLACE, _SHELF):
            if item.created_at >= until:
                break
            old.append(item.key)
        return self._store.remove(PLACE, _SHELF, old) if old else 0


def _marked(answer: Answer) -> Answer:
    return answer._replace(headers={**answer.headers, "idempotent-replay": "true"})


def _ids(entries: Sequence[Entry]) -> list[str]:
    """The memories that the first change made, or else changed. What came after it, such as a quota, was not asked."""
    same = [entry for entry in entries if entry.action == entries[0].action]
    created = [ident for entry in same for ident in entry.meta.get("created") or ()]
    return created or [ident for entry in same for ident in entry.meta.get("changed") or ()]
