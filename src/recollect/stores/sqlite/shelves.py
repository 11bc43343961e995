"""The shelves of one place, in the same file and the same transactions as its memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from recollect.record import from_micros, to_micros
from recollect.stores.shelves import Thing, as_kept
from recollect.stores.sqlite.database import UNREADABLE, Database
from recollect.stores.sqlite.opening import MovedError

_encode = msgspec.json.Encoder().encode
_body = msgspec.json.Decoder(dict[str, Any]).decode
_PAGE = 500
_COLUMNS = "shelf, key, body, parent, account, agent, version, created_at, changed_at"
_FIND = f"SELECT {_COLUMNS} FROM things WHERE shelf = ? AND key = ?"
_KEEP = f"""INSERT INTO things ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
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
        times = to_micros(kept.created_at), to_micros(kept.changed_at)
        body = _encode(kept.body).decode()
        owner = kept.parent, kept.account, kept.agent
        self._database.writer.execute(_KEEP, (kept.shelf, kept.key, body, *owner, kept.version, *times))
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
        """Page by page, so that no read transaction stays open while the caller works."""
        way, beyond, edge = ("DESC", "<", 1 << 62) if newest_first else ("ASC", ">", 0)
        given = [("shelf", shelf), ("parent", parent)]
        clause = "".join(f" AND {column} = ?" for column, value in given if value is not None)
        values = [value for _, value in given if value is not None]
        sql = f"SELECT {_COLUMNS}, seq FROM things WHERE seq {beyond} ?{clause} ORDER BY seq {way} LIMIT {_PAGE}"
        if after is not None:
            row = self._database.row("SELECT seq FROM things WHERE shelf = ? AND key = ?", (shelf, after))
            edge = row[0] if row else edge
        folded, left = contains.casefold(), limit
        while left is None or left > 0:
            try:
                page = self._database.rows(sql, (edge, *values))
            except MovedError:
                if self._database.closed:
                    raise
                return  # nothing is left to be seen
            for row in page:
                thing = self._thing(row[:-1])
                if thing.contains(folded):
                    yield thing
                    left = left and left - 1
                    if left == 0:
                        return
            if len(page) < _PAGE:
                return
            edge = page[-1][-1]

    def remove(self, shelf: str, keys: Sequence[str]) -> int:
        before = self._database.writer.total_changes()
        self._database.writer.executemany("DELETE FROM things WHERE shelf = ? AND key = ?", [(shelf, k) for k in keys])
        return self._database.writer.total_changes() - before

    def _thing(self, row: Sequence[Any]) -> Thing:
        shelf, key, body, parent, account, agent, version, created, changed = row
        try:
            times = from_micros(created), from_micros(changed)
            return Thing(shelf, key, _body(body), parent, account, agent, version, *times)
        except UNREADABLE as error:
            raise self._database.problem(error) from error
