"""Repeated memories: a text that is stored already is not stored again, and the memory counts the repetition."""

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
Arguments = Mapping[str, Any]
"""The arguments of `remember` that the caller gave for a memory."""
_APART = ("kind", "role", "source", "lifetime", "created_at", "expires_at", "embedding", "embedding_model")
"""Arguments that make a memory a new one, although its text is stored already, if they differ from it."""


class Sorted(msgspec.Struct):
    """The drafts of one place: new ones, and those that repeat a stored memory."""

    new: dict[str, Record]
    """To be stored, by id."""
    changed: dict[str, Record]
    """Stored memories that were repeated, as they are now, by id."""
    before: list[Record]
    """The same as they were."""
    known_as: dict[str, str]
    """The id of a draft that is not stored → that of the memory it repeats."""


def sort(view: View, place: Place, drafts: Sequence[Record], arguments: Mapping[str, Arguments | None]) -> Sorted:
    """Called in a transaction. A draft that is not in `arguments` is new, whatever is stored.

    A draft whose arguments are None was extracted from another text. Then its kind, role and source, and the
    punctuation at the end of its sentence do not make it a new one.
    """
    if not arguments:
        return Sorted({draft.id: draft for draft in drafts}, {}, [], {})
    forms = {draft.id: _forms(draft, arguments[draft.id]) for draft in drafts if draft.id in arguments}
    texts = list(dict.fromkeys(text for forms_of_one in forms.values() for text in forms_of_one))
    now, stored = view.now(), list(intact(view.store.with_texts(place, texts))) if texts else []
    live: dict[str, dict[str, Record]] = {text: {} for text in texts}
    for record in stored:
        if record.state(now) == "live":
            live[record.text][record.id] = record
    new, changed, known_as = dict[str, Record](), dict[str, Record](), dict[str, str]()
    most = min(view.preset.remember.max_tags or MAX_TAGS, MAX_TAGS)
    for draft in drafts:
        twins = [twin for text in forms.get(draft.id, ()) for twin in reversed(live[text].values())]
        merged = (_merge_repeat(twin, draft, arguments[draft.id], most, now) for twin in twins)
        again = next((twin for twin in merged if twin is not None), None)
        if again is None:
            new[draft.id] = draft
            if draft.id in forms:
                live[draft.text][draft.id] = draft
            continue
        known_as[draft.id] = again.id
        live[again.text][again.id] = (new if again.id in new else changed)[again.id] = again
    return Sorted(new, changed, [record for record in stored if record.id in changed], known_as)


def _forms(draft: Record, arguments: Arguments | None) -> tuple[str, ...]:
    """The texts under which a draft may be stored already."""
    if arguments is not None:
        return (draft.text,)
    bare = draft.text.rstrip(" .!")
    return tuple(dict.fromkeys((draft.text, bare, f"{bare}.", f"{bare}!")))


def _merge_repeat(
    twin: Record, draft: Record, arguments: Arguments | None, most_tags: int, now: datetime
) -> Record | None:
    """The stored memory with what the draft adds; None if the draft is a memory of its own."""
    if (twin.address, twin.tier) != (draft.address, draft.tier) or (arguments and twin.content != draft.content):
        return None
    if _other_validity(twin, draft):
        return None
    arguments = arguments or {}
    if any(arguments.get(field) is not None and getattr(twin, field) != getattr(draft, field) for field in _APART):
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
        importance=twin.importance if arguments.get("importance") is None else max(twin.importance, draft.importance),
        expires_at=max(until) if len(until) == 2 else twin.expires_at,
        access_count=twin.access_count + 1,
        accessed_at=max(twin.accessed_at, now),
    )


def _other_validity(twin: Record, draft: Record) -> bool:
    """Whether the draft is about another time than the stored memory. What was over is said of now by the draft."""
    if draft.valid_from is None and draft.valid_until is None:
        return twin.valid_until is not None and twin.valid_until <= draft.created_at
    pairs = ((draft.valid_from, twin.valid_from), (draft.valid_until, twin.valid_until))
    return any(time is not None and time != other for time, other in pairs)
