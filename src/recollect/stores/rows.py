"""Records to rows and back, and filters to SQL, for every store of tables. Made from the table of fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from recollect.stores.fields import FIELDS, Field
from recollect.stores.port import After, By, Order, Place
from recollect.values.filters import ANY_OF, PRIVATE_KINDS, SAME, WALLED, Filter
from recollect.values.record import Address, Record, from_micros, to_micros

if TYPE_CHECKING:
    from recollect.stores.tables.engine import Dialect

COLUMNS = [*(field.sql for field in FIELDS), "text", "data"]
"""Of a memory, in the order of `to_values` and `to_record`."""
CHANGING = [field for field in FIELDS if field.changes]

_encode = msgspec.json.Encoder().encode


def _as_json(value: Any) -> str | None:
    return _encode(value).decode() if value else None


def _checked(kind: Any, tier: Any, text: Any, importance: Any) -> None:
    """TypeError for a row whose values are of another type than was written: a database may be edited by hand."""
    names = isinstance(kind, str) and isinstance(tier, str)
    if not names or not isinstance(text, str | None) or not isinstance(importance, float | int):
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


def _made(name: str, source: str) -> Any:
    """A function from its source: reading and writing rows must not cost a loop over the fields."""
    space = dict(_USED)
    exec(source, space)
    return space[name]


to_values: Callable[[Record], tuple[Any, ...]] = _made(
    "_to_values",
    f"""
def _to_values(record):
    address, content = record.address, record.content
    plain = isinstance(content, str)
    return ({", ".join(map(_out, FIELDS))}, content if plain else record.text,
        None if plain else encode(content).decode())
""",
)

to_changes: Callable[[Record], tuple[Any, ...]] = _made(
    "_to_changes", f"def _to_changes(record): return ({', '.join(map(_out, CHANGING))}, record.id)"
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
to_record: Callable[[Place, Sequence[Any]], Record] = _made(
    "_to_record",
    f"""
def _to_record(place, row):
    {", ".join(field.name for field in FIELDS)}, text, data, embedding, model = row
    checked(kind, tier, text, importance)
    created = from_micros(created_at)
    return Record({", ".join(_READ[name] for name in Record.__struct_fields__)})
""",
)
"""From the values of COLUMNS, then the embedding and its model."""


def text_key(text: str) -> int:
    """The number that a text is found by, the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def condition(where: Filter, dialect: Dialect) -> tuple[str, list[Any]]:
    """The filter as SQL over `memories m`, with its parameters. Which place it is comes besides."""
    clauses: list[str] = []
    values: list[Any] = []

    def add(clause: str, *parameters: Any) -> None:
        clauses.append(clause.replace("?", dialect.mark))
        values.extend(parameters)

    _visibility(where, add)
    _state(where, add)
    for condition_name, column in {"tiers": "tier", **ANY_OF}.items():
        if wanted := getattr(where, condition_name):
            add(f"m.{column} IN ({', '.join('?' * len(wanted))})", *wanted)
    for column in SAME:
        if (value := getattr(where, column)) is not None:
            add(f"m.{column} = ?", value)
    if where.since is not None:
        add("m.created_at >= ?", to_micros(where.since))
    if where.until is not None:
        add("m.created_at < ?", to_micros(where.until))
    if where.min_importance is not None:
        add("m.importance >= ?", where.min_importance)
    _tags(where, dialect, add)
    return " AND ".join(clauses) or "TRUE", values


def _visibility(where: Filter, add: Any) -> None:
    view = where.seen_from
    if view.agent is not None:
        add("(m.agent IS NULL OR m.agent = ?)", view.agent)
    if view.account is not None:
        add("(m.account IS NULL OR m.account = ?)", view.account)
    if view.channel is not None:
        add(f"(m.tier NOT IN ({', '.join('?' * len(WALLED))}) OR m.channel = ?)", *WALLED, view.channel)
    if where.hides_private:
        add(f"(m.agent IS NULL OR m.kind NOT IN ({', '.join('?' * len(PRIVATE_KINDS))}))", *PRIVATE_KINDS)
    if view.conversation is not None:
        add("(m.tier != 'conversation' OR m.conversation = ?)", view.conversation)


def _state(where: Filter, add: Any) -> None:
    if where.state is None:
        return
    if where.state == "superseded":
        add("m.superseded_by IS NOT NULL")
        return
    add("m.superseded_by IS NULL")
    if where.state == "archived":
        add("m.archived_at IS NOT NULL")
        return
    add("m.archived_at IS NULL")
    if where.state == "expired":
        add("m.expires_at <= ?", to_micros(where.now))
    else:
        add("(m.expires_at IS NULL OR m.expires_at > ?)", to_micros(where.now))


def _tags(where: Filter, dialect: Dialect, add: Any) -> None:
    has, values = dialect.tag, dialect.tag_values
    for tag in where.tags:
        add(has, *values(tag))
    if where.any_tags:
        add(f"({' OR '.join([has] * len(where.any_tags))})", *(v for tag in where.any_tags for v in values(tag)))
    for tag in where.without_tags:
        add(f"NOT {has}", *values(tag))


# Scans and counts

ORDERS: dict[Order, tuple[str, str, str]] = {
    "oldest": ("m.created_at, m.seq", ">", "m.created_at, m.seq"),
    "newest": ("m.created_at, m.seq", "<", "m.created_at DESC, m.seq DESC"),
    "importance": ("m.importance, m.created_at, m.seq", ">", "m.importance, m.created_at, m.seq"),
}
"""What a scan compares with where it stands, how, and how it sorts."""
GROUPS: dict[By, str] = {
    "kind": "m.kind",
    "tier": "m.tier",
    "agent": "coalesce(m.agent, '')",
    "state": """CASE WHEN m.superseded_by IS NOT NULL THEN 'superseded' WHEN m.archived_at IS NOT NULL THEN 'archived'
        WHEN m.expires_at <= {now} THEN 'expired' ELSE 'live' END""",
}
"""What is counted by. How vectors and speakers are told is the store's own."""
_BEYOND = 1 << 62


class Edge(NamedTuple):
    """Where a scan of one place goes on."""

    after: After
    seq: int | None = None
    """The number of that memory, if it is here."""
    behind: bool = False
    """Whether what is equal to it in the order came before."""


def edges(seqs: Sequence[int | None], after: After | None) -> list[Edge | None]:
    """Where to go on in each place, by the number that the last memory has there. Of equals, those of an earlier place
    came before."""
    if after is None:
        return [None] * len(seqs)
    holder = next((number for number, seq in enumerate(seqs) if seq is not None), -1)
    return [Edge(after, seq, number < holder) for number, seq in enumerate(seqs)]


def behind(fields: Sequence[str], order: Order, edge: Edge | None) -> list[Any]:
    """The values that a scan begins behind."""
    first, last = (_BEYOND, -_BEYOND) if order == "newest" else (-_BEYOND, _BEYOND)
    if edge is None:
        return [first] * len(fields)
    seq = edge.seq if edge.seq is not None else last if edge.behind else first
    values = {"importance": edge.after.importance, "created_at": to_micros(edge.after.created_at), "seq": seq}
    return [values[field] for field in fields]
