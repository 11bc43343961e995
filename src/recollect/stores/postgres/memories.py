"""The memories of a place, in rows of tables that all tenants share."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

import msgspec

from recollect.stores.fields import FIELDS
from recollect.stores.integrity import log_damage
from recollect.stores.port import After, By, Damage, Order, Place
from recollect.stores.postgres import words
from recollect.stores.postgres.sessions import Runner
from recollect.stores.postgres.statements import rows_of, workspace_of
from recollect.stores.postgres.tables import DIALECT
from recollect.stores.postgres.work import Work
from recollect.stores.rows import (
    COLUMNS,
    GROUPS,
    ORDERS,
    UNREADABLE,
    Edge,
    behind,
    condition,
    edges,
    text_key,
    to_changes,
    to_record,
    to_values,
)
from recollect.stores.scans import merged
from recollect.stores.tables.engine import Rows, Statement
from recollect.stores.touches import Touched, Touches
from recollect.text.speakers import HEAD
from recollect.text.speakers import speaker as named_speaker
from recollect.values.errors import ConflictError, NotFoundError, RecollectError
from recollect.values.filters import Filter
from recollect.values.record import Record, to_micros

_PAGE = 500
_AT_ONCE = 250
"""Memories that are sent together."""
_SOON = 0.25
"""Seconds that what can be made up for waits for a writer."""

_BESIDE = ("tags", "refs", "derived_from", "metadata", "checksum", "schema_version", "text", "data")
"""Columns of the second table."""
_NARROW = [name for name in COLUMNS if name not in _BESIDE]
_narrow, _beside = (itemgetter(*map(COLUMNS.index, names)) for names in (_NARROW, _BESIDE))
_SELECT = ", ".join(f"c.{name}" if name in _BESIDE else f"m.{name}" for name in COLUMNS)
_LEAN = _SELECT.replace("c.text, c.data", "NULL, NULL")
_JOINED = "FROM {s}.memories m JOIN {s}.contents c USING (tenant, workspace, seq)"
_VECTORS = "LEFT JOIN {s}.embeddings e USING (tenant, workspace, seq)"
_WITH_VECTOR = f"""SELECT {_SELECT}, e.vector, e.model {_JOINED} {_VECTORS}
    WHERE m.tenant = %s AND m.workspace = %s AND"""
_GET = f"{_WITH_VECTOR} m.id = %s"
_GET_SOME = f"{_WITH_VECTOR} m.id = ANY(%s)"
_NAMED = f"{_WITH_VECTOR} m.text_key = ANY(%s) AND m.superseded_by IS NULL AND m.archived_at IS NULL ORDER BY m.seq"

_KEY = ("tenant", "workspace", "seq")
_MEMORY = (*_KEY, *_NARROW, "length", "speaker", "named", "text_key", "embedded")
_CONTENT = (*_KEY, *_BESIDE)
_TYPES = {
    **dict.fromkeys(
        ("seq", "created_at", "accessed_at", "access_count", "expires_at", "archived_at", "text_key"), "bigint"
    ),
    "importance": "double precision",
    "length": "integer",
    "schema_version": "integer",
    "part": "integer",
    "words": "tsvector",
    "v": "{v}.halfvec",
}
_CHANGED = [field.sql for field in FIELDS if field.changes]
_CHANGED_HERE = [name for name in _CHANGED if name not in _BESIDE]
_CHANGED_BESIDE = [name for name in _CHANGED if name in _BESIDE]
_GIVEN = [*_CHANGED, "id"]
_GROUPS: dict[By, str] = {
    **GROUPS,
    "speaker": "m.speaker",
    "embedded": "CASE WHEN m.embedded IS NULL THEN 'no' ELSE 'yes' END",
}
_KEPT_TABLES = ("contents", "tags", "embeddings", "search")
_encode = msgspec.json.Encoder().encode


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {{s}}.{table} ({', '.join(columns)}) VALUES ({', '.join(_value(name) for name in columns)})"


def _value(name: str) -> str:
    return f"%s::{_TYPES[name]}" if name in ("words", "v") else "%s"


def _insert_many(table: str, columns: Sequence[str]) -> str:
    """Into one place, from one JSON text: much quicker to write than as many values."""
    given = ", ".join(f"{name} {_TYPES.get(name, 'text')}" for name in columns)
    taken = ", ".join("decode(vector, 'hex')" if name == "vector" else name for name in columns)
    return f"""INSERT INTO {{s}}.{table} (tenant, workspace, {", ".join(columns)})
    SELECT %s, %s, {taken} FROM json_to_recordset(%s::json) AS x ({given})"""


_ONCE = " ON CONFLICT (tenant, workspace, id) DO NOTHING RETURNING id"
_EMBEDDING = (*_KEY, "model", "vector")
_VECTOR = (*_KEY, "model", "v")
_SEARCH = (*_KEY, "part", "words")
_TAGGED = (*_KEY, "tag")


class Memories:
    """Also what was retrieved but not written yet, by place."""

    def __init__(self, sessions: Runner) -> None:
        self._sessions = sessions
        self._lock = threading.Lock()
        self._touches: dict[Place, Touches] = {}

    def after_fork(self) -> None:
        """The retrievals that the parent counted are its own to write."""
        self._lock = threading.Lock()
        self._touches = {}

    # Writing

    def put(self, work: Work, place: Place, records: Sequence[Record]) -> None:
        if not records:
            return
        head = work.heads[place]
        numbered = list(enumerate(records, head.memories + 1))
        work.changed(place, "memory", [(seq,) for seq, _ in numbered])
        added = {ident for cursor in work.run(self._inserts(work, place, numbered)) for (ident,) in rows_of(cursor)}
        if len(added) < len(records):
            self._take_out(work, place, [seq for seq, _ in numbered])
            first = next((record.id for record in records if record.id not in added), records[0].id)
            raise ConflictError(f"a memory with the id {first} exists already")
        work.heads[place] = head._replace(memories=head.memories + len(records))
        self._listen(work, place, records)

    def _inserts(self, work: Work, place: Place, numbered: Sequence[tuple[int, Record]]) -> Iterator[Statement]:
        """Some memories at a time: the server writes them while the next are made ready. One tells which are new."""
        compared = work.sessions.facts.vectors
        for at in range(0, len(numbered), _AT_ONCE):
            rows = [_Rows(place, seq, record) for seq, record in numbered[at : at + _AT_ONCE]]
            yield from _inserted("memories", _MEMORY, [row.memory for row in rows], _ONCE)
            yield from _inserted("search", _SEARCH, [words for row in rows for words in row.words])
            yield from _inserted("contents", _CONTENT, [row.content for row in rows])
            yield from _inserted("tags", _TAGGED, [tag for row in rows for tag in row.tags])
            yield from _inserted("embeddings", _EMBEDDING, [row.embedding for row in rows if row.embedding])
            yield from _inserted("vectors", _VECTOR, [row.vector for row in rows if row.vector and compared])

    def _listen(self, work: Work, place: Place, records: Sequence[Record]) -> None:
        """A name before a colon is a speaker's once a second turn of the conversation begins with it.

        Turns that not everyone sees prove nothing to others: each address counts its own.
        """
        talks = {r.address.conversation for r in records if r.address.conversation is not None and _named(r)}
        for talk in talks:
            proven = work.execute(_PROVEN, (place.tenant, workspace_of(place), talk) * 2)
            work.changed(place, "memory", proven.fetchall())

    def update(self, work: Work, place: Place, records: Sequence[Record]) -> None:
        where = place.tenant, workspace_of(place)
        records = list({record.id: record for record in records}.values())
        rows = [dict(zip(_GIVEN, to_changes(record), strict=True)) for record in records]
        tags = [(*where, record.id, tag) for record in records for tag in _and_above(record.tags)]
        encoded = _json(rows)
        done = work.run(
            [
                Statement(_UPDATE, (encoded, *where)),
                Statement(_UPDATE_BESIDE, (encoded, *where)),
                Statement(_UNTAG, (*where, *where, [record.id for record in records])),
                *(
                    [Statement(_TAG_AGAIN, (_json([dict(zip(_TAG_KEY, tag, strict=True)) for tag in tags]), *where))]
                    if tags
                    else ()
                ),
            ]
        )
        known = dict(done[0].fetchall())
        work.changed(place, "memory", [(seq,) for seq in known.values()])
        for record in records:
            if record.id not in known:
                raise _missing(record.id)

    def delete(self, work: Work, place: Place, ids: Sequence[str]) -> None:
        ids = list(dict.fromkeys(ids))
        where = place.tenant, workspace_of(place)
        rows = work.execute(_DELETE, (*where, ids)).fetchall()
        gone: dict[str, int] = {ident: seq for ident, seq, _, _ in rows}
        for ident in ids:
            if ident not in gone:
                raise _missing(ident)
        self._take_out(work, place, list(gone.values()), ("memories",))
        # Of two turns that proved a speaker one may be left, which proves nothing.
        for talk in {talk for _, _, talk, name in rows if talk is not None and name is not None}:
            work.changed(place, "memory", work.execute(_UNPROVEN, (*where, talk) * 2).fetchall())
        self.touches(place).drop(ids)

    def _take_out(self, work: Work, place: Place, seqs: Sequence[int], but: Sequence[str] = ()) -> None:
        where = place.tenant, workspace_of(place), list(seqs)
        work.changed(place, "memory", [(seq,) for seq in seqs])
        work.run(
            [
                Statement(f"DELETE FROM {{s}}.{table} WHERE tenant = %s AND workspace = %s AND seq = ANY(%s)", where)
                for table in tables(work)
                if table not in but
            ]
        )

    def embed(self, work: Work, place: Place, model: str, vectors: Mapping[str, bytes]) -> None:
        where = place.tenant, workspace_of(place)
        rows = work.execute(_SEQS, (*where, sorted(vectors))).fetchall()
        if not rows:
            return
        seqs = [seq for _, seq in rows]
        self._take_out(work, place, seqs, [table for table in tables(work) if table not in ("embeddings", "vectors")])
        blobs = [(seq, vectors[ident]) for ident, seq in rows]
        known = [{"seq": seq, "embedded": embedded_as(model, blob)} for seq, blob in blobs]
        statements = [Statement(_EMBEDDED, (_json(known), *where))]
        given = [(*where, seq, model, blob) for seq, blob in blobs]
        statements += _inserted("embeddings", _EMBEDDING, given)
        if work.sessions.facts.vectors:
            near = [(*where, seq, embedded_as(model, blob), halves(blob)) for seq, blob in blobs if fits(blob)]
            statements += _inserted("vectors", _VECTOR, near)
        work.run(statements)

    # Reading

    def get(self, place: Place, ids: Sequence[str]) -> list[Record]:
        if not ids:
            return []
        where = place.tenant, workspace_of(place)
        one = len(ids) == 1
        sql, wanted = (_GET, ids[0]) if one else (_GET_SOME, list(dict.fromkeys(ids)))
        return self._records(place, self._sessions.rows(place.tenant, sql, (*where, wanted), binary=True))

    def with_texts(self, place: Place, texts: Sequence[str]) -> list[Record]:
        values = place.tenant, workspace_of(place), [text_key(text) for text in texts]
        wanted = set(texts)
        found = self._records(place, self._sessions.rows(place.tenant, _NAMED, values, binary=True))
        return [record for record in found if record.text in wanted]

    def _records(self, place: Place, rows: Rows) -> list[Record]:
        touches = self._touches.get(place)
        records: list[Record] = []
        for row in rows:
            try:
                records.append(to_record(place, row))
            except UNREADABLE as error:
                log_damage(place, f"memory {row[0]}", f"cannot be read: {error}")
        return [touches.onto(record) for record in records] if touches else records

    def scan(
        self, where: Filter, order: Order, after: After | None, limit: int | None, whole: bool
    ) -> Iterator[Record]:
        places = Place.seen_by(where)
        seqs = [None if after is None else self._seq(place, after.id) for place in places]
        begins = zip(places, edges(seqs, after), strict=True)
        streams = [self._scan(place, where, order, edge, limit, whole) for place, edge in begins]
        return merged(streams, order, limit)

    def _seq(self, place: Place, ident: str) -> int | None:
        rows = self._sessions.rows(place.tenant, _SEQS, (place.tenant, workspace_of(place), [ident]))
        return rows[0][1] if rows else None

    def _scan(
        self, place: Place, where: Filter, order: Order, edge: Edge | None, limit: int | None, whole: bool
    ) -> Iterator[Record]:
        """Page by page, so that no transaction stays open while the caller works."""
        clause, values = condition(where, DIALECT)
        key, beyond, way = ORDERS[order]
        fields = key.replace("m.", "").split(", ")
        columns = f"{_SELECT}, e.vector, e.model" if whole else f"{_LEAN}, NULL::bytea, NULL"
        vectors = _VECTORS if whole else ""
        sql = f"""SELECT {key}, {columns} {_JOINED} {vectors} WHERE m.tenant = %s AND m.workspace = %s
            AND ({key}) {beyond} ({", ".join(["%s"] * len(fields))}) AND {clause} ORDER BY {way} LIMIT %s"""
        begin, left = behind(fields, order, edge), limit
        while left is None or left > 0:
            size = min(_PAGE, left or _PAGE)
            here = place.tenant, workspace_of(place)
            page = self._sessions.rows(place.tenant, sql, (*here, *begin, *values, size), binary=True)
            yield from self._records(place, [row[len(fields) :] for row in page])
            if len(page) < size:
                return
            begin = page[-1][: len(fields)]
            left = left and left - len(page)

    def count(self, where: Filter, by: Sequence[By]) -> dict[tuple[str, ...], int]:
        clause, values = condition(where, DIALECT)
        fields = [_GROUPS[field].format(now=to_micros(where.now)) for field in by]
        grouped = f" GROUP BY {', '.join(str(n + 1) for n in range(len(fields)))}" if fields else ""
        columns = "".join(f"{field}, " for field in fields)
        places = Place.seen_by(where)
        if not places:
            return {}
        names = [workspace_of(place) for place in places]
        sql = f"""SELECT {columns}count(*) FROM {{s}}.memories m
            WHERE m.tenant = %s AND m.workspace = ANY(%s) AND {clause}{grouped}"""
        rows = self._sessions.rows(places[0].tenant, sql, (places[0].tenant, names, *values))
        return {row[:-1]: row[-1] for row in rows if row[-1]}

    def ids_like(self, place: Place, part: str, limit: int) -> list[str]:
        values = place.tenant, workspace_of(place), len(part), part, len(part), part, part, limit
        return [ident for (ident,) in self._sessions.rows(place.tenant, _IDS_LIKE, values)]

    def lacking(self, place: Place, model: str, dimensions: int, limit: int) -> list[str]:
        known = f"{model}:{dimensions}"
        where = place.tenant, workspace_of(place)
        rows = self._sessions.rows(place.tenant, _LACKING, (*where, known, *where, known, *where, min(limit, 1 << 62)))
        return [ident for (ident,) in rows]

    def damage(self, place: Place) -> list[Damage]:
        """Rows without those that belong to them, as after a restore of some tables only."""
        where = place.tenant, workspace_of(place)
        asked = [Statement(sql, where) for sql in (_UNPLACED, _WITHOUT_CONTENT, _WITHOUT_WORDS)]
        unplaced, lost, unindexed = self._sessions.read(place.tenant, asked)
        found = [Damage(f"{place.tenant}/{workspace_of(place)}", "has memories, but no row in places")] * len(unplaced)
        found += [Damage(ident, "has lost its content: its row in contents is missing") for (ident,) in lost]
        return found + [Damage(ident, "is missing from the text index") for (ident,) in unindexed]

    # Retrievals

    def touches(self, place: Place) -> Touches:
        with self._lock:
            return self._touches.setdefault(place, Touches())

    def touch(self, place: Place, ids: Sequence[str], at: datetime) -> None:
        if self.touches(place).add(ids, at):
            self.settle(place)

    def write_touches(self, work: Work, place: Place) -> Mapping[str, Touched]:
        """Those that wait, at the beginning of a transaction. If they cannot be written, they wait further."""
        touches = self._touches.get(place)
        taken: Mapping[str, Touched] = touches.take() if touches else {}
        if taken and touches is not None:
            try:
                self._write_counts(work, place, taken)
            except BaseException:
                touches.put_back(taken)
                raise
        return taken

    def _write_counts(self, work: Work, place: Place, taken: Mapping[str, Touched]) -> None:
        rows = [{"id": i, "times": taken[i].times, "at": to_micros(taken[i].at)} for i in sorted(taken)]
        work.become(place.tenant)
        counted = work.execute(_TOUCH, (_json(rows), place.tenant, workspace_of(place)))
        work.changed(place, "memory", counted.fetchall())

    def settle(self, place: Place) -> None:
        """Write them now. What cannot be written waits for the next time: no recall may fail by that."""
        if self._sessions.work is not None or not self._touches.get(place):
            return
        touches = self.touches(place)
        taken: Mapping[str, Touched] = {}
        try:
            with self._sessions.writing((place,), seconds=_SOON) as work:
                taken = self.write_touches(work, place)
        except RecollectError:
            touches.put_back(taken)

    def settle_all(self) -> bool:
        """False if some could not be written."""
        for place in list(self._touches):
            self.settle(place)
        return not any(self._touches.values())


def tables(work: Work) -> list[str]:
    """Those that a memory has rows in, on the server of a transaction."""
    return ["memories", *_KEPT_TABLES, *(["vectors"] if work.sessions.facts.vectors else [])]


def _inserted(table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], end: str = "") -> list[Statement]:
    if not rows:
        return []
    if len(rows) == 1:
        return [Statement(_insert(table, columns) + end, rows[0])]
    if "vector" in columns:
        rows = [(*row[:-1], row[-1].hex()) for row in rows]
    tenant, workspace, *values = zip(*rows, strict=True)
    filled = [pair for pair in zip(columns[2:], values, strict=True) if pair[1].count(None) < len(rows)]
    names = [name for name, _ in filled]
    given = [dict(zip(names, row, strict=True)) for row in zip(*(column for _, column in filled), strict=True)]
    return [Statement(_insert_many(table, names) + end, (tenant[0], workspace[0], _json(given)))]


def _json(rows: Sequence[Mapping[str, Any]]) -> str:
    return _encode(rows).decode()


class _Rows:
    """What is written of one memory."""

    __slots__ = ("content", "embedding", "id", "memory", "seq", "tags", "vector", "words")

    def __init__(self, place: Place, seq: int, record: Record) -> None:
        where, values = (place.tenant, workspace_of(place), seq), to_values(record)
        text: str = values[-2]
        blob = record.embedding
        if "\0" in text:  # PostgreSQL takes no NUL in a text: the whole of it is in the JSON then
            values = (*values[:-2], text.replace("\0", "\ufffd"), values[-1] or _encode(record.content).decode())
        known = None if blob is None else embedded_as(record.embedding_model or "", blob)
        key = text_key(text) if record.address.conversation is None else None
        self.seq, self.id = seq, record.id
        self.memory = (*where, *_narrow(values), len(text), _said(record), _named(record), key, known)
        self.content = (*where, *_beside(values))
        self.words = [(*where, part, made) for part, made in enumerate(words.vectors(place, text))]
        self.tags = [(*where, tag) for tag in _and_above(record.tags)] if record.tags else []
        self.embedding = None if blob is None else (*where, record.embedding_model, blob)
        self.vector = (*where, known, halves(blob)) if blob is not None and fits(blob) else None


def _said(record: Record) -> str:
    """Who said it for certain; else the role."""
    given = record.metadata.get("speaker")
    if isinstance(given, str) and (told := " ".join(given.lower().split())):
        return told.replace("\0", "")
    return record.role or ""


def _named(record: Record) -> str | None:
    """The name before a colon in a turn, unless it is known who said it."""
    if record.address.conversation is None or isinstance(record.metadata.get("speaker"), str):
        return None
    head = record.text[:HEAD]
    return named_speaker(head) if ": " in head or "：" in head else None


def _and_above(tags: Sequence[str]) -> list[str]:
    """The tags and all that they stand below."""
    found = [tag[:at] for tag in tags for at, char in enumerate(tag) if char == "." and at]
    return list(dict.fromkeys([*tags, *found]))


def embedded_as(model: str, blob: bytes) -> str:
    return f"{model}:{len(blob) // 4}"


def fits(blob: bytes) -> bool:
    return len(blob) <= 4 * 16_000


def halves(blob: bytes) -> str:
    """A vector for comparing: normalised, as pgvector reads it."""
    import numpy as np

    vector = np.frombuffer(blob, "<f4").astype(np.float64)
    norm = float(np.sqrt(vector @ vector)) or 1.0
    return "[" + ",".join(map(repr, (vector / norm).astype(np.float16).tolist())) + "]"


def _missing(ident: str) -> NotFoundError:
    return NotFoundError(f"there is no memory {ident}")


_SEQS = "SELECT id, seq FROM {s}.memories WHERE tenant = %s AND workspace = %s AND id = ANY(%s)"
_IDS_LIKE = """SELECT id FROM {s}.memories WHERE tenant = %s AND workspace = %s
    AND (left(id, %s) = %s OR right(id, %s) = %s) ORDER BY id <> %s, id LIMIT %s"""
_DELETE = """DELETE FROM {s}.memories WHERE tenant = %s AND workspace = %s AND id = ANY(%s)
    RETURNING id, seq, conversation, named"""
_SETS = {name: f"{name} = x.{name}" for name in _CHANGED}
_GIVEN_TYPES = ", ".join(f"{name} {_TYPES.get(name, 'text')}" for name in _GIVEN)
_UPDATE = f"""UPDATE {{s}}.memories m SET {", ".join(_SETS[name] for name in _CHANGED_HERE)}
    FROM json_to_recordset(%s::json) AS x ({_GIVEN_TYPES})
    WHERE m.tenant = %s AND m.workspace = %s AND m.id = x.id RETURNING m.id, m.seq"""
_UPDATE_BESIDE = f"""UPDATE {{s}}.contents c SET {", ".join(_SETS[name] for name in _CHANGED_BESIDE)}
    FROM json_to_recordset(%s::json) AS x ({_GIVEN_TYPES}), {{s}}.memories m
    WHERE m.tenant = %s AND m.workspace = %s AND m.id = x.id
    AND c.tenant = m.tenant AND c.workspace = m.workspace AND c.seq = m.seq"""
_UNTAG = """DELETE FROM {s}.tags t WHERE t.tenant = %s AND t.workspace = %s AND t.seq IN (
    SELECT seq FROM {s}.memories m WHERE m.tenant = %s AND m.workspace = %s AND m.id = ANY(%s))"""
_TAG_KEY = ("tenant", "workspace", "id", "tag")
_TAG_AGAIN = """INSERT INTO {s}.tags (tenant, workspace, tag, seq)
    SELECT m.tenant, m.workspace, x.tag, m.seq
    FROM json_to_recordset(%s::json) AS x (tenant text, workspace text, id text, tag text)
    JOIN {s}.memories m ON m.tenant = %s AND m.workspace = %s AND m.id = x.id"""
_EMBEDDED = """UPDATE {s}.memories m SET embedded = x.embedded
    FROM json_to_recordset(%s::json) AS x (seq bigint, embedded text)
    WHERE m.tenant = %s AND m.workspace = %s AND m.seq = x.seq"""
_TOUCH = """UPDATE {s}.memories m
    SET access_count = m.access_count + x.times, accessed_at = greatest(m.accessed_at, x.at)
    FROM json_to_recordset(%s::json) AS x (id text, times bigint, at bigint)
    WHERE m.tenant = %s AND m.workspace = %s AND m.id = x.id RETURNING m.seq"""
_UNPLACED = """SELECT 1 FROM {s}.memories m WHERE m.tenant = %s AND m.workspace = %s AND NOT EXISTS (
    SELECT FROM {s}.places p WHERE p.tenant = m.tenant AND p.workspace = m.workspace) LIMIT 1"""
_WITHOUT_CONTENT = """SELECT m.id FROM {s}.memories m LEFT JOIN {s}.contents c USING (tenant, workspace, seq)
    WHERE m.tenant = %s AND m.workspace = %s AND c.seq IS NULL ORDER BY m.seq"""
_WITHOUT_WORDS = """SELECT m.id FROM {s}.memories m LEFT JOIN {s}.search c USING (tenant, workspace, seq)
    WHERE m.tenant = %s AND m.workspace = %s AND c.seq IS NULL ORDER BY m.seq"""
# By the index: those before it, those behind it, and those without.
_LACKING = """SELECT id FROM (
    SELECT id, seq FROM {s}.memories WHERE tenant = %s AND workspace = %s AND embedded < %s AND superseded_by IS NULL
    UNION ALL
    SELECT id, seq FROM {s}.memories WHERE tenant = %s AND workspace = %s AND embedded > %s AND superseded_by IS NULL
    UNION ALL
    SELECT id, seq FROM {s}.memories WHERE tenant = %s AND workspace = %s AND embedded IS NULL AND superseded_by IS NULL
    ) lacking ORDER BY seq DESC LIMIT %s"""
# Turns of a conversation by the names that they begin with: how many there are of each decides who speaks.
_HEARD = """UPDATE {{s}}.memories m SET speaker = {speaker} FROM (
        SELECT tier, account, channel, agent, named FROM {{s}}.memories
        WHERE tenant = %s AND workspace = %s AND conversation = %s AND named IS NOT NULL
        GROUP BY tier, account, channel, agent, named HAVING count(*) {times}) x
    WHERE m.tenant = %s AND m.workspace = %s AND m.conversation = %s AND m.named = x.named AND m.speaker {now} m.named
    AND (m.tier, coalesce(m.account, ''), coalesce(m.channel, ''), coalesce(m.agent, ''))
        = (x.tier, coalesce(x.account, ''), coalesce(x.channel, ''), coalesce(x.agent, ''))
    RETURNING m.seq"""
_PROVEN = _HEARD.format(speaker="m.named", times="> 1", now="<>")
_UNPROVEN = _HEARD.format(speaker="coalesce(m.role, '')", times="= 1", now="=")
