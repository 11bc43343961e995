"""What a client may read of a memory without a tool: the latest memories, one of them, and sessions."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import msgspec

from recollect.memory import Memory
from recollect.values.errors import InputError, NotFoundError
from recollect.values.record import Record, utc_now

SCHEME = "recollect://"
MIME_TYPE = "application/json"
LATEST = 100
COUNTED = 10_000
"""Conversations are counted over so many of the latest memories."""
_UNTOLD = ("embedding", "embedding_model", "checksum", "schema_version")


def read(memory: Memory, uri: str) -> bytes:
    """The JSON behind a URI. It is read with the memory's own verbs, so that its view cannot be left."""
    collection, slash, ident = uri.removeprefix(SCHEME).partition("/")
    readers = _ONE if slash else _ALL
    if not uri.startswith(SCHEME) or collection not in readers:
        raise NotFoundError(f"there is no resource {uri[:200]!r}")
    return msgspec.json.encode(readers[collection](memory, unquote(ident)))


def _memories(memory: Memory, _: str) -> Any:
    return {"memories": _documents(memory.list(limit=LATEST))}


def _memory(memory: Memory, ident: str) -> Any:
    return _document(memory.get(ident), utc_now())


def _sessions(memory: Memory, _: str) -> Any:
    if (sessions := _ledger_sessions(memory)) is not None:
        return {"sessions": sessions}
    conversations = [record.address.conversation for record in memory.list(limit=COUNTED)]
    counts = Counter(name for name in conversations if name is not None)  # in the order of the newest
    return {"sessions": [{"session_id": name, "memories": number} for name, number in counts.items()]}


def _session(memory: Memory, ident: str) -> Any:
    if _ledger_sessions(memory) is not None:
        about = memory.sessions.load(ident)
        entries = memory.at(workspace=ident).list(limit=LATEST)
        return {"session": about, "memories": _documents(entries)}
    entries = memory.list(conversation=ident, limit=LATEST)
    if not entries:
        raise NotFoundError(f"there is no conversation {ident} that this view can see")
    return {"session": {"session_id": ident}, "memories": _documents(entries)}


_ALL = {"memories": _memories, "sessions": _sessions}
_ONE = {"memories": _memory, "sessions": _session}


def _ledger_sessions(memory: Memory) -> Any:
    """The sessions of a store that keeps such; None where a conversation is the nearest thing."""
    try:
        return memory.sessions.list()
    except InputError:
        return None


def _documents(records: list[Record]) -> list[dict[str, Any]]:
    now = utc_now()
    return [_document(record, now) for record in records]


def _document(record: Record, now: datetime) -> dict[str, Any]:
    """A memory as JSON, without what only machinery needs."""
    fields = msgspec.structs.asdict(record)
    return {name: value for name, value in fields.items() if name not in _UNTOLD} | {"state": record.state(now)}
