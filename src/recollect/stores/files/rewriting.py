"""Transaction the files of one place anew, without what was deleted or replaced."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from recollect.stores.audit import Entry
from recollect.stores.files import audit_file, files
from recollect.stores.files.aside import set_aside
from recollect.stores.files.fileset import AUDIT, CHANGES, COUNTER, SHELVES, TOMBSTONES, VECTORS
from recollect.stores.files.lines import Change, Shelved, Vector, line
from recollect.stores.files.metrics import COMPACTION
from recollect.stores.files.replay import Row
from recollect.values.record import Record, new_id

if TYPE_CHECKING:
    from recollect.stores.files.index import PlaceIndex


def rewrite(
    index: PlaceIndex, change: Callable[[Record], Record] = lambda record: record, erased: Collection[str] = ()
) -> int:
    """Each file atomically. In a transaction, before anything is staged. Returns the bytes freed.

    Damaged lines are set aside, unless they have the id of a memory that was deleted or `erased`.

    Who reads meanwhile finds old and new files that say the same, as does whoever comes after a crash in between.
    Retrievals that are not written yet stay so: compaction must not make a place larger.
    """
    log, fileset = index.log, index.log.fileset
    before = sum(identity.size for identity in fileset.identities(fileset.read).values())
    log.meter.counts[COMPACTION] += 1
    deleted = {ident for ident in index.tombs() if index.known_row(ident) is None}
    damaged = {byte for name, byte in index.damaged_lines() if name == fileset.main}
    _log_foreign_deletions(index, deleted)
    old_rows = list(index.known_rows(whole=True))
    rows, new = _lines(index, old_rows, change)
    try:
        log.appender.cut()
        log.appender.lock.quiet()
        log.unbury()
        files.remove_leftovers(os.path.dirname(fileset.main_path))
        files.remove_leftovers(fileset.folder)
        set_aside(log.place, fileset, log.format, damaged, {*deleted, *erased})
        if highest := index.fact("highest"):
            files.replace(fileset.path(COUNTER), f"{highest}\n".encode())
        for name, written in new.items():
            path = fileset.paths[name]
            if written or os.path.exists(path):
                files.replace(path, b"".join(written))
        index.rewritten(list(zip(old_rows, rows, strict=True)))
    except OSError as error:
        index.rebuild()
        raise files.problem(error, fileset.folder) from error
    finally:
        log.appender.close_files()
    return before - sum(identity.size for identity in fileset.identities(fileset.read).values())


def _log_foreign_deletions(index: PlaceIndex, deleted: set[str]) -> None:
    """Their tombstones are about to go, and then only the audit log tells that they were not lost."""
    log = index.log
    if log.format.rewrites or not deleted:
        return
    stored = log.stored_by_audit()
    foreign = sorted(ident for ident in deleted if stored.get(ident))
    if foreign:
        message = f"found {len(foreign)} forgotten by another program"
        entry = Entry(0, new_id(), log.now(), "recover", message, None, {"deleted": foreign})
        try:
            log.appender.append({AUDIT: audit_file.sealed_line(entry, log.last_entry(None))[1]}, index.sizes_read())
        except OSError as error:
            raise files.problem(error, log.fileset.folder) from error


def compact(index: PlaceIndex, erased: Collection[str] = ()) -> int:
    """As `rewrite`, and let go of verbose metadata."""
    session = index.log.session
    return rewrite(index, session.strip, erased) if session else rewrite(index, erased=erased)


def _lines(
    index: PlaceIndex, old_rows: Sequence[Row], change: Callable[[Record], Record]
) -> tuple[list[Row], dict[str, list[bytes]]]:
    """The memories as they will be, and what each file will hold, in the order in which they are replaced."""
    format = index.log.format
    rows: list[Row] = []
    memories: list[bytes] = []
    changes: list[bytes] = []
    vectors: list[bytes] = []
    for number, row in enumerate(old_rows, 1):
        record, version = change(row.record), 1 if format.rewrites else row.last_version
        own = format.line(record, version)
        if row.foreign:
            own = format.with_foreign(own, row.foreign)
        memories.append(own)
        if rest := format.rest(record):
            version = 2
            changes.append(line(Change(record.id, version, record.created_at, rest)))
        if record.embedding is not None:
            vectors.append(line(Vector(record.id, version, record.embedding_model, record.embedding)))
        vector_version = 0 if record.embedding is None else version
        rows.append(
            replace(row, record=record, version=version, vector_version=vector_version, number=number, size=len(own))
        )
    shelves = [line(Shelved.of(item)) for item in index.things()]
    main = index.log.fileset.main
    return rows, {main: memories, VECTORS: vectors, CHANGES: changes, TOMBSTONES: [], SHELVES: shelves}
