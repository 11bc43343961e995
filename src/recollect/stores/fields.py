"""The fields of a memory, in one table: what they are called in files and columns, and which of them may change.

A new field of `Record` is one line here, and its column in a migration.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from recollect.values.record import Lifetime, Role, Tier

REQUIRED: Any = object()
Way = Literal["plain", "time", "strings", "json"]
"""How a value stands in a column: as it is, in microseconds since 1970, or as JSON that is NULL where it is empty."""


class Field(NamedTuple):
    name: str
    type: Any
    usual: Any = REQUIRED
    """What a memory has unless said otherwise; lines of files leave it out then."""
    way: Way = "plain"
    changes: bool = False
    """Whether it may change after the memory was stored. Vectors change by themselves."""
    address: bool = False
    """Whether it is a part of the address."""
    column: str = ""

    @property
    def sql(self) -> str:
        return self.column or self.name


FIELDS = (
    Field("id", str),
    Field("tier", Tier, "workspace"),
    Field("account", str | None, None, address=True),
    Field("channel", str | None, None, address=True),
    Field("conversation", str | None, None, address=True),
    Field("agent", str | None, None, address=True),
    Field("kind", str),
    Field("role", Role | None, None),
    Field("source", str | None, None),
    Field("lifetime", Lifetime, "long_term", changes=True),
    Field("importance", float, changes=True),
    Field("created_at", datetime, way="time"),
    Field("accessed_at", datetime, way="time", changes=True),
    Field("access_count", int, 0, changes=True),
    Field("expires_at", datetime | None, None, "time", changes=True),
    Field("archived_at", datetime | None, None, "time", changes=True),
    Field("valid_from", datetime | None, None, "time", changes=True),
    Field("valid_until", datetime | None, None, "time", changes=True),
    Field("superseded_by", str | None, None, changes=True),
    Field("tags", tuple[str, ...], (), "strings", changes=True),
    Field("references", tuple[str, ...], (), "strings", changes=True, column="refs"),
    Field("derived_from", tuple[str, ...], (), "strings", changes=True),
    Field("metadata", dict[str, Any], {}, "json", changes=True),
    Field("checksum", str),
    Field("schema_version", int),
)
"""Besides these a memory has content, and a vector with the name of its model."""

CHANGEABLE = tuple(field.name for field in FIELDS if field.changes)
ADDRESS = tuple(field.name for field in FIELDS if field.address)


def compiled(name: str, source: str, names: Mapping[str, Any]) -> Any:
    """A function from its source, which may use these names: a record must not cost a loop over its fields."""
    space = dict(names)
    exec(source, space)
    return space[name]
