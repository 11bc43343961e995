"""The port between the engine and whatever keeps its memories.

A store keeps and searches. It never ranks, decays or decides. What it is asked it answers with values: when a call has
returned, nothing of the store is locked, and nobody calls back into it. Every store passes `recollect.conformance`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from recollect.policies.decay import Decay
from recollect.stores.audit import Entry, UndoSize
from recollect.stores.undo import NO_UNDO, Undo
from recollect.values.filters import Filter
from recollect.values.record import Record

if TYPE_CHECKING:
    from recollect.stores.intents import Intents
    from recollect.stores.metrics import Metric
    from recollect.stores.shelves import ShelfItem
    from recollect.stores.shortlist import Ask, Shortlist


SERVER = " server"
KNOWLEDGE = " knowledge"


class Place(NamedTuple):
    """What is stored, locked and audited together: one workspace, or what a tenant's accounts share (None)."""

    tenant: str
    workspace: str | None

    @property
    def reserved(self) -> bool:
        """Whether it is the engine's own: its name begins with a space, and no name that somebody chooses does."""
        return self.workspace is not None and self.workspace.startswith(" ")

    @property
    def hidden(self) -> bool:
        """Whether it is a server's own, and none of the tenant's: keys, people and logins."""
        return self.workspace == SERVER

    @classmethod
    def of(cls, record: Record) -> Place:
        return cls(record.address.tenant, None if record.tier == "account" else record.address.workspace)

    @staticmethod
    def seen_by(where: Filter) -> list[Place]:
        """Where memories that a filter sees may be."""
        view = where.seen_from
        own = [] if view.workspace is None or where.tiers == ("account",) else [Place(view.tenant, view.workspace)]
        return own if where.tiers and "account" not in where.tiers else [*own, Place(view.tenant, None)]


def in_order(places: Sequence[Place]) -> list[Place]:
    """Each once, in the one order in which locks are taken, so that no two callers can wait for each other."""
    return sorted(set(places), key=lambda place: (place.tenant, place.workspace or ""))


def by_place(records: Sequence[Record]) -> dict[Place, list[Record]]:
    groups: dict[Place, list[Record]] = {}
    group, address, tier = [], None, None
    for record in records:
        if record.address is not address or record.tier is not tier:  # rarely: they mostly come from one view
            address, tier = record.address, record.tier
            group = groups.setdefault(Place.of(record), [])
        group.append(record)
    return groups


Order = Literal["oldest", "newest", "importance"]
"""By creation time, or the least important first and of those the oldest. Ties are in the order of storing."""

By = Literal["state", "kind", "tier", "agent", "embedded", "speaker"]
"""What is counted by. `embedded` is yes or no; `speaker` stands alone."""


class After(NamedTuple):
    """Where a scan goes on: behind this memory. If it is gone, what is equal to it in the order may come again."""

    id: str
    created_at: datetime
    importance: float

    @classmethod
    def of(cls, record: Record) -> After:
        return cls(record.id, record.created_at, record.importance)


class Settings(msgspec.Struct, frozen=True):
    """What people set for a place beside its data. It goes before the preset's, where it is there."""

    decay: Decay | None = None
    quota: int | None = None
    injection: Mapping[str, Any] = {}
    """Fields of the preset's style of injection, by their names there."""


NO_SETTINGS = Settings()


class Shortfall(NamedTuple):
    """Something that a store would not keep as it was given."""

    problem: str
    fields: tuple[str, ...] = ()
    """What of the memories would come back as another value. Without any, they cannot be stored at all."""


class TenantLimits(msgspec.Struct, frozen=True):
    """How much a tenant may store and ask for; None is for no limit."""

    memories: int | None = None
    bytes: int | None = None
    """Of content: the texts and data of memories."""
    requests_per_second: float | None = None
    """Over time, of all its keys together. Counted by whoever serves the store."""


class Damage(NamedTuple):
    """Something on disk that is not as it was written."""

    where: str
    problem: str


class Memories(Protocol):
    """Writes are durable when the call, or the outermost transaction around it, returns."""

    def transaction(self, *places: Place) -> AbstractContextManager[object]:
        """All or nothing for these places, and nobody else writes there meanwhile. Readers do not wait for it.

        May be nested, but only in places that are open already: whoever needs several names them at once.
        """
        ...

    def put(self, place: Place, records: Sequence[Record]) -> Sequence[Record]:
        """Add new records and return them as stored: a store with ids of its own gives them here.

        An id that exists is a ConflictError, and none of them is stored.
        """
        ...

    def get(self, place: Place, ids: Sequence[str]) -> list[Record]:
        """Those that exist there, in whatever state, in no particular order, with embeddings."""
        ...

    def with_texts(self, place: Place, texts: Sequence[str]) -> list[Record]:
        """Those in no conversation whose text is one of these to the letter, unless they are archived or superseded.

        In the order of storing, with embeddings.
        """
        ...

    def update(self, place: Place, records: Sequence[Record]) -> None:
        """Replace the fields that may change of records that exist. Content, address, times and vector stay."""
        ...

    def delete(self, place: Place, ids: Sequence[str], reason: str = "") -> None:
        """NotFoundError for one that does not exist. A store that keeps marks of what was deleted keeps the reason."""
        ...

    def touch(self, place: Place, ids: Sequence[str], at: datetime) -> None:
        """Count one retrieval each. Never waits and never fails: what cannot be written now is kept for later.

        This process sees it at once. It is written with the next change, after some seconds, or on close.
        """
        ...

    def scan(
        self,
        where: Filter,
        *,
        order: Order = "oldest",
        after: After | None = None,
        limit: int | None = None,
        whole: bool = True,
        contains: str | None = None,
    ) -> Iterator[Record]:
        """All that match. Others may write while the scan goes on.

        Without `whole`, content and embedding may be left out where that is quicker: content is None then.
        With `contains`, a case-folded text, memories whose text has it nowhere may be left out. The caller looks again.
        """
        ...

    def count(self, where: Filter, by: Sequence[By] = ()) -> dict[tuple[str, ...], int]:
        """How many match, by the values of some fields. An agent or speaker that is none is the empty text."""
        ...

    def search(self, ask: Ask) -> list[Shortlist]:
        """What a question needs to be ranked, for each place that its filter looks in and that holds something."""
        ...

    def ids_like(self, place: Place, part: str, limit: int) -> list[str]:
        """Up to so many ids that begin or end with `part`, the one that is equal to it first."""
        ...

    def lacking(self, place: Place, model: str, dimensions: int, limit: int) -> list[str]:
        """Ids of memories that are not superseded and have no vector of this model and size, the newest first."""
        ...

    def embed(self, place: Place, model: str, vectors: Mapping[str, bytes]) -> None:
        """Give memories their vectors; ids that are gone are passed over.

        Vectors can be made again at any time: they are seen at once, and durable with the next change or on close.
        """
        ...

    def places(self, tenant: str) -> list[Place]:
        """Where something was stored, workspaces first."""
        ...

    def drop(self, place: Place) -> None:
        """Remove a workspace with everything in it. Other processes that have it open lose sight of it at once."""
        ...


class Audit(Protocol):
    """The audit log of each place, and what it takes to undo an entry. All calls join the open transaction."""

    def append(self, place: Place, entry: Entry, undo: Undo = NO_UNDO) -> Entry:
        """Seal the entry onto the end of the place's log (its seq and hash are given here)."""
        ...

    def entries(
        self,
        place: Place,
        *,
        contains: Sequence[str] = (),
        about: str = "",
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Entry]:
        """Entries whose message has one of the texts, whatever their case, and whose meta names the id."""
        ...

    def written(self, place: Place) -> int:
        """How many entries were ever appended."""
        ...

    def undo_of(self, place: Place, seq: int) -> Undo | None:
        """What it takes to undo that entry; None where it changed nothing, or once that was purged."""
        ...

    def undo_sizes(self, place: Place) -> list[UndoSize]:
        """The entries that can still be undone, the oldest first, and the bytes that each takes for that."""
        ...

    def undos(self, place: Place) -> Iterator[tuple[int, Undo]]:
        """All that undo needs: the number of each entry, the oldest first, and what it replaced."""
        ...

    def purge(
        self,
        place: Place,
        *,
        seqs: Collection[int] | None = (),
        ids: Collection[str] = (),
        documents: Collection[tuple[str, str]] = (),
    ) -> int:
        """Delete the undo data of the entries with these numbers, or of all, and of whatever entry what it has of these
        memories and documents (shelf and key). What else an entry has stays.

        A memory that was deleted is gone for good then. Returns of how many entries something was deleted.
        """
        ...


class Shelves(Protocol):
    """What is addressed rather than recalled, in the same transactions as the memories of its place."""

    def keep(self, place: Place, item: ShelfItem, *, expect: int | None = None, exact: bool = False) -> ShelfItem:
        """Put a thing under its key, in place of the one that is there, and return it with its version.

        `expect` is the version that must be there, 0 for none; ConflictError if it is not. Versions count from 1, and
        anew after a removal. `created_at` stays that of the first. An `exact` one is a copy: its version and its
        `created_at` are as given, and versions count on from there.
        """
        ...

    def find(self, place: Place, shelf: str, keys: Sequence[str]) -> list[ShelfItem]:
        """Those that are there, in the order of the keys."""
        ...

    def shelf(
        self,
        place: Place,
        shelf: str | None = None,
        *,
        parent: str | None = None,
        contains: str = "",
        newest_first: bool = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> Iterator[ShelfItem]:
        """The things of one shelf, or of all, in the order in which they were first kept.

        `contains` is a text somewhere in the body, whatever its case. `after` is the key to go on behind.
        """
        ...

    def remove(self, place: Place, shelf: str, keys: Sequence[str]) -> int:
        """How many were there."""
        ...


class Store(Memories, Audit, Shelves, Protocol):
    """What the engine runs on."""

    def close(self) -> None:
        """Write what was put off. A later call opens what it needs again."""
        ...


@runtime_checkable
class HasIntegrityCheck(Protocol):
    """A store that can have lost something without its memories telling."""

    def damage(self, place: Place) -> list[Damage]:
        """What is missing, or does not belong together."""
        ...


@runtime_checkable
class OnDisk(HasIntegrityCheck, Protocol):
    """A store of files, which can be damaged, grow full and hold traces of what was deleted."""

    def opened_at(self) -> str:
        """The path that it was opened by: its folder, or the file of a store that is one file."""
        ...

    def settings(self, place: Place) -> Settings:
        """As they are now: another process may have changed them. Asked for often. InputError names a bad one."""
        ...

    def size(self, place: Place) -> int:
        """Bytes on disk."""
        ...

    def unsaved(self, place: Place) -> int:
        """Writes of this process that the disk has refused so far. They are in memory only, and lost with it."""
        ...

    def crowded(self, place: Place) -> bool:
        """Whether a place is so full that it is time to compact it."""
        ...

    def scrub(self, place: Place, erased: Collection[str] = ()) -> int:
        """Leave no trace of deleted data on disk, nor of what is damaged there and has one of these ids.

        Returns how many damaged lines stay, of which nobody can tell whose they are. ConcurrencyError while another
        process still reads older data.
        """
        ...

    def compact(self, place: Place) -> int:
        """Scrub, and give unused space back. Returns the bytes freed."""
        ...

    def damage(self, place: Place) -> list[Damage]:
        """Look at everything on disk, and so at every memory's checksum, too."""
        ...

    def copy(self, place: Place, folder: str) -> None:
        """Write a place as it is at one moment into another folder, where `elsewhere` finds it. Nobody waits for it."""
        ...

    def elsewhere(self, folder: str) -> Store:
        """A store of this kind in another folder."""
        ...

    def check_apart(self, folder: str) -> None:
        """InputError for `target` if what is put into the folder would be taken for this store's."""
        ...


@runtime_checkable
class HasIntents(Protocol):
    """A store that commits the places of one change one after the other."""

    intents: Intents
    """The records of changes that were not finished; the engine says how to finish them."""


@runtime_checkable
class Administered(Protocol):
    """A store that knows who its tenants are."""

    def tenants(self) -> list[str]: ...


@runtime_checkable
class HasIdentity(Protocol):
    """A store that can be reached in several ways."""

    def identity(self) -> str:
        """The same for two that keep in the same place, however they were named."""
        ...


@runtime_checkable
class HasRemoteTenants(Protocol):
    """A store whose tenants may be on servers that it was not told of."""

    def away(self) -> dict[str, str]:
        """The tenants that cannot be reached by it, which `tenants` leaves out, and the server that each is on."""
        ...


@runtime_checkable
class HasLimits(Protocol):
    """A store that cannot keep all that others can."""

    def shortfalls(self, place: Place, records: Iterable[Record]) -> list[Shortfall]:
        """What would not come back as it is, if just these memories were in the place. Nothing is written."""
        ...


@runtime_checkable
class HasAdvice(Protocol):
    """A store that knows how it could be set up better."""

    def remarks(self) -> list[str]:
        """What works, but not as well as it could, and what would help."""
        ...

    def problems(self) -> list[str]:
        """What is wrong with the set-up: missing policies, rights, tables or versions."""
        ...


@runtime_checkable
class HasTenantLimits(Protocol):
    """A store that refuses with a LimitError what would give a tenant more than it may have."""

    def limits(self, tenant: str) -> TenantLimits: ...


@runtime_checkable
class HasMetrics(Protocol):
    """A store that measures itself. No label holds content, or the name of a tenant, a person or a key."""

    def gauges(self) -> list[Metric]:
        """How things are now. Never raises, and asks its server at most every 15 s."""
        ...

    def counters(self) -> list[Metric]:
        """What this process did since it began; a value may be a histogram."""
        ...
