"""Taking changes back, by what the audit log and its kept records say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from recollect import validation
from recollect.errors import ConflictError, NotFoundError
from recollect.filters import visible
from recollect.stores.audit import Entry
from recollect.stores.port import Place
from recollect.view import View

_CHANGES = ("created", "changed", "deleted")


def undo(view: View, change: str | None) -> Entry:
    """Take back one change, given by the id of its audit entry, or the last one that this view made."""
    with view.refusing("undo"):
        wanted = None if change is None else validation.memory_id(change, "change")
    with ExitStack() as transactions:
        parts = _undoable(view, wanted)
        for place, _ in parts:
            transactions.enter_context(view.store.transaction(place))
        first, *_ = [_take_back(view, place, entry) for place, entry in parts]
    return first


def _take_back(view: View, place: Place, entry: Entry) -> Entry:
    store = view.store
    before = store.before(place, entry.seq) or []
    created, changed, gone = (entry.meta.get(key, []) for key in _CHANGES)
    if (changed or gone) and not before:
        raise ConflictError(f"change {entry.id} can no longer be undone: what it replaced was erased or compacted away")
    _check_untouched(view, place, entry, [*created, *changed, *gone])
    now_there = {record.id: record for record in store.get([*created, *changed, *gone], view.address)}
    store.delete([now_there[ident] for ident in created if ident in now_there])
    store.update([record for record in before if record.id in now_there])
    store.put([record for record in before if record.id not in now_there])
    restored = [record.id for record in before]
    return view.log(place, "undo", f"undid: {entry.message}", of=entry.id, restored=restored, removed=created)


def _undoable(view: View, wanted: str | None) -> list[tuple[Place, Entry]]:
    """The change, in every place that it was made in."""
    found = _latest(view, lambda entry: wanted in (None, entry.id))
    if not found:
        raise NotFoundError("there is no change to undo" if wanted is None else f"there is no change {wanted} to undo")
    last = max(found, key=lambda part: part[1].id)
    whole = last[1].meta.get("part_of")
    return [last] if whole is None else _latest(view, lambda entry: entry.meta.get("part_of") == whole)


def _latest(view: View, meant: Callable[[Entry], bool]) -> list[tuple[Place, Entry]]:
    """In each place the last entry that is meant, if it can be undone and was not."""
    found: list[tuple[Place, Entry]] = []
    for place in view.places:
        undone: set[str] = set()
        for entry in view.store.entries(place, newest_first=True):
            if entry.action == "undo":
                undone.add(entry.meta.get("of", ""))
            elif entry.id not in undone and meant(entry) and _may_undo(view, place, entry):
                found.append((place, entry))
                break
    return found


def _may_undo(view: View, place: Place, entry: Entry) -> bool:
    """Whether it changed memories, was made by this view's agent, and touched nothing that the view cannot see."""
    if view.address.agent not in (None, entry.actor) or not any(entry.meta.get(key) for key in _CHANGES):
        return False
    created = entry.meta.get("created", [])
    seen = view.store.get(created, view.address)
    before = view.store.before(place, entry.seq) or []
    return len(seen) == len(created) and all(visible(view.address, record) for record in before)


def _check_untouched(view: View, place: Place, entry: Entry, ids: Sequence[str]) -> None:
    """A change that others were built on must be undone after them."""
    named = set(ids)
    undone: set[str] = set()
    for later in view.store.entries(place, newest_first=True):
        if later.seq <= entry.seq:
            return
        if later.action == "undo":
            undone.add(later.meta.get("of", ""))
        elif later.id not in undone and named.intersection(
            ident for key in _CHANGES for ident in later.meta.get(key, [])
        ):
            raise ConflictError(f"change {entry.id} was built on by {later.id} ({later.message}); undo that first")
