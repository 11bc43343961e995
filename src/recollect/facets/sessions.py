"""Sessions: a workspace as the memory of one person's dealings with an agent, under the ledger document's names."""

from __future__ import annotations

import builtins
import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from io import BytesIO
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec.structs import astuple, replace

from recollect.maintenance import schedule
from recollect.operations import Doc, EntryId, Reason, SessionId, operation
from recollect.policies.decay import Decay
from recollect.policies.secrets import screen, screen_name
from recollect.recall.hits import Hits
from recollect.recall.query import Query, query_from
from recollect.recall.query import query as querying
from recollect.stores.files.snapshots import statistics
from recollect.stores.integrity import damage_note
from recollect.stores.port import Damage, Place
from recollect.stores.sessions import (
    Preferences,
    SessionCompaction,
    SessionDecay,
    SessionEntry,
    SessionMetadata,
    SessionStore,
)
from recollect.text.times import point
from recollect.values import validation
from recollect.values.errors import AccessError, ConflictError, DamageWarning, InputError, NotFoundError, UnsavedWarning
from recollect.values.record import SCHEMA_VERSION, Record, parse_time, render
from recollect.verbs.forget import Forget, forget
from recollect.verbs.remember import remember
from recollect.view import View

MemoryType = Literal["conversation", "decision", "finding", "preference"]
_ID = re.compile(r"[A-Za-z0-9_]{1,64}")
_ENTRY = ("type", "content", "importance", "tags", "references", "timestamp", "metadata")
_OF_THE_FILES: dict[str, Any] = {
    "total_size_bytes": 0,
    "compacted_size_bytes": 0,
    "stripped_entries": 0,
    "stripped_bytes": 0,
    "corrupt_entries": 0,
    "audit_entries": 0,
    "covers": {},
}
"""Metadata that counts what is in the files of a session, whoever it belongs to."""
_encode = msgspec.json.Encoder().encode
_canonical = msgspec.json.Encoder(order="sorted").encode


class SessionStats(msgspec.Struct, frozen=True):
    """What is in a session, and how it is. A view that is bound inside it counts only what it sees."""

    metadata: SessionMetadata
    entries: int
    deleted: int
    """Gone, but not from the disk before the next compaction."""
    corrupt: tuple[Damage, ...]
    buffered: int
    """Writes that the disk refused so far; they are in memory only."""
    size_bytes: int


class Sessions:
    """The operations of the ledger document. Each is a verb of Memory, at the session's workspace."""

    def __init__(self, view: View, unbound: bool = False) -> None:
        self._view = view
        self._unbound = unbound
        """Whether nobody has chosen less than a tenant. What recollect.toml names binds nobody."""

    @property
    def _store(self) -> SessionStore:
        store = self._view.store
        if not isinstance(store, SessionStore):
            raise InputError("store", "keeps no sessions; use a ledger, as in ledger:./memory")
        return store

    def _at(self, session_id: str) -> View:
        """A view of one session, which must be there."""
        view = self._view.at(workspace=_session_id(session_id))
        if not self._store.has_session(view.place):
            raise NotFoundError(f"there is no session {session_id}")
        return view

    @operation("POST /sessions", does="creates")
    def create(
        self,
        user_id: Annotated[str, Doc("Whose session it is.")],
        *,
        session_id: Annotated[str | None, Doc("Its id; made from the day and the user if it is left out.")] = None,
        decay: Annotated[Mapping[str, Any] | None, Doc("`enabled`, `half_life_hours`, `min_decay_factor`.")] = None,
        compaction: Annotated[Mapping[str, Any] | None, Doc("`auto_compact`, `threshold`.")] = None,
        preferences: Annotated[Mapping[str, Any] | None, Doc("`language`, `verbosity`, `custom`.")] = None,
    ) -> SessionMetadata:
        """A new session. Without an id it gets one of the day and the person, such as `sess_20260110_user123`."""
        user = _session_id(user_id, "user_id")
        settings = (
            _settings(decay, SessionDecay, "decay"),
            _settings(compaction, SessionCompaction, "compaction"),
            _settings(preferences, Preferences, "preferences"),
        )
        now = self._view.now()
        wanted = None if session_id is None else _session_id(session_id)
        rules = self._view.preset.secrets
        for field, name in (("user_id", user), ("session_id", wanted or "")):
            screen_name(rules, field, name)
        for field, setting in zip(("decay", "compaction", "preferences"), settings, strict=True):
            screen(rules, field, render(msgspec.to_builtins(setting)))
        for number in range(1, 10_000):
            view = self._view.at(workspace=wanted or _name(user, now, number))
            try:
                return self._store.create_session(view.place, user, now, *settings)
            except ConflictError:
                if wanted is not None:
                    raise
        raise ConflictError(f"there are too many sessions of {user} on this day; give one an id")

    @operation("GET /sessions/{session_id}")
    def load(self, session_id: SessionId) -> SessionMetadata:
        """One session: whose it is, its settings, and counts of its entries."""
        view = self._at(session_id)
        session = self._store.session(view.place)
        assert session is not None
        return _as_seen(view, session)

    @operation("GET /sessions")
    def list(self) -> builtins.list[SessionMetadata]:
        """Every session, the one used last first."""
        views, store = [self._view.at(workspace=name) for name in self._names()], self._store
        sessions = [_as_seen(view, session) for view in views if (session := store.session(view.place))]
        return sorted(sessions, key=lambda session: session.last_accessed, reverse=True)

    def _names(self) -> builtins.list[str]:
        view = self._view
        names = view.workspaces()
        return [name for name in names if name == view.address.workspace] if view.bound - {"tenant"} else names

    @operation("POST /sessions/{session_id}/close", does="changes", asks_model=True)
    def close(self, session_id: SessionId) -> None:
        """Write what was put off, and the snapshots. A later call opens it again."""
        self._store.close_session(self._at(session_id).place)

    @operation("POST /sessions/{session_id}/memories", does="creates")
    def add(
        self,
        session_id: SessionId,
        entry: Annotated[Mapping[str, Any], Doc("`type`, `content` and the other fields of an entry.")],
    ) -> str:
        """Store an entry with `type`, `content`, and what else the document gives it. Returns its id.

        UnsavedWarning with the id where the disk refuses the entry: it is in memory only until it does not.
        """
        return self._add(session_id, [entry])[0]

    @operation("POST /sessions/{session_id}/batch", does="creates")
    def add_many(
        self,
        session_id: SessionId,
        entries: Annotated[Sequence[Mapping[str, Any]], Doc("Entries as `add` takes them.")],
    ) -> builtins.list[str]:
        """Store all of the entries under one lock, or none. Warns as `add` does."""
        return self._add(session_id, entries)

    def _add(self, session_id: str, entries: Sequence[Mapping[str, Any]]) -> builtins.list[str]:
        view = self._at(session_id)
        with view.logging_refusals("remember"):
            items = [_item(entry) for entry in validation.sequence(entries, "entries")]
        records = remember(view, items)
        if unsaved := [record.id for record in records if not record.saved]:
            problem = f"not saved yet: {', '.join(unsaved)}. It is in memory only, until the disk takes it"
            warnings.warn(problem, UnsavedWarning, stacklevel=3)
        return [record.id for record in records]

    @operation("GET /sessions/{session_id}/memories/{memory_id}")
    def get(
        self,
        session_id: SessionId,
        memory_id: EntryId,
    ) -> SessionEntry | None:
        """One entry with its decay factor; None if the session has no such entry."""
        view = self._at(session_id)
        for record in view.get([validation.memory_id(memory_id)]):
            return SessionEntry(*astuple(record), decay_factor=view.decay.factor(record, view.now()))
        return None

    @operation("DELETE /sessions/{session_id}/memories/{memory_id}", does="removes")
    def delete(
        self,
        session_id: SessionId,
        memory_id: EntryId,
        *,
        reason: Reason = None,
    ) -> bool:
        """False if there is no such entry."""
        try:
            return bool(forget(self._at(session_id), Forget(id=memory_id, reason=reason)).count)
        except NotFoundError:
            if not self._store.has_session(Place(self._view.address.tenant, session_id)):
                raise
            return False

    @operation("POST /sessions/{session_id}/query", asks_model=True)
    def query(
        self,
        session_id: SessionId,
        query: Annotated[Query | Mapping[str, Any], Doc("Type, topics, time, importance and references: see `Query`.")],
    ) -> Hits:
        """Entries of a session that meet all conditions of a `Query`. Counted as retrieved."""
        view = self._at(session_id)
        hits = querying([view], _document_query(query))
        view.touch([hit.memory for hit in hits])
        return self._with_damage(hits, [view])

    def _with_damage(self, hits: Hits, views: Sequence[View]) -> Hits:
        """With a report of entries that cannot be read, and so may be missing."""
        if damaged := sum(self._store.damaged_entries(view.place) for view in views):
            hits.report = "; ".join(filter(None, (hits.report, damage_note(damaged))))
        return hits

    @operation("POST /sessions-search", asks_model=True)
    def search(
        self,
        query: Annotated[str | Query | Mapping[str, Any], Doc("Words, or a query as `query` takes it.")],
        *,
        limit: Annotated[int, Doc("The most entries.")] = 10,
    ) -> Hits:
        """The same over all sessions."""
        request = Query(text=query, limit=limit) if isinstance(query, str) else _document_query(query)
        names = self._names()
        for tag in request.tags:
            bare = self._store.without_tag(self._view.address.tenant, tag)
            names = [name for name in names if name not in bare]
        views = [self._view.at(workspace=name) for name in names]
        return self._with_damage(querying(views, request), views) if views else Hits()

    @operation("GET /sessions/{session_id}/by-topic")
    def search_by_topic(
        self,
        session_id: SessionId,
        topic: Annotated[str, Doc("The topic; it stands for those below it too.")],
    ) -> Hits:
        """By tag; a topic stands for those below it too."""
        return self.query(session_id, Query(tags=(validation.tag(topic, "topic"),)))

    @operation("GET /sessions/{session_id}/by-type")
    def search_by_type(
        self,
        session_id: SessionId,
        type: Annotated[MemoryType, Doc("The type of entry.")],
    ) -> Hits:
        """Entries of one type."""
        return self.query(session_id, Query(types=(validation.choice(type, "type", MemoryType),)))

    @operation("GET /sessions/{session_id}/by-time")
    def search_by_time_range(
        self,
        session_id: SessionId,
        start: Annotated[datetime | str, Doc("From this time on.")],
        end: Annotated[datetime | str, Doc("Until before this time.")],
    ) -> Hits:
        """From `start`, which is included, until `end`, which is not."""
        return self.query(session_id, Query(time_range=self._between(start, end)))

    def _between(self, start: datetime | str, end: datetime | str) -> tuple[datetime, datetime]:
        now = self._view.now()
        return point(start, "start", now), point(end, "end", now)

    @operation("DELETE /sessions/{session_id}/by-topic", does="removes")
    def delete_by_topic(
        self,
        session_id: SessionId,
        topic: Annotated[str, Doc("The topic; it stands for those below it too.")],
        *,
        reason: Reason = None,
    ) -> int:
        """Delete the entries with a topic, or with one below it. Returns how many."""
        return self._delete(session_id, reason, tags=(validation.tag(topic, "topic"),))

    def _delete(self, session_id: str, reason: str | None, **conditions: Any) -> int:
        """Of the session itself: what accounts share with other sessions is not its own to delete."""
        view = self._at(session_id)
        own = view.where(state=None, tiers=("workspace", "channel", "conversation"), **conditions)
        ids = [record.id for record in view.store.scan(own, whole=False) if view.owns(record)]
        return forget(view, Forget(id=ids, reason=reason)).count if ids else 0

    @operation("DELETE /sessions/{session_id}/by-time", does="removes")
    def delete_by_time_range(
        self,
        session_id: SessionId,
        start: Annotated[datetime | str, Doc("From this time on.")],
        end: Annotated[datetime | str, Doc("Until before this time.")],
        *,
        reason: Reason = None,
    ) -> int:
        """Delete the entries from `start`, which is included, until `end`, which is not. Returns how many."""
        since, until = self._between(start, end)
        if since > until:
            raise InputError("start", "is after end")
        return self._delete(session_id, reason, since=since, until=until)

    @operation("DELETE /sessions/{session_id}", does="removes")
    def delete_session(
        self,
        session_id: SessionId,
        *,
        reason: Reason = None,
    ) -> int:
        """The whole folder, for good. Returns how many entries it had."""
        return forget(self._at(session_id), Forget(workspace=session_id, reason=reason)).count

    @operation("GET /sessions/{session_id}/export")
    def export(
        self,
        session_id: SessionId,
        format: Annotated[Literal["json", "jsonl"], Doc("One JSON document, or one entry a line.")] = "jsonl",
    ) -> str:
        """All entries in every state, oldest first; as JSON with the session's metadata around them.

        DamageWarning where some cannot be read, and are left out.
        """
        validation.choice(format, "format", Literal["json", "jsonl"])
        view = self._at(session_id)
        if damaged := self._store.damaged_entries(view.place):
            warnings.warn(f"session {session_id}: {damage_note(damaged)}", DamageWarning, stacklevel=2)
        decay, now = view.decay, view.now()
        every = view.where(state=None, tiers=("workspace", "channel", "conversation"))
        entries = [_entry(record, decay, now) for record in view.scan(every)]
        if format == "jsonl":
            out = BytesIO()
            for entry in entries:
                out.write(_encode(entry) + b"\n")
            return out.getvalue().decode()
        whole = {"version": SCHEMA_VERSION, "session": self.load(session_id), "entries": entries}
        return msgspec.json.format(_encode(whole), indent=2).decode()

    @operation("POST /sessions/{session_id}/compact", does="removes", rank="admin")
    def compact(self, session_id: SessionId) -> int:
        """Remove what was deleted and what has decayed, for good. Returns the bytes freed."""
        return schedule.compact(self._at(session_id))

    @operation("POST /sessions/{session_id}/index", does="changes", rank="admin")
    def rebuild_index(self, session_id: SessionId) -> int:
        """Make the index anew from the log. Returns how many entries it knows."""
        return self._store.rebuild(self._at(session_id).place)

    @operation("POST /sessions/{session_id}/migrate", does="changes", rank="admin")
    def migrate(self, session_id: SessionId) -> bool:
        """Rewrite entries of an older schema now, rather than with the next write. False if there are none."""
        return self._store.migrate(self._at(session_id).place)

    @operation("GET /sessions-metrics")
    def metrics(self) -> dict[str, float]:
        """How many and how large, and how long things took since the store was opened (ms, median and p95).

        AccessError from a view that is bound to less than the tenant: they count all sessions.
        """
        if not self._unbound:
            raise AccessError("metrics: they count all sessions, and this view is bound to less")
        return self._store.metrics(self._view.address.tenant)

    @operation("GET /sessions/{session_id}/stats")
    def stats(self, session_id: SessionId) -> SessionStats:
        """Counts of a session's entries, its size, and the lines that cannot be read."""
        view = self._at(session_id)
        metadata = self.load(session_id)
        damage = tuple(view.on_disk.damage(view.place)) if view.on_disk and view.whole else ()
        deleted = self._store.deleted(view.place) if view.whole else 0
        return SessionStats(
            metadata, metadata.total_entries, deleted, damage, metadata.buffered_writes, metadata.total_size_bytes
        )


def _as_seen(view: View, session: SessionMetadata) -> SessionMetadata:
    """A session's metadata, with counts of the entries that this view sees.

    Only a view of the whole session learns what is counted of its files, as with `stats`.
    """
    if view.whole and view.sees_private:
        return session
    every = view.where(state=None, tiers=("workspace", "channel", "conversation"))
    kinds = {kind: number for (kind,), number in view.store.count(every, ("kind",)).items()}
    session = replace(session, total_entries=sum(kinds.values()), statistics=statistics(kinds))
    return session if view.whole else replace(session, **_OF_THE_FILES)


def _session_id(value: Any, field: str = "session_id") -> str:
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    raise InputError(field, "must be 1 to 64 letters, digits or '_'")


def _name(user: str, now: datetime, number: int) -> str:
    begin, end = f"sess_{now:%Y%m%d}_", "" if number == 1 else f"_{number}"
    return f"{begin}{user[: 64 - len(begin) - len(end)]}{end}"


def _settings(values: Mapping[str, Any] | None, into: Any, field: str) -> Any:
    try:
        return msgspec.convert(dict(values or {}), into)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        problem, _, place = str(error).partition(" - at `$")
        raise InputError(f"{field}{place.rstrip('`')}", f"{problem[:1].lower()}{problem[1:]}") from None


def _item(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise InputError("entry", f"must be a dict, not {type(entry).__name__}")
    fields: dict[str, Any] = {str(name): value for name, value in entry.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for name in fields:
        if name not in _ENTRY:
            raise InputError(name[:48], f"is not part of an entry; known: {', '.join(_ENTRY)}")
    if fields.get("type") not in get_args(MemoryType):
        raise InputError("type", f"must be one of {', '.join(get_args(MemoryType))}")
    fields["kind"] = fields.pop("type")
    when = fields.pop("timestamp", None)
    fields["created_at"] = None if when is None else parse_time(when, "timestamp")
    return fields


def _document_query(query: Query | Mapping[str, Any]) -> Query:
    """Also as the document writes it: `tags` with include and exclude, `time_range` with start and end."""
    if isinstance(query, Query) or not isinstance(query, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        return query_from(query)
    fields = dict(query)
    if isinstance(tags := fields.get("tags"), Mapping):
        sorts: dict[str, Any] = {str(name): value for name, value in tags.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        del fields["tags"]
        for name, field in (("include", "tags"), ("any", "any_tags"), ("exclude", "without_tags")):
            fields[field] = sorts.pop(name, ())
        if sorts:
            raise InputError("tags", "may have include, any and exclude")
    if isinstance(period := fields.get("time_range"), Mapping):
        ends: dict[str, Any] = {str(name): value for name, value in period.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        fields["time_range"] = (ends.pop("start", None), ends.pop("end", None))
        if ends:
            raise InputError("time_range", "may have start and end")
    return query_from(fields)


def _entry(record: Record, decay: Decay, now: datetime) -> dict[str, Any]:
    """As the document describes it, with its decay as of now."""
    entry: dict[str, Any] = {
        "id": record.id,
        "session_id": record.address.workspace,
        "timestamp": record.created_at,
        "type": record.kind,
        "content": record.content,
        "importance": record.importance,
        "decay_factor": decay.factor(record, now),
        "tags": record.tags,
        "references": record.references,
        "schema_version": record.schema_version,
    }
    if record.metadata:
        entry["metadata"] = record.metadata
    # Of this very object, so that whoever reads the export can check it, and a ledger can read it.
    return {**entry, "checksum": "sha256:" + hashlib.sha256(_canonical(entry)).hexdigest()}
