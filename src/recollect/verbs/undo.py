"""Taking changes back, by what the audit log and its kept records say."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from recollect import validation
from recollect.errors import ConflictError, NotFoundError
from recollect.filters import visible
from recollect.record import Record
from recollect.stores.audit import Entry
from recollect.stores.port import Before, Place
from recollect.stores.shelves import names
from recollect.view import CHANGES, INSIDE, View

_TRIES = 50


def undo(view: View, change: str | None) -> Entry:
    """Take back one change, given by the id of its audit entry, or the last one that this view made."""
    with view.refusing("undo"):
        wanted = None if change is None else validation.memory_id(change, "change")
    for _ in range(_TRIES):
        places = _written(view)
        # Chosen while nobody else can write there: of several who undo at once, each takes another change.
        with view.store.transaction(*places):
            if not {*_written(view)} <= {*places}:
                continue  # a workspace was begun meanwhile, and the last change may be there
            first, *_ = [_take_back(view, place, entry) for place, entry in _undoable(view, places, wanted)]
        view.new_in(*places)
        return first
    raise ConflictError("the workspace is forgotten and begun anew all the time; try again")


def _written(view: View) -> list[Place]:
    return [place for place in view.places if view.store.written(place)]


def _take_back(view: View, place: Place, entry: Entry) -> Entry:
    store = view.store
    before = store.before(place, entry.seq) or Before([], [])
    created, changed, gone, _ = (entry.meta.get(key, []) for key in CHANGES)
    if _is_lost(entry, before):
        raise ConflictError(f"change {entry.id} can no longer be undone: what it replaced was erased or compacted away")
    _check_untouched(view, place, entry)
    there = {record.id for record in store.get(place, [*created, *changed, *gone])}
    store.delete(place, [ident for ident in created if ident in there])
    now = {record.id: record for record in store.get(place, [r.id for r in before.records if r.id in there])}
    store.update(place, [_as_before(record, now[record.id], entry) for record in before.records if record.id in there])
    if missing := [record for record in before.records if record.id not in there]:
        store.put(place, missing)
    for thing in before.things:
        if thing.version:
            store.keep(place, thing)
        else:
            store.remove(place, thing.shelf, [thing.key])
    restored = [record.id for record in before.records]
    things = names(before.things)
    return view.log(
        place,
        "undo",
        f"undid: {entry.message}",
        of=entry.id,
        restored=restored,
        removed=created,
        things_restored=things,
    )


def _as_before(before: Record, now: Record, entry: Entry) -> Record:
    """Where it was told again, the retrievals since were no part of that and stay counted."""
    if entry.action != "remember":
        return before
    count = max(before.access_count, now.access_count - 1)
    return replace(before, access_count=count, accessed_at=now.accessed_at if count else before.accessed_at)


def _undoable(view: View, places: list[Place], wanted: str | None) -> list[tuple[Place, Entry]]:
    """The change, in every place that it was made in."""
    latest = _latest(view, places, lambda entry: wanted in (None, entry.id))
    if not latest:
        raise NotFoundError("there is no change to undo" if wanted is None else f"there is no change {wanted} to undo")
    last = _last(latest)
    whole = last[1].meta.get("part_of")
    return [last] if whole is None else _latest(view, places, lambda entry: entry.meta.get("part_of") == whole)


def _latest(view: View, places: list[Place], meant: Callable[[Entry], bool]) -> list[tuple[Place, Entry]]:
    """In each place the last entry that is meant, if it can be undone and was not."""
    latest: list[tuple[Place, Entry]] = []
    for place in places:
        undone: set[str] = set()
        for entry in view.store.entries(place, newest_first=True):
            if entry.action == "undo":
                undone.add(entry.meta.get("of", ""))
            elif entry.id not in undone and meant(entry) and _may_undo(view, place, entry):
                latest.append((place, entry))
                break
    return latest


def _last(latest: list[tuple[Place, Entry]]) -> tuple[Place, Entry]:
    """The one that happened last, whatever the clock said: a change in a workspace knows what the account had then."""
    if len(latest) == 1:
        return latest[0]
    (_, own), (_, shared) = latest
    return latest[0] if own.meta.get("after", 0) >= shared.seq else latest[1]


def _is_lost(entry: Entry, before: Before) -> bool:
    """Whether what it replaced is no longer kept."""
    replaced = entry.meta.get("changed") or entry.meta.get("deleted")
    return bool((replaced and not before.records) or (entry.meta.get("things_changed") and not before.things))


def _may_undo(view: View, place: Place, entry: Entry) -> bool:
    """Whether it changed something, was made by this view's agent, and touched nothing that the view cannot see."""
    address = view.address
    if address.agent not in (None, entry.actor) or not any(entry.meta.get(key) for key in CHANGES):
        return False
    # Of what is gone nobody can tell any more whose it was, unless the entry says so.
    mine = not view.bound & INSIDE or entry.meta.get("by") == view.mark(entry.id)
    created = entry.meta.get("created", [])
    there = view.store.get(place, created) if created else []
    before = view.store.before(place, entry.seq) or Before([], [])
    if not mine and (len(there) < len(created) or _is_lost(entry, before)):
        return False
    if len(there) < len(created):
        raise ConflictError(
            f"change {entry.id} ({entry.message}) cannot be undone: what it stored was forgotten since, "
            "by someone else; name another change to undo that"
        )
    seen = [record for record in there if visible(address, record)]
    return (
        len(seen) == len(created)
        and all(visible(address, record) for record in before.records)
        and all(address.account in (None, thing.account) for thing in before.things)
    )


def _check_untouched(view: View, place: Place, entry: Entry) -> None:
    """A change that others were built on must be undone after them."""
    named = {name for key in CHANGES for name in entry.meta.get(key, [])}
    undone: set[str] = set()
    for later in view.store.entries(place, newest_first=True):
        if later.seq <= entry.seq:
            return
        if later.action == "undo":
            undone.add(later.meta.get("of", ""))
        elif later.id not in undone and named.intersection(n for key in CHANGES for n in later.meta.get(key, [])):
            raise ConflictError(f"change {entry.id} was built on by {later.id} ({later.message}); undo that first")
