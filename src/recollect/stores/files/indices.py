"""`indices/`: what all sessions of a ledger hold, for people and for searches across sessions.

Each session's part says which bytes of its files it is true of. A part that is behind is not trusted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime

import msgspec

from recollect.stores.files import files

_FOLDER, _GLOBAL, _TOPICS = "indices", "global_index.json", "topic_index.json"
_VERSION = 1


class SessionPart(msgspec.Struct):
    user_id: str | None
    entries: int
    size_bytes: int
    first: datetime | None
    last: datetime | None
    types: dict[str, int]
    topics: dict[str, int]
    covers: dict[str, int]


class _Global(msgspec.Struct):
    version: int = _VERSION
    last_updated: datetime | None = None
    sessions: dict[str, SessionPart] = {}


class _Topics(msgspec.Struct):
    version: int
    last_updated: datetime
    topics: dict[str, dict[str, int]]


def _read(root: str) -> _Global:
    try:
        with open(os.path.join(root, _FOLDER, _GLOBAL), "rb") as file:
            found = msgspec.json.decode(file.read(), type=_Global)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return _Global()
    return found if found.version == _VERSION else _Global()


def update(root: str, changed: Mapping[str, SessionPart | None], now: datetime) -> None:
    """Put new parts in place of old ones; None for a session that is gone. Raises OSError."""
    known = _read(root)
    for name, part in changed.items():
        known.sessions.pop(name, None)
        if part is not None:
            known.sessions[name] = part
    known.last_updated = now
    topics: dict[str, dict[str, int]] = {}
    for name, part in known.sessions.items():
        for topic, count in part.topics.items():
            topics.setdefault(topic, {})[name] = count
    folder = os.path.join(root, _FOLDER)
    files.make_folder(folder)
    files.replace(os.path.join(folder, _GLOBAL), msgspec.json.encode(known) + b"\n")
    by_topic = _Topics(_VERSION, known.last_updated, topics)
    files.replace(os.path.join(folder, _TOPICS), msgspec.json.encode(by_topic) + b"\n")


def without(root: str, tag: str, sizes: Mapping[str, Mapping[str, int]]) -> set[str]:
    """Of the sessions whose files have these sizes, those that have no memory with the tag or one below it."""
    known = _read(root).sessions
    return {
        name
        for name, now in sizes.items()
        if (part := known.get(name)) is not None
        and part.covers == now
        and not any(topic == tag or topic.startswith(tag + ".") for topic in part.topics)
    }
