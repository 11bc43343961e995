"""The audit log of a place and what undo needs, beside its memories and in the same transactions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from recollect.chain import GENESIS, Entry, seal
from recollect.record import Record, new_id, utc_now
from recollect.stores.jsonl import files
from recollect.stores.jsonl.book import AUDIT, UNDO, Book
from recollect.stores.jsonl.files import MISSING, Identity
from recollect.stores.jsonl.lines import Audited, Undo, UndoHead, UndoIds
from recollect.stores.jsonl.state import UNREADABLE

_encode = msgspec.json.Encoder().encode
_entry = msgspec.json.Decoder(Entry).decode
_audited = msgspec.json.Decoder(Audited).decode
_undo = msgspec.json.Decoder(Undo).decode
_undo_head = msgspec.json.Decoder(UndoHead).decode
_undo_ids = msgspec.json.Decoder(UndoIds).decode
_TAIL = 4096


class Logbook(Book):
    """A book that logs what is done to it."""

    _audit_seen: Identity | None = None
    _last: tuple[int, str] = (0, GENESIS)

    def append(self, entry: Entry, before: Sequence[Record] = ()) -> Entry:
        """In a transaction."""
        seq, previous = self._last_entry()
        entry = seal(entry, seq + 1, previous)
        self.stage(AUDIT, _encode(entry) + b"\n")
        if before:
            self.stage(UNDO, _encode(Undo(entry.seq, entry.at, list(before))) + b"\n")
        return entry

    def _last_entry(self) -> tuple[int, str]:
        if self.staged is not None and (lines := self.staged.lines.get(AUDIT)):
            last = _audited(lines[-1])
            return last.seq, last.hash
        found = files.identity(self.files[AUDIT].path)
        if found != self._audit_seen:
            self._last = self._read_last(found)
            self._audit_seen = found
        return self._last

    def _read_last(self, found: Identity) -> tuple[int, str]:
        """From the last line that can be read."""
        file = self.files[AUDIT]
        if found == MISSING or not file.open():
            return 0, GENESIS
        for size in (_TAIL, found.size):
            start = max(0, found.size - size)
            for line in reversed(file.read(start, found.size).splitlines()[1 if start else 0 :]):
                try:
                    last = _audited(line)
                    return max(last.seq, self.audit_entries()), last.hash
                except UNREADABLE:
                    continue
        return self.audit_entries(), GENESIS

    def audit_entries(self) -> int:
        """How many a snapshot has counted, in case the last were removed."""
        return 0

    def written(self) -> int:
        return self._last_entry()[0]

    def entries(self, contains: str, about: str, newest_first: bool, limit: int | None) -> Iterator[Entry]:
        folded, quoted = contains.casefold(), f'"{about}"'.encode() if about else b""
        lines = self._lines(AUDIT)
        for line in reversed(lines) if newest_first else lines:
            if limit is not None and limit <= 0:
                return
            if quoted and quoted not in line:
                continue
            try:
                entry = _entry(line)
            except UNREADABLE:
                continue  # missing from the chain, and so reported by whoever checks it
            if folded in entry.message.casefold():
                limit = limit and limit - 1
                yield entry

    def _lines(self, name: str) -> list[bytes]:
        with self.guard:
            file = self.files[name]
            data = file.read(0, file.size) if file.open() else b""
            staged = self.staged.lines.get(name, []) if self.staged else []
            unsaved = [parts.get(name, b"") for parts in self.unsaved]
            return [line for line in b"".join((data, *unsaved, *staged)).split(b"\n") if line.strip()]

    def _undo_lines(self) -> Iterator[tuple[UndoHead, bytes]]:
        dropped = set(self.staged.dropped_undo) if self.staged else ()
        for line in self._lines(UNDO):
            try:
                head = _undo_head(line)
            except UNREADABLE:
                continue
            if head.seq not in dropped:
                yield head, line

    def before(self, seq: int) -> list[Record] | None:
        for head, line in self._undo_lines():
            if head.seq == seq:
                return _undo(line).before
        return None

    def forget_before(self, until: datetime | None, about: Sequence[str] | None) -> int:
        """In a transaction."""
        named = None if about is None else set(about)
        found = [
            head.seq
            for head, line in self._undo_lines()
            if (until is None or head.at < until)
            and (named is None or named.intersection(one.id for one in _undo_ids(line).before))
        ]
        assert self.staged is not None
        self.staged.dropped_undo += found
        return len(found)

    def drop_undo(self, seqs: Sequence[int]) -> None:
        gone = set(seqs)
        kept = [line + b"\n" for head, line in self._undo_lines() if head.seq not in gone]
        try:
            files.replace(self.files[UNDO].path, b"".join(kept))
        except OSError as error:
            raise files.problem(error, self.folder) from error

    def _prepare(self) -> None:
        super()._prepare()
        if self.audit_missing:
            start, pid = self.audit_missing
            self.audit_missing = None
            self._log_found(start, pid)

    def _log_found(self, start: int | None, pid: int) -> None:
        """Add the entry that a process died before writing, for memories that it did write."""
        found = [row.record.id for row in self.state.rows.values() if start is not None and row.start >= start]
        message = f"found {len(found)} written by process {pid}, which ended before it could log them"
        seq, previous = self._last_entry()
        meta: dict[str, Any] = {"created": found}
        entry = seal(Entry(0, new_id(), utc_now(), "recover", message, None, meta), seq + 1, previous)
        self.files[AUDIT].open(create=True)
        self.files[AUDIT].append(_encode(entry) + b"\n")

    def close(self) -> None:
        if os.path.exists(self.files[AUDIT].path) and self.files[AUDIT].open():
            self.files[AUDIT].sync()
        super().close()
