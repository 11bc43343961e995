"""The shelves of each place, in the same transactions as its memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from recollect.stores.port import Place
from recollect.stores.rows import UNREADABLE
from recollect.stores.shelves import COLUMNS, ShelfItem, as_kept, from_row, to_row
from recollect.stores.tables.engine import FOREVER, PAGE, Rows, Statement, Tables, insert, rendered, rows_in

_COLUMNS = ", ".join(COLUMNS)
_FIND = f"SELECT {_COLUMNS} FROM {{t}}things WHERE {{here}} AND shelf = ? AND key IN"
_SEQ = "SELECT seq FROM {t}things WHERE {here} AND shelf = ? AND key = ?"
_KEPT = ("body", "parent", "account", "agent", "version", "created_at", "changed_at")
_REPLACE = f" ON CONFLICT ({{keys}}shelf, key) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _KEPT)}"
_REMOVE = "DELETE FROM {t}things WHERE {here} AND shelf = ? AND key = ? RETURNING key"
_SOME = 400
"""Keys in one statement."""


class ShelfTable:
    """The calls of the port that are about shelves."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def keep(self, place: Place, item: ShelfItem, *, expect: int | None = None, exact: bool = False) -> ShelfItem:
        dialect = self.tables.dialect
        with self.tables.writing(place):
            stored = self.find(place, item.shelf, (item.key,))
            new = as_kept(item, stored[0] if stored else None, expect, exact)
            row = (*dialect.here_values(place), self.tables.next_item(place), *to_row(new))
            keys = "".join(f"{column}, " for column in dialect.here_columns)
            sql = insert(dialect, "things", ("seq", *COLUMNS), _REPLACE.format(keys=keys))
            self.tables.run(place, [Statement(sql, row)], "thing", [(new.shelf, new.key)])
        return new

    def find(self, place: Place, shelf: str, keys: Sequence[str]) -> list[ShelfItem]:
        keys = list(dict.fromkeys(keys))
        rows: Rows = []
        for at in range(0, len(keys), _SOME):
            some = keys[at : at + _SOME]
            rows += self._rows(place, f"{_FIND} ({', '.join('?' * len(some))})", shelf, *some)
        items = {item.key: item for item in (self._thing(place, row) for row in rows)}
        return [items[key] for key in keys if key in items]

    def shelf(
        self,
        place: Place,
        shelf: str | None = None,
        *,
        parent: str | None = None,
        contains: str = "",
        newest_first: bool = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> Iterator[ShelfItem]:
        way, beyond, edge = ("DESC", "<", FOREVER) if newest_first else ("ASC", ">", 0)
        conditions = {column: value for column, value in (("shelf", shelf), ("parent", parent)) if value is not None}
        clause = "".join(f" AND {column} = ?" for column in conditions)
        template = f"""SELECT {_COLUMNS}, seq FROM {{t}}things WHERE {{here}} AND seq {beyond} ?{clause}
            ORDER BY seq {way} LIMIT {PAGE}"""
        if after is not None and (rows := self._rows(place, _SEQ, shelf, after)):
            ((edge,),) = rows
        folded = contains.casefold()

        def matching(edge: int) -> Iterator[ShelfItem]:
            """Page by page, so that no transaction stays open while the caller works."""
            while page := self._rows(place, template, edge, *conditions.values()):
                items = (self._thing(place, row[:-1]) for row in page)
                yield from (item for item in items if item.contains(folded))
                if len(page) < PAGE:
                    return
                edge = page[-1][-1]

        return islice(matching(edge), limit)

    def remove(self, place: Place, shelf: str, keys: Sequence[str]) -> int:
        keys = [item.key for item in self.find(place, shelf, keys)]
        if not keys:
            return 0
        dialect = self.tables.dialect
        here, sql = dialect.here_values(place), rendered(dialect, _REMOVE)
        with self.tables.writing(place):
            statements = [Statement(sql, (*here, shelf, key)) for key in keys]
            removed = self.tables.run(place, statements, "thing", [(shelf, key) for key in keys])
        return sum(map(len, removed))

    def _rows(self, place: Place, template: str, *values: Any) -> Rows:
        return rows_in(self.tables, place, template, values)

    def _thing(self, place: Place, row: Sequence[Any]) -> ShelfItem:
        try:
            return from_row(row)
        except UNREADABLE as error:
            raise self.tables.unreadable(place, f"{row[0]} {row[1]}", error) from error
