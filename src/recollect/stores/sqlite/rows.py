"""Records to rows and back, and filters to SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.filters import Filter
from recollect.record import Address, Record, from_micros, to_micros
from recollect.stores.port import Place
from recollect.text.segment import segment

COLUMNS = (
    "id, tier, account, channel, conversation, agent, kind, role, source, lifetime, importance, created_at, "
    "accessed_at, access_count, expires_at, archived_at, superseded_by, tags, refs, metadata, checksum, "
    "schema_version, text, data"
)
SELECT = ", ".join(f"m.{column.strip()}" for column in COLUMNS.split(","))
INSERT = f"INSERT INTO memories (seq, {COLUMNS}, segmented) VALUES (?, {', '.join('?' * (COLUMNS.count(',') + 2))})"
UPDATE = """
    UPDATE memories SET importance = ?, lifetime = ?, accessed_at = ?, access_count = ?, expires_at = ?,
        archived_at = ?, superseded_by = ?, tags = ?, refs = ?, metadata = ? WHERE id = ? RETURNING seq
"""

_encode = msgspec.json.Encoder().encode
_strings = msgspec.json.Decoder(tuple[str, ...]).decode
_any = msgspec.json.Decoder().decode


def _json(value: Any) -> str | None:
    return _encode(value).decode() if value else None


def to_row(seq: int | None, record: Record) -> tuple[Any, ...]:
    """The parameters of INSERT. Without a number the row gets the next one. `indexed` tells what to index of it."""
    address, expires, archived = record.address, record.expires_at, record.archived_at
    content, created, accessed = record.content, record.created_at, record.accessed_at
    plain = isinstance(content, str)
    text: str = content if plain else record.text
    micros = to_micros(created)
    return (
        seq,
        record.id,
        record.tier,
        address.account,
        address.channel,
        address.conversation,
        address.agent,
        record.kind,
        record.role,
        record.source,
        record.lifetime,
        record.importance,
        micros,
        micros if accessed is created else to_micros(accessed),
        record.access_count,
        expires and to_micros(expires),
        archived and to_micros(archived),
        record.superseded_by,
        _json(record.tags),
        _json(record.references),
        _json(record.metadata),
        record.checksum,
        record.schema_version,
        text,
        None if plain else _encode(content).decode(),
        None if (pieces := segment(text)) is text else pieces,
    )


def indexed(row: tuple[Any, ...]) -> str:
    """What goes into the text index for a row of `to_row`."""
    return row[-1] or row[-3]


def to_changes(record: Record) -> tuple[Any, ...]:
    """The parameters of UPDATE."""
    expires, archived = record.expires_at, record.archived_at
    return (
        record.importance,
        record.lifetime,
        to_micros(record.accessed_at),
        record.access_count,
        expires and to_micros(expires),
        archived and to_micros(archived),
        record.superseded_by,
        _json(record.tags),
        _json(record.references),
        _json(record.metadata),
        record.id,
    )


def to_record(place: Place, row: Sequence[Any]) -> Record:
    """From the columns of SELECT, then the embedding and its model."""
    (
        ident, tier, account, channel, conversation, agent, kind, role, source, lifetime, importance, created,
        accessed, count, expires, archived, successor, tags, refs, metadata, checksum, version, text, data,
        embedding, model,
    ) = row  # fmt: skip
    created_at = from_micros(created)
    return Record(
        ident,
        Address(place.tenant, place.workspace, account, channel, conversation, agent),
        tier,
        kind,
        text if data is None else _any(data),
        importance,
        created_at,
        created_at if accessed == created else from_micros(accessed),
        _strings(tags) if tags else (),
        role,
        source,
        lifetime,
        _strings(refs) if refs else (),
        _any(metadata) if metadata else {},
        count,
        from_micros(expires) if expires is not None else None,
        from_micros(archived) if archived is not None else None,
        successor,
        embedding,
        model,
        checksum,
        version,
    )


def condition(where: Filter) -> tuple[str, list[Any]]:
    """The filter as SQL over `memories m`, with its parameters. The place is the file, so it is not in here."""
    clauses: list[str] = []
    values: list[Any] = []

    def add(clause: str, *parameters: Any) -> None:
        clauses.append(clause)
        values.extend(parameters)

    _visibility(where, add)
    _state(where, add)
    for column, wanted in (
        ("tier", where.tiers),
        ("kind", where.kinds),
        ("role", where.roles),
        ("source", where.sources),
        ("lifetime", where.lifetimes),
        ("superseded_by", where.superseded_by),
    ):
        if wanted:
            add(f"m.{column} IN ({', '.join('?' * len(wanted))})", *wanted)
    if where.without_kinds:
        add(f"m.kind NOT IN ({', '.join('?' * len(where.without_kinds))})", *where.without_kinds)
    for column in ("conversation", "channel", "agent"):
        if (value := getattr(where, column)) is not None:
            add(f"m.{column} = ?", value)
    if where.since is not None:
        add("m.created_at >= ?", to_micros(where.since))
    if where.until is not None:
        add("m.created_at < ?", to_micros(where.until))
    if where.min_importance is not None:
        add("m.importance >= ?", where.min_importance)
    _tags(where, add)
    return " AND ".join(clauses) or "1", values


def _visibility(where: Filter, add: Any) -> None:
    view = where.view
    if view.agent is not None:
        add("(m.agent IS NULL OR m.agent = ?)", view.agent)
    if view.account is not None:
        add("(m.account IS NULL OR m.account = ?)", view.account)
    if view.channel is not None:
        add("(m.tier != 'channel' OR m.channel = ?)", view.channel)
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


def _tags(where: Filter, add: Any) -> None:
    """Tags hold no quotes, so a tag in its JSON list is found as text: exact, or as the parent of a longer one."""
    has = "(instr(coalesce(m.tags, ''), ?) OR instr(coalesce(m.tags, ''), ?))"
    for tag in where.tags:
        add(has, *_spellings(tag))
    if where.any_tags:
        add(f"({' OR '.join([has] * len(where.any_tags))})", *(s for tag in where.any_tags for s in _spellings(tag)))
    for tag in where.without_tags:
        add(f"NOT {has}", *_spellings(tag))


def _spellings(tag: str) -> tuple[str, str]:
    return f'"{tag}"', f'"{tag}.'
