"""Rows of one SQLite file."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.stores.port import Place
from recollect.stores.rows import CHANGING, COLUMNS, to_values
from recollect.stores.rows import condition as condition_in
from recollect.stores.tables.engine import Dialect
from recollect.text.segment import segment
from recollect.values.filters import Filter
from recollect.values.record import Record

SELECT = ", ".join(f"m.{name}" for name in COLUMNS)
_MARKS = ", ".join("?" * (len(COLUMNS) + 2))
INSERT = f"INSERT INTO memories (seq, {', '.join(COLUMNS)}, segmented) VALUES ({_MARKS})"
UPDATE = f"UPDATE memories SET {', '.join(f'{field.sql} = ?' for field in CHANGING)} WHERE id = ? RETURNING seq"
_TEXT = COLUMNS.index("text") + 1

_encode = msgspec.json.Encoder().encode


def to_row(seq: int | None, record: Record) -> tuple[Any, ...]:
    """The parameters of INSERT. Without a number the row gets the next one."""
    values = to_values(record)
    return (seq, *values, _segmented(values[-2]))


def _segmented(text: str) -> str | None:
    """What is indexed of a text, if not the text itself."""
    pieces = segment(text)
    return None if pieces is text else pieces


def indexed(row: tuple[Any, ...]) -> str:
    """What goes into the text index for a row of `to_row`."""
    return row[-1] or row[_TEXT]


def _spellings(tag: str) -> tuple[str, str]:
    exact = _encode(tag).decode()  # with the quotes, and whatever stands in it as JSON writes it
    return exact, f"{exact[:-1]}."


def _nothing(place: Place) -> tuple[()]:
    """The place is the file."""
    return ()


# A tag is found in its JSON list as text, quotes included: exact, or as the parent of a longer one.
DIALECT = Dialect(
    mark="?",
    prefix="",
    here="TRUE",
    here_columns=(),
    here_values=_nothing,
    tag="(instr(coalesce(m.tags, ''), ?) OR instr(coalesce(m.tags, ''), ?))",
    tag_values=_spellings,
    meta_has="instr(meta, ?)",
    message_has="fold_has(message, ?)",
)


def condition(where: Filter) -> tuple[str, list[Any]]:
    """The filter as SQL. The place is the file."""
    return condition_in(where, DIALECT)
