"""The verb remember, one memory or many. Each change is logged where it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from recollect.stores.port import Place, by_place
from recollect.values import validation
from recollect.values.errors import AccessError, InputError, ModelError, SizeLimitError
from recollect.values.record import Record, new_id
from recollect.verbs.remember import repeats
from recollect.verbs.remember.draft import draft_record, signed, stored_at
from recollect.verbs.remember.quota import keep_quota, make_room, relieve
from recollect.view import View


def remember(
    view: View,
    items: Iterable[Mapping[str, Any] | str],
    *,
    shared: bool = False,
    once: bool | None = False,
    unless: Callable[[], bool] | None = None,
) -> list[Record]:
    """All are checked before the first is stored, and stored together or not at all.

    `shared` is for what belongs to no agent, whoever writes it. What is there already outside a conversation is not
    stored again where `once` is True, or the preset says so and `once` is None, unless the item insists. `unless` is
    asked while nobody else can write there; if it says so, nothing is stored.
    """
    try:
        view.screen_address()
        now, address, preset = view.now(), replace(view.address, agent=None) if shared else view.address, view.preset
        all_fields = [with_model(view, _in_conversation(view, _fields(item))) for item in items]
        agent = view.address.agent
        records = [signed(draft_record(fields, address, preset, now, is_final=False), agent) for fields in all_fields]
        for kind, owner in {(record.kind, record.address.agent) for record in records}:
            view.check_private(kind, owner)
        quota = view.quota  # read before anything is stored: a setting in a file may be wrong, and refuses this then
    except (InputError, AccessError) as error:
        view.log_refusal("remember", error)
        raise
    groups, fields_of = (
        by_place(records),
        {record.id: fields for record, fields in zip(records, all_fields, strict=True)},
    )
    arguments: dict[str, repeats.Arguments | None] = {
        record.id: None if once else fields_of[record.id]
        for record in records
        if (preset.remember.once if once is None else once)
        and record.address.conversation is None
        and not fields_of[record.id].get("again")
    }
    stored = _store(view, groups, fields_of, arguments, unless)
    if stored is None:
        return []
    if quota is not None:
        keep_quota(view, len(records))
    view.new_in(*groups)
    relieve(view, groups)
    return view.mark_unsaved([stored[record.id] for record in records])


def _in_conversation(view: View, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields with the id of their conversation, where they name it by its ref code."""
    name = fields.get("conversation")
    if not isinstance(name, str) or (ident := view.conversation_id(name)) == name:
        return fields
    return {**fields, "conversation": ident}


def with_model(view: View, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields with the model of the caller's vector: the configured one, unless they name another.

    InputError if it cannot be of the configured one. A vector of another model is stored, but not searched by.
    """
    vector, model = fields.get("embedding"), fields.get("embedding_model")
    if vector is None or view.embedding is None or model not in (None, view.embedding.model):
        return fields
    embedder = view.embedding.embedder
    with suppress(ModelError):  # nobody can ask it now; a vector of a wrong size is made again once somebody can
        if isinstance(vector, Sized) and len(vector) != embedder.dimensions:
            problem = f"{len(vector)} dimensions, but {embedder.model} makes vectors of {embedder.dimensions}"
            raise InputError("embedding", f"{problem}; name the model as embedding_model if it is another")
    return {**fields, "embedding_model": embedder.model}


def remember_many(view: View, items: Any) -> list[Record]:
    with view.logging_refusals("remember"):
        # A text or a dict can be iterated too, but nobody means its letters or its keys.
        if isinstance(items, Mapping):
            raise InputError("items", "must be a list of texts or dicts, not one dict")
        items = validation.sequence(items, "items")
    return remember(view, items, once=None)


def _store(
    view: View,
    groups: Mapping[Place, Sequence[Record]],
    fields_of: Mapping[str, Mapping[str, Any]],
    arguments: Mapping[str, repeats.Arguments | None],
    unless: Callable[[], bool] | None,
) -> dict[str, Record] | None:
    try:
        return _put(view, groups, fields_of, arguments, unless)
    except SizeLimitError as error:
        if not error.may_compact or sum(make_room(view, place) for place in groups) <= 0:
            raise
        return _put(view, groups, fields_of, arguments, unless)


def _put(
    view: View,
    groups: Mapping[Place, Sequence[Record]],
    fields_of: Mapping[str, Mapping[str, Any]],
    arguments: Mapping[str, repeats.Arguments | None],
    unless: Callable[[], bool] | None,
) -> dict[str, Record] | None:
    """The stored memories by the id of their draft; None if `unless` was true."""
    stored: dict[str, Record] = {}
    whole = new_id() if len(groups) > 1 else None
    with view.store.transaction(*groups):
        if unless is not None and unless():
            return None
        now = view.now()  # while nobody else can store: times have the order of storing
        for place, drafts in groups.items():
            records = [stored_at(record, now, fields_of[record.id]) for record in drafts]
            repeated = repeats.sort(view, place, records, arguments)
            stored_records = list(view.store.put(place, list(repeated.new.values())))
            if repeated.changed:
                view.store.update(place, list(repeated.changed.values()))
            view.log(
                place,
                "remember",
                _message(stored_records, repeated.changed),
                repeated.before,
                concerning=stored_records,
                part_of=whole,
                created=[record.id for record in stored_records],
                changed=list(repeated.changed) or None,
            )
            stored |= zip(repeated.new, stored_records, strict=True)
            stored |= repeated.changed
            stored |= {draft: stored[original] for draft, original in repeated.known_as.items()}
    return stored


def _message(new: Sequence[Record], again: Mapping[str, Record]) -> str:
    """What the audit log says of it."""

    def what(records: Sequence[Record]) -> str:
        return f"a {records[0].kind}" if len(records) == 1 else f"{len(records):,} memories"

    parts = [f"remembered {what(new)}"] if new else []
    parts += [f"{'' if new else 'remembered '}{what(list(again.values()))} again"] if again else []
    return " and ".join(parts)


def _fields(item: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(item, str):
        return {"content": item}
    if isinstance(item, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        return item
    raise InputError("items", f"each must be text or a dict, not {type(item).__name__}")
