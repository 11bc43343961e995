"""The verbs that change memories: remember, revise, archive, restore. Each change is logged where it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from recollect import validation
from recollect.errors import AccessError, ConflictError, InputError, SizeLimitError
from recollect.filters import Filter
from recollect.policies.ranking import Evidence
from recollect.policies.retention import over_quota
from recollect.record import Address, Record, new_id
from recollect.stores.port import Place, by_place
from recollect.verbs.draft import draft, screen
from recollect.view import APART, View


def remember(view: View, items: Iterable[Mapping[str, Any] | str], *, shared: bool = False) -> list[Record]:
    """All are checked before the first is stored; those of one place are stored together or not at all.

    `shared` is for what belongs to no agent, whoever writes it.
    """
    try:
        now, address, preset = view.now(), replace(view.address, agent=None) if shared else view.address, view.preset
        records = [draft(_fields(item), address, preset, now) for item in items]
        _ = view.quota  # what is set beside the data may be wrong, too
    except (InputError, AccessError) as error:
        view.refused("remember", error)
        raise
    if len(records) == 1:
        return [*_store(view, Place.of(records[0]), records)]
    groups = by_place(records)
    if len(groups) == 1:
        return [*_store(view, *groups.popitem())]
    stored: dict[str, Record] = {}
    whole = new_id()
    for place, group in groups.items():
        stored.update(zip((record.id for record in group), _store(view, place, group, whole), strict=True))
    return [stored[record.id] for record in records]


def remember_many(view: View, items: Any) -> list[Record]:
    with view.refusing("remember"):
        # A text or a dict can be iterated too, but nobody means its letters or its keys.
        if isinstance(items, Mapping):
            raise InputError("items", "must be a list of texts or dicts, not one dict")
        items = validation.sequence(items, "items")
    return remember(view, items)


def _store(view: View, place: Place, records: Sequence[Record], whole: str | None = None) -> Sequence[Record]:
    try:
        kept = _put(view, place, records, whole)
    except SizeLimitError as error:
        if not error.may_compact or make_room(view, place) <= 0:
            raise
        return _put(view, place, records, whole)
    if view.store.crowded(place):
        make_room(view, place)
    return kept


def _put(view: View, place: Place, records: Sequence[Record], whole: str | None) -> Sequence[Record]:
    with view.store.transaction(place):
        kept = view.store.put(records)
        message = f"remembered a {kept[0].kind}" if len(kept) == 1 else f"remembered {len(kept):,} memories"
        view.log(place, "remember", message, part_of=whole, created=[record.id for record in kept])
        keep_quota(view, len(kept))
    return kept


def make_room(view: View, place: Place) -> int:
    """Compact a place, without what has faded beyond the preset's limit. Returns the bytes freed."""
    limit = view.preset.retention.compact_below
    if limit is not None:
        now, rank, decay = view.now(), view.preset.ranking.score, view.store.settings(place).decay or view.preset.decay
        every = Filter(view=Address(*place), now=now, state=None)
        faded = [
            record
            for record in view.store.scan(every, bare=True)
            if Place.of(record) == place and rank(Evidence(record, ""), decay, now).value < limit
        ]
        if faded:
            with view.store.transaction(place):
                faded = again(view, place, faded)
                view.store.delete(faded, f"relevance below {limit:g}")
                message = f"removed {count(len(faded))} of a relevance below {limit:g}"
                view.log(place, "compact", message, deleted=[record.id for record in faded])
    return view.store.compact(place)


def _fields(item: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(item, str):
        return {"content": item}
    if isinstance(item, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        return item
    raise InputError("items", f"each must be text or a dict, not {type(item).__name__}")


def keep_quota(view: View, added: int) -> None:
    """Archive what this agent has over the preset's quota, in all of the tenant's workspaces.

    Counting is not free, so a count is trusted until this process has added what was left, or a hundredth of the quota.
    """
    retention, quota, agent = view.preset.retention, view.quota, view.address.agent
    if quota is None:
        return
    key = (view.address.tenant, agent, quota)
    view.room[key] = view.room.get(key, 0) - added
    if view.room[key] >= 0:
        return
    workspaces = [
        replace(
            view.where(tiers=("workspace", "channel", "conversation"), without_kinds=APART),
            view=Address(view.address.tenant, workspace),
        )
        for workspace in view.store.workspaces(view.address.tenant)
    ]
    live = sum(view.store.stats(where).agents.get(agent or "", 0) for where in workspaces)
    if live > quota:
        own = [record for where in workspaces for record in view.store.scan(where) if record.address.agent == agent]
        excess = over_quota(own, quota, retention.quota_order)
        over = f"{count(len(excess))} over the quota of {quota:,}"
        if retention.quota_action == "forget":
            _prune(view, excess, f"forgot {over}")
        else:
            archive(view, excess, "quota", f"archived {over}")
    view.room[key] = min(max(quota - live, 0), quota // 100)


def _prune(view: View, records: Sequence[Record], message: str) -> None:
    for place, group in by_place(records).items():
        with view.store.transaction(place):
            gone = again(view, place, group)
            view.store.delete(gone, "quota")
            view.log(place, "quota", message, gone, deleted=[record.id for record in gone])


def revise(view: View, ident: str, changes: Mapping[str, Any]) -> Record:
    """A new record in place of an old one, which stays as its history."""
    with view.refusing("revise"), view.store.transaction(Place.of(view.one(ident))):
        old = view.one(ident)
        if old.superseded_by is not None:
            raise ConflictError(f"memory {old.id} was superseded by {old.superseded_by}; revise that one")
        new = _successor(view, old, changes)
        (new,) = view.store.put([new])
        view.store.update([replace(old, superseded_by=new.id)])
        message = f"revised a {new.kind}"
        view.log(Place.of(old), "revise", message, before=[old], created=[new.id], changed=[old.id])
    return new


def _successor(view: View, old: Record, changes: Mapping[str, Any]) -> Record:
    now = view.now()
    inherited: dict[str, Any] = {
        "content": old.content,
        "kind": old.kind,
        "importance": old.importance,
        "tags": old.tags,
        "role": old.role,
        "source": old.source,
        "references": old.references,
        "metadata": old.metadata,
        "lifetime": old.lifetime,
        "tier": old.tier,
    }
    if old.expires_at is not None:
        inherited["expires_at"] = _as_long(old.created_at, old.expires_at, now)
    given = {field: value for field, value in changes.items() if value is not None}
    if not given:
        raise InputError("content", "or another field must be given: there is nothing to revise")
    if "content" not in given and "embedding" not in given:
        inherited |= {"embedding": old.floats, "embedding_model": old.embedding_model}
    new = draft(inherited | given, old.address, view.preset, now)
    return replace(new, address=old.address)


def _as_long(created: datetime, expires: datetime, now: datetime) -> datetime:
    try:
        return now + (expires - created)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def archive(view: View, records: Sequence[Record], action: str, message: str) -> list[Record]:
    """Out of recall, but kept. `action` says why: archive, decay, early or quota."""
    return _archived(view, records, view.now(), action, message)


def _archived(view: View, records: Sequence[Record], at: datetime | None, action: str, message: str) -> list[Record]:
    changed: dict[str, Record] = {}
    groups = by_place(records)
    whole = new_id() if len(groups) > 1 else None
    for place, group in groups.items():
        with view.store.transaction(place):
            before = again(view, place, group)
            after = [replace(record, archived_at=at) for record in before]
            view.store.update(after)
            ids = [record.id for record in before]
            view.log(place, action, message, before, part_of=whole, changed=ids)
        changed.update((record.id, record) for record in after)
    return [changed[record.id] for record in records if record.id in changed]


def again(view: View, place: Place, records: Sequence[Record]) -> list[Record]:
    """These as they are now that nobody else can write here; without those that someone deleted meanwhile."""
    there = {record.id: record for record in view.store.get([record.id for record in records], Address(*place))}
    return [there[record.id] for record in records if record.id in there]


def archive_ids(view: View, ids: str | Sequence[str], reason: str | None) -> list[Record]:
    with view.refusing("archive"):
        note = "" if reason is None else f": {why(view, reason)}"
        records = view.find(ids)
        for record in records:
            if record.archived_at is not None:
                raise ConflictError(f"memory {record.id} is archived already")
    return archive(view, records, "archive", f"archived {count(len(records))}{note}")


def why(view: View, reason: str) -> str:
    """A reason as it may stand in the audit log, from where nothing can be removed."""
    reason = validation.label(reason, "reason", 200)
    screen(view.preset, "reason", reason)
    return reason


def restore(view: View, ids: str | Sequence[str]) -> list[Record]:
    with view.refusing("restore"):
        records = view.find(ids)
        for record in records:
            if record.archived_at is None:
                raise ConflictError(f"memory {record.id} is not archived")
    return _archived(view, records, None, "restore", f"restored {count(len(records))}")


def history(view: View, ident: str) -> list[Record]:
    """Every version of a memory, oldest first."""
    record = view.one(ident)
    return [*ancestors(view, [record])[::-1], record, *successors(view, record)]


def successors(view: View, record: Record) -> Iterator[Record]:
    """What superseded it, directly and after, oldest first."""
    seen = {record.id}  # an import may bring a circle
    while (successor := record.superseded_by) is not None and successor not in seen:
        found = view.store.get([successor], view.address)
        if not found:
            return
        (record,) = found
        seen.add(record.id)
        yield record


def ancestors(view: View, records: Sequence[Record]) -> list[Record]:
    """What these superseded, directly and before, newest first."""
    found: list[Record] = []
    generation = list(records)
    seen = {record.id for record in records}
    while generation:
        where = view.where(state=None, superseded_by=tuple(record.id for record in generation))
        generation = [record for record in view.store.scan(where, newest_first=True) if record.id not in seen]
        found += generation
        seen.update(record.id for record in generation)
    return found


def count(number: int) -> str:
    return "1 memory" if number == 1 else f"{number:,} memories"
