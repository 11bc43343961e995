"""The audit log of each place, in the same transactions as its memories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from recollect.stores.audit import Entry, UndoSize, seal
from recollect.stores.port import Before, Place
from recollect.stores.postgres.sessions import Runner
from recollect.stores.postgres.statements import Statement, workspace_of
from recollect.stores.postgres.work import Work
from recollect.stores.shelves import Thing
from recollect.values.errors import CorruptionError
from recollect.values.record import Record, from_micros, to_micros

_encode = msgspec.json.Encoder().encode
_meta = msgspec.json.Decoder(dict[str, Any]).decode
_records = msgspec.json.Decoder(list[Record]).decode
_things = msgspec.json.Decoder(list[Thing]).decode

_PAGE = 500
_APPEND = """INSERT INTO {s}.audit (tenant, workspace, seq, id, at, action, message, folded, actor, meta, hash)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""
_KEEP = "INSERT INTO {s}.undo (tenant, workspace, seq, at, before, things) VALUES (%s, %s, %s, %s, %s, %s)"
_UNDO = "SELECT before, things FROM {s}.undo WHERE tenant = %s AND workspace = %s AND seq = %s"
_UNDOS = "SELECT seq FROM {s}.undo WHERE tenant = %s AND workspace = %s ORDER BY seq"
_SIZES = """SELECT seq, at, octet_length(before) + coalesce(octet_length(things), 0) FROM {s}.undo
    WHERE tenant = %s AND workspace = %s ORDER BY seq"""
_FORGET = "DELETE FROM {s}.undo WHERE tenant = %s AND workspace = %s AND seq = ANY(%s)"
_WRITTEN = "SELECT entries FROM {s}.places WHERE tenant = %s AND workspace = %s"
_FOREVER = 1 << 62


def written(text: str) -> str:
    """A text as a column takes it: none takes NUL."""
    return text.replace("\x01", "\x011").replace("\0", "\x010") if "\0" in text or "\x01" in text else text


def read(text: str) -> str:
    return text.replace("\x010", "\0").replace("\x011", "\x01") if "\x01" in text else text


class AuditTable:
    def __init__(self, sessions: Runner) -> None:
        self._sessions = sessions

    def append(
        self, work: Work, place: Place, entry: Entry, before: Sequence[Record], things: Sequence[Thing]
    ) -> Entry:
        head, where = work.heads[place], (place.tenant, workspace_of(place))
        entry = seal(entry, head.entries + 1, head.sealed)
        at, meta = to_micros(entry.at), _encode(entry.meta).decode()
        message = written(entry.message)
        row = (*where, entry.seq, entry.id, at, entry.action, message, message.casefold())
        statements = [Statement(_APPEND, (*row, entry.actor, meta, entry.hash))]
        work.changed(place, "audit", [(entry.seq,)])
        if before or things:
            kept = _encode(before), _encode(things) if things else None
            statements.append(Statement(_KEEP, (*where, entry.seq, at, *kept)))
            work.changed(place, "undo", [(entry.seq,)])
        work.later(statements)
        work.heads[place] = head._replace(entries=entry.seq, sealed=entry.hash)
        return entry

    def entries(
        self, place: Place, contains: Sequence[str], about: str, newest_first: bool, limit: int | None
    ) -> Iterator[Entry]:
        """Page by page, so that no transaction stays open while the caller works."""
        way, beyond, after = ("DESC", "<", _FOREVER) if newest_first else ("ASC", ">", 0)
        wanted = [written(text).casefold() for text in contains]
        has = " OR ".join(["strpos(folded, %s) > 0"] * len(wanted)) or "TRUE"
        sql = f"""SELECT seq, id, at, action, message, actor, meta, hash FROM {{s}}.audit
            WHERE tenant = %s AND workspace = %s AND seq {beyond} %s AND ({has}) AND (%s = '' OR strpos(meta, %s) > 0)
            ORDER BY seq {way} LIMIT %s"""
        quoted, left = f'"{about}"' if about else "", limit
        where = place.tenant, workspace_of(place)
        while left is None or left > 0:
            size = min(_PAGE, left or _PAGE)
            page = self._sessions.rows(place.tenant, sql, (*where, after, *wanted, quoted, quoted, size))
            for seq, ident, at, action, message, actor, meta, digest in page:
                try:
                    entry = Entry(seq, ident, from_micros(at), action, read(message), actor, _meta(meta), digest)
                except (ValueError, TypeError, OverflowError, msgspec.MsgspecError) as error:
                    raise CorruptionError(f"{place}: audit entry {seq} cannot be read ({error})") from error
                yield entry
            if len(page) < size:
                return
            after = page[-1][0]
            left = left and left - len(page)

    def written(self, place: Place) -> int:
        work = self._sessions.work
        if work is not None and place in work.heads:
            return work.heads[place].entries
        if work is not None and place.workspace is None and place.tenant in work.shared:
            return work.shared[place.tenant]
        rows = self._sessions.rows(place.tenant, _WRITTEN, (place.tenant, workspace_of(place)))
        return rows[0][0] if rows else 0

    def before(self, place: Place, seq: int) -> Before | None:
        rows = self._sessions.rows(place.tenant, _UNDO, (place.tenant, workspace_of(place), seq), binary=True)
        if not rows:
            return None
        records, things = rows[0]
        try:
            return Before(_records(records), _things(things) if things else [])
        except (ValueError, msgspec.MsgspecError) as error:
            raise CorruptionError(f"{place}: what entry {seq} replaced cannot be read ({error})") from error

    def undo_sizes(self, place: Place) -> list[UndoSize]:
        rows = self._sessions.rows(place.tenant, _SIZES, (place.tenant, workspace_of(place)))
        return [UndoSize(seq, from_micros(at), size) for seq, at, size in rows]

    def undos(self, place: Place) -> Iterator[tuple[int, Before]]:
        rows = self._sessions.rows(place.tenant, _UNDOS, (place.tenant, workspace_of(place)))
        for (seq,) in rows:
            if (replaced := self.before(place, seq)) is not None:
                yield seq, replaced

    def forget_before(self, work: Work, place: Place, seqs: Sequence[int] | None) -> int:
        where = place.tenant, workspace_of(place)
        rows = work.execute(_UNDOS, where).fetchall()
        dropped = [seq for (seq,) in rows if seqs is None or seq in set(seqs)]
        if dropped:
            work.execute(_FORGET, (*where, dropped))
            work.changed(place, "undo", [(seq,) for seq in dropped])
        return len(dropped)
