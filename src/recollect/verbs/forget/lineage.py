"""What an erasure must reach: earlier versions and sources of memories, stored or in the undo data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from recollect.stores.audit import TEXTS
from recollect.stores.port import Place
from recollect.stores.shelves import ShelfItem
from recollect.stores.undo import Undo
from recollect.values.errors import NotFoundError
from recollect.values.filters import Filter
from recollect.values.record import MAX_SOURCES, Address, Record
from recollect.values.validation import MAX_REFERENCES
from recollect.verbs.revise import REVISED
from recollect.view import View, unseen

_UNIQUE = 32
"""Characters of an id that no other memory has, in whatever place."""
_TOGETHER = 500
"""Ids that a filter names at once."""
Key = tuple[str, str]
"""The shelf and the key of a document."""
_Key = tuple[Place, str]
"""A memory: a notebook numbers those of each place anew."""
_Undos = Sequence[tuple[int, Undo]]
"""The undo data of a place: the numbers of entries, and what they replaced."""


def drop_undos(
    view: View, place: Place, ids: Collection[str], thing_matches: Callable[[ShelfItem], bool] | None = None
) -> None:
    """Purge these memories and documents from the undo data. Called in a transaction."""
    documents = (
        _old_documents(list(view.store.undos(place)), thing_matches) if thing_matches is not None else set[Key]()
    )
    view.store.purge(place, ids=ids, documents=documents)


def _old_documents(undos: _Undos, thing_matches: Callable[[ShelfItem], bool] | None) -> set[Key]:
    """Documents that match, in the undo data."""
    if thing_matches is None:
        return set()
    return {(item.shelf, item.key) for _, undo in undos for item in undo.things if thing_matches(item)}


class Erasure(msgspec.Struct):
    """What goes besides the memories that were chosen."""

    documents: dict[Place, set[Key]] = {}
    """Documents whose older versions in the undo data go."""
    undos: set[Place] = set()
    """Places whose undo data holds something of it."""
    rows: dict[Place, list[Record]] = {}
    """Earlier versions that are stored, and sources that are but are archived, expired or superseded."""
    deleted: set[str] = set()
    """Earlier versions, and memories that were forgotten before and could have been brought back."""
    sources: set[str] = set()
    remaining: set[str] = set()
    unreached: set[str] = set()
    """Sources in the undo data that this view may not erase."""
    is_cut: bool = False
    """Whether a memory has had more sources than it can name."""
    going: dict[Place, set[str]] = {}
    """All that goes, also what was chosen, and earlier versions of which nothing but the id is left."""
    compacted: set[Place] = set()
    """Places that may hold traces of a memory of which nothing else is known."""

    @property
    def places(self) -> set[Place]:
        return {*self.undos, *self.rows, *self.compacted}


def plan_erasure(
    view: View,
    records: Sequence[Record],
    missing: Collection[str],
    places: Iterable[Place],
    matches: Callable[[Record], bool] | None = None,
    thing_matches: Callable[[ShelfItem], bool] | None = None,
    may_take: Callable[[Record], bool] = lambda record: True,
) -> Erasure:
    """What goes with these records.

    `missing` are ids of memories that are not stored any more; NotFoundError for one that was not, or that this view
    could not see. `matches` says of a memory that was forgotten before whether it is meant, too,
    and `may_take` of one that this view sees whether it may go because another one does.
    """
    return _ErasurePlan(view, places, records, may_take).run(missing, matches, thing_matches)


class _Relative(NamedTuple):
    """A memory that goes, or may go because another one does."""

    place: Place
    id: str
    record: Record | None
    """None if only the audit log knows of it."""
    is_stored: bool
    is_source: bool
    """Whether a memory that goes was derived from it, or from a later version of it."""

    @property
    def key(self) -> _Key:
        return self.place, self.id


class _ErasurePlan:
    def __init__(
        self, view: View, places: Iterable[Place], records: Sequence[Record], may_take: Callable[[Record], bool]
    ) -> None:
        self._view, self._may_take = view, may_take
        self._chosen = [_Relative(Place.of(record), record.id, record, True, False) for record in records]
        self._going = {relative.key for relative in self._chosen}
        self._staying: set[_Key] = set()
        self._undos: dict[Place, _Undos] = {}
        self._old: dict[_Key, Record] = {}
        self._earlier: dict[_Key, set[str]] = defaultdict(set)
        """Ids of the memories that one superseded, as far as the undo data tells."""
        self._erasure = Erasure()
        self._read({*places, *view.places, *map(Place.of, records)})

    def run(
        self,
        missing: Collection[str],
        matches: Callable[[Record], bool] | None,
        thing_matches: Callable[[ShelfItem], bool] | None,
    ) -> Erasure:
        self._find_deleted(missing, matches)
        self._follow()
        self._name_remaining()
        self._choose_undos(thing_matches)
        for place, ident in self._going:
            self._erasure.going.setdefault(place, set()).add(ident)
        return self._erasure

    def _read(self, places: Iterable[Place]) -> None:
        for place in places:
            if place not in self._undos:
                self._undos[place] = sorted(self._view.store.undos(place), key=lambda undo: undo[0])
                latest = {record.id: record for _, undo in self._undos[place] for record in undo.deleted}
                self._old |= {(place, ident): record for ident, record in latest.items()}
                for record in latest.values():
                    if record.superseded_by is not None:
                        self._earlier[place, record.superseded_by].add(record.id)
                self._read_revisions(place)

    def _read_revisions(self, place: Place) -> None:
        """The undo data of `revise` holds the old version as it was before, so only the log names its successor.

        Of a version that is damaged, too.
        """
        undone: set[str] = set()
        for entry in self._view.store.entries(place, contains=(REVISED,), newest_first=True):
            if entry.action == "undo":
                undone.add(entry.meta.get("of", ""))
            elif entry.action == "revise" and entry.id not in undone:
                for ident in entry.meta.get("created", ()):
                    self._earlier[place, ident].update(entry.meta.get("changed", ()))

    def _find_deleted(self, missing: Collection[str], matches: Callable[[Record], bool] | None) -> None:
        view = self._view
        for (place, ident), record in self._old.items():
            wanted = ident in missing and view.sees_memory(record)
            if (wanted or (matches and matches(record))) and not view.store.get(place, [ident]):
                self._choose(_Relative(place, ident, record, False, False))
        for ident in set(missing) - self._erasure.deleted:
            if (place := self._deleted_in(ident)) is None:
                raise NotFoundError(unseen(ident))
            self._choose(_Relative(place, ident, None, False, False))
            self._erasure.compacted.add(place)

    def _choose(self, relative: _Relative) -> None:
        self._erasure.deleted.add(relative.id)
        self._going.add(relative.key)
        self._chosen.append(relative)

    def _deleted_in(self, ident: str) -> Place | None:
        """Where the audit log says that this view could see it, and that it was deleted, and nothing else is known."""
        view = self._view
        for place in view.places:
            if (place, ident) in self._old or view.store.get(place, [ident]):
                return None  # this view does not see it
            for entry in view.store.entries(place, about=ident, newest_first=True):
                mark = view.actor_fingerprint(entry.id)
                inside = mark is None or mark in entry.meta.get("by", ())
                own = (view.whole and view.sees_private) or (entry.actor == view.address.agent and inside)
                if own and ident in (*entry.meta.get("deleted", ()), *entry.meta.get("removed", ())):
                    return place
        return None

    def _follow(self) -> None:
        """From memory to earlier versions and sources, and on to theirs. One that is live stays; the others go."""
        generation = self._chosen
        while generation:
            relatives = [*self._versions(generation), *self._sources(generation)]
            generation = [relative for relative in relatives if self._take(relative)]

    def _take(self, relative: _Relative) -> bool:
        """Whether it goes, which is noted. False also for one that was taken before."""
        erasure, record = self._erasure, relative.record
        if relative.key in self._going or relative.key in self._staying:
            return False
        if record is None:
            self._going.add(relative.key)  # it was erased or purged before, or it is damaged
            return True
        is_live = relative.is_stored and record.state(self._view.now()) == "live"
        if is_live or not self._may_erase(record):
            self._staying.add(relative.key)
            (erasure.remaining if relative.is_stored else erasure.unreached).add(relative.id)
            return False
        self._going.add(relative.key)
        (erasure.sources if relative.is_source else erasure.deleted).add(relative.id)
        if relative.is_stored:
            erasure.rows.setdefault(relative.place, []).append(record)
        return True

    def _may_erase(self, record: Record) -> bool:
        """A source may be in another workspace than the view's, but never another account's, agent's or channel's."""
        view = self._view
        if not self._may_take(record):
            return False
        if "workspace" in view.bound or record.tier == "account":
            return view.sees_memory(record)
        address = msgspec.structs.replace(view.address, workspace=record.address.workspace)
        return msgspec.structs.replace(view, address=address).sees_memory(record)

    def _versions(self, generation: Sequence[_Relative]) -> Iterator[_Relative]:
        """What these superseded. Damaged ones, too: an id and the successor's id are enough to delete one."""
        successors: dict[Place, dict[str, bool]] = defaultdict(dict)
        for relative in generation:
            successors[relative.place][relative.id] = relative.is_source
        for place, is_source in successors.items():
            everyone = Address(tenant=place.tenant, workspace=place.workspace)
            ids = list(is_source)
            for at in range(0, len(ids), _TOGETHER):
                some = tuple(ids[at : at + _TOGETHER])
                where = Filter(seen_from=everyone, now=self._view.now(), state=None, superseded_by=some)
                for record in self._view.store.scan(where):
                    if Place.of(record) == place:
                        yield _Relative(place, record.id, record, True, is_source[record.superseded_by or ""])
            old = {ident: new for new in ids for ident in self._earlier[place, new]}
            # Of a memory that is stored, the row says what superseded it: the change may have been undone.
            stored = {record.id for record in self._view.store.get(place, list(old))} if old else set[str]()
            for ident in old.keys() - stored:
                yield _Relative(place, ident, self._old.get((place, ident)), False, is_source[old[ident]])

    def _sources(self, generation: Sequence[_Relative]) -> Iterator[_Relative]:
        """What these were derived from, as far as anything is left of it."""
        for derived in filter(None, (relative.record for relative in generation)):
            if len(derived.derived_from) >= MAX_SOURCES:
                self._erasure.is_cut = True
            for ident in derived.derived_from:
                sources = self._with_id(ident, derived)
                if not sources and not _is_unique(ident) and len(derived.references) >= MAX_REFERENCES:
                    self._erasure.is_cut = True  # the conversation that would tell it from others is not named
                yield from sources

    def _with_id(self, ident: str, derived: Record) -> list[_Relative]:
        """The source, where it is or was. An account's memory may have one in each workspace, numbered alike."""
        is_anywhere = derived.tier == "account" and not _is_unique(ident)
        for widened in (True,) if is_anywhere else (False, True):
            if widened:  # it may be in another workspace
                tenant = self._view.address.tenant
                self._read(place for place in self._view.store.places(tenant) if not place.reserved)
            sources: list[_Relative] = []
            for place in self._undos:
                stored = self._view.store.get(place, [ident])
                for record in stored or filter(None, [self._old.get((place, ident))]):
                    if _is_source(record, derived):
                        sources.append(_Relative(place, ident, record, bool(stored), True))
            if sources:
                return sources
        return []

    def _name_remaining(self) -> None:
        """Also what was derived from something that goes, and stays."""
        ids = {ident for _, ident in self._going}
        for record in self._view.store.scan(self._view.where(), whole=False):
            if (Place.of(record), record.id) not in self._going and ids.intersection(record.derived_from):
                self._erasure.remaining.add(record.id)

    def _choose_undos(self, thing_matches: Callable[[ShelfItem], bool] | None) -> None:
        """Also the places where words beside the audit log are about something that goes."""
        every = {ident for _, ident in self._going}
        for place, undos in self._undos.items():
            here = {ident for home, ident in self._going if home == place}
            documents = _old_documents(undos, thing_matches)
            if documents or any(not undo.ids.isdisjoint(here) for _, undo in undos):
                self._erasure.documents[place] = documents
                self._erasure.undos.add(place)
            if any(not every.isdisjoint(item.body["ids"]) for item in self._view.store.shelf(place, TEXTS)):
                self._erasure.compacted.add(place)


def _is_unique(ident: str) -> bool:
    """Whether no other memory has it, in whatever place: some stores number the memories of each place anew."""
    return len(ident) == _UNIQUE


def _is_source(record: Record, derived: Record) -> bool:
    """Whether a memory with the id of a source is that source."""
    if _is_unique(record.id) or record.address.conversation in derived.references:
        return True
    is_full = len(derived.references) >= MAX_REFERENCES  # the conversation may have found no room there
    same_place = derived.tier != "account" and Place.of(record) == Place.of(derived)
    return same_place and (is_full or record.address.conversation is None)
