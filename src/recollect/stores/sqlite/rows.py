"""Rows of one SQLite file."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.stores.port import Place
from recollect.stores.rows import CHANGING, COLUMNS, text_key, to_values
from recollect.stores.tables.engine import Dialect
from recollect.stores.tables.memories import embedded_as, name_in, speaker_of
from recollect.text.segment import segment
from recollect.values.record import Record

_ASKED = ("segmented", "length", "speaker", "named", "text_key", "embedded")
"""Columns that questions are answered from, behind those of the record."""
_ROW = ("seq", *COLUMNS, *_ASKED)
INSERT = f"INSERT INTO memories ({', '.join(_ROW)}) VALUES ({', '.join('?' * len(_ROW))})"
UPDATE = f"UPDATE memories SET {', '.join(f'{field.sql} = ?' for field in CHANGING)} WHERE id = ? RETURNING seq"
_TEXT, _SEGMENTED = _ROW.index("text"), _ROW.index("segmented")

_encode = msgspec.json.Encoder().encode


def to_row(seq: int | None, record: Record) -> tuple[Any, ...]:
    """The parameters of INSERT. Without a number the row gets the next one."""
    values = to_values(record)
    text: str = values[-2]
    pieces, blob = segment(text), record.embedding
    key = text_key(text) if record.address.conversation is None else None
    embedded = None if blob is None else embedded_as(record.embedding_model or "", len(blob) // 4)
    segmented = None if pieces is text else pieces
    return (seq, *values, segmented, len(text), speaker_of(record), name_in(record), key, embedded)


def indexed(row: tuple[Any, ...]) -> str:
    """What goes into the text index for a row of `to_row`."""
    return row[_SEGMENTED] or row[_TEXT]


def _spellings(tenant: str, tag: str) -> tuple[str, str]:
    exact = _encode(tag).decode()  # with the quotes, and whatever stands in it as JSON writes it
    return exact, f"{exact[:-1]}."


def _nothing(place: Place) -> tuple[()]:
    """The place is the file."""
    return ()


_SELECT = ", ".join(f"m.{name}" for name in COLUMNS)
# A tag is found in its JSON list as text, quotes included: exact, or as the parent of a longer one.
DIALECT = Dialect(
    mark="?",
    prefix="",
    here="TRUE",
    here_columns=(),
    here_values=_nothing,
    # Subselects, not LEFT JOIN: reading one memory by id is four times faster that way.
    whole=f"""SELECT {_SELECT}, (SELECT vector FROM embeddings e WHERE e.seq = m.seq),
    (SELECT model FROM embeddings e WHERE e.seq = m.seq) FROM memories m""",
    lean=f"SELECT {_SELECT}, NULL, NULL FROM memories m".replace("m.text, m.data", "NULL, NULL"),
    tag="(instr(coalesce(m.tags, ''), ?) OR instr(coalesce(m.tags, ''), ?))",
    tag_values=_spellings,
    meta_has="instr(meta, ?)",
    message_has="fold_has(message, ?)",
    text_may_have="(instr(lower(m.text), ?) OR octet_length(m.text) <> m.length)",
)
