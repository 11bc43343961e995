"""The audit log of one place, in the same file and the same transactions as its memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from recollect.stores.audit import GENESIS, Entry, UndoSize, seal
from recollect.stores.port import Before
from recollect.stores.rows import UNREADABLE
from recollect.stores.shelves import Thing
from recollect.stores.sqlite.database import Database
from recollect.stores.sqlite.opening import MovedError
from recollect.values.record import Record, from_micros, to_micros

_encode = msgspec.json.Encoder().encode
_meta = msgspec.json.Decoder(dict[str, Any]).decode
_records = msgspec.json.Decoder(list[Record]).decode
_things = msgspec.json.Decoder(list[Thing]).decode

_PAGE = 500
_WRITTEN = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'"
# Not the last entry's number: where that one was removed, its place stays empty and is missed.
_LAST = f"SELECT coalesce(({_WRITTEN}), 0), coalesce((SELECT hash FROM audit ORDER BY seq DESC LIMIT 1), '{GENESIS}')"
_APPEND = "INSERT INTO audit (seq, id, at, action, message, actor, meta, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_SIZES = """SELECT seq, audit.at, length(before) + coalesce(length(things), 0) FROM undo JOIN audit USING (seq)
    ORDER BY seq"""
_FOREVER = 1 << 62


class AuditTable:
    """`append` and `forget_before` are called in a transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, entry: Entry, before: Sequence[Record], things: Sequence[Thing]) -> Entry:
        execute = self._database.writer.execute
        last, previous = execute(_LAST).fetchone() or (0, GENESIS)
        entry = seal(entry, last + 1, previous)
        at, meta = to_micros(entry.at), _encode(entry.meta).decode()
        execute(_APPEND, (entry.seq, entry.id, at, entry.action, entry.message, entry.actor, meta, entry.hash))
        if before or things:
            kept = _encode(before), _encode(things) if things else None
            execute("INSERT INTO undo (seq, before, things) VALUES (?, ?, ?)", (entry.seq, *kept))
        return entry

    def entries(self, contains: Sequence[str], about: str, newest_first: bool, limit: int | None) -> Iterator[Entry]:
        """Page by page, so that no read transaction stays open while the caller works."""
        way, beyond, after = ("DESC", "<", _FOREVER) if newest_first else ("ASC", ">", 0)
        wanted = [text.casefold() for text in contains]
        has = " OR ".join(["fold_has(message, ?)"] * len(wanted)) or "1"
        sql = f"""SELECT seq, id, at, action, message, actor, meta, hash FROM audit
            WHERE seq {beyond} ? AND ({has}) AND (? = '' OR instr(meta, ?)) ORDER BY seq {way} LIMIT ?"""
        quoted, left = f'"{about}"' if about else "", limit
        while left is None or left > 0:
            try:
                page = self._database.rows(sql, (after, *wanted, quoted, quoted, min(_PAGE, left or _PAGE)))
            except MovedError:
                if self._database.closed:
                    raise
                return  # nothing is left to be seen
            for seq, ident, at, action, message, actor, meta, digest in page:
                try:
                    entry = Entry(seq, ident, from_micros(at), action, message, actor, _meta(meta), digest)
                except UNREADABLE as error:
                    raise self._database.problem(error) from error
                yield entry
            if len(page) < _PAGE:
                return
            after = page[-1][0]
            left = left and left - len(page)

    def written(self) -> int:
        row = self._database.row(_WRITTEN)
        return row[0] if row else 0

    def before(self, seq: int) -> Before | None:
        row = self._database.row("SELECT before, things FROM undo WHERE seq = ?", (seq,))
        if row is None:
            return None
        try:
            return Before(_records(row[0]), _things(row[1]) if row[1] else [])
        except UNREADABLE as error:
            raise self._database.problem(error) from error

    def undo_sizes(self) -> list[UndoSize]:
        return [UndoSize(seq, from_micros(at), size) for seq, at, size in self._database.rows(_SIZES)]

    def undos(self) -> list[tuple[int, Before]]:
        seqs = [row[0] for row in self._database.rows("SELECT seq FROM undo ORDER BY seq")]
        return [(seq, replaced) for seq in seqs if (replaced := self.before(seq)) is not None]

    def forget_before(self, seqs: Sequence[int] | None) -> int:
        stored = [row[0] for row in self._database.rows("SELECT seq FROM undo")]
        dropped = stored if seqs is None else [seq for seq in stored if seq in set(seqs)]
        self._database.writer.executemany("DELETE FROM undo WHERE seq = ?", [(seq,) for seq in dropped])
        return len(dropped)
