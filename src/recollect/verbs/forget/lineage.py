"""What an erasure must reach: older copies in the undo data, and the memories that others were derived from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from recollect.stores.audit import TEXTS
from recollect.stores.port import Before, Place
from recollect.stores.shelves import Thing
from recollect.values.errors import NotFoundError
from recollect.values.record import Record
from recollect.view import View, unseen

_UNIQUE = 32
"""Characters of an id that no other memory has, in whatever place."""
_Replaced = dict[Place, list[tuple[int, Before]]]
"""All undo data of some places."""


def drop_undos(
    view: View, place: Place, ids: Collection[str], thing_matches: Callable[[Thing], bool] | None = None
) -> None:
    """Drop the undo data that holds one of these memories or things. Called in a transaction."""
    view.store.forget_before(place, seqs=_holding(list(view.store.undos(place)), ids, thing_matches))


def _holding(
    undos: Sequence[tuple[int, Before]], ids: Collection[str], thing_matches: Callable[[Thing], bool] | None
) -> list[int]:
    wanted = set(ids)
    return [
        seq
        for seq, before in undos
        if any(record.id in wanted for record in before.records)
        or (thing_matches is not None and any(map(thing_matches, before.things)))
    ]


class Erasure(msgspec.Struct):
    """What goes besides the memories that were chosen."""

    undos: dict[Place, list[int]] = {}
    """Entries of the audit log whose undo data holds something of it."""
    rows: dict[Place, list[Record]] = {}
    """Sources that are stored still, but archived, expired or superseded."""
    deleted: set[str] = set()
    """Memories that were forgotten before, and could have been brought back."""
    sources: set[str] = set()
    remaining: set[str] = set()
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
    thing_matches: Callable[[Thing], bool] | None = None,
) -> Erasure:
    """What goes with these records.

    `missing` are ids of memories that are not stored any more; NotFoundError for one that was not, or that this view
    could not see. `matches` says of a memory that was forgotten before whether it is meant, too.
    """
    return _Plan(view, places, records).run(missing, matches, thing_matches)


class _Plan:
    """Memories are known by their place and id: a notebook numbers those of each place anew."""

    def __init__(self, view: View, places: Iterable[Place], records: Sequence[Record]) -> None:
        self._view, self._records = view, records
        self._going = {(Place.of(record), record.id) for record in records}
        self._replaced: _Replaced = {}
        self._old: dict[tuple[Place, str], Record] = {}
        self._deleted: list[Record] = []
        self._erasure = Erasure()
        self._read({*places, *view.places, *map(Place.of, records)})

    def run(
        self,
        missing: Collection[str],
        matches: Callable[[Record], bool] | None,
        thing_matches: Callable[[Thing], bool] | None,
    ) -> Erasure:
        self._find_deleted(missing, matches)
        self._follow()
        self._name_remaining()
        self._choose_undos(thing_matches)
        return self._erasure

    def _read(self, places: Iterable[Place]) -> None:
        for place in places:
            if place not in self._replaced:
                self._replaced[place] = list(self._view.store.undos(place))
                for _, before in self._replaced[place]:
                    self._old |= {(place, record.id): record for record in before.records}

    def _find_deleted(self, missing: Collection[str], matches: Callable[[Record], bool] | None) -> None:
        view = self._view
        for (place, ident), record in self._old.items():
            wanted = ident in missing and view.sees_memory(record)
            if (wanted or (matches and matches(record))) and not view.store.get(place, [ident]):
                self._erasure.deleted.add(ident)
                self._deleted.append(record)
                self._going.add((place, ident))
        for ident in set(missing) - self._erasure.deleted:
            if (place := self._deleted_in(ident)) is None:
                raise NotFoundError(unseen(ident))
            self._erasure.deleted.add(ident)
            self._erasure.compacted.add(place)

    def _deleted_in(self, ident: str) -> Place | None:
        """Where the audit log says that this view could see it, and that it was deleted, and nothing else is known."""
        view = self._view
        for place in view.places:
            if (place, ident) in self._old or view.store.get(place, [ident]):
                return None  # this view does not see it
            for entry in view.store.entries(place, about=ident, newest_first=True):
                mark = view.mark(entry.id)
                inside = mark is None or mark in entry.meta.get("by", ())
                own = (view.whole and view.sees_private) or (entry.actor == view.address.agent and inside)
                if own and ident in entry.meta.get("deleted", ()):
                    return place
        return None

    def _follow(self) -> None:
        """From memory to source, and to the sources of that. One that is live stays; the others go as well."""
        erasure, view = self._erasure, self._view
        waiting = [*self._records, *self._deleted]
        seen: set[tuple[Place, str]] = set()
        while waiting:
            derived = waiting.pop()
            for ident in derived.derived_from:
                place, record, is_stored = self._source(ident, derived)
                if record is None or (place, ident) in self._going | seen:
                    continue  # it was erased, or purged, before
                seen.add((place, ident))
                if (is_stored and record.state(view.now()) == "live") or not self._may_erase(record):
                    erasure.remaining.add(ident)
                    continue
                erasure.sources.add(ident)
                self._going.add((place, ident))
                waiting.append(record)
                if is_stored:
                    erasure.rows.setdefault(place, []).append(record)

    def _may_erase(self, record: Record) -> bool:
        """A source may be in another workspace than the view's, but never another account's, agent's or channel's."""
        view = self._view
        if "workspace" in view.bound or record.tier == "account":
            return view.sees_memory(record)
        address = msgspec.structs.replace(view.address, workspace=record.address.workspace)
        return msgspec.structs.replace(view, address=address).sees_memory(record)

    def _source(self, ident: str, derived: Record) -> tuple[Place, Record | None, bool]:
        """The source, where it is or was, and whether it is stored there still; None if nothing is known of it."""
        for widened in (False, True):
            if widened:  # it may be in another workspace
                tenant = self._view.address.tenant
                self._read(place for place in self._view.store.places(tenant) if not place.reserved)
            for place in self._replaced:
                for record in self._view.store.get(place, [ident]):
                    if _is_source(record, derived):
                        return place, record, True
            for place in self._replaced:
                old = self._old.get((place, ident))
                if old is not None and _is_source(old, derived):
                    return place, old, False
        return self._view.place, None, False

    def _name_remaining(self) -> None:
        """Also what was derived from something that goes, and stays."""
        ids = {ident for _, ident in self._going}
        for record in self._view.store.scan(self._view.where(), whole=False):
            if (Place.of(record), record.id) not in self._going and ids.intersection(record.derived_from):
                self._erasure.remaining.add(record.id)

    def _choose_undos(self, thing_matches: Callable[[Thing], bool] | None) -> None:
        """Also the places where words beside the audit log are about something that goes."""
        every = {ident for _, ident in self._going} | self._erasure.deleted
        for place, replaced in self._replaced.items():
            here = {ident for home, ident in self._going if home == place}
            if seqs := _holding(replaced, here, thing_matches):
                self._erasure.undos[place] = seqs
            if any(not every.isdisjoint(thing.body["ids"]) for thing in self._view.store.shelf(place, TEXTS)):
                self._erasure.compacted.add(place)


def _is_source(record: Record, derived: Record) -> bool:
    """Whether a memory with the id of a source is that source: some stores number the memories of each place anew."""
    if len(record.id) == _UNIQUE:
        return True
    same_place = derived.tier != "account" and Place.of(record) == Place.of(derived)
    return record.address.conversation in derived.references or (same_place and record.address.conversation is None)
