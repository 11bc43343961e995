"""Filters as SQL over `memories m`, made from the one table of conditions in `values/filters.py`."""

from __future__ import annotations

from typing import Any

from recollect.stores.fields import FIELDS
from recollect.stores.tables.engine import Dialect
from recollect.values.filters import PRIVATE_KINDS, WALLS, Comparison, Filter
from recollect.values.record import Operator, to_micros

_TIMES = {field.name for field in FIELDS if field.way == "time"}
COMPARED: dict[Operator, str] = {
    "equal": "{} = ?",
    "at_least": "{} >= ?",
    "below": "{} < ?",
    "set": "{} IS NOT NULL",
    "unset": "{} IS NULL",
    "passed": "{} <= ?",
    "ahead": "({0} IS NULL OR {0} > ?)",
    "begun": "({0} IS NULL OR {0} <= ?)",
}
"""What each operator is in SQL; `among` is a list of values."""


class Conditions:
    """Clauses that must all hold, and their values."""

    def __init__(self) -> None:
        self._clauses: list[str] = []
        self.values: list[Any] = []

    def add(self, clause: str, *values: Any) -> None:
        self._clauses.append(clause)
        self.values += values

    @property
    def sql(self) -> str:
        """With `?` for each value."""
        return " AND ".join(self._clauses) or "TRUE"


def condition(where: Filter, dialect: Dialect) -> tuple[str, list[Any]]:
    """The filter as SQL, with its values. The place comes besides."""
    conditions = Conditions()
    _add_sight(where, conditions)
    for comparison in where.comparisons():
        _add_comparison(comparison, conditions)
    _add_tags(where, dialect, conditions)
    return conditions.sql.replace("?", dialect.mark), conditions.values


def marks(values: object) -> str:
    """As many `?` as there are values."""
    return ", ".join("?" * len(values))  # pyright: ignore[reportArgumentType]


def _add_sight(where: Filter, conditions: Conditions) -> None:
    """What `visible_at` says of the walls between views, and what is private to agents."""
    for wall in WALLS:
        if (bound := getattr(where.seen_from, wall.part)) is None:
            continue
        beside = [f"m.tier NOT IN ({marks(wall.tiers)})"] if wall.tiers else []
        shared = [f"m.{wall.part} IS NULL"] if wall.shared else []
        clause = " OR ".join((*beside, *shared, f"m.{wall.part} = ?"))
        conditions.add(f"({clause})", *wall.tiers, bound)
    if where.hides_private:
        conditions.add(f"(m.agent IS NULL OR m.kind NOT IN ({marks(PRIVATE_KINDS)}))", *PRIVATE_KINDS)


def _add_comparison(comparison: Comparison, conditions: Conditions) -> None:
    field, operator, value = comparison
    if operator == "among":
        conditions.add(f"m.{field} IN ({marks(value)})", *value)
        return
    clause = COMPARED[operator].format(f"m.{field}")
    conditions.add(clause, *([to_micros(value) if field in _TIMES else value] if "?" in clause else []))


def _add_tags(where: Filter, dialect: Dialect, conditions: Conditions) -> None:
    has, values_of, tenant = dialect.tag, dialect.tag_values, where.seen_from.tenant
    for tag in where.tags:
        conditions.add(has, *values_of(tenant, tag))
    if where.any_tags:
        values = (value for tag in where.any_tags for value in values_of(tenant, tag))
        conditions.add(f"({' OR '.join([has] * len(where.any_tags))})", *values)
    for tag in where.without_tags:
        conditions.add(f"NOT {has}", *values_of(tenant, tag))
