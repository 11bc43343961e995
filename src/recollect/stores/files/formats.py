"""How a memory stands on a line: in a ledger, and in a notebook."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from recollect.record import SCHEMA_VERSION, Address, Lifetime, Record, Role, Tier
from recollect.stores.files.lines import Changed, intact, sealed
from recollect.stores.port import Place

_USUAL = {
    "kind": "fact",
    "importance": 0.5,
    "role": None,
    "source": None,
    "lifetime": "long_term",
    "references": (),
    "access_count": 0,
    "expires_at": None,
    "archived_at": None,
    "superseded_by": None,
}
"""What a memory is unless said otherwise."""
_encode = msgspec.json.Encoder().encode
_NUMBERED = re.compile(r"m-([1-9][0-9]{0,17})")


class Parsed(NamedTuple):
    """A memory without its content, as its own line has it."""

    record: Record
    version: int
    schema: int


class Addresses:
    """One object for each address that occurs: there are far fewer of them than memories."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, ...], Address] = {}

    def __call__(self, *parts: Any) -> Address:
        found = self._known.get(parts)
        if found is None:
            found = self._known[parts] = Address(*parts)
        return found


class Format(Protocol):
    """Lines of memories. `ValueError` for a line that is none."""

    file: str
    """The name of the file of memories."""
    rewrites: bool
    """Whether what is deleted leaves the file at once."""
    address: Addresses

    def name(self, records: Sequence[Record], after: int) -> tuple[list[Record], int]:
        """The records under the ids that they are kept by, and the highest number given so far."""
        ...

    def number(self, ident: str) -> int:
        """The number in an id that this format gave, else 0."""
        ...

    def line(self, record: Record, version: int) -> bytes: ...

    def rest(self, record: Record) -> Changed | None:
        """What the line has no room for."""
        ...

    def parse(self, line: bytes, place: Place) -> Parsed: ...

    def content(self, line: bytes) -> Any: ...


class _Entry(msgspec.Struct, rename={"kind": "type", "created_at": "timestamp"}):
    id: str
    created_at: datetime
    kind: str
    content: msgspec.Raw
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    schema_version: int = 0
    version: int = 1
    tier: Tier = "workspace"
    account: str | None = None
    channel: str | None = None
    conversation: str | None = None
    agent: str | None = None
    role: Role | None = None
    source: str | None = None
    lifetime: Lifetime = "long_term"
    metadata: dict[str, Any] = {}
    accessed_at: datetime | None = None
    access_count: int = 0
    expires_at: datetime | None = None
    archived_at: datetime | None = None
    superseded_by: str | None = None


class _Written(msgspec.Struct, omit_defaults=True, kw_only=True, rename={"kind": "type", "created_at": "timestamp"}):
    """As `_Entry`, with what the document asks for always there, and in the order of the checksum's canonical JSON."""

    access_count: int = 0
    accessed_at: datetime | None = None
    account: str | None = None
    agent: str | None = None
    archived_at: datetime | None = None
    channel: str | None = None
    content: Any
    conversation: str | None = None
    decay_factor: float
    expires_at: datetime | None = None
    id: str
    importance: float
    lifetime: Lifetime = "long_term"
    metadata: dict[str, Any] = {}
    references: tuple[str, ...]
    role: Role | None = None
    schema_version: int
    session_id: str
    source: str | None = None
    superseded_by: str | None = None
    tags: tuple[str, ...]
    tier: Tier = "workspace"
    created_at: datetime
    kind: str
    version: int = 1


class _Content(msgspec.Struct):
    content: Any


class LedgerFormat:
    """The entry of the ledger document, and after it whatever else a memory has that is not as usual."""

    file = "memory.jsonl"
    rewrites = False

    def __init__(self, checked: bool = True) -> None:
        self._checked = checked
        self.address = Addresses()
        self._parse = msgspec.json.Decoder(_Entry).decode
        self._content = msgspec.json.Decoder(_Content).decode

    def name(self, records: Sequence[Record], after: int) -> tuple[list[Record], int]:
        return list(records), after

    def number(self, ident: str) -> int:
        return 0

    def line(self, record: Record, version: int) -> bytes:
        address = record.address
        entry = _Written(
            id=record.id,
            session_id=address.workspace or "account",
            created_at=record.created_at,
            kind=record.kind,
            content=record.content,
            importance=record.importance,
            decay_factor=1.0,
            tags=record.tags,
            references=record.references,
            schema_version=SCHEMA_VERSION,
            version=version,
            tier=record.tier,
            account=address.account,
            channel=address.channel,
            conversation=address.conversation,
            agent=address.agent,
            role=record.role,
            source=record.source,
            lifetime=record.lifetime,
            metadata=record.metadata,
            accessed_at=None if record.accessed_at == record.created_at else record.accessed_at,
            access_count=record.access_count,
            expires_at=record.expires_at,
            archived_at=record.archived_at,
            superseded_by=record.superseded_by,
        )
        # Only what is JSON itself can be in another order than the canonical one.
        return sealed(entry, plain=not record.metadata and isinstance(record.content, str))

    def rest(self, record: Record) -> Changed | None:
        return None

    def parse(self, line: bytes, place: Place) -> Parsed:
        if self._checked and not intact(line):
            raise ValueError("does not match its checksum")
        entry = self._parse(line)
        if not 0.0 <= entry.importance <= 1.0:
            raise ValueError(f"importance {entry.importance} is outside 0 to 1")
        workspace = None if entry.tier == "account" else place.workspace
        created = _utc(entry.created_at)
        record = Record(
            entry.id,
            self.address(place.tenant, workspace, entry.account, entry.channel, entry.conversation, entry.agent),
            entry.tier,
            entry.kind,
            None,
            entry.importance,
            created,
            created if entry.accessed_at is None else _utc(entry.accessed_at),
            entry.tags,
            entry.role,
            entry.source,
            entry.lifetime,
            entry.references,
            entry.metadata,
            entry.access_count,
            entry.expires_at and _utc(entry.expires_at),
            entry.archived_at and _utc(entry.archived_at),
            entry.superseded_by,
        )
        return Parsed(record, entry.version, entry.schema_version)

    def content(self, line: bytes) -> Any:
        if self._checked and not intact(line):
            raise ValueError("does not match its checksum")
        return self._content(line).content


Scope = Literal["user", "workspace", "session"]


class _Note(msgspec.Struct):
    """A line of the notebook document."""

    id: str
    text: str
    ts: datetime
    scope: Scope = "workspace"
    tags: tuple[str, ...] = ()


class NotebookFormat:
    """Exactly the five fields of the notebook document. What else a memory has stands beside it, in `changes.jsonl`."""

    file = "memories.jsonl"
    rewrites = True

    def __init__(self) -> None:
        self.address = Addresses()
        self._parse = msgspec.json.Decoder(_Note).decode

    def name(self, records: Sequence[Record], after: int) -> tuple[list[Record], int]:
        given: dict[str, str] = {}
        for record in records:
            if not (number := self.number(record.id)):
                after += 1
                given[record.id] = f"m-{after}"
            after = max(after, number)
        return [_renamed(record, given) for record in records], after

    def number(self, ident: str) -> int:
        found = _NUMBERED.fullmatch(ident)
        return int(found[1]) if found else 0

    def line(self, record: Record, version: int) -> bytes:
        scope = record.metadata.get("scope")
        note = {
            "id": record.id,
            "scope": scope if scope in ("user", "session") else "workspace",
            "text": record.text,
            "tags": record.tags,
            "ts": record.created_at,
        }
        return _encode(note) + b"\n"

    def rest(self, record: Record) -> Changed | None:
        more: dict[str, Any] = {
            name: value for name, usual in _USUAL.items() if (value := getattr(record, name)) != usual
        }
        for part in ("account", "channel", "conversation", "agent"):
            if (value := getattr(record.address, part)) is not None:
                more[part] = value
        if record.accessed_at != record.created_at:
            more["accessed_at"] = record.accessed_at
        if record.tier != ("account" if record.address.workspace is None else "workspace"):
            more["tier"] = record.tier
        if not isinstance(record.content, str):
            more["content"] = record.content
        if record.metadata and record.metadata != _scope(record.metadata.get("scope")):
            more["metadata"] = record.metadata
        return Changed(**more) if more else None

    def parse(self, line: bytes, place: Place) -> Parsed:
        note = self._parse(line)
        if not note.text:
            raise ValueError("has no text")
        tier = "account" if place.workspace is None else "workspace"
        address = self.address(*place)
        created = _utc(note.ts)
        record = Record(note.id, address, tier, "fact", None, 0.5, created, created, note.tags)
        if note.scope != "workspace":
            record = replace(record, metadata=_scope(note.scope))
        return Parsed(record, 1, SCHEMA_VERSION)

    def content(self, line: bytes) -> Any:
        return self._parse(line).text


def _scope(scope: Any) -> dict[str, Any]:
    """Who a note is about, where that is said: kept with it, and not acted on."""
    return {"scope": scope} if scope in ("user", "session") else {}


def _renamed(record: Record, given: dict[str, str]) -> Record:
    if record.id not in given and not given:
        return record
    ident = given.get(record.id, record.id)
    new = replace(
        record,
        id=ident,
        references=tuple(given.get(one, one) for one in record.references),
        superseded_by=record.superseded_by and given.get(record.superseded_by, record.superseded_by),
    )
    return replace(new, checksum=new.digest())


def _utc(when: datetime) -> datetime:
    return when if when.tzinfo is UTC else when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
