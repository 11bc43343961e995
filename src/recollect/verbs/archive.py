"""The verb archive: keeps memories, but no longer recalls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from recollect.policies.secrets import screen
from recollect.stores.port import Place, by_place
from recollect.values import validation
from recollect.values.errors import ConflictError
from recollect.values.record import Record, new_id
from recollect.view import View


def archive(
    view: View, records: Sequence[Record], action: str, message: str, reason: str | None = None
) -> list[Record]:
    """`action` says why: archive, decay, early or quota."""
    now = view.now()
    return change_each(view, records, lambda record: replace(record, archived_at=now), action, message, reason)


def change_each(
    view: View,
    records: Sequence[Record],
    change: Callable[[Record], Record],
    action: str,
    message: str,
    reason: str | None = None,
) -> list[Record]:
    """Change fields of records in all their places, as one change of the audit log."""
    changed: dict[str, Record] = {}
    groups = by_place(records)
    if not groups:
        return []
    whole = new_id() if len(groups) > 1 else None
    with view.store.transaction(*groups):
        for place, group in groups.items():
            before = reread(view, place, group)
            after = [change(record) for record in before]
            view.store.update(place, after)
            ids = [record.id for record in before]
            view.log(place, action, message, before, reason=reason, part_of=whole, changed=ids)
            changed.update((record.id, record) for record in after)
    return [changed[record.id] for record in records if record.id in changed]


def reread(view: View, place: Place, records: Sequence[Record]) -> list[Record]:
    """These as they are now that nobody else can write here; without those that someone deleted meanwhile."""
    current = {record.id: record for record in view.store.get(place, [record.id for record in records])}
    return [current[record.id] for record in records if record.id in current]


def archive_ids(view: View, ids: str | Sequence[str], reason: str | None) -> list[Record]:
    with view.logging_refusals("archive"):
        checked = None if reason is None else checked_reason(view, reason)
        records = view.find(ids)
        for record in records:
            if record.archived_at is not None:
                raise ConflictError(f"memory {record.id} is archived already")
    return archive(view, records, "archive", f"archived {memories_text(len(records))}", checked)


def checked_reason(view: View, reason: str) -> str:
    """A reason as it may stand beside the audit log."""
    reason = validation.label(reason, "reason", 200)
    screen(view.preset.secrets, "reason", reason)
    return reason


def memories_text(number: int) -> str:
    return "1 memory" if number == 1 else f"{number:,} memories"
