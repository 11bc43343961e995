"""Audit entries, each sealed with the hash of the one before it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

_canonical = msgspec.json.Encoder(order="sorted")

GENESIS = "0" * 64


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the audit log. `meta` never holds the content of a memory, nor what was refused."""

    seq: int
    id: str
    at: datetime
    action: str
    message: str
    actor: str | None
    meta: dict[str, Any]
    hash: str = ""


def seal(entry: Entry, seq: int, previous: str) -> Entry:
    """The entry with its number and the hash that binds it to its place in the log."""
    body = (previous, seq, entry.id, entry.at, entry.action, entry.message, entry.actor, entry.meta)
    return msgspec.structs.replace(entry, seq=seq, hash=hashlib.sha256(_canonical.encode(body)).hexdigest())


TEXTS = "audit_texts"
"""The shelf of what people wrote into the log, by the ids of its entries."""


class Text(msgspec.Struct, frozen=True):
    """Words that a person gave for an entry. They stand beside the log, so that they can be erased.

    The log has the hash. It is salted: who guesses the words cannot tell from the hash of erased ones whether they
    were these.
    """

    message: str
    details: dict[str, Any] | None
    salt: str

    @classmethod
    def of(cls, message: str, details: dict[str, Any] | None = None) -> Text:
        return cls(message, details, secrets.token_hex(16))

    @property
    def hash(self) -> str:
        return hashlib.sha256(_canonical.encode(self)).hexdigest()

    def body(self, ids: Iterable[str]) -> dict[str, Any]:
        """As it stands on the shelf. `ids` are those of the memories that the entry names."""
        return {**msgspec.to_builtins(self), "ids": list(ids)}


_request: ContextVar[str | None] = ContextVar("recollect_request", default=None)


@contextmanager
def on_request(ident: str) -> Generator[None]:
    """Every audit entry that this thread writes in the block names the request, in the transaction of its change."""
    token = _request.set(ident)
    try:
        yield
    finally:
        _request.reset(token)


def request_meta() -> Mapping[str, str]:
    """What an audit entry says of the request that it is written for."""
    ident = _request.get()
    return {} if ident is None else {"request": ident}


class UndoSize(NamedTuple):
    """What it takes to undo one entry."""

    seq: int
    at: datetime
    bytes: int


class Break(msgspec.Struct, frozen=True):
    """A place where the log is not what was written."""

    seq: int
    problem: str


def check(entries: Iterable[Entry], written: int, texts: Mapping[str, str] | None = None) -> list[Break]:
    """Every edited, removed or reordered entry. `written` is how many the store has ever appended.

    `texts` are the hashes of what stands beside entries, by their ids. What does not was erased.
    """
    breaks: list[Break] = []
    previous, expected = GENESIS, 1
    for entry in entries:
        if entry.seq != expected:
            missing = f"entry {expected}" if entry.seq == expected + 1 else f"entries {expected} to {entry.seq - 1}"
            breaks.append(Break(entry.seq, f"{missing} missing"))
        elif seal(entry, entry.seq, previous).hash != entry.hash:
            breaks.append(Break(entry.seq, f"entry {entry.seq} does not match its hash: edited or moved"))
        elif texts and texts.get(entry.id) not in (None, entry.meta.get("text")):
            breaks.append(Break(entry.seq, f"the text beside entry {entry.seq} does not match its hash: edited"))
        previous, expected = entry.hash, entry.seq + 1
    if expected <= written:
        breaks.append(Break(expected, f"entries {expected} to {written} missing at the end"))
    return breaks
