"""What a store that keeps sessions can do beyond the port: each session has a person, settings and statistics."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol, cast, runtime_checkable

import msgspec

from recollect.stores.port import Place
from recollect.values.record import SCHEMA_VERSION, Record

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Hours = Annotated[float, msgspec.Meta(gt=0.0)]


class SessionDecay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session's own decay. What is left out is as for all sessions."""

    enabled: bool = True
    half_life_hours: Hours | None = None
    min_decay_factor: Share | None = None


class Migration(msgspec.Struct, frozen=True):
    """Whether the entries are all as this version writes them."""

    status: Literal["current", "pending"] = "current"
    schema_version: int = SCHEMA_VERSION
    """Of the oldest entry."""
    migrated_at: datetime | None = None


class SessionCompaction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    auto_compact: bool | None = None
    threshold: Share | None = None


class Preferences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    language: str = "en"
    verbosity: str = "medium"
    custom: dict[str, Any] = {}


class SessionMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Who a session is for and how it is set, and what is counted of it."""

    version: int = 1
    session_id: str
    user_id: str | None = None
    created_at: datetime
    last_accessed: datetime
    total_entries: int = 0
    total_size_bytes: int = 0
    decay_config: SessionDecay = SessionDecay()
    """What is in force, the session's own or not."""
    inherited_decay: dict[str, float] = {}
    """The part of it that is that of all sessions. A value that was changed since is the session's own."""
    compaction_config: SessionCompaction = SessionCompaction()
    preferences: Preferences = Preferences()
    statistics: dict[str, int] = {}
    last_decay_update: datetime | None = None
    """When the relevance of all entries was last computed, for the index."""
    last_compaction: datetime | None = None
    migration: Migration = Migration()
    compacted_size_bytes: int = 0
    stripped_entries: int = 0
    """How often compaction took the longest parts of an entry's metadata away."""
    stripped_bytes: int = 0
    corrupt_entries: int = 0
    buffered_writes: int = 0
    audit_entries: int = 0
    covers: dict[str, int] = {}
    """The bytes of each file that these counts are true of."""

    @property
    def id(self) -> str:
        """The session's id, as in the document's examples."""
        return self.session_id


class SessionEntry(Record, frozen=True, gc=False):
    """An entry of a session, with its decay as of the moment when it was read."""

    decay_factor: float = 1.0


@runtime_checkable
class Clocked(Protocol):
    """A store that writes times of its own."""

    clock: Callable[[], datetime]


@runtime_checkable
class SessionStore(Protocol):
    """A workspace is a session."""

    def has_session(self, place: Place) -> bool: ...

    def session(self, place: Place) -> SessionMetadata | None:
        """As of now. None if there is no such session."""
        ...

    def create_session(
        self,
        place: Place,
        user_id: str,
        now: datetime,
        decay: SessionDecay,
        compaction: SessionCompaction,
        preferences: Preferences,
    ) -> SessionMetadata:
        """ConflictError if there is one already."""
        ...

    def close_session(self, place: Place) -> None:
        """Write what was put off, and let go of the files."""
        ...

    def rebuild(self, place: Place) -> int:
        """Make whatever is derived anew from the log. Returns how many memories there are."""
        ...

    def migrate(self, place: Place) -> bool:
        """Write what an older version wrote as this one would. False if there was nothing to do."""
        ...

    def deleted(self, place: Place) -> int:
        """How many memories are deleted, but not gone from the disk before the next compaction."""
        ...

    def unsaved_writes(self, tenant: str) -> int:
        """Writes to all sessions that the disk refuses so far."""
        ...

    def damaged_entries(self, place: Place) -> int:
        """How many entries of a session cannot be read, and are left out."""
        ...

    def without_tag(self, tenant: str, tag: str) -> set[str]:
        """Sessions that are known to have no memory with the tag, and so need not be searched for it."""
        ...

    def metrics(self, tenant: str) -> dict[str, float]:
        """Counts and durations since the store was opened."""
        ...


_KEEPS_SESSIONS: dict[type, bool] = {}


def session_store(store: object) -> SessionStore | None:
    """The store as one with sessions, or None. Asked in every call: `isinstance` of a protocol looks at each method."""
    kind = type(store)
    if kind not in _KEEPS_SESSIONS:
        _KEEPS_SESSIONS[kind] = isinstance(store, SessionStore)
    return cast("SessionStore", store) if _KEEPS_SESSIONS[kind] else None
