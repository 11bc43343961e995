"""Finding what is not as it was written. Damaged memories are logged and left out of what callers see."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from recollect.stores.audit import check
from recollect.stores.port import Administered, Damage, HasIntegrityCheck, OnDisk, Place, Store
from recollect.stores.shelves import ShelfItem, names
from recollect.values.bodies import check_body
from recollect.values.errors import InputError, StoreError
from recollect.values.filters import Filter
from recollect.values.record import Address, Record, Tier, utc_now

CHANGED = "does not match its checksum: it was changed outside recollect"

_log = logging.getLogger("recollect.store")
_log.addHandler(logging.NullHandler())  # nothing on stderr unless the application asks for it


def is_intact(record: Record) -> bool:
    """Whether the content and what else never changes are as they were written. It costs one SHA-256."""
    return record.checksum == record.digest()


def intact(records: Iterable[Record]) -> Iterator[Record]:
    """Those that are, with a line in the log for each that is not."""
    for record in records:
        if is_intact(record):
            yield record
        else:
            log_damage(Place.of(record), record.id, CHANGED)


def readable(place: Place, items: Iterable[ShelfItem]) -> Iterator[ShelfItem]:
    """Things whose body can be read, with a line in the log for each that is left out."""
    for item in items:
        try:
            check_body(item.shelf, item.body)
        except InputError as error:
            log_damage(place, f"{item.shelf} {''.join(names([item]) or ())}", f"its {error.field} cannot be read")
        else:
            yield item


def log_damage(place: Place, where: str, problem: str) -> None:
    """Under the names of the ledger document."""
    details = {"where": where, "problem": problem}
    extra = {"component": "MemoryManager", "session_id": place.workspace, "metadata": details}
    _log.error("corruption detected", extra=extra)


def damage_note(count: int) -> str:
    """For the report of an answer that lacks something."""
    return f"{count:,} damaged {'memory is' if count == 1 else 'memories are'} left out: see `recollect doctor`"


def damaged(store: Store, place: Place) -> list[Damage]:
    """Of what a store has of a place, but for its audit log."""
    damages = store.damage(place) if isinstance(store, HasIntegrityCheck) else []
    return damages if isinstance(store, OnDisk) else [*damages, *_changed(store, place)]


def _changed(store: Store, place: Place) -> Iterator[Damage]:
    """Memories that are not as they were written, where only the store itself knows how it keeps them."""
    tiers: tuple[Tier, ...] = ("account",) if place.workspace is None else ("workspace", "channel", "conversation")
    for record in store.scan(Filter(Address(*place), utc_now(), None, tiers)):
        if not is_intact(record):
            yield Damage(record.id, CHANGED)


def all_places(store: Store) -> list[Place]:
    """Of all tenants."""
    tenants = store.tenants() if isinstance(store, Administered) else ["default"]
    return [place for tenant in tenants for place in store.places(tenant)]


def damage_in(store: Store, place: Place) -> list[Damage]:
    """Of the files of a place and of its audit log."""
    damages: list[Damage] = []
    try:
        damages += damaged(store, place)
        # Counted first: an entry that another process appends in between is one more, and none that is missing.
        written = store.written(place)
        damages += [Damage("audit log", broken.problem) for broken in check(store.entries(place), written)]
    except StoreError as error:
        if not damages:
            damages.append(Damage("files", str(error)))
    return damages
