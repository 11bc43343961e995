"""Snapshots of a session: `index.json` and `metadata.json`, for people and for a quick start.

The log is the truth. A snapshot says up to which byte of each file it is true; what follows is read from the files,
and a snapshot that does not fit them is ignored and made anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from recollect.errors import SchemaError
from recollect.policies.decay import Decay, hours_between
from recollect.record import SCHEMA_VERSION, Lifetime, Record, Role, Tier
from recollect.stores.files.files import AppendOnly, Identity
from recollect.stores.files.formats import Addresses
from recollect.stores.files.state import Row, State
from recollect.stores.port import Damage
from recollect.stores.sessions import SessionMetadata

INDEX, METADATA = "index.json", "metadata.json"
VERSION = 1
_FINGERPRINT = 256
_SEAL = b',"crc32":'
_RECENT_HOURS, _RECENT_BOOST = 24.0, 1.5
_PLURALS = {
    "conversation": "conversations",
    "decision": "decisions",
    "finding": "findings",
    "preference": "preferences",
}


class Covered(msgspec.Struct):
    """How much of a file a snapshot knows, and a checksum of the last bytes of that."""

    bytes: int
    crc32: int


class Indexed(
    msgspec.Struct,
    omit_defaults=True,
    rename={"number": "line_number", "start": "byte_offset", "kind": "type", "created_at": "timestamp"},
):
    """A memory without its content. The first fields are the document's."""

    number: int
    start: int
    kind: str
    created_at: datetime
    tags: tuple[str, ...]
    importance: float
    current_relevance: float
    length: int
    version: int = 1
    tier: Tier = "workspace"
    account: str | None = None
    channel: str | None = None
    conversation: str | None = None
    agent: str | None = None
    role: Role | None = None
    source: str | None = None
    lifetime: Lifetime = "long_term"
    references: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    accessed_at: datetime | None = None
    access_count: int = 0
    expires_at: datetime | None = None
    archived_at: datetime | None = None
    superseded_by: str | None = None
    vector: tuple[int, int] | None = None
    vector_version: int = 0
    embedding_model: str | None = None


class Index(msgspec.Struct):
    version: int
    last_updated: datetime
    covers: dict[str, Covered]
    lines: int
    entries: dict[str, Indexed]
    tombstones: dict[str, int] = {}
    oldest_schema: int = SCHEMA_VERSION
    corrupt: list[tuple[str, int, str, str]] = []


class _WrittenIndex(Index):
    """With the lists that people and other programs search by."""

    tags: dict[str, list[str]] = {}
    types: dict[str, list[str]] = {}


class _Versioned(msgspec.Struct):
    version: int = VERSION


_decode = msgspec.json.Decoder(Index).decode
_version = msgspec.json.Decoder(_Versioned).decode
_metadata = msgspec.json.Decoder(SessionMetadata).decode


def covered(file: AppendOnly, size: int) -> Covered:
    return Covered(size, zlib.crc32(file.read(max(0, size - _FINGERPRINT), size)) if size else 0)


def fits(index: Index, files: Mapping[str, AppendOnly], ends: Mapping[str, Identity]) -> bool:
    """Whether the files are those that the index was made from, or longer."""
    return (
        index.version == VERSION
        and index.covers.keys() == ends.keys()
        and all(
            known.bytes <= ends[name].size and covered(files[name], known.bytes) == known
            for name, known in index.covers.items()
        )
    )


def read_index(path: str) -> Index | None:
    try:
        with open(path, "rb") as file:
            data = file.read()
            body, _, seal = data.rpartition(_SEAL)
            # Whatever changed a digit in it would have a memory looked for in the wrong place.
            return _decode(data) if body and int(seal.rstrip(b"}\n")) == zlib.crc32(body) else None
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return None


def read_metadata(data: bytes, path: str) -> SessionMetadata:
    version = _version(data).version
    if version > VERSION:
        raise SchemaError(f"{path} is of version {version}; this recollect knows up to {VERSION}. Use a newer one")
    return _metadata(data)


def restore(index: Index, state: State, address: Addresses) -> None:
    """Put what the index knows into an empty state."""
    place, rows = state.place, state.rows
    for ident, one in index.entries.items():
        workspace = None if one.tier == "account" else place.workspace
        record = Record(
            ident,
            address(place.tenant, workspace, one.account, one.channel, one.conversation, one.agent),
            one.tier,
            one.kind,
            None,
            one.importance,
            one.created_at,
            one.accessed_at or one.created_at,
            one.tags,
            one.role,
            one.source,
            one.lifetime,
            one.references,
            one.metadata,
            one.access_count,
            one.expires_at,
            one.archived_at,
            one.superseded_by,
            None,
            one.embedding_model,
        )
        end = one.start + one.length
        rows[ident] = Row(record, one.version, one.start, end, one.number, one.vector, one.vector_version)
    state.changed.update(rows)
    state.tombs.update(index.tombstones)
    state.lines = index.lines
    state.oldest_schema = index.oldest_schema
    state.damage.update({(name, byte): Damage(where, problem) for name, byte, where, problem in index.corrupt})


def make_index(state: State, covers: dict[str, Covered], decay: Decay, now: datetime) -> bytes:
    tags: dict[str, list[str]] = {}
    types: dict[str, list[str]] = {}
    entries: dict[str, Indexed] = {}
    for ident, row in state.rows.items():
        for tag in row.record.tags:
            tags.setdefault(tag, []).append(ident)
        types.setdefault(row.record.kind, []).append(ident)
        entries[ident] = _indexed(row, decay, now)
    corrupt = [(name, byte, damage.where, damage.problem) for (name, byte), damage in state.damage.items()]
    index = _WrittenIndex(
        VERSION, now, covers, state.lines, entries, state.tombs, state.oldest_schema, corrupt, tags, types
    )
    body = msgspec.json.encode(index)[:-1]
    return b"%b%b%d}\n" % (body, _SEAL, zlib.crc32(body))


def _indexed(row: Row, decay: Decay, now: datetime) -> Indexed:
    record, address = row.record, row.record.address
    return Indexed(
        row.number,
        row.start,
        record.kind,
        record.created_at,
        record.tags,
        record.importance,
        round(relevance(record, decay, now), 4),
        row.end - row.start,
        row.version,
        record.tier,
        address.account,
        address.channel,
        address.conversation,
        address.agent,
        record.role,
        record.source,
        record.lifetime,
        record.references,
        record.metadata,
        None if record.accessed_at == record.created_at else record.accessed_at,
        record.access_count,
        record.expires_at,
        record.archived_at,
        record.superseded_by,
        row.vector,
        row.vector_version,
        record.embedding_model,
    )


def relevance(record: Record, decay: Decay, now: datetime) -> float:
    boost = _RECENT_BOOST if hours_between(record.accessed_at, now) < _RECENT_HOURS else 1.0
    return record.importance * decay.factor(record, now) * boost


def statistics(records: Iterable[Record]) -> dict[str, int]:
    """Counts by type, under the document's names for its four."""
    counts = dict.fromkeys(_PLURALS.values(), 0)
    for record in records:
        name = _PLURALS.get(record.kind, record.kind)
        counts[name] = counts.get(name, 0) + 1
    return counts
