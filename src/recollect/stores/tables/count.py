"""Counts of memories, by the values of some fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recollect.stores.port import By, Place
from recollect.stores.tables.conditions import COMPARED, condition
from recollect.stores.tables.engine import Tables, rendered
from recollect.values.filters import Filter
from recollect.values.record import STATE_TESTS, to_micros

_STATES = (f"WHEN {COMPARED[test].format(f'm.{field}')} THEN '{state}'" for state, field, test in STATE_TESTS)
_GROUPS: dict[By, str] = {
    "kind": "m.kind",
    "tier": "m.tier",
    "agent": "coalesce(m.agent, '')",
    "speaker": "m.speaker",
    "embedded": "CASE WHEN m.embedded IS NULL THEN 'no' ELSE 'yes' END",
    "state": f"CASE {' '.join(_STATES)} ELSE 'live' END",
}
"""What memories are counted by; `?` is the time of the filter, written as a number so that it can be grouped by."""


def count(tables: Tables, where: Filter, by: Sequence[By]) -> dict[tuple[str, ...], int]:
    dialect = tables.dialect
    clause, values = condition(where, dialect)
    fields = [_GROUPS[field].replace("?", str(to_micros(where.now))) for field in by]
    grouped = f" GROUP BY {', '.join(str(number + 1) for number in range(len(fields)))}" if fields else ""
    columns = "".join(f"{field}, " for field in fields)
    sql = rendered(dialect, f"SELECT {columns}count(*) FROM {{t}}memories m WHERE {{here_m}} AND {clause}{grouped}")
    counts: Counter[tuple[str, ...]] = Counter()
    for place in Place.seen_by(where):
        rows = tables.rows(place, sql, (*dialect.here_values(place), *values))
        counts.update({row[:-1]: row[-1] for row in rows if row[-1]})
    return dict(counts)
