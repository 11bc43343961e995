"""Records to rows and back, for every store of tables. Made from the table of fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from recollect.stores.fields import FIELDS, Field, compiled
from recollect.stores.port import Place
from recollect.values.record import Address, Record, from_micros, to_micros

COLUMNS = [*(field.sql for field in FIELDS), "text", "data"]
"""Of a memory, in the order of `to_values` and `to_record`."""
CHANGING = [field for field in FIELDS if field.changes]

_encode = msgspec.json.Encoder().encode


def _as_json(value: Any) -> str | None:
    return _encode(value).decode() if value else None


def _checked(kind: Any, tier: Any, text: Any, importance: Any) -> None:
    """TypeError for a row whose values are of another type than was written: a database may be edited by hand."""
    names = type(kind) is str and type(tier) is str and (text is None or type(text) is str)
    if not names or (type(importance) is not float and not isinstance(importance, int)):
        raise TypeError("a value is of another type than was written")


UNREADABLE = (ValueError, TypeError, OverflowError, msgspec.MsgspecError)
"""What comes of decoding a row that is not as it was written."""


_USED: dict[str, Any] = {
    "Address": Address,
    "Record": Record,
    "to_micros": to_micros,
    "from_micros": from_micros,
    "as_json": _as_json,
    "encode": _encode,
    "strings": msgspec.json.Decoder(tuple[str, ...]).decode,
    "anything": msgspec.json.Decoder().decode,
    "mapping": msgspec.json.Decoder(dict[str, Any]).decode,
    "checked": _checked,
}
"""What the functions that are made below call."""


def _out(field: Field) -> str:
    """The expression of a field's value for a column."""
    value = f"address.{field.name}" if field.address else f"record.{field.name}"
    if field.way == "time":
        return f"to_micros({value})" if field.usual is not None else f"{value} and to_micros({value})"
    return value if field.way == "plain" else f"as_json({value})"


def _in(field: Field) -> str:
    """The expression of a field's value from a column."""
    name = field.name
    if field.way == "time":
        return f"from_micros({name})" if field.usual is not None else f"None if {name} is None else from_micros({name})"
    decode = {
        "plain": name,
        "strings": f"strings({name}) if {name} else ()",
        "json": f"mapping({name}) if {name} else {{}}",
    }
    return decode[field.way]


to_values: Callable[[Record], tuple[Any, ...]] = compiled(
    "_to_values",
    f"""
def _to_values(record):
    address, content = record.address, record.content
    plain = isinstance(content, str)
    return ({", ".join(map(_out, FIELDS))}, content if plain else record.text,
        None if plain else encode(content).decode())
""",
    _USED,
)

to_changes: Callable[[Record], tuple[Any, ...]] = compiled(
    "_to_changes", f"def _to_changes(record): return ({', '.join(map(_out, CHANGING))}, record.id)", _USED
)
"""What may change, in the order of CHANGING, and the id."""

_READ = {field.name: _in(field) for field in FIELDS} | {
    # Most were never retrieved.
    "created_at": "created",
    "accessed_at": "created if accessed_at == created_at else from_micros(accessed_at)",
    "address": f"Address(place.tenant, place.workspace, {', '.join(Address.__struct_fields__[2:])})",
    "content": "text if data is None else anything(data)",
    "embedding": "embedding",
    "embedding_model": "model",
}
to_record: Callable[[Place, Sequence[Any]], Record] = compiled(
    "_to_record",
    f"""
def _to_record(place, row):
    {", ".join(field.name for field in FIELDS)}, text, data, embedding, model = row
    checked(kind, tier, text, importance)
    created = from_micros(created_at)
    return Record({", ".join(_READ[name] for name in Record.__struct_fields__)})
""",
    _USED,
)
"""From the values of COLUMNS, then the embedding and its model."""


def text_key(text: str) -> int:
    """The number that a text is found by, the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)
