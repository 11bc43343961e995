"""What is told again is one memory: the one that is there, with the count of how often it was told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect.stores.integrity import intact
from recollect.stores.port import Place
from recollect.values.record import Record, joined_sources
from recollect.values.validation import MAX_REFERENCES, MAX_TAGS
from recollect.view import View

_json = msgspec.json.Encoder(order="sorted").encode
Said = Mapping[str, Any]
"""What a caller gave for a memory, by the names of `remember`'s arguments."""
_APART = ("kind", "role", "source", "lifetime", "created_at", "expires_at", "embedding", "embedding_model")
"""What two memories of the same text differ in, where the caller names it."""


class Sorted(msgspec.Struct):
    """Drafts of one place, told apart by whether the place knows them."""

    new: dict[str, Record]
    """To be stored, by id."""
    changed: dict[str, Record]
    """Memories that were told again, as they are now, by id."""
    before: list[Record]
    """The same as they were."""
    known_as: dict[str, str]
    """The id of a draft that is not stored → that of the memory it repeats."""


def sort(view: View, place: Place, drafts: Sequence[Record], said: Mapping[str, Said | None]) -> Sorted:
    """Called while nobody else can write there. A draft that is not in `said` is new, whatever is there.

    One of which None is said was read out of other words: then how its sentence ends, its kind, who said it and where
    it is from do not matter.
    """
    if not said:
        return Sorted({draft.id: draft for draft in drafts}, {}, [], {})
    forms = {draft.id: _forms(draft, said[draft.id]) for draft in drafts if draft.id in said}
    texts = list(dict.fromkeys(text for known in forms.values() for text in known))
    now, there = view.now(), list(intact(view.store.with_texts(place, texts))) if texts else []
    known: dict[str, dict[str, Record]] = {text: {} for text in texts}
    for record in there:
        if record.state(now) == "live":
            known[record.text][record.id] = record
    new, changed, known_as = dict[str, Record](), dict[str, Record](), dict[str, str]()
    most = min(view.preset.remember.max_tags or MAX_TAGS, MAX_TAGS)
    for draft in drafts:
        twins = [twin for text in forms.get(draft.id, ()) for twin in reversed(known[text].values())]
        told = (_told(twin, draft, said[draft.id], most, now) for twin in twins)
        again = next((twin for twin in told if twin is not None), None)
        if again is None:
            new[draft.id] = draft
            if draft.id in forms:
                known[draft.text][draft.id] = draft
            continue
        known_as[draft.id] = again.id
        known[again.text][again.id] = (new if again.id in new else changed)[again.id] = again
    return Sorted(new, changed, [record for record in there if record.id in changed], known_as)


def _forms(draft: Record, said: Said | None) -> tuple[str, ...]:
    """The texts that a draft may be known by."""
    if said is not None:
        return (draft.text,)
    bare = draft.text.rstrip(" .!")
    return tuple(dict.fromkeys((draft.text, bare, f"{bare}.", f"{bare}!")))


def _told(twin: Record, draft: Record, said: Said | None, most_tags: int, now: datetime) -> Record | None:
    """A memory that is there, told once more; None if what is said now is something else."""
    if (twin.address, twin.tier) != (draft.address, draft.tier) or (said and twin.content != draft.content):
        return None
    said = said or {}
    if any(said.get(field) is not None and getattr(twin, field) != getattr(draft, field) for field in _APART):
        return None
    if any(
        key not in twin.metadata or _json(twin.metadata[key]) != _json(value) for key, value in draft.metadata.items()
    ):
        return None
    tags = tuple(dict.fromkeys((*twin.tags, *draft.tags)))
    if len(tags) > most_tags:
        return None
    until = [at for at in (twin.expires_at, draft.expires_at) if at is not None]
    return replace(
        twin,
        tags=tags,
        references=tuple(dict.fromkeys((*twin.references, *draft.references)))[:MAX_REFERENCES],
        derived_from=joined_sources(twin.derived_from, draft.derived_from),
        importance=twin.importance if said.get("importance") is None else max(twin.importance, draft.importance),
        expires_at=max(until) if len(until) == 2 else twin.expires_at,
        access_count=twin.access_count + 1,
        accessed_at=max(twin.accessed_at, now),
    )
