"""The audit log of each place, in the same transactions as its memories."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from recollect.stores.audit import Entry, UndoSize, seal
from recollect.stores.port import Place
from recollect.stores.rows import UNREADABLE
from recollect.stores.tables.engine import FOREVER, PAGE, Rows, Statement, Tables, insert, rendered, rows_in
from recollect.stores.undo import NO_UNDO, Undo, UndoItem, document_name, from_items, to_items
from recollect.values.record import from_micros, to_micros

_encode = msgspec.json.Encoder().encode
_meta = msgspec.json.Decoder(dict[str, Any]).decode

_ENTRY = ("seq", "id", "at", "action", "message", "actor", "meta", "hash")
_ENTRIES = f"SELECT {', '.join(_ENTRY)} FROM {{t}}audit WHERE {{here}} AND seq"
_ITEM = ("entry", "item", "what", "name", "body")
_UNDOS = "SELECT entry, what, name, body FROM {t}undo_items WHERE {here}"
_UNDOABLE = "SELECT DISTINCT entry FROM {t}undo_items WHERE {here} ORDER BY entry"
_SIZES = "SELECT entry, sum(length(body)) FROM {t}undo_items WHERE {here} GROUP BY entry ORDER BY entry"
_TIMES = "SELECT seq, at FROM {t}audit WHERE {here} AND seq >= ?"
_TELLING = "SELECT DISTINCT entry FROM {t}undo_items WHERE {here}"
_PURGE = "DELETE FROM {t}undo_items WHERE {here} AND entry = ?"
_PURGE_SOME = "DELETE FROM {t}undo_items WHERE {here}"
_OF_MEMORIES, _OF_THINGS = " AND what <> 'thing'", " AND what = 'thing'"
_TOGETHER = 50
"""Rows that one statement inserts, and entries whose undo data is read at once."""


class AuditTable:
    """The calls of the port that are about the audit log, but for `written`."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def append(self, place: Place, entry: Entry, undo: Undo = NO_UNDO) -> Entry:
        with self.tables.writing(place):
            seq, previous = self.tables.last_entry(place)
            entry = seal(entry, seq + 1, previous)
            self.tables.run(place, [self._insertion(place, entry)], "audit", [(entry.seq,)], wait=False)
            if any(undo):
                self._insert_items(place, entry.seq, to_items(undo))
            self.tables.appended(place, entry)
        return entry

    def _insertion(self, place: Place, entry: Entry) -> Statement:
        dialect = self.tables.dialect
        message = dialect.to_text(entry.message)
        at, meta = to_micros(entry.at), _encode(entry.meta).decode()
        row = (entry.seq, entry.id, at, entry.action, message, entry.actor, meta, entry.hash)
        more = {"folded": message.casefold()}
        columns = (*_ENTRY, *dialect.more_of_entry)
        values = (*dialect.here_values(place), *row, *(more[column] for column in dialect.more_of_entry))
        return Statement(insert(dialect, "audit", columns), values)

    def _insert_items(self, place: Place, seq: int, items: Sequence[UndoItem]) -> None:
        dialect = self.tables.dialect
        rows = [(*dialect.here_values(place), seq, number, *item) for number, item in enumerate(items)]
        statements = [
            Statement(insert(dialect, "undo_items", _ITEM, rows=len(some)), [value for row in some for value in row])
            for some in (rows[at : at + _TOGETHER] for at in range(0, len(rows), _TOGETHER))
        ]
        self.tables.run(place, statements, "undo", [(seq,)], wait=False)

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

    def undo_of(self, place: Place, seq: int) -> Undo | None:
        return next((undo for _, undo in self._undos(place, [seq])), None)

    def _undos(self, place: Place, seqs: Sequence[int]) -> Iterator[tuple[int, Undo]]:
        """Of the entries with these numbers that have any."""
        dialect = self.tables.dialect
        template = f"{_UNDOS} AND {dialect.among('entry', seqs)} ORDER BY entry, item"
        rows = self._rows(place, template, *dialect.among_values(seqs))
        for seq, items in groupby(rows, key=itemgetter(0)):
            try:
                yield seq, from_items(item[1:] for item in items)
            except UNREADABLE as error:
                raise self.tables.unreadable(place, f"what audit entry {seq} replaced", error) from error

    def undo_sizes(self, place: Place) -> list[UndoSize]:
        sizes = self._rows(place, _SIZES)
        times = dict(self._rows(place, _TIMES, sizes[0][0])) if sizes else {}
        return [UndoSize(seq, from_micros(times[seq]), int(size)) for seq, size in sizes if seq in times]

    def undos(self, place: Place) -> Iterator[tuple[int, Undo]]:
        seqs = self._undoable(place)
        for start in range(0, len(seqs), _TOGETHER):
            yield from self._undos(place, seqs[start : start + _TOGETHER])

    def _undoable(self, place: Place) -> list[int]:
        return [seq for (seq,) in self._rows(place, _UNDOABLE)]

    def purge(
        self,
        place: Place,
        *,
        seqs: Collection[int] | None = (),
        ids: Collection[str] = (),
        documents: Collection[tuple[str, str]] = (),
    ) -> int:
        stored = self._undoable(place) if seqs is None or seqs or ids or documents else []
        whole = stored if seqs is None else [seq for seq in stored if seq in seqs]
        purged = set(whole)
        dialect = self.tables.dialect
        here = dialect.here_values(place)
        statements = [Statement(rendered(dialect, _PURGE), (*here, seq)) for seq in whole]
        wanted = (_OF_MEMORIES, sorted(ids)), (_OF_THINGS, sorted(document_name(*each) for each in documents))
        for kind, names in wanted if stored else ():
            for start in range(0, len(names), dialect.most_values):
                some = names[start : start + dialect.most_values]
                clause, values = f"{kind} AND {dialect.among('name', some)}", dialect.among_values(some)
                purged.update(seq for (seq,) in self._rows(place, _TELLING + clause, *values))
                statements.append(Statement(rendered(dialect, _PURGE_SOME + clause), (*here, *values)))
        if purged:
            with self.tables.writing(place):
                self.tables.run(place, statements, "undo", [(seq,) for seq in sorted(purged)])
        return len(purged)

    def _rows(self, place: Place, template: str, *values: Any) -> Rows:
        return rows_in(self.tables, place, template, values)
