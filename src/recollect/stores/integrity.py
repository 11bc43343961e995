"""Memories that are not as they were written: they are logged and left out of what callers see."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from recollect.record import Record
from recollect.stores.port import Place

CHANGED = "does not match its checksum: it was changed outside recollect"

_log = logging.getLogger("recollect.store")
_log.addHandler(logging.NullHandler())  # nothing on stderr unless the application asks for it


def is_intact(record: Record) -> bool:
    """Whether the content and what else never changes are as they were written. It costs one SHA-256."""
    return record.checksum == record.digest()


def intact(records: Iterable[Record]) -> Iterator[Record]:
    """Those that are, with a line in the log for each that is not."""
    for record in records:
        if is_intact(record):
            yield record
        else:
            log_damage(Place.of(record), record.id, CHANGED)


def log_damage(place: Place, where: str, problem: str) -> None:
    """Under the names of the ledger document."""
    details = {"where": where, "problem": problem}
    extra = {"component": "MemoryManager", "session_id": place.workspace, "metadata": details}
    _log.error("corruption detected", extra=extra)


def damage_note(count: int) -> str:
    """For the report of an answer that lacks something."""
    return f"{count:,} damaged {'memory is' if count == 1 else 'memories are'} left out: see `recollect doctor`"
