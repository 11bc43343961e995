"""The shelves of each place, in the same transactions as its memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from recollect.stores.port import Place
from recollect.stores.postgres.sessions import Runner
from recollect.stores.postgres.statements import workspace_of
from recollect.stores.postgres.work import Work
from recollect.stores.shelves import COLUMNS, PAGE, Thing, as_kept, from_row, paged, to_row
from recollect.values.errors import CorruptionError

_HERE = "FROM {s}.things WHERE tenant = %s AND workspace = %s"
_FIND = f"SELECT {COLUMNS} {_HERE} AND shelf = %s AND key = ANY(%s)"
_KEEP = f"""INSERT INTO {{s}}.things (tenant, workspace, seq, {COLUMNS})
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (tenant, workspace, shelf, key) DO UPDATE SET body = excluded.body, parent = excluded.parent,
    account = excluded.account, agent = excluded.agent, version = excluded.version,
    created_at = excluded.created_at, changed_at = excluded.changed_at"""


class ShelfTable:
    def __init__(self, sessions: Runner) -> None:
        self._sessions = sessions

    def keep(self, work: Work, place: Place, thing: Thing, expect: int | None, exact: bool) -> Thing:
        there = self.find(place, thing.shelf, (thing.key,))
        kept = as_kept(thing, there[0] if there else None, expect, exact)
        head = work.heads[place]
        work.execute(_KEEP, (place.tenant, workspace_of(place), head.things + 1, *to_row(kept)))
        work.changed(place, "thing", [(kept.shelf, kept.key)])
        work.heads[place] = head._replace(things=head.things + 1)
        return kept

    def find(self, place: Place, shelf: str, keys: Sequence[str]) -> list[Thing]:
        values = place.tenant, workspace_of(place), shelf, list(keys)
        things = {row[1]: _thing(place, row) for row in self._sessions.rows(place.tenant, _FIND, values)}
        return [things[key] for key in dict.fromkeys(keys) if key in things]

    def shelf(
        self,
        place: Place,
        shelf: str | None,
        parent: str | None,
        contains: str,
        newest_first: bool,
        after: str | None,
        limit: int | None,
    ) -> Iterator[Thing]:
        way, beyond, edge = ("DESC", "<", 1 << 62) if newest_first else ("ASC", ">", 0)
        given = [("shelf", shelf), ("parent", parent)]
        clause = "".join(f" AND {column} = %s" for column, value in given if value is not None)
        values = [value for _, value in given if value is not None]
        sql = f"SELECT {COLUMNS}, seq {_HERE} AND seq {beyond} %s{clause} ORDER BY seq {way} LIMIT {PAGE}"
        where = place.tenant, workspace_of(place)
        if after is not None:
            rows = self._sessions.rows(
                place.tenant, f"SELECT seq {_HERE} AND shelf = %s AND key = %s", (*where, shelf, after)
            )
            edge = rows[0][0] if rows else edge

        def page(edge: int) -> Sequence[Sequence[Any]]:
            return self._sessions.rows(place.tenant, sql, (*where, edge, *values))

        yield from paged(page, lambda row: _thing(place, row), edge, contains, limit)

    def remove(self, work: Work, place: Place, shelf: str, keys: Sequence[str]) -> int:
        values = place.tenant, workspace_of(place), shelf, list(keys)
        work.changed(place, "thing", [(shelf, key) for key in keys])
        return work.execute(f"DELETE {_HERE} AND shelf = %s AND key = ANY(%s)", values).rowcount


def _thing(place: Place, row: Sequence[Any]) -> Thing:
    try:
        return from_row(row)
    except (ValueError, TypeError, OverflowError, msgspec.MsgspecError) as error:
        raise CorruptionError(f"{place}: {row[0]} {row[1]} cannot be read ({error})") from error
