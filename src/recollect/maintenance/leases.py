"""Who does a job now, until when, and when it was last done: on the shelf `jobs` of each place."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from recollect.stores.port import Place
from recollect.stores.shelves import ShelfItem
from recollect.values.errors import ConflictError, InputError
from recollect.values.record import moved, new_id, parse_time
from recollect.view import View

SHELF = "jobs"
_LEASE = timedelta(minutes=10)
"""After this time another process may take over. The first one notices before it commits, and stops."""
_APART = timedelta(minutes=10)
"""How far clocks may be apart. A lease that ends later than that was written by one that is wrong, and holds nobody."""


class LeaseLostError(ConflictError):
    """It took so long that another process does the job now."""


class Lease(msgspec.Struct, frozen=True):
    """Held by the process that does a job. Other processes skip the job and do not wait."""

    place: Place
    thing: ShelfItem

    def check(self, view: View) -> None:
        """In the transaction that changes something: LeaseLostError if someone else has the job by now."""
        stored = view.store.find(self.place, SHELF, [self.thing.key])
        if not stored or stored[0].version != self.thing.version:
            raise LeaseLostError(f"job {self.thing.body['job']}: it took so long that another process took over")


def due(view: View, place: Place, job: str, hours: float) -> bool:
    """Whether it is time. However many times were missed, that is one run."""
    if not hours:
        return True
    stored = view.store.find(place, SHELF, [_key(view, job)])
    last = _time(stored[0], "last_run") if stored else None
    if last is None:
        return True
    since, interval = view.now() - last, timedelta(hours=hours)
    return since >= interval or since <= -interval  # a clock that went back must not stop a job for as long


def take(view: View, place: Place, job: str) -> Lease | None:
    """None while another process has it."""
    key = _key(view, job)
    with view.store.transaction(place):
        now = view.now()  # not before: another may have taken it while this one waited
        stored = view.store.find(place, SHELF, [key])
        old = stored[0] if stored else ShelfItem(SHELF, key, {"job": job}, created_at=now)
        until = _time(old, "until")
        if until is not None and now < until <= moved(now, _LEASE + _APART):
            return None
        body = {**old.body, "owner": new_id(), "until": moved(now, _LEASE).isoformat()}
        item = replace(old, body=body, changed_at=now)
        return Lease(place, view.store.keep(place, item, expect=old.version))


def give_back(view: View, lease: Lease, *, done: bool) -> None:
    """Let others have the job; `done` is when it need not be done again until it is due."""
    with view.store.transaction(lease.place):
        try:
            lease.check(view)
        except LeaseLostError:
            return
        body = {name: value for name, value in lease.thing.body.items() if name not in ("owner", "until")}
        if done:
            body["last_run"] = view.now().isoformat()
        item = replace(lease.thing, body=body, changed_at=view.now())
        view.store.keep(lease.place, item, expect=lease.thing.version)


def _key(view: View, job: str) -> str:
    """The key of a job's lease. A narrower view has its own, because its run does not cover the whole place."""
    if view.whole:
        return job
    address = view.address
    parts = (address.account, address.channel, address.conversation, address.agent)
    return f"{job}-{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]}"


def _time(item: ShelfItem, name: str) -> datetime | None:
    try:
        return parse_time(item.body[name], name)
    except (KeyError, InputError):  # nobody's; or written by something else, and then done anew
        return None
