"""The shelves of each place, in the same transactions as its memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect.errors import CorruptionError
from recollect.record import from_micros, to_micros
from recollect.stores.port import Place
from recollect.stores.postgres.sessions import Runner
from recollect.stores.postgres.statements import workspace_of
from recollect.stores.postgres.work import Work
from recollect.stores.shelves import Thing, check_version

_encode = msgspec.json.Encoder().encode
_body = msgspec.json.Decoder(dict[str, Any]).decode
_PAGE = 500
_COLUMNS = "shelf, key, body, parent, account, agent, version, created_at, changed_at"
_HERE = "FROM {s}.things WHERE tenant = %s AND workspace = %s"
_FIND = f"SELECT {_COLUMNS} {_HERE} AND shelf = %s AND key = ANY(%s)"
_KEEP = f"""INSERT INTO {{s}}.things (tenant, workspace, seq, {_COLUMNS})
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (tenant, workspace, shelf, key) DO UPDATE SET body = excluded.body, parent = excluded.parent,
    account = excluded.account, agent = excluded.agent, version = excluded.version,
    created_at = excluded.created_at, changed_at = excluded.changed_at"""


class ShelfTable:
    def __init__(self, sessions: Runner) -> None:
        self._sessions = sessions

    def keep(self, work: Work, place: Place, thing: Thing, expect: int | None, exact: bool) -> Thing:
        there = self.find(place, thing.shelf, (thing.key,))
        version = there[0].version if there else 0
        check_version(thing, version, expect)
        first = there[0].created_at if there else thing.created_at
        kept = thing if exact else replace(thing, version=version + 1, created_at=first)
        head = work.heads[place]
        times = to_micros(kept.created_at), to_micros(kept.changed_at)
        owner = kept.parent, kept.account, kept.agent
        row = (kept.shelf, kept.key, _encode(kept.body).decode(), *owner, kept.version, *times)
        work.execute(_KEEP, (place.tenant, workspace_of(place), head.things + 1, *row))
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
        """Page by page, so that no transaction stays open while the caller works."""
        way, beyond, edge = ("DESC", "<", 1 << 62) if newest_first else ("ASC", ">", 0)
        given = [("shelf", shelf), ("parent", parent)]
        clause = "".join(f" AND {column} = %s" for column, value in given if value is not None)
        values = [value for _, value in given if value is not None]
        sql = f"SELECT {_COLUMNS}, seq {_HERE} AND seq {beyond} %s{clause} ORDER BY seq {way} LIMIT {_PAGE}"
        where = place.tenant, workspace_of(place)
        if after is not None:
            rows = self._sessions.rows(
                place.tenant, f"SELECT seq {_HERE} AND shelf = %s AND key = %s", (*where, shelf, after)
            )
            edge = rows[0][0] if rows else edge
        folded, left = contains.casefold(), limit
        while left is None or left > 0:
            page = self._sessions.rows(place.tenant, sql, (*where, edge, *values))
            for row in page:
                thing = _thing(place, row[:-1])
                if thing.contains(folded):
                    yield thing
                    left = left and left - 1
                    if left == 0:
                        return
            if len(page) < _PAGE:
                return
            edge = page[-1][-1]

    def remove(self, work: Work, place: Place, shelf: str, keys: Sequence[str]) -> int:
        values = place.tenant, workspace_of(place), shelf, list(keys)
        work.changed(place, "thing", [(shelf, key) for key in keys])
        return work.execute(f"DELETE {_HERE} AND shelf = %s AND key = ANY(%s)", values).rowcount


def _thing(place: Place, row: Sequence[Any]) -> Thing:
    shelf, key, body, parent, account, agent, version, created, changed = row
    try:
        times = from_micros(created), from_micros(changed)
        return Thing(shelf, key, _body(body), parent, account, agent, version, *times)
    except (ValueError, TypeError, OverflowError, msgspec.MsgspecError) as error:
        raise CorruptionError(f"{place}: {shelf} {key} cannot be read ({error})") from error
