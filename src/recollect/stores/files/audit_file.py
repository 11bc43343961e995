"""The audit log of a place and what undo needs, as files beside its memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from recollect.stores.audit import GENESIS, Entry, seal
from recollect.stores.files import files
from recollect.stores.files.files import MISSING, FileIdentity
from recollect.stores.files.fileset import AUDIT, AUDITED, UNDO, FileSet
from recollect.stores.files.lines import Audited, UndoHead, UndoLine, undo_line
from recollect.stores.files.replay import UNREADABLE
from recollect.values.errors import StoreError

_encode = msgspec.json.Encoder().encode
_entry = msgspec.json.Decoder(Entry).decode
_audited = msgspec.json.Decoder(Audited).decode
_undo_head = msgspec.json.Decoder(UndoHead).decode
_TAIL = 4096

Last = tuple[int, str]
"""The number and hash of the last entry."""


class AuditFile:
    """`audit.jsonl` and `undo.jsonl`, each read through a descriptor of its own when it is asked for.

    `counted` tells how many entries a snapshot knows of, in case the last were removed.
    """

    def __init__(self, fileset: FileSet, counted: Callable[[], int]) -> None:
        self._fileset = fileset
        self._counted = counted
        self._cached_last: tuple[FileIdentity | None, Last] = None, (0, GENESIS)
        self._numbers = 0, 0, 0
        """The file, how far it was read for ids, and the highest number among them."""
        self._undo: tuple[FileIdentity | None, dict[int, tuple[int, int]]] = None, {}

    def last(self) -> Last:
        """Of what is in the file."""
        identity = self._fileset.identity(AUDIT)
        cached_identity, last = self._cached_last
        if identity != cached_identity:
            last = self._read_last(identity)
            self._cached_last = identity, last
        return last

    def note_appended(self, identity: FileIdentity, lines: bytes) -> None:
        """These lines were appended to the file just now, which is so since: it need not be read for the last one."""
        self._cached_last = identity, last_of(lines)

    def _read_last(self, identity: FileIdentity) -> Last:
        """From the last line that can be read."""
        if identity == MISSING:  # before the first entry, or because somebody removed it
            return self._counted(), GENESIS
        path = self._fileset.paths[AUDIT]
        for size in (_TAIL, identity.size):  # the last entry is rarely longer than that
            data = files.read_end(path, size)
            for line in reversed(data.splitlines()[1 if len(data) < identity.size else 0 :]):
                try:
                    last = _audited(line)
                except UNREADABLE:
                    continue
                return max(last.seq, self._counted()), last.hash
        return self._counted(), GENESIS

    def highest(self, number: Callable[[str], int]) -> int:
        """The highest number in an id that the log names. Only what was added since the last time is read."""
        identity, (inode, at, best) = self._fileset.identity(AUDIT), self._numbers
        if inode != identity.inode or identity.size < at:
            at = 0
        if identity.size > at:
            data = files.read_part(self._fileset.paths[AUDIT], at, identity.size)
            best = max(best, *map(number, last_changes(data.splitlines())), 0)
        self._numbers = identity.inode, identity.size, best
        return best

    def noted(self) -> int:
        """How many there were when a writer was last closed, for whom there is no other snapshot."""
        try:
            return int(files.read_whole(self._fileset.path(AUDITED)) or 0)
        except (StoreError, ValueError):
            return 0

    def note(self) -> None:
        """On closing. It is no loss if that cannot be written."""
        with suppress(OSError, StoreError):
            if self._fileset.note().began:  # an unfinished write, which the next one takes back with its entries
                return
            if self._fileset.exists() and (written := self.last()[0]) > self.noted():
                files.replace(self._fileset.path(AUDITED), b"%d\n" % written)

    def undo_line(self, seq: int) -> UndoLine | None:
        """By where its line is: whoever asks for all of them must not read the whole file for each."""
        identity = self._fileset.identity(UNDO)
        cached_identity, spans = self._undo
        if identity != cached_identity:
            spans = _spans(files.read_whole(self._fileset.paths[UNDO]))
            self._undo = identity, spans
        if seq not in spans:
            return None
        start, end = spans[seq]
        line = files.read_part(self._fileset.paths[UNDO], start, end)
        if self._fileset.identity(UNDO) != identity:  # written anew meanwhile, so that another line may be there
            self._undo = None, {}
            return self.undo_line(seq)
        return undo_line(line)

    def lines(self, name: str, *more: bytes) -> list[bytes]:
        """Those of the file, and more that are not in it yet."""
        data = files.read_whole(self._fileset.paths[name])
        return [line for line in b"".join((data, *more)).split(b"\n") if line.strip()]


def last_of(lines: bytes) -> Last:
    last = _audited(lines[lines.rfind(b"\n", 0, -1) + 1 :])
    return last.seq, last.hash


def sealed_line(entry: Entry, last: Last) -> tuple[Entry, bytes]:
    entry = seal(entry, last[0] + 1, last[1])
    return entry, _encode(entry) + b"\n"


def entry_of(line: bytes) -> Entry:
    return _entry(line)


def entries(
    lines: Sequence[bytes], contains: Sequence[str], about: str, newest_first: bool, limit: int | None
) -> Iterator[Entry]:
    folded, quoted = [text.casefold() for text in contains], f'"{about}"'.encode() if about else b""
    for line in reversed(lines) if newest_first else lines:
        if limit is not None and limit <= 0:
            return
        if quoted and quoted not in line:
            continue
        try:
            entry = _entry(line)
        except UNREADABLE:
            continue  # missing from the chain, and so reported by whoever checks it
        if about and quoted not in _encode(entry.meta):
            continue
        message = entry.message.casefold()
        if not folded or any(text in message for text in folded):
            limit = limit and limit - 1
            yield entry


def undo_heads(lines: Iterable[bytes]) -> Iterator[tuple[UndoHead, bytes]]:
    for line in lines:
        try:
            yield _undo_head(line), line
        except UNREADABLE:
            continue


def _spans(data: bytes) -> dict[int, tuple[int, int]]:
    """Where the lines of undo are, by the numbers of their entries."""
    spans: dict[int, tuple[int, int]] = {}
    at = 0
    for line in data.split(b"\n"):
        for head, _ in undo_heads([line] if line.strip() else []):
            spans.setdefault(head.seq, (at, at + len(line)))
        at += len(line) + 1
    return spans


class _Changes(msgspec.Struct, frozen=True):
    created: list[str] = []
    restored: list[str] = []
    deleted: list[str] = []
    removed: list[str] = []


class _Changing(msgspec.Struct):
    meta: _Changes = _Changes()


_changing = msgspec.json.Decoder(_Changing).decode


def last_changes(lines: Iterable[bytes]) -> dict[str, bool]:
    """Of each memory that the log names, whether it was stored last (True) or deleted (False)."""
    stored: dict[str, bool] = {}
    for line in lines:
        with suppress(*UNREADABLE):
            meta = _changing(line).meta
            stored |= dict.fromkeys((*meta.created, *meta.restored), True)
            stored |= dict.fromkeys((*meta.deleted, *meta.removed), False)
    return stored


def renumbered(parts: Mapping[str, bytes], last: Last) -> dict[str, bytes]:
    """What was kept in memory, as it must be written after what others have logged meanwhile."""
    logged = [_entry(line) for line in parts.get(AUDIT, b"").splitlines()]
    seq, previous = last
    if not logged or logged[0].seq == seq + 1:
        return dict(parts)
    by = seq + 1 - logged[0].seq
    lines: list[bytes] = []
    for entry in logged:
        new = seal(entry, entry.seq + by, previous)
        previous = new.hash
        lines.append(_encode(new) + b"\n")
    undos = [undo_line(line) for line in parts.get(UNDO, b"").splitlines()]
    moved = b"".join(_encode(msgspec.structs.replace(undo, seq=undo.seq + by)) + b"\n" for undo in undos)
    changed: dict[str, Any] = {AUDIT: b"".join(lines), **({UNDO: moved} if undos else {})}
    return {**parts, **changed}
