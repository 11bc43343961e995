"""`indices/`: what all sessions of a ledger hold, for people and for searches across sessions.

Each session's part says which bytes of its files it is true of. A part that is behind is not trusted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from recollect.stores.files import files
from recollect.stores.files.lock import Lock, Patience

_FOLDER, _GLOBAL, _TOPICS, _LOCK = "indices", "global_index.json", "topic_index.json", "lock"
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
            stored = msgspec.json.decode(file.read(), type=_Global)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return _Global()
    return stored if stored.version == _VERSION else _Global()


Sizes = Callable[[str], Mapping[str, int]]
"""The sizes that the files of a session have now, by their names."""


def update(
    root: str,
    changed: Mapping[str, SessionPart | None],
    now: datetime,
    sizes: Sizes,
    index_size: Callable[[str], int],
    patience: Patience,
) -> None:
    """Put new parts in place of old ones; None for a session that is gone. Raises OSError, or StoreError.

    Under a lock of its own, because every process of the folder rewrites these files. Two processes that wrote to the
    same session may come in any order: a part that is true of the files as they are now is not replaced by an older
    one. If neither is true of them, whoever has written to the session since is still to come.
    """
    folder = os.path.join(root, _FOLDER)
    files.make_folder(folder)
    lock = Lock(os.path.join(folder, _LOCK), patience)
    lock.acquire("indices")
    try:
        _update(root, changed, now, sizes, index_size)
    finally:
        lock.release()


def _update(
    root: str,
    changed: Mapping[str, SessionPart | None],
    now: datetime,
    sizes: Sizes,
    index_size: Callable[[str], int],
) -> None:
    index = _read(root)
    for name, part in changed.items():
        old = index.sessions.get(name)
        if part is not None and old is not None and old.covers == sizes(name) != part.covers:
            continue
        index.sessions.pop(name, None)
        if part is not None:
            # index.json may have been written by another process since: its length changes with its time and checksum.
            used = sum(part.covers.values()) + index_size(name)
            index.sessions[name] = msgspec.structs.replace(part, size_bytes=used)
    index.last_updated = now
    topics: dict[str, dict[str, int]] = {}
    for name, part in index.sessions.items():
        for topic, count in part.topics.items():
            topics.setdefault(topic, {})[name] = count
    folder, by_topic = os.path.join(root, _FOLDER), _Topics(_VERSION, index.last_updated, topics)
    # Not durable: a file that a power cut has damaged is written anew.
    files.replace(os.path.join(folder, _GLOBAL), msgspec.json.encode(index) + b"\n", durable=False)
    files.replace(os.path.join(folder, _TOPICS), msgspec.json.encode(by_topic) + b"\n", durable=False)


def out_of_date(root: str, sizes: Mapping[str, Mapping[str, int]]) -> tuple[list[str], list[str]]:
    """Sessions whose files have other sizes than the index says, and sessions of the index that there are not."""
    sessions = _read(root).sessions
    behind = [name for name, now in sizes.items() if (part := sessions.get(name)) is None or part.covers != now]
    return behind, [name for name in sessions if name not in sizes]


def without(root: str, tag: str, sizes: Mapping[str, Mapping[str, int]]) -> set[str]:
    """Of the sessions whose files have these sizes, those that have no memory with the tag or one below it."""
    sessions = _read(root).sessions
    return {
        name
        for name, now in sizes.items()
        if (part := sessions.get(name)) is not None
        and part.covers == now
        and not any(topic == tag or topic.startswith(tag + ".") for topic in part.topics)
    }
