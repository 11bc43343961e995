"""The shelves of one place, in the same file and the same transactions as its memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from recollect.stores.rows import UNREADABLE
from recollect.stores.shelves import COLUMNS, PAGE, Thing, as_kept, from_row, paged, to_row
from recollect.stores.sqlite.database import Database
from recollect.stores.sqlite.opening import MovedError

_FIND = f"SELECT {COLUMNS} FROM things WHERE shelf = ? AND key = ?"
_KEEP = f"""INSERT INTO things ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (shelf, key) DO UPDATE SET body = excluded.body, parent = excluded.parent, account = excluded.account,
    agent = excluded.agent, version = excluded.version, created_at = excluded.created_at,
    changed_at = excluded.changed_at"""


class ShelfTable:
    """`keep` and `remove` are called in a transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, thing: Thing, expect: int | None, exact: bool) -> Thing:
        there = self.find(thing.shelf, (thing.key,))
        kept = as_kept(thing, there[0] if there else None, expect, exact)
        self._database.writer.execute(_KEEP, to_row(kept))
        return kept

    def find(self, shelf: str, keys: Sequence[str]) -> list[Thing]:
        with self._database.reading() as connection:
            rows = [connection.execute(_FIND, (shelf, key)).fetchone() for key in dict.fromkeys(keys)]
        return [self._thing(row) for row in rows if row is not None]

    def shelf(
        self,
        shelf: str | None,
        parent: str | None,
        contains: str,
        newest_first: bool,
        after: str | None,
        limit: int | None,
    ) -> Iterator[Thing]:
        way, beyond, edge = ("DESC", "<", 1 << 62) if newest_first else ("ASC", ">", 0)
        given = [("shelf", shelf), ("parent", parent)]
        clause = "".join(f" AND {column} = ?" for column, value in given if value is not None)
        values = [value for _, value in given if value is not None]
        sql = f"SELECT {COLUMNS}, seq FROM things WHERE seq {beyond} ?{clause} ORDER BY seq {way} LIMIT {PAGE}"
        if after is not None:
            row = self._database.row("SELECT seq FROM things WHERE shelf = ? AND key = ?", (shelf, after))
            edge = row[0] if row else edge

        def page(edge: int) -> Sequence[Sequence[Any]]:
            try:
                return self._database.rows(sql, (edge, *values))
            except MovedError:
                if self._database.closed:
                    raise
                return ()  # nothing is left to be seen

        yield from paged(page, self._thing, edge, contains, limit)

    def remove(self, shelf: str, keys: Sequence[str]) -> int:
        before = self._database.writer.total_changes()
        self._database.writer.executemany("DELETE FROM things WHERE shelf = ? AND key = ?", [(shelf, k) for k in keys])
        return self._database.writer.total_changes() - before

    def _thing(self, row: Sequence[Any]) -> Thing:
        try:
            return from_row(row)
        except UNREADABLE as error:
            raise self._database.problem(error) from error
