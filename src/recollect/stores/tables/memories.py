"""The memories of each place: reading them, and what all stores of tables decide alike when they write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

from recollect.stores.integrity import log_damage
from recollect.stores.port import After, By, Order, Place
from recollect.stores.rows import UNREADABLE, text_key, to_record
from recollect.stores.tables.count import count
from recollect.stores.tables.engine import Dialect, Rows, Statement, Tables, rendered, rows_in
from recollect.stores.tables.scan import Scan, scan
from recollect.text.speakers import HEAD
from recollect.text.speakers import speaker as speaker_before_colon
from recollect.values.errors import ConflictError, NotFoundError
from recollect.values.filters import Filter
from recollect.values.record import Record

_IDS_LIKE = """SELECT id FROM {t}memories WHERE {here}
    AND (id = ? OR substr(id, 1, ?) = ? OR substr(id, length(id) - ? + 1) = ?) ORDER BY id <> ?, id LIMIT ?"""
# The models that vectors are of, one look into the index on `embedded` for each.
_EMBEDDED_AS = """WITH RECURSIVE models (name) AS (
    SELECT (SELECT min(embedded) FROM {t}memories WHERE {here})
    UNION ALL
    SELECT (SELECT min(embedded) FROM {t}memories WHERE {here} AND embedded > name) FROM models WHERE name IS NOT NULL
    ) SELECT name FROM models WHERE name IS NOT NULL"""
# Each part comes from the index in the order that is wanted, and ends at the limit: none reads all that have no vector.
_LACKING = """SELECT id, seq FROM (SELECT id, seq FROM {t}memories WHERE {here} AND embedded IS NULL
    AND superseded_by IS NULL ORDER BY seq DESC LIMIT ?) part"""
_OF_ANOTHER = """ UNION ALL SELECT id, seq FROM (SELECT id, seq FROM {t}memories WHERE {here} AND embedded = ?
    AND superseded_by IS NULL ORDER BY seq DESC LIMIT ?) part"""
# A name before a colon is a speaker's once a second turn of the conversation begins with it. Turns that not everyone
# sees prove nothing to others: each address counts its own.
_ANOTHER = """EXISTS (SELECT 1 FROM {t}memories o WHERE {here_o} AND o.conversation = m.conversation
    AND o.named = m.named AND o.seq <> m.seq AND o.tier = m.tier AND o.account IS NOT DISTINCT FROM m.account
    AND o.channel IS NOT DISTINCT FROM m.channel AND o.agent IS NOT DISTINCT FROM m.agent)"""
_PROVE = f"""UPDATE {{t}}memories AS m SET speaker = named WHERE {{here_m}} AND m.conversation = ? AND m.named = ?
    AND m.speaker <> m.named AND {_ANOTHER} RETURNING seq"""
_UNPROVE = f"""UPDATE {{t}}memories AS m SET speaker = coalesce(role, '') WHERE {{here_m}} AND m.conversation = ?
    AND m.named = ? AND m.speaker = m.named AND NOT {_ANOTHER} RETURNING seq"""


_USABLE = " AND m.superseded_by IS NULL AND m.archived_at IS NULL ORDER BY m.seq"


class Name(NamedTuple):
    """A name that turns of a conversation begin with."""

    conversation: str
    name: str


class MemoryTable:
    """The calls of the port that read memories."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def get(self, place: Place, ids: Sequence[str]) -> list[Record]:
        dialect = self.tables.dialect
        if len(ids) == 1:
            values = (*dialect.here_values(place), ids[0])
            return self.records(place, self.tables.rows(place, _get_one(dialect), values))
        return self._among(place, "m.id", list(dict.fromkeys(ids)))

    def with_texts(self, place: Place, texts: Sequence[str]) -> list[Record]:
        if len(texts) == 1:
            values = (*self.tables.dialect.here_values(place), text_key(texts[0]))
            rows = self.tables.rows(place, _with_text(self.tables.dialect), values)
            records = self.records(place, rows) if rows else []
        else:
            records = self._among(place, "m.text_key", [text_key(text) for text in dict.fromkeys(texts)], _USABLE)
        return [record for record in records if record.text in texts] if records else []

    def _among(self, place: Place, column: str, values: Sequence[str | int], end: str = "") -> list[Record]:
        dialect = self.tables.dialect
        rows: Rows = []
        for start in range(0, len(values), dialect.most_values):
            some = values[start : start + dialect.most_values]
            sql = f"{dialect.whole} WHERE {{here_m}} AND {dialect.among(column, some)}{end}"
            rows += rows_in(self.tables, place, sql, dialect.among_values(some))
        return self.records(place, rows)

    def records(self, place: Place, rows: Rows) -> list[Record]:
        """Rows with their embeddings, and retrievals that are not written yet. One that cannot be read is left out."""
        touches = self.tables.touches.get(place)
        records: list[Record] = []
        for row in rows:
            try:
                records.append(to_record(place, row))
            except UNREADABLE as error:
                log_damage(place, f"memory {row[0]}", f"cannot be read: {error}")
        return [touches.onto(record) for record in records] if touches else records

    def scan(
        self,
        where: Filter,
        *,
        order: Order = "oldest",
        after: After | None = None,
        limit: int | None = None,
        whole: bool = True,
        contains: str | None = None,
    ) -> Iterator[Record]:
        return scan(self.tables, Scan(where, order, limit, whole, self.records, contains), after)

    def count(self, where: Filter, by: Sequence[By] = ()) -> dict[tuple[str, ...], int]:
        return count(self.tables, where, by)

    def ids_like(self, place: Place, part: str, limit: int) -> list[str]:
        values = (part, len(part), part, len(part), part, part, limit)
        return [ident for (ident,) in rows_in(self.tables, place, _IDS_LIKE, values)]

    def lacking(self, place: Place, model: str, dimensions: int, limit: int) -> list[str]:
        here, most = self.tables.dialect.here_values(place), min(limit, 1 << 62)
        names = rows_in(self.tables, place, _EMBEDDED_AS, here)
        others = [name for (name,) in names if name != embedded_as(model, dimensions)]
        values = [*here, most, *chain.from_iterable((*here, name, most) for name in others)]
        sql = rendered(self.tables.dialect, _LACKING + _OF_ANOTHER * len(others))
        rows = self.tables.rows(place, f"{sql} ORDER BY 2 DESC LIMIT {most}", values)
        return [ident for ident, _ in rows]


@cache
def _get_one(dialect: Dialect) -> str:
    return rendered(dialect, f"{dialect.whole} WHERE {{here_m}} AND m.id = ?")


@cache
def _with_text(dialect: Dialect) -> str:
    # Not `= ?`: SQLite would plan the statement anew for each value, which takes seven times as long as running it.
    return rendered(dialect, f"{dialect.whole} WHERE {{here_m}} AND m.text_key IN (?){_USABLE}")


def prove_speakers(dialect: Dialect, place: Place, records: Sequence[Record]) -> list[Statement]:
    """After these were stored: their names may be speakers now."""
    names = {
        Name(record.address.conversation, name)
        for record in records
        if record.address.conversation is not None and (name := name_in(record))
    }
    return _heard(dialect, place, _PROVE, names) if names else []


def unprove_speakers(dialect: Dialect, place: Place, names: set[Name]) -> list[Statement]:
    """After turns that begin with these names were deleted: one turn alone proves no speaker."""
    return _heard(dialect, place, _UNPROVE, names) if names else []


def _heard(dialect: Dialect, place: Place, template: str, names: set[Name]) -> list[Statement]:
    here, sql = dialect.here_values(place), rendered(dialect, template)
    return [Statement(sql, (*here, *name, *here)) for name in sorted(names)]


def speaker_of(record: Record) -> str:
    """Who said it for certain; else the role."""
    speaker = record.metadata.get("speaker")
    if isinstance(speaker, str) and (name := " ".join(speaker.lower().split())):
        return name.replace("\0", "")
    return record.role or ""


def name_in(record: Record) -> str | None:
    """The name before a colon in a turn of a conversation, unless it is known who said it."""
    if record.address.conversation is None or isinstance(record.metadata.get("speaker"), str):
        return None
    head = record.text[:HEAD]
    return speaker_before_colon(head) if ": " in head or "：" in head else None


def embedded_as(model: str, dimensions: int) -> str:
    """What a memory's column says of its vector."""
    return f"{model}:{dimensions}"


def id_exists(ident: str) -> ConflictError:
    return ConflictError(f"a memory with the id {ident} exists already")


def no_memory(ident: str) -> NotFoundError:
    return NotFoundError(f"there is no memory {ident}")
