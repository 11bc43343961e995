"""The audit log of a place and what undo needs, beside its memories and in the same transactions."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from recollect.errors import StoreError
from recollect.record import Record, new_id, utc_now
from recollect.stores.audit import GENESIS, Entry, seal
from recollect.stores.files import files
from recollect.stores.files.book import AUDIT, TOMBSTONES, UNDO
from recollect.stores.files.files import MISSING, Identity
from recollect.stores.files.lines import Audited, Named, Undo, UndoHead, UndoIds
from recollect.stores.files.lock import Note
from recollect.stores.files.staging import StagedBook
from recollect.stores.files.state import FOREVER, UNREADABLE

_encode = msgspec.json.Encoder().encode
_entry = msgspec.json.Decoder(Entry).decode
_audited = msgspec.json.Decoder(Audited).decode
_undo = msgspec.json.Decoder(Undo).decode
_undo_head = msgspec.json.Decoder(UndoHead).decode
_undo_ids = msgspec.json.Decoder(UndoIds).decode
_id = msgspec.json.Decoder(Named).decode
_TAIL = 4096


class Logbook(StagedBook):
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
        for parts in reversed(self.unsaved):
            if lines := parts.get(AUDIT):
                last = _audited(lines.splitlines()[-1])
                return last.seq, last.hash
        return self._last_written()

    def _settle_rows(self, parts: dict[str, bytes], starts: dict[str, int]) -> None:
        super()._settle_rows(parts, starts)
        if AUDIT in parts:
            last = _audited(parts[AUDIT][parts[AUDIT].rfind(b"\n", 0, -1) + 1 :])
            self._last, self._audit_seen = (last.seq, last.hash), self.files[AUDIT].identity()

    def _last_written(self) -> tuple[int, str]:
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
        if self.unlogged is not None:
            self._log_found(self.unlogged)
            self.unlogged = None
            self.lock.settle()
        super()._prepare()

    def _log_found(self, left: Note) -> None:
        """Add the entry that a process died before writing, for what it did write."""
        size = left.began[AUDIT][1]
        self.files[AUDIT].open(create=True)
        self.files[AUDIT].cut(size)
        rows, stones = self.state.rows.values(), self.files[TOMBSTONES]
        created, deleted = (left.began.get(name, (0, FOREVER))[1] for name in (self.format.file, TOMBSTONES))
        meta: dict[str, Any] = {
            "created": [row.record.id for row in rows if row.start >= created],
            "deleted": [_id(line.data).id for line in files.lines(stones.read(deleted, left.ends.get(TOMBSTONES, 0)))],
        }
        message = (
            f"found {len(meta['created'])} written and {len(meta['deleted'])} forgotten by process {left.pid}, "
            "which ended before it could log that"
        )
        seq, previous = self._last_written()
        entry = seal(Entry(0, new_id(), utc_now(), "recover", message, None, meta), seq + 1, previous)
        line = _encode(entry) + b"\n"
        self.lock.announce(left.began, {**left.ends, AUDIT: size + len(line)}, durable=False)
        self.files[AUDIT].append(line)

    def _as_of_now(self, parts: dict[str, bytes]) -> dict[str, bytes]:
        entries = [_entry(line) for line in parts.get(AUDIT, b"").splitlines()]
        seq, previous = self._last_written()
        if not entries or entries[0].seq == seq + 1:
            return parts
        by = seq + 1 - entries[0].seq
        lines: list[bytes] = []
        for entry in entries:
            new = seal(entry, entry.seq + by, previous)
            previous = new.hash
            lines.append(_encode(new) + b"\n")
        undo = [_undo(line) for line in parts.get(UNDO, b"").splitlines()]
        moved = b"".join(_encode(Undo(one.seq + by, one.at, one.before)) + b"\n" for one in undo)
        return {**parts, AUDIT: b"".join(lines), **({UNDO: moved} if undo else {})}

    def close(self) -> None:
        try:
            if os.path.exists(self.files[AUDIT].path) and self.files[AUDIT].open():
                self.files[AUDIT].sync()
        except (OSError, StoreError) as error:
            self._log(logging.WARNING, "audit log not made durable", problem=str(error))
        super().close()
