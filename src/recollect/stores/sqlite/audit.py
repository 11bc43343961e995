"""The audit log of one place, in the same file and the same transactions as its memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from recollect.record import Record, from_micros, to_micros
from recollect.stores.audit import GENESIS, Entry, seal
from recollect.stores.sqlite.database import UNREADABLE, Database, MovedError

_encode = msgspec.json.Encoder().encode
_meta = msgspec.json.Decoder(dict[str, Any]).decode
_records = msgspec.json.Decoder(list[Record]).decode

_PAGE = 500
_WRITTEN = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'"
# Not the last entry's number: where that one was removed, its place stays empty and is missed.
_LAST = f"SELECT coalesce(({_WRITTEN}), 0), coalesce((SELECT hash FROM audit ORDER BY seq DESC LIMIT 1), '{GENESIS}')"
_APPEND = "INSERT INTO audit (seq, id, at, action, message, actor, meta, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_UNDO = "SELECT seq FROM undo JOIN audit USING (seq) WHERE audit.at < ?"
_FOREVER = 1 << 62


class LoggedDatabase(Database):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.connection.create_scalar_function("fold_has", _fold_has, 2, deterministic=True)

    def append(self, entry: Entry, before: Sequence[Record]) -> Entry:
        """In a transaction of the caller's."""
        execute = self.connection.execute
        last, previous = self.row(_LAST) or (0, GENESIS)
        entry = seal(entry, last + 1, previous)
        at, meta = to_micros(entry.at), _encode(entry.meta).decode()
        execute(_APPEND, (entry.seq, entry.id, at, entry.action, entry.message, entry.actor, meta, entry.hash))
        if before:
            execute("INSERT INTO undo (seq, before) VALUES (?, ?)", (entry.seq, _encode(before)))
        return entry

    def entries(self, contains: str, about: str, newest_first: bool, limit: int | None) -> Iterator[Entry]:
        way, beyond, after = ("DESC", "<", _FOREVER) if newest_first else ("ASC", ">", 0)
        sql = f"""SELECT seq, id, at, action, message, actor, meta, hash FROM audit
            WHERE seq {beyond} ? AND (? = '' OR fold_has(message, ?)) AND (? = '' OR instr(meta, ?))
            ORDER BY seq {way} LIMIT ?"""
        quoted, folded, left = f'"{about}"' if about else "", contains.casefold(), limit
        while left is None or left > 0:
            try:
                page = self.rows(sql, (after, folded, folded, quoted, quoted, min(_PAGE, left or _PAGE)))
            except MovedError:
                if self.closed:
                    raise
                return  # nothing is left to be seen
            for seq, ident, at, action, message, actor, meta, digest in page:
                try:
                    entry = Entry(seq, ident, from_micros(at), action, message, actor, _meta(meta), digest)
                except UNREADABLE as error:
                    raise self.problem(error) from error
                yield entry
            if len(page) < _PAGE:
                return
            after = page[-1][0]
            left = left and left - len(page)

    def written(self) -> int:
        row = self.row(_WRITTEN)
        return row[0] if row else 0

    def before(self, seq: int) -> list[Record] | None:
        row = self.row("SELECT before FROM undo WHERE seq = ?", (seq,))
        try:
            return _records(row[0]) if row else None
        except UNREADABLE as error:
            raise self.problem(error) from error

    def forget_before(self, until: datetime | None, about: Sequence[str] | None) -> int:
        """In a transaction of the caller's."""
        seqs = [row[0] for row in self.rows(_UNDO, (_FOREVER if until is None else to_micros(until),))]
        if about is not None:
            named = set(about)
            seqs = [seq for seq in seqs if named.intersection(record.id for record in self.before(seq) or ())]
        self.connection.executemany("DELETE FROM undo WHERE seq = ?", [(seq,) for seq in seqs])
        return len(seqs)


def _fold_has(text: Any, folded: str) -> bool:
    """Case-insensitive in every script; SQLite's own LIKE folds ASCII only."""
    return folded in text.casefold()
