"""How a memory stands on a line: in a ledger, and in a notebook."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from recollect.stores.fields import ADDRESS, FIELDS, REQUIRED, compiled
from recollect.stores.files.lines import intact, sealed
from recollect.stores.port import Place
from recollect.stores.undo import FieldValues
from recollect.values.record import SCHEMA_VERSION, Address, Record

_encode = msgspec.json.Encoder().encode
T = TypeVar("T")
_ACCOUNT = 1_000_000_000
"""What accounts share is numbered from here: a view sees it beside a workspace, and an id must mean one note."""
_NUMBERED = re.compile(r"m-([1-9][0-9]{0,17})")
_MADE = re.compile(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}")
"""An id that nobody chose. Any other is one that a person wrote, here or in the notebook that this comes from."""


class Parsed(NamedTuple):
    """A memory as its own line has it."""

    record: Record
    version: int
    schema: int
    foreign: dict[str, Any] | None = None
    """Fields that other programs have given it."""


class Addresses:
    """One object for each address that occurs: there are far fewer of them than memories."""

    def __init__(self) -> None:
        self._addresses: dict[tuple[str | None, ...], Address] = {}

    def __call__(self, *parts: Any) -> Address:
        address = self._addresses.get(parts)
        if address is None:
            address = self._addresses[parts] = Address(*parts)
        return address


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

    def rest(self, record: Record) -> FieldValues | None:
        """What the line has no room for."""
        ...

    def with_foreign(self, line: bytes, fields: dict[str, Any]) -> bytes:
        """A line of ours with these fields, too."""
        ...

    def parse(self, line: bytes, place: Place) -> Parsed: ...

    def content(self, line: bytes) -> Any: ...


def _parse(strict: Callable[[bytes], T], lenient: Callable[[bytes], T], line: bytes) -> tuple[T, bool]:
    """A line, and whether it has fields that are not ours."""
    try:
        return strict(line), False
    except msgspec.ValidationError:
        return lenient(line), True


_RENAMED = {"kind": "type", "created_at": "timestamp"}
"""As the ledger document calls them."""
_ALWAYS = ("tags", "references", "schema_version")
_ON_LINES = [field for field in FIELDS if field.name != "checksum"]
_TIMES = [field.name for field in FIELDS if field.way == "time"]
_PLAIN = [field.name for field in _ON_LINES if not field.address and field.name != "schema_version"]
_USUAL_TEXTS = {field.name: field.usual for field in _ON_LINES if isinstance(field.usual, str)}
_address = attrgetter(*ADDRESS)


def _written_fields() -> list[tuple[str, Any] | tuple[str, Any, Any]]:
    """In the order of the checksum's canonical JSON, with what the document asks for always there."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        (field.name, field.type)
        if field.usual is REQUIRED or field.name in _ALWAYS
        else (field.name, field.type, field.usual)
        for field in _ON_LINES
        if field.name != "accessed_at"
    ]
    fields += [("content", Any), ("decay_factor", float), ("session_id", str), ("version", int, 1)]
    fields.append(("accessed_at", datetime | None, None))
    return sorted(fields, key=lambda field: _RENAMED.get(field[0], field[0]))


def _read_fields() -> list[tuple[str, Any] | tuple[str, Any, Any]]:
    """More than the id, time, type and content no program need write."""
    usual = {"importance": 0.5, "accessed_at": None, "schema_version": 0}
    optional = {
        field.name: (field.type if field.name != "accessed_at" else datetime | None, usual.get(field.name, field.usual))
        for field in _ON_LINES
        if field.usual is not REQUIRED or field.name in usual
    }
    required = [(field.name, field.type) for field in _ON_LINES if field.name not in optional]
    more = [(name, kind, value) for name, (kind, value) in optional.items()]
    unread = [(name, msgspec.Raw, msgspec.Raw(b"null")) for name in ("decay_factor", "session_id", "checksum")]
    return [*required, ("content", Any), *more, ("version", int, 1), *unread]


_Written: Any = msgspec.defstruct("_Written", _written_fields(), omit_defaults=True, kw_only=True, rename=_RENAMED)
_Entry: Any = msgspec.defstruct("_Entry", _read_fields(), rename=_RENAMED)
_OurEntry: Any = msgspec.defstruct("_OurEntry", _read_fields(), rename=_RENAMED, forbid_unknown_fields=True)


def _utc(when: datetime) -> datetime:
    return when if when.tzinfo is UTC else when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def _written_value(name: str) -> str:
    """The expression of a field's value on a line."""
    if name in ADDRESS:
        return f"address.{name}"
    value = f"record.{name}"
    if name in _USUAL_TEXTS:  # msgspec leaves out the very same text only, not an equal one
        return f"usual_{name} if {value} == usual_{name} else {value}"
    return f"None if {value} == record.created_at else {value}" if name == "accessed_at" else value


def _stored_value(name: str) -> str:
    """The expression of a field's value of the memory on a line."""
    value = f"entry.{name}"
    if name == "accessed_at":
        return f"created if {value} is None else utc({value})"
    if name == "created_at":
        return "created"
    return f"None if {value} is None else utc({value})" if name in _TIMES else value


_written: Callable[[Record, int], Any] = compiled(
    "_written",
    f"""
def _written(record, version):
    address = record.address
    return Written({", ".join(f"{name}={_written_value(name)}" for name in (*_PLAIN, *ADDRESS))}, version=version,
        content=record.content, schema_version={SCHEMA_VERSION}, decay_factor=1.0,
        session_id=address.workspace or "account")
""",
    {"Written": _Written, **{f"usual_{name}": usual for name, usual in _USUAL_TEXTS.items()}},
)
_stored: Callable[[Any, Address], Record] = compiled(
    "_stored",
    f"""
def _stored(entry, address):
    created = utc(entry.created_at)
    return Record(address=address, content=entry.content,
        {", ".join(f"{name}={_stored_value(name)}" for name in _PLAIN)})
""",
    {"Record": Record, "utc": _utc},
)
_LEDGER_NAMES = frozenset((*_Written.__struct_encode_fields__, *_Entry.__struct_encode_fields__, "checksum"))
_fields = msgspec.json.Decoder(dict[str, Any]).decode


class _Content(msgspec.Struct):
    content: Any


class LedgerFormat:
    """The entry of the ledger document, and after it whatever else a memory has that is not as usual."""

    file = "memory.jsonl"
    rewrites = False

    def __init__(self, checked: bool = True) -> None:
        self._checked = checked
        self.address = Addresses()
        self._ours, self._any = msgspec.json.Decoder(_OurEntry).decode, msgspec.json.Decoder(_Entry).decode
        self._content = msgspec.json.Decoder(_Content).decode

    def name(self, records: Sequence[Record], after: int) -> tuple[list[Record], int]:
        return list(records), after

    def number(self, ident: str) -> int:
        return 0

    def line(self, record: Record, version: int) -> bytes:
        # Only what is JSON itself can be in another order than the canonical one.
        return sealed(_written(record, version), plain=not record.metadata and isinstance(record.content, str))

    def rest(self, record: Record) -> FieldValues | None:
        return None

    def with_foreign(self, line: bytes, fields: dict[str, Any]) -> bytes:
        own = {name: value for name, value in _fields(line).items() if name != "checksum"}
        return sealed({**own, **fields}, plain=False)

    def parse(self, line: bytes, place: Place) -> Parsed:
        if self._checked and not intact(line):
            raise ValueError("does not match its checksum")
        entry, is_foreign = _parse(self._ours, self._any, line)
        foreign = {n: v for n, v in _fields(line).items() if n not in _LEDGER_NAMES} if is_foreign else None
        if not 0.0 <= entry.importance <= 1.0:
            raise ValueError(f"importance {entry.importance} is outside 0 to 1")
        workspace = None if entry.tier == "account" else place.workspace
        record = _stored(entry, self.address(place.tenant, workspace, *_address(entry)))
        return Parsed(record, entry.version, entry.schema_version, foreign)

    def content(self, line: bytes) -> Any:
        if self._checked and not intact(line):
            raise ValueError("does not match its checksum")
        return self._content(line).content


_OWN = ("id", "tier", "created_at", "accessed_at", "tags", "metadata", "checksum", "schema_version")
_USUAL = {
    field.name: {"kind": "fact", "importance": 0.5}.get(field.name, field.usual)
    for field in FIELDS
    if not field.address and field.name not in _OWN
}
"""What a note is unless said otherwise, besides what its line or its place says."""
Scope = Literal["user", "workspace", "session"]


class _Note(msgspec.Struct):
    """A line of the notebook document, which may have fields of other programs."""

    id: str
    text: str
    ts: datetime
    scope: Scope = "workspace"
    tags: tuple[str, ...] = ()


class _OurNote(_Note, forbid_unknown_fields=True):
    """One that has none."""


class NotebookFormat:
    """Exactly the five fields of the notebook document. What else a memory has stands beside it, in `changes.jsonl`."""

    file = "memories.jsonl"
    rewrites = True

    def __init__(self) -> None:
        self.address = Addresses()
        self._ours, self._any = msgspec.json.Decoder(_OurNote).decode, msgspec.json.Decoder(_Note).decode

    def name(self, records: Sequence[Record], after: int) -> tuple[list[Record], int]:
        names: dict[str, str] = {}
        if records and records[0].address.workspace is None:
            after = max(after, _ACCOUNT)
        after = max(after, *(self.number(record.id) for record in records), 0)
        for record in records:
            if self.renames(record):
                after += 1
                names[record.id] = f"m-{after}"
        return [_renamed(record, names) for record in records], after

    def renames(self, record: Record) -> bool:
        """Whether it is kept under another id than its own."""
        return _MADE.fullmatch(record.id) is not None

    def number(self, ident: str) -> int:
        numbered = _NUMBERED.fullmatch(ident)
        return int(numbered[1]) if numbered else 0

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

    def rest(self, record: Record) -> FieldValues | None:
        more: dict[str, Any] = {
            name: value for name, usual in _USUAL.items() if (value := getattr(record, name)) != usual
        }
        for part in ADDRESS:
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
        return FieldValues(**more) if more else None

    def with_foreign(self, line: bytes, fields: dict[str, Any]) -> bytes:
        return _encode({**_fields(line), **fields}) + b"\n"

    def parse(self, line: bytes, place: Place) -> Parsed:
        note, is_foreign = _parse(self._ours, self._any, line)
        if not note.text:
            raise ValueError("has no text")
        foreign = {n: v for n, v in _fields(line).items() if n not in _Note.__struct_fields__} if is_foreign else None
        tier = "account" if place.workspace is None else "workspace"
        address = self.address(*place)
        created = _utc(note.ts)
        record = Record(note.id, address, tier, "fact", note.text, 0.5, created, created, note.tags)
        if note.scope != "workspace":
            record = replace(record, metadata=_scope(note.scope))
        return Parsed(record, 1, SCHEMA_VERSION, foreign)

    def content(self, line: bytes) -> Any:
        return self._any(line).text


def _scope(scope: Any) -> dict[str, Any]:
    """Who a note is about, where that is said: kept with it, and not acted on."""
    return {"scope": scope} if scope in ("user", "session") else {}


def _renamed(record: Record, names: dict[str, str]) -> Record:
    if not names:
        return record
    new = replace(
        record,
        id=names.get(record.id, record.id),
        references=tuple(names.get(ident, ident) for ident in record.references),
        derived_from=tuple(names.get(ident, ident) for ident in record.derived_from),
        superseded_by=record.superseded_by and names.get(record.superseded_by, record.superseded_by),
    )
    return replace(new, checksum=new.digest())
