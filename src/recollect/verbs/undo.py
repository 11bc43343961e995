"""The verb undo: it reverts a change, by what the audit log and its undo data say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from recollect.stores.audit import Entry
from recollect.stores.port import KNOWLEDGE, Place
from recollect.stores.shelves import names
from recollect.stores.undo import NO_UNDO, OldValues, Undo
from recollect.values import validation
from recollect.values.errors import ConflictError, NotFoundError
from recollect.values.filters import is_private
from recollect.values.record import Record
from recollect.view import CHANGES, INSIDE, View

_TRIES = 50
Change = tuple[Place, Entry]
"""An entry of the audit log, and the place whose log it is in."""


def undo(view: View, change: str | None) -> Entry:
    """Revert one change, given by the id of its audit entry, or the last one that this view made."""
    with view.logging_refusals("undo"):
        wanted = None if change is None else validation.memory_id(change, "change")
    for _ in range(_TRIES):
        places = _written(view)
        places += _elsewhere(view, places, wanted)
        # Chosen while nobody else can write there: of several who undo at once, each takes another change.
        with view.store.transaction(*places):
            if not {*_written(view)} <= {*places}:
                continue  # a workspace was begun meanwhile, and the last change may be there
            whole = _whole_change(view, _chosen(view, _written(view), wanted), places)
            if whole is None:
                continue  # another change is the last by now, in more places
            undone = [take_back(view, place, entry) for place, entry in whole]
        view.new_in(*places)
        return undone[0]
    raise ConflictError("the workspace is forgotten and begun anew all the time; try again")


def _written(view: View) -> list[Place]:
    """Every place that this view can change and that has a log: for the owner the documents, too."""
    owner = [Place(view.address.tenant, KNOWLEDGE)] if view.whole and view.sees_private else []
    return [place for place in dict.fromkeys([*view.places, *owner]) if view.store.written(place)]


def _elsewhere(view: View, places: list[Place], wanted: str | None) -> list[Place]:
    """Further places that took part in the change."""
    try:
        _, entry = _chosen(view, places, wanted)
    except (ConflictError, NotFoundError):
        return []  # which is said again when nobody else can write
    part_of = entry.meta.get("part_of")
    if part_of is None:
        return []
    others = [place for place in view.store.places(view.address.tenant) if not place.hidden and place not in places]
    return [place for place in others if next(iter(parts_left(view, place, part_of)), None) is not None]


def parts_left(view: View, place: Place, part_of: str) -> Iterator[Entry]:
    """The entries of one change in a place that were not undone, the last first."""
    for entry in view.store.entries(place, about=part_of, newest_first=True):
        if entry.meta.get("part_of") == part_of and not _is_undone(view, place, entry):
            yield entry


def _is_undone(view: View, place: Place, entry: Entry) -> bool:
    later = view.store.entries(place, about=entry.id, newest_first=True)
    return any(other.action == "undo" and other.meta.get("of") == entry.id for other in later)


def _whole_change(view: View, chosen: Change, places: list[Place]) -> list[Change] | None:
    """All entries of the change, the last first; None if some are in other places."""
    part_of = chosen[1].meta.get("part_of")
    if part_of is None:
        return [chosen]
    if _elsewhere(view, places, chosen[1].id):
        return None
    parts = [(place, entry) for place in places for entry in parts_left(view, place, part_of)]
    for place, entry in parts:
        if not _may_undo(view, place, entry):
            raise ConflictError(f"change {entry.id} ({entry.message}) is part of it, and not this view's to undo")
    return sorted(parts, key=lambda change: change[1].id, reverse=True)


def _chosen(view: View, places: list[Place], wanted: str | None) -> Change:
    """The change with that id, or the last one of this view. ConflictError where it cannot be undone."""
    latest = [change for place in places if (change := _latest(view, place, wanted)) is not None]
    if not latest:
        raise NotFoundError("there is no change to undo" if wanted is None else f"there is no change {wanted} to undo")
    place, entry = _last(latest)
    if entry.meta.get("final"):
        raise ConflictError(
            f"change {entry.id} ({entry.message}) can no longer be undone: what it replaced was erased; "
            "name an earlier change to undo that: `audit.search` lists them"
        )
    created = entry.meta.get("created", [])
    if len(view.store.get(place, created) if created else []) < len(created):
        raise ConflictError(
            f"change {entry.id} ({entry.message}) cannot be undone: what it stored was forgotten since, "
            "by someone else; name another change to undo that"
        )
    return place, entry


def _latest(view: View, place: Place, wanted: str | None) -> Change | None:
    """The last change of this view in a place that was not undone, or the one that is wanted."""
    undone: set[str] = set()
    for entry in view.store.entries(place, newest_first=True):
        if entry.action == "undo":
            undone.add(entry.meta.get("of", ""))
        elif entry.id not in undone and wanted in (None, entry.id) and _may_undo(view, place, entry):
            return place, entry
    return None


def _last(latest: list[Change]) -> Change:
    """The one that happened last, whatever the clock said: a change in a workspace knows what the account had then."""
    shared = next((change for change in latest if change[0].workspace is None), None)
    own = max((change for change in latest if change[0].workspace is not None), key=lambda c: c[1].id, default=None)
    if shared is None or own is None:
        return latest[0] if shared is own else shared or own or latest[0]
    return own if own[1].meta.get("after", 0) >= shared[1].seq else shared


def take_back(view: View, place: Place, entry: Entry, **meta: Any) -> Entry:
    store = view.store
    undo = store.undo_of(place, entry.seq) or NO_UNDO
    created, changed, gone, _ = (entry.meta.get(key, []) for key in CHANGES)
    records = store.get(place, [*created, *changed, *gone])
    stored = {record.id: record for record in records}
    # Earlier versions kept memories whole that were only changed. So one that is stored was changed, not deleted.
    old_values = [*undo.changed, *(OldValues.of(record) for record in undo.deleted if record.id in stored)]
    if _is_lost(entry, undo) or any(values.id not in stored for values in old_values):
        raise ConflictError(f"change {entry.id} can no longer be undone: what it replaced was erased or compacted away")
    _check_untouched(view, place, entry)
    store.delete(place, [ident for ident in created if ident in stored])
    store.update(place, [_as_before(values, stored[values.id], entry) for values in old_values])
    if missing := [record for record in undo.deleted if record.id not in stored]:
        store.put(place, missing)
    for item in undo.things:
        if item.version:
            store.keep(place, item)
        else:
            store.remove(place, item.shelf, [item.key])
    store.purge(place, seqs=[entry.seq])  # what was deleted is stored again, and in one place only
    return view.log(
        place,
        "undo",
        f"undid: {entry.message}",
        concerning=[*undo.deleted, *records],
        of=entry.id,
        restored=[*(values.id for values in old_values), *(record.id for record in missing)],
        removed=created,
        things_restored=names(undo.things),
        **meta,
    )


def _as_before(values: OldValues, now: Record, entry: Entry) -> Record:
    """Where it was told again or restored, that counted as one retrieval. The retrievals since stay counted."""
    before = values.fields.onto(now)
    if entry.action not in ("remember", "restore"):
        return before
    count = max(before.access_count, now.access_count - 1)
    return replace(before, access_count=count, accessed_at=now.accessed_at if count else before.accessed_at)


def _is_lost(entry: Entry, undo: Undo) -> bool:
    """Whether all that it replaced was purged. Where some of it was erased, the rest can be brought back."""
    return any(entry.meta.get(key) for key in ("changed", "deleted", "things_changed")) and not any(undo)


def _may_undo(view: View, place: Place, entry: Entry) -> bool:
    """Whether it changed something, and this view made it, or a narrower view of the same."""
    changes = any(entry.meta.get(key) for key in ("final", "part_of", *CHANGES))
    if not changes or view.address.agent not in (None, entry.actor):
        return False
    if not view.sees_private and not _is_public(view, place, entry):
        return False
    if "workspace" in view.bound and entry.meta.get("from") not in (None, view.workspace_fingerprint(entry.id)):
        return False  # what accounts share was changed from another workspace
    return not view.bound & INSIDE or view.actor_fingerprint(entry.id) in entry.meta.get("by", ())


def _is_public(view: View, place: Place, entry: Entry) -> bool:
    """Whether all that it changed is known, and no agent's journal or core memory."""
    named = {ident for key in ("created", "changed", "deleted") for ident in entry.meta.get(key, ())}
    deleted = (view.store.undo_of(place, entry.seq) or NO_UNDO).deleted
    records = {record.id: record for record in [*deleted, *view.store.get(place, sorted(named))]}
    return named <= records.keys() and not any(map(is_private, records.values()))


def _check_untouched(view: View, place: Place, entry: Entry) -> None:
    """A change that others were built on must be undone after them. What was erased is in no undo data any more."""
    named = {name for key in CHANGES for name in entry.meta.get(key, [])}
    undone: set[str] = set()
    for later in view.store.entries(place, newest_first=True):
        if later.seq <= entry.seq:
            return
        if later.action == "undo":
            undone.add(later.meta.get("of", ""))
            continue
        is_in_force = later.id not in undone and not later.meta.get("final")
        if is_in_force and named.intersection(name for key in CHANGES for name in later.meta.get(key, [])):
            raise ConflictError(f"change {entry.id} was built on by {later.id} ({later.message}); undo that first")
