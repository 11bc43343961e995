"""Maintenance that the preset asks for: archiving what has decayed, what was never worth keeping, and old undo data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import msgspec

from recollect.errors import AccessError, InputError, ModelError
from recollect.policies.retention import decayed, early
from recollect.record import moved
from recollect.stores.port import Place
from recollect.verbs.archive import archive
from recollect.verbs.quota import keep_quota, make_room
from recollect.view import View

_UNDO_DAYS = 30


class Maintained(msgspec.Struct, frozen=True):
    """What was archived, or would be."""

    decayed: tuple[str, ...]
    unimportant: tuple[str, ...]
    undo_dropped: int


def maintain(view: View, include_early: bool, dry_run: bool) -> Maintained:
    now, retention, decay = view.now(), view.preset.retention, view.decay
    live = list(view.store.scan(view.where()))
    faded = [record for record in live if decayed(retention, record, decay, now)]
    gone = {record.id for record in faded}
    trivial = [record for record in live if include_early and record.id not in gone and early(retention, record)]
    dropped = 0
    if not dry_run:
        if faded:
            archive(view, faded, "decay", f"archived {len(faded):,} that had decayed")
        if trivial:
            archive(view, trivial, "early", f"archived {len(trivial):,} of little importance")
        keep_quota(view, view.quota or 0)
        if view.whole:
            old = moved(now, -timedelta(days=_UNDO_DAYS))
            dropped = sum(view.store.forget_before(place, until=old) for place in view.places)
    return Maintained(tuple(r.id for r in faded), tuple(r.id for r in trivial), dropped)


def embed(view: View, wait: bool, progress: Callable[[int], object] | None) -> int:
    """Have the vectors made that are missing in the view's workspace, and in the knowledge of its tenant."""
    embedding = view.embedding
    if embedding is None:
        if not view.preset.recall.embed:
            raise InputError("preset", f"{view.preset.name} compares words only; use another preset")
        raise ModelError("there is no model; run `recollect models pull`, or give an embedder")
    places = [view.place, *_reserved(view)]
    if not wait:
        view.new_in(*places)
        return sum(map(embedding.missing, places))
    made = 0
    for place in places:
        made += embedding.finish(place, lambda number, before=made: progress and progress(before + number))
    return made


def compact(view: View) -> int:
    """Remove what was forgotten, and what has faded beyond the preset's limit, from the disk."""
    if not view.whole:
        raise AccessError("compact: only a view of the whole workspace can compact it, not one bound inside it")
    places = [*view.places, *_reserved(view)]
    for place in places:
        view.store.forget_before(place)
    return sum(make_room(view, place) for place in places)


def _reserved(view: View) -> list[Place]:
    """Places of the engine's own, which no view of a workspace has among its own."""
    return [place for place in view.store.places(view.address.tenant) if place.reserved]
