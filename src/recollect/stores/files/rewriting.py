"""Writing the files of one place anew, without what was deleted or replaced."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec.structs import replace

from recollect.stores.audit import Entry
from recollect.stores.files import audit_file, files
from recollect.stores.files.aside import set_aside
from recollect.stores.files.book import Book
from recollect.stores.files.fileset import AUDIT, CHANGES, COUNTER, SHELVES, TOMBSTONES, VECTORS
from recollect.stores.files.lines import Change, Shelved, Vector, line
from recollect.stores.files.metrics import COMPACTION
from recollect.stores.files.state import PENDING, UNREADABLE, Row, decode_vector
from recollect.stores.shelves import Thing
from recollect.values.record import Record, new_id


class _Known(NamedTuple):
    """What the files say, as of the moment when the guard was held."""

    rows: list[Row]
    things: list[Thing]
    highest: int
    damaged: set[int]
    """Bytes in the file of memories where a line begins that cannot be read."""
    deleted: set[str]


def rewrite(
    book: Book, change: Callable[[Record], Record] = lambda record: record, erased: Collection[str] = ()
) -> int:
    """Each file atomically. In a transaction, before anything is staged. Returns the bytes freed.

    Damaged lines are set aside, unless they have the id of a memory that was deleted or `erased`.

    The guard is not held meanwhile: nobody else writes, and who reads finds old and new files that say the same, as
    does whoever comes after a crash in between. Retrievals that are not written yet stay so: compaction must not make
    a place larger.
    """
    names = book.fileset.read
    before = sum(known.size for known in book.fileset.identities(names).values())
    book.meter.counts[COMPACTION] += 1
    known = _known(book)
    _log_foreign_deletions(book, known.deleted)
    new = _lines(book, known, change)
    try:
        book.appender.cut()
        book.appender.lock.quiet()
        files.remove_leftovers(os.path.dirname(book.fileset.paths[book.fileset.main]))
        files.remove_leftovers(book.fileset.folder)
        set_aside(book.place, book.fileset, book.format, known.damaged, {*known.deleted, *erased})
        if known.highest:
            files.replace(book.fileset.path(COUNTER), f"{known.highest}\n".encode())
        for name, written in new.items():
            path = book.fileset.paths[name]
            if written or os.path.exists(path):
                files.replace(path, b"".join(written))
    except OSError as error:
        raise files.problem(error, book.fileset.folder) from error
    finally:
        book.appender.close_files()
        with book.guard:
            book.reader.reset()
            book.reader.refresh()
    return before - sum(known.size for known in book.fileset.identities(names).values())


def _log_foreign_deletions(book: Book, deleted: set[str]) -> None:
    """Their tombstones are about to go, and then only the audit log tells that they were not lost."""
    if book.format.rewrites or not deleted:
        return
    with book.guard:
        stored, last = book.stored_by_audit(), book.last_entry()
    foreign = sorted(ident for ident in deleted if stored.get(ident))
    if foreign:
        message = f"found {len(foreign)} forgotten by another program"
        entry = Entry(0, new_id(), book.now(), "recover", message, None, {"deleted": foreign})
        try:
            book.appender.append({AUDIT: audit_file.sealed_line(entry, last)[1]}, book.reader.at)
        except OSError as error:
            raise files.problem(error, book.fileset.folder) from error


def compact(book: Book, erased: Collection[str] = ()) -> int:
    """As `rewrite`, and let go of verbose metadata."""
    return rewrite(book, book.session.strip, erased) if book.session else rewrite(book, erased=erased)


def _known(book: Book) -> _Known:
    with book.guard:
        book.reader.refresh()
        state = book.reader.state
        damaged = {byte for name, byte in state.damage if name == book.fileset.main}
        deleted = state.tombs.keys() - state.rows.keys()
        return _Known(list(state.rows.values()), list(state.things.values()), state.highest, damaged, deleted)


def _lines(book: Book, known: _Known, change: Callable[[Record], Record]) -> dict[str, list[bytes]]:
    """What each file will hold, in the order in which they are replaced."""
    memories: list[bytes] = []
    changes: list[bytes] = []
    vectors: list[bytes] = []
    for row in known.rows:
        record = _whole(book, row)
        if record is None:
            known.damaged.add(row.start)
            continue
        record, version = change(record), row.last_version
        memories.append(_rewritten(book, row, book.format.line(record, version)))
        if rest := book.format.rest(record):
            version = 2
            changes.append(line(Change(record.id, version, record.created_at, rest)))
        if record.embedding is not None:
            vectors.append(line(Vector(record.id, version, record.embedding_model, record.embedding)))
    shelves = [line(Shelved.of(thing)) for thing in known.things]
    return {book.fileset.main: memories, VECTORS: vectors, CHANGES: changes, TOMBSTONES: [], SHELVES: shelves}


def _rewritten(book: Book, row: Row, line: bytes) -> bytes:
    """The new line of a memory, with what other programs have written into the old one."""
    if row.start == PENDING:
        return line
    old = book.appender.file(book.fileset.main).read(row.start, row.end)
    with suppress(*UNREADABLE):
        if foreign := book.format.foreign(old):
            return book.format.with_foreign(line, foreign)
    return line


def _whole(book: Book, row: Row) -> Record | None:
    """Read through the writer's own descriptors. None for a memory whose line is damaged."""
    content: Any = row.record.content
    if content is None:
        if row.held is not None:
            content = row.held[0]
        else:
            data = book.appender.file(book.fileset.main).read(row.start, row.end).rstrip(b"\r\n")
            try:
                content = book.format.content(data)
            except UNREADABLE:
                return None
    return replace(row.record, content=content, embedding=_vector(book, row))


def _vector(book: Book, row: Row) -> bytes | None:
    if row.vector is None or row.vector[0] == PENDING:
        return row.blob
    with suppress(*UNREADABLE):
        return decode_vector(book.appender.file(VECTORS).read(*row.vector)).vector
    return None
