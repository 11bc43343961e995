"""Taking back a change of several places that a killed process has left half done."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from recollect.stores.audit import Entry
from recollect.stores.intents import IntentPart
from recollect.stores.port import Place
from recollect.values.errors import ConflictError
from recollect.values.record import Address
from recollect.verbs.undo import parts_left, take_back
from recollect.view import View


def finish(owner: View, parts: Sequence[IntentPart]) -> None:
    """Where some places have the change and others have not, take it back; an undo is done to its end instead.

    What was erased cannot be taken back: whoever erases again erases the rest. What others have built on stays.
    """
    if not all(owner.store.written(part.place) >= part.entries_before for part in parts):
        return  # a workspace was dropped since
    view = replace(owner, address=Address(parts[0].tenant), bound=frozenset())
    with suppress(ConflictError), owner.store.transaction(*(part.place for part in parts)):
        present = [(part.place, entry) for part in parts for entry in _present(view, part)]
        expected = sum(len(part.entries) for part in parts)
        if not present or len(present) == expected or any(entry.meta.get("final") for _, entry in present):
            return
        for place, entry in sorted(present, key=lambda change: change[1].id, reverse=True):
            if entry.action != "undo":
                take_back(view, place, entry, unfinished=True)
        for place, undone in _half_undone(view, present, [part.place for part in parts]):
            take_back(view, place, undone)


def _present(view: View, part: IntentPart) -> list[Entry]:
    """The entries of the change that are in the log of a place."""
    entries: list[Entry] = []
    for entry in view.store.entries(part.place, newest_first=True):
        if entry.seq <= part.entries_before:
            break
        if entry.id in part.entries:
            entries.append(entry)
    return entries


def _half_undone(
    view: View, present: Sequence[tuple[Place, Entry]], places: Sequence[Place]
) -> list[tuple[Place, Entry]]:
    """What is left of the change that an undo was taking back."""
    undos = {entry.meta["of"]: place for place, entry in present if entry.action == "undo"}
    for ident, place in undos.items():
        original = next((entry for entry in view.store.entries(place) if entry.id == ident), None)
        if original is not None and (whole := original.meta.get("part_of")) is not None:
            return [(other, entry) for other in places for entry in parts_left(view, other, whole)]
    return []
