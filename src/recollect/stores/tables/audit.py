"""The audit log of each place, in the same transactions as its memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from recollect.stores.audit import Entry, UndoSize, seal
from recollect.stores.port import Before, Place
from recollect.stores.rows import UNREADABLE
from recollect.stores.shelves import Thing
from recollect.stores.tables.engine import FOREVER, PAGE, Rows, Statement, Tables, insert, rendered, rows_in
from recollect.values.record import Record, from_micros, to_micros

_encode = msgspec.json.Encoder().encode
_meta = msgspec.json.Decoder(dict[str, Any]).decode
_records = msgspec.json.Decoder(list[Record]).decode
_things = msgspec.json.Decoder(list[Thing]).decode

_ENTRY = ("seq", "id", "at", "action", "message", "actor", "meta", "hash")
_ENTRIES = f"SELECT {', '.join(_ENTRY)} FROM {{t}}audit WHERE {{here}} AND seq"
_UNDO = ("seq", "before", "things")
_BEFORE = "SELECT before, things FROM {t}undo WHERE {here} AND seq = ?"
_UNDOS = "SELECT seq FROM {t}undo WHERE {here} ORDER BY seq"
_SIZES = "SELECT seq, length(before) + coalesce(length(things), 0) FROM {t}undo WHERE {here} ORDER BY seq"
_TIMES = "SELECT seq, at FROM {t}audit WHERE {here} AND seq >= ?"
_FORGET = "DELETE FROM {t}undo WHERE {here} AND seq = ?"


class AuditTable:
    """The calls of the port that are about the audit log, but for `written`."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def append(self, place: Place, entry: Entry, before: Sequence[Record] = (), things: Sequence[Thing] = ()) -> Entry:
        with self.tables.writing(place):
            seq, previous = self.tables.last_entry(place)
            entry = seal(entry, seq + 1, previous)
            self.tables.run(place, [self._inserted(place, entry)], "audit", [(entry.seq,)], wait=False)
            if before or things:
                values = {"seq": entry.seq, "before": _encode(before), "things": _encode(things) if things else None}
                columns = (*_UNDO, *self.tables.dialect.more_of_undo)
                insertion = self._insertion(place, "undo", columns, values | {"at": to_micros(entry.at)})
                self.tables.run(place, [insertion], "undo", [(entry.seq,)], wait=False)
            self.tables.appended(place, entry)
        return entry

    def _inserted(self, place: Place, entry: Entry) -> Statement:
        message = self.tables.dialect.to_text(entry.message)
        at, meta = to_micros(entry.at), _encode(entry.meta).decode()
        row = (entry.seq, entry.id, at, entry.action, message, entry.actor, meta, entry.hash)
        values = dict(zip(_ENTRY, row, strict=True)) | {"folded": message.casefold()}
        return self._insertion(place, "audit", (*_ENTRY, *self.tables.dialect.more_of_entry), values)

    def _insertion(self, place: Place, table: str, columns: tuple[str, ...], values: Mapping[str, Any]) -> Statement:
        dialect = self.tables.dialect
        row = (*dialect.here_values(place), *(values[column] for column in columns))
        return Statement(insert(dialect, table, columns), row)

    def entries(
        self,
        place: Place,
        *,
        contains: Sequence[str] = (),
        about: str = "",
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Entry]:
        """Page by page, so that no transaction stays open while the caller works."""
        dialect = self.tables.dialect
        way, beyond, after = ("DESC", "<", FOREVER) if newest_first else ("ASC", ">", 0)
        texts = [dialect.to_text(text).casefold() for text in contains]
        has = " OR ".join([dialect.message_has] * len(texts)) or "TRUE"
        named = f" AND {dialect.meta_has}" if about else ""
        sql = rendered(dialect, f"{_ENTRIES} {beyond} ? AND ({has}){named} ORDER BY seq {way} LIMIT ?")
        values = (*texts, f'"{about}"') if about else tuple(texts)
        left = limit
        while left is None or left > 0:
            size = min(PAGE, left or PAGE)
            page = self.tables.rows(place, sql, (*dialect.here_values(place), after, *values, size))
            yield from (self._entry(place, row) for row in page)
            if len(page) < size:
                return
            after = page[-1][0]
            left = left and left - len(page)

    def _entry(self, place: Place, row: Sequence[Any]) -> Entry:
        seq, ident, at, action, message, actor, meta, digest = row
        try:
            text = self.tables.dialect.from_text(message)
            return Entry(seq, ident, from_micros(at), action, text, actor, _meta(meta), digest)
        except UNREADABLE as error:
            raise self.tables.unreadable(place, f"audit entry {seq}", error) from error

    def before(self, place: Place, seq: int) -> Before | None:
        rows = self._rows(place, _BEFORE, seq)
        if not rows:
            return None
        records, things = rows[0]
        try:
            return Before(_records(records), _things(things) if things else [])
        except UNREADABLE as error:
            raise self.tables.unreadable(place, f"what audit entry {seq} replaced", error) from error

    def undo_sizes(self, place: Place) -> list[UndoSize]:
        sizes = self._rows(place, _SIZES)
        times = dict(self._rows(place, _TIMES, sizes[0][0])) if sizes else {}
        return [UndoSize(seq, from_micros(times[seq]), size) for seq, size in sizes if seq in times]

    def undos(self, place: Place) -> Iterator[tuple[int, Before]]:
        for (seq,) in self._rows(place, _UNDOS):
            if (replaced := self.before(place, seq)) is not None:
                yield seq, replaced

    def forget_before(self, place: Place, *, seqs: Sequence[int] | None = None) -> int:
        stored = [seq for (seq,) in self._rows(place, _UNDOS)]
        dropped = stored if seqs is None else sorted(set(stored).intersection(seqs))
        if not dropped:
            return 0
        dialect = self.tables.dialect
        here = dialect.here_values(place)
        with self.tables.writing(place):
            statements = [Statement(rendered(dialect, _FORGET), (*here, seq)) for seq in dropped]
            self.tables.run(place, statements, "undo", [(seq,) for seq in dropped])
        return len(dropped)

    def _rows(self, place: Place, template: str, *values: Any) -> Rows:
        return rows_in(self.tables, place, template, values)
