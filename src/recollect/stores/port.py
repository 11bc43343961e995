"""The port between the engine and whatever keeps its memories.

A store keeps and searches. It never ranks, decays or decides. Every store passes `recollect.conformance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from recollect.stores.corpus import Corpus

from recollect.filters import Filter
from recollect.policies.decay import Decay
from recollect.record import Address, Record
from recollect.stores.audit import Entry
from recollect.text.query import TextQuery


class Place(NamedTuple):
    """What is stored, locked and audited together: one workspace, or what a tenant's accounts share (None)."""

    tenant: str
    workspace: str | None

    @classmethod
    def of(cls, record: Record) -> Place:
        return cls(record.address.tenant, None if record.tier == "account" else record.address.workspace)


def by_place(records: Sequence[Record]) -> dict[Place, list[Record]]:
    groups: dict[Place, list[Record]] = {}
    group, address, tier = [], None, None
    for record in records:
        if record.address is not address or record.tier is not tier:  # rarely: they mostly come from one view
            address, tier = record.address, record.tier
            group = groups.setdefault(Place.of(record), [])
        group.append(record)
    return groups


class Match(NamedTuple):
    record: Record
    score: float
    """Higher is better; comparable within one search only."""


class StoreStats(msgspec.Struct, frozen=True):
    """Counts of what a filter sees, and the bytes on disk of the places it looks in."""

    total: int
    states: Mapping[str, int]
    kinds: Mapping[str, int]
    tiers: Mapping[str, int]
    agents: Mapping[str, int]
    """Per agent; shared memories under the empty name."""
    embedded: int
    size_bytes: int


class Settings(msgspec.Struct, frozen=True):
    """What people set for a place beside its data. It goes before the preset's, where it is there."""

    decay: Decay | None = None
    quota: int | None = None
    injection: Mapping[str, Any] = {}
    """Fields of the preset's style of injection, by their names there."""


NO_SETTINGS = Settings()


class Damage(NamedTuple):
    """Something on disk that is not as it was written."""

    where: str
    problem: str


class Store(Protocol):
    """Writes are durable when the call, or the outermost transaction around it, returns."""

    def transaction(self, place: Place) -> AbstractContextManager[object]:
        """All or nothing for this place, and nobody else writes there meanwhile. May be nested."""
        ...

    def put(self, records: Sequence[Record]) -> Sequence[Record]:
        """Add new records and return them as stored: a store with ids of its own gives them here.

        An id that exists is a ConflictError, and none of that place's records is stored.
        """
        ...

    def get(self, ids: Sequence[str], view: Address) -> list[Record]:
        """Those that exist and that the view may see, in whatever state, in no particular order, with embeddings."""
        ...

    def update(self, records: Sequence[Record]) -> None:
        """Replace the stored fields of records that exist. Content, address and creation time stay."""
        ...

    def delete(self, records: Sequence[Record], reason: str = "") -> None:
        """A store that keeps marks of what was deleted keeps the reason with them."""
        ...

    def touch(self, records: Sequence[Record], at: datetime) -> None:
        """Count one retrieval each. Seen at once by this process; durable with the next write, or on close."""
        ...

    def scan(
        self, where: Filter, *, newest_first: bool = False, limit: int | None = None, bare: bool = False
    ) -> Iterator[Record]:
        """All that match, by creation time, with embeddings. Others may write while the scan goes on.

        `bare` asks for less: content and embedding may be left out where that is quicker.
        """
        ...

    def search_text(self, query: TextQuery, where: Filter, limit: int) -> list[Match]:
        """The best matches, best first, without embeddings."""
        ...

    def stats(self, where: Filter) -> StoreStats: ...

    def corpus(self, place: Place, model: str | None) -> AbstractContextManager[Corpus]:
        """All memories of a place at once, with their vectors of the model if one is named."""
        ...

    def settings(self, place: Place) -> Settings:
        """As they are now: another process may have changed them. Asked for often. InputError names a bad one."""
        ...

    def crowded(self, place: Place) -> bool:
        """Whether a place is so full that it is time to compact it."""
        ...

    def tenants(self) -> list[str]: ...

    def workspaces(self, tenant: str) -> list[str]: ...

    def drop(self, tenant: str, workspace: str) -> None:
        """Remove a workspace with everything in it. Other processes that have it open lose sight of it at once."""
        ...

    def scrub(self, place: Place) -> None:
        """Leave no trace of deleted data on disk. ConcurrencyError while another process still reads it."""
        ...

    def compact(self, place: Place) -> int:
        """Scrub, and give unused space back. Returns the bytes freed."""
        ...

    def damage(self, place: Place) -> list[Damage]:
        """Look at everything on disk."""
        ...

    def close(self) -> None: ...


class Journal(Protocol):
    """The audit log of each place, and what it takes to undo an entry. All calls join the open transaction."""

    def append(self, place: Place, entry: Entry, before: Sequence[Record] = ()) -> Entry:
        """Seal the entry onto the end of the place's log (its seq and hash are given here)."""
        ...

    def entries(
        self, place: Place, *, contains: str = "", about: str = "", newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Entry]:
        """Entries whose message has the text, whatever its case, and whose meta names the memory id."""
        ...

    def written(self, place: Place) -> int:
        """How many entries were ever appended."""
        ...

    def before(self, place: Place, seq: int) -> list[Record] | None:
        """The records as they were before that entry; None once compaction dropped them."""
        ...

    def forget_before(self, place: Place, *, until: datetime | None = None, about: Sequence[str] | None = None) -> int:
        """Drop what undo needs: of entries older than `until`, of those that name these memories, or of all."""
        ...


class JournaledStore(Store, Journal, Protocol):
    """What the engine runs on."""
