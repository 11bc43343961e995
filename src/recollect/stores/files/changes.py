"""What can be staged in a transaction: memories, vectors, things on shelves and entries of the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from recollect.stores.audit import Entry
from recollect.stores.fields import CHANGEABLE
from recollect.stores.files import audit_file
from recollect.stores.files.book import Book
from recollect.stores.files.fileset import AUDIT, CHANGES, SHELVES, TOMBSTONES, UNDO, VECTORS
from recollect.stores.files.lines import Change, Changed, Shelved, Tombstone, Vector, line
from recollect.stores.files.staging import Staged
from recollect.stores.files.state import FOREVER, PENDING, Row, State
from recollect.stores.shelves import Thing, as_kept
from recollect.values.errors import ConflictError, NotFoundError, StoreError
from recollect.values.record import Record


class Changes:
    """Of one book, in the transaction of this thread. Each call takes the guard for itself."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @property
    def _staged(self) -> Staged:
        staged = self._book.mine()
        assert staged is not None, "not in a transaction"
        return staged

    @property
    def _state(self) -> State:
        return self._book.reader.state

    def put(self, records: Sequence[Record]) -> list[Record]:
        staged, highest = self._staged, max(self._staged.numbers.get("", 0), self._state.highest)
        if self._book.format.rewrites:  # a person may have removed the line of the last number
            highest = max(highest, self._book.audit.highest(self._book.format.number))
        named, highest = self._book.format.name(records, highest)
        for record in named:
            self._put(staged, record)
        staged.set(staged.numbers, "", highest)
        return named

    def _put(self, staged: Staged, record: Record) -> None:
        format, ident = self._book.format, record.id
        if staged.row(self._state, ident) is not None:
            raise ConflictError(f"a memory with the id {ident} exists already")
        tomb = staged.tomb(self._state, ident)
        if format.rewrites and tomb:
            raise StoreError(
                f"{self._book.fileset.folder}: {ident} cannot be stored again before the disk lets the old one go"
            )
        if tomb >= FOREVER - 1:
            raise ConflictError(f"the id {ident} was deleted for good by another program; store it under another id")
        version = staged.version(self._state, ident) + 1
        staged.add(format.file, format.line(record, version))
        # Only a line of a notebook has no room for other content than text.
        plain = record.content if format.rewrites and not isinstance(record.content, str) else None
        stub = replace(record, content=plain, embedding=None, embedding_model=None, checksum="")
        row = Row(stub, version, PENDING, PENDING, 0, held=(record.content,))
        staged.set(staged.stored, ident, True)
        staged.set(staged.untouched, ident, True)
        if rest := format.rest(record):
            row = self._change(staged, row, rest, version + 1)
        staged.set(staged.rows, ident, row)
        if record.embedding is not None:
            self._embed(staged, row, record.embedding_model, record.embedding, row.version)

    def _change(self, staged: Staged, row: Row, changed: Changed, version: int) -> Row:
        staged.add(CHANGES, line(Change(row.record.id, version, row.record.created_at, changed)))
        return replace(row, record=changed.onto(row.record), version=version)

    def _embed(self, staged: Staged, row: Row, model: str | None, vector: bytes, version: int) -> None:
        staged.add(VECTORS, line(Vector(row.record.id, version, model, vector)))
        stub = replace(row.record, embedding_model=model)
        new = replace(row, record=stub, vector=(PENDING, PENDING), vector_version=version, blob=vector)
        staged.set(staged.rows, row.record.id, new)

    def update(self, records: Sequence[Record]) -> None:
        staged = self._staged
        for record in records:
            row = self._row(staged, record.id)
            with self._book.guard:
                old = self._book.stub(row)
            new = {name: value for name in CHANGEABLE if (value := getattr(record, name)) != getattr(old, name)}
            if not new:
                continue
            if new.keys() & {"access_count", "accessed_at"}:
                new |= {"access_count": record.access_count, "accessed_at": record.accessed_at}
                staged.set(staged.untouched, record.id, True)
            version = staged.version(self._state, record.id) + 1
            staged.set(staged.rows, record.id, self._change(staged, row, Changed(**new), version))

    def embed(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Those that are gone are passed over."""
        staged = self._staged
        for ident, vector in vectors.items():
            row = staged.row(self._state, ident)
            if row is not None:
                self._embed(staged, row, model, vector, staged.version(self._state, ident) + 1)

    def delete(self, ids: Sequence[str], reason: str) -> None:
        staged, at = self._staged, self._book.now()
        for ident in ids:
            self._row(staged, ident)
            version = staged.version(self._state, ident)
            staged.add(TOMBSTONES, line(Tombstone(ident, at, reason, version)))
            staged.set(staged.rows, ident, None)
            staged.set(staged.tombs, ident, version)
            staged.set(staged.untouched, ident, True)

    def _row(self, staged: Staged, ident: str) -> Row:
        row = staged.row(self._state, ident)
        if row is None:
            raise NotFoundError(f"there is no memory {ident}")
        return row

    # Shelves

    def keep(self, thing: Thing, expect: int | None, exact: bool) -> Thing:
        staged, path = self._staged, (thing.shelf, thing.key)
        there = staged.thing(self._state, path)
        kept = as_kept(thing, there, expect, exact)
        staged.add(SHELVES, line(Shelved.of(kept)))
        if there is None:
            staged.set(staged.kept, path, True)
        staged.set(staged.things, path, kept)
        return kept

    def remove(self, shelf: str, keys: Sequence[str]) -> int:
        staged, count = self._staged, 0
        for key in dict.fromkeys(keys):
            if staged.thing(self._state, (shelf, key)) is not None:
                staged.add(SHELVES, line(Shelved(shelf, key, removed=True)))
                staged.set(staged.things, (shelf, key), None)
                count += 1
        return count

    # The audit log

    def append(self, entry: Entry, before: Sequence[Record], things: Sequence[Thing]) -> Entry:
        staged = self._staged
        with self._book.guard:
            last = self._book.last_entry()
        entry, logged = audit_file.sealed_line(entry, last)
        staged.add(AUDIT, logged)
        if before or things:
            staged.add(UNDO, audit_file.undo_line(entry, before, things))
        return entry

    def forget_before(self, seqs: Sequence[int] | None) -> int:
        staged, chosen = self._staged, None if seqs is None else set(seqs)
        with self._book.guard:
            dropped = [head.seq for head, _ in self._book.undo_lines() if chosen is None or head.seq in chosen]
        for seq in dropped:
            staged.set(staged.dropped_undo, seq, True)
        return len(dropped)
