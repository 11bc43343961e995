"""The verb restore: archived memories are recalled again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from recollect.values.errors import ConflictError
from recollect.values.record import Record
from recollect.verbs.archive import change_each, memories_text
from recollect.view import View


def restore(view: View, ids: str | Sequence[str]) -> list[Record]:
    with view.logging_refusals("restore"):
        records = view.find(ids)
        for record in records:
            if record.archived_at is None:
                raise ConflictError(f"memory {record.id} is not archived")
    now = view.now()
    message = f"restored {memories_text(len(records))}"
    return change_each(view, records, lambda record: _restored(record, now), "restore", message)


def _restored(record: Record, now: datetime) -> Record:
    """A restored memory. Restoring counts as a retrieval, or the next maintenance would find it faded as before."""
    count, accessed = record.access_count + 1, max(record.accessed_at, now)
    return replace(record, archived_at=None, access_count=count, accessed_at=accessed)
