"""The record that every store keeps, and the address it lives at."""

from __future__ import annotations

import hashlib
import operator
import os
import random
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, ClassVar, Literal, get_args

import msgspec

from recollect.values.errors import InputError, shown

SCHEMA_VERSION = 1

Tier = Literal["account", "workspace", "channel", "conversation"]
"""How far a memory is visible, widest first."""

Role = Literal["user", "assistant", "system", "tool_result"]
Lifetime = Literal["long_term", "short_term", "conversation"]
State = Literal["live", "expired", "archived", "superseded"]

TIERS: tuple[Tier, ...] = get_args(Tier)
ROLES: tuple[Role, ...] = get_args(Role)
LIFETIMES: tuple[Lifetime, ...] = get_args(Lifetime)
STATES: tuple[State, ...] = get_args(State)

Operator = Literal["among", "equal", "at_least", "below", "set", "unset", "passed", "ahead", "begun"]
"""How a field of a memory is compared with a value. The last five are about fields that may be None."""
COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    "among": lambda field, values: field in values,
    "equal": operator.eq,
    "at_least": operator.ge,
    "below": operator.lt,
    "set": lambda field, _: field is not None,
    "unset": lambda field, _: field is None,
    "passed": lambda field, now: field is not None and field <= now,
    "ahead": lambda field, now: field is None or field > now,
    "begun": lambda field, now: field is None or field <= now,
}
OPPOSITE: dict[Operator, Operator] = {"set": "unset", "passed": "ahead"}
STATE_TESTS: tuple[tuple[State, str, Operator], ...] = (
    ("superseded", "superseded_by", "set"),
    ("archived", "archived_at", "set"),
    ("expired", "expires_at", "passed"),
)
"""A memory is in the first state whose test holds for the field, and live if none does."""


class Address(msgspec.Struct, frozen=True, gc=False):
    """Where a memory lives. No agent or account means: shared by all of them."""

    tenant: str = "default"
    workspace: str | None = "default"
    account: str | None = None
    channel: str | None = None
    conversation: str | None = None
    agent: str | None = None


class Record(msgspec.Struct, frozen=True, gc=False):
    """One memory. Content, address and creation time never change; `revise` makes a new record."""

    saved: ClassVar[bool] = True
    """False where the disk refused what was to be remembered: it is in memory only, and `Memory.unsaved` counts it."""

    id: str
    address: Address
    tier: Tier
    kind: str
    content: Any
    importance: float
    created_at: datetime
    accessed_at: datetime
    tags: tuple[str, ...] = ()
    role: Role | None = None
    source: str | None = None
    lifetime: Lifetime = "long_term"
    references: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    access_count: int = 0
    expires_at: datetime | None = None
    archived_at: datetime | None = None
    superseded_by: str | None = None
    embedding: bytes | None = None
    """Little-endian float32 values; `floats` unpacks them."""
    embedding_model: str | None = None
    checksum: str = ""
    derived_from: tuple[str, ...] = ()
    """Ids of the memories whose words it was made of, such as the turns that a fact was taken from."""
    valid_from: datetime | None = None
    """Since when what it says is so; None where nobody said. `created_at` is when it was stored."""
    valid_until: datetime | None = None
    """Until when what it says was so; None where that is not known, or it still is."""
    schema_version: int = SCHEMA_VERSION

    @property
    def text(self) -> str:
        """The content as words: itself, or a rendering of JSON content for search and reading."""
        return render(self.content)

    @property
    def type(self) -> str:
        """The kind, as the ledger document calls it."""
        return self.kind

    @property
    def timestamp(self) -> datetime:
        """When it was made, as the ledger document calls it."""
        return self.created_at

    @property
    def session_id(self) -> str | None:
        """The workspace, as the ledger document calls it."""
        return self.address.workspace

    @property
    def floats(self) -> tuple[float, ...] | None:
        """The embedding as numbers."""
        return unpack(self.embedding) if self.embedding is not None else None

    def state(self, now: datetime) -> State:
        for state, field, test in STATE_TESTS:
            if COMPARE[test](getattr(self, field), now):
                return state
        return "live"

    def digest(self) -> str:
        """The checksum that `checksum` must equal: SHA-256 over canonical JSON of what never changes."""
        return digest(self.id, self.tier, self.kind, self.role, self.content, self.created_at)


MAX_SOURCES = 1024


def joined_sources(*lineages: tuple[str, ...]) -> tuple[str, ...]:
    """One lineage of several, without the oldest where they are too many."""
    return tuple(dict.fromkeys(source for lineage in lineages for source in lineage))[-MAX_SOURCES:]


def superseded(old: Record, new: Record) -> Record:
    """The older memory, which was valid until the newer one is, as far as that is known."""
    until = old.valid_until or new.valid_from
    if until is None and new.created_at > old.created_at:  # an entry of a journal has the time of the one it replaces
        until = new.created_at
    if until is not None and old.valid_from is not None and until <= old.valid_from:
        until = None
    return msgspec.structs.replace(old, superseded_by=new.id, valid_until=until)


class UnsavedRecord(Record, frozen=True, gc=False):
    """A memory that was not on the disk yet when it was returned."""

    saved: ClassVar[bool] = False


_canonical = msgspec.json.Encoder(order="sorted")


def digest(*core: Any) -> str:
    # Tenant and workspace are not among it: a folder may be copied or renamed.
    return "sha256:" + hashlib.sha256(_canonical.encode(core)).hexdigest()


def render(content: Any) -> str:
    """Text for search and for reading: `key: value` lines, nested keys joined by dots. Never blank for JSON."""
    if isinstance(content, str):
        return content
    text = "\n".join(_lines(content, ""))
    return text if text.strip() else msgspec.json.encode(content).decode()


def _lines(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _lines(item, f"{path}.{key}" if path else str(key))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list | tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _lines(item, path)
    else:
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield f"{path}: {shown}" if path else shown


def pack(vector: Sequence[float]) -> bytes:
    """Little-endian float32, four bytes a dimension."""
    return struct.pack(f"<{len(vector)}f", *vector)


def unpack(blob: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(blob) // 4}f", blob)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(when: datetime) -> int:
    """Microseconds since 1970, exact."""
    return (when - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def utc_now() -> datetime:
    return datetime.now(UTC)


def moved(when: datetime, by: timedelta) -> datetime:
    """That much later or earlier, but within the calendar, which has the years 1 to 9999."""
    try:
        return when + by
    except OverflowError:
        return (datetime.min if by < timedelta() else datetime.max).replace(tzinfo=UTC)


def local(when: datetime, zone: tzinfo) -> datetime:
    """As clocks in a zone show it; in UTC where that would be outside the calendar."""
    try:
        return when.astimezone(zone)
    except OverflowError:
        return when


def storing_order(ident: str) -> tuple[int, str]:
    """Sorts ids as their memories were stored: ours begin with the time, and those of a notebook are numbers."""
    return len(ident), ident


class _Ids:
    """UUIDv7 as 32 hex digits. Ids made by one process sort in the order they were made, whatever the clock does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bits = random.Random(os.urandom(16)).getrandbits  # ids must be unique, not unguessable
        self._millis, self._high, self._low = 0, "", 0

    def __call__(self) -> str:
        # 48 bits of milliseconds, the version, 12 random bits; the variant, 62 bits that start random and count up.
        millis = time.time_ns() // 1_000_000
        with self._lock:
            if millis > self._millis:
                self._millis, self._high = millis, f"{millis:012x}7{self._bits(12):03x}"
                self._low = 0b10 << 62 | self._bits(61)
            self._low += 1
            return f"{self._high}{self._low:016x}"


new_id = _Ids()
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=new_id.__init__)


def parse_time(value: datetime | str, field: str) -> datetime:
    """An aware datetime in UTC, from one or from ISO 8601 text; a time without a zone is taken as UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            excerpt = shown(value, repr(value[:40]))
            raise InputError(field, f"{excerpt} is not an ISO 8601 time such as 2026-01-10T14:23:45Z") from None
    elif not isinstance(value, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(field, f"must be a datetime or ISO 8601 text, not {type(value).__name__}")
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise InputError(field, "lies outside the years 1 to 9999") from None
