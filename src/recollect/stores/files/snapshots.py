"""Snapshots of a session: `index.json` and `metadata.json`, for people and for other programs.

The log is the truth, and quick to read: a snapshot is written, never read back for what is in the log. It says up to
which byte of each file it is true.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from recollect.policies.decay import Decay, hours_between
from recollect.stores.fields import FIELDS, REQUIRED
from recollect.stores.files import files
from recollect.stores.files.files import AppendOnly
from recollect.stores.files.replay import UNREADABLE, Row, head
from recollect.stores.sessions import SessionMetadata
from recollect.values.errors import SchemaError
from recollect.values.record import SCHEMA_VERSION, Record

if TYPE_CHECKING:
    from recollect.stores.files.index import PlaceIndex

INDEX, METADATA, SETTINGS = "index.json", "metadata.json", "metadata.bak"
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
_MORE = [field for field in FIELDS if field.usual is not REQUIRED and field.name not in ("tags", "schema_version")]
"""What an entry of the index has where it is not as usual."""


class Covered(msgspec.Struct):
    """How much of a file a snapshot knows, and a checksum of the last bytes of that."""

    bytes: int
    crc32: int


class _Index(msgspec.Struct):
    version: int
    last_updated: datetime
    covers: dict[str, Covered]
    lines: int
    entries: dict[str, dict[str, Any]]
    tombstones: dict[str, int]
    oldest_schema: int
    corrupt: list[tuple[str, int, str, str]]
    tags: dict[str, list[str]]
    """The lists that people and other programs search by."""
    types: dict[str, list[str]]


class _Versioned(msgspec.Struct):
    version: int = VERSION


_version = msgspec.json.Decoder(_Versioned).decode
_metadata = msgspec.json.Decoder(SessionMetadata).decode


class _Sizes(msgspec.Struct):
    covers: dict[str, int] = {}


_sizes = msgspec.json.Decoder(_Sizes).decode


def covered_sizes(path: str) -> dict[str, int]:
    """How long each file was when the metadata were written; nothing if they cannot be read."""
    try:
        with open(path, "rb") as file:
            return _sizes(file.read()).covers
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return {}


def read_metadata(data: bytes, path: str) -> SessionMetadata:
    version = _version(data).version
    if version > VERSION:
        raise SchemaError(f"{path} is of version {version}; this recollect knows up to {VERSION}. Use a newer one")
    return _metadata(data)


def make_index(index: PlaceIndex, sizes: Mapping[str, int], decay: Decay, now: datetime) -> bytes:
    """Of what was read up to these sizes."""
    log = index.log
    tags: dict[str, list[str]] = {}
    types: dict[str, list[str]] = {}
    entries: dict[str, dict[str, Any]] = {}
    places = _own_lines(files.read_part(log.fileset.main_path, 0, sizes.get(log.fileset.main, 0)))
    for row in index.known_rows(whole=False):
        ident = row.record.id
        for tag in row.record.tags:
            tags.setdefault(tag, []).append(ident)
        types.setdefault(row.record.kind, []).append(ident)
        entries[ident] = _indexed(row, places.get(ident, _NOWHERE), decay, now)
    corrupt = [(name, byte, damage.where, damage.problem) for (name, byte), damage in index.damaged_lines().items()]
    covers = {name: _covered(log.fileset.paths[name], sizes.get(name, 0)) for name in log.fileset.log}
    oldest = min(index.oldest_schema, SCHEMA_VERSION)
    made = _Index(VERSION, now, covers, index.fact("lines"), entries, index.tombs(), oldest, corrupt, tags, types)
    body = msgspec.json.encode(made)[:-1]
    return b"%b%b%d}\n" % (body, _SEAL, zlib.crc32(body))


class _OwnLine(NamedTuple):
    """Where the line of a memory is."""

    number: int
    start: int
    end: int
    version: int


_NOWHERE = _OwnLine(0, 0, 0, 0)


def _own_lines(data: bytes) -> dict[str, _OwnLine]:
    """By id. Of several lines of one memory, the one with the highest version counts."""
    places: dict[str, _OwnLine] = {}
    for number, line in enumerate(files.lines(data), 1):
        with suppress(*UNREADABLE):
            ident, version = astuple(head(line.data))
            if version > places.get(ident, _NOWHERE).version:
                places[ident] = _OwnLine(number, line.start, line.end, version)
    return places


def _covered(path: str, size: int) -> Covered:
    file = AppendOnly(path)
    try:
        return Covered(size, zlib.crc32(file.read(max(0, size - _FINGERPRINT), size)) if size else 0)
    finally:
        file.close()


def _indexed(row: Row, place: _OwnLine, decay: Decay, now: datetime) -> dict[str, Any]:
    """A memory without its content. The first fields are the document's."""
    record = row.record
    entry: dict[str, Any] = {
        "line_number": place.number,
        "byte_offset": place.start,
        "type": record.kind,
        "timestamp": record.created_at,
        "tags": record.tags,
        "importance": record.importance,
        "current_relevance": round(relevance(record, decay, now), 4),
        "length": place.end - place.start,
    }
    if row.version != 1:
        entry["version"] = row.version
    for field in _MORE:
        value = getattr(record.address if field.address else record, field.name)
        if value != field.usual:
            entry[field.name] = value
    if record.accessed_at != record.created_at:
        entry["accessed_at"] = record.accessed_at
    if row.vector_version:
        entry["vector_version"] = row.vector_version
    if record.embedding_model is not None:
        entry["embedding_model"] = record.embedding_model
    return entry


def relevance(record: Record, decay: Decay, now: datetime) -> float:
    boost = _RECENT_BOOST if hours_between(record.accessed_at, now) < _RECENT_HOURS else 1.0
    return record.importance * decay.factor(record, now) * boost


def statistics(kinds: Mapping[str, int]) -> dict[str, int]:
    """Counts by type, under the document's names for its four."""
    others = {kind: count for kind, count in kinds.items() if kind not in _PLURALS and count}
    return {plural: kinds.get(kind, 0) for kind, plural in _PLURALS.items()} | others
