"""The memories of a place, in rows of tables that all tenants share."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

import msgspec

from recollect.stores.fields import FIELDS
from recollect.stores.port import Damage, Place
from recollect.stores.postgres import words
from recollect.stores.postgres.server import Runner
from recollect.stores.postgres.statements import rows_of, workspace_of
from recollect.stores.postgres.tables import BESIDE, DIALECT, PostgresTables
from recollect.stores.postgres.transaction import OpenTransaction
from recollect.stores.rows import COLUMNS, text_key, to_changes, to_values
from recollect.stores.tables.engine import Statement
from recollect.stores.tables.memories import (
    Name,
    embedded_as,
    id_exists,
    name_in,
    no_memory,
    prove_speakers,
    speaker_of,
    unprove_speakers,
)
from recollect.stores.touches import Touched, Touches
from recollect.values.errors import RecollectError
from recollect.values.record import Record, to_micros

_AT_ONCE = 250
"""Memories that are sent together."""
_SOON = 0.25
"""Seconds that what can be made up for waits for a writer."""

_NARROW = [name for name in COLUMNS if name not in BESIDE]
_narrow, _beside = (itemgetter(*map(COLUMNS.index, names)) for names in (_NARROW, BESIDE))
_KEY = ("tenant", "workspace", "seq")
_MEMORY = (*_KEY, *_NARROW, "length", "speaker", "named", "text_key", "embedded")
_CONTENT = (*_KEY, *BESIDE)
_TYPES = {
    **dict.fromkeys(
        ("seq", "access_count", "text_key", *(field.sql for field in FIELDS if field.way == "time")), "bigint"
    ),
    "importance": "double precision",
    "length": "integer",
    "schema_version": "integer",
    "part": "integer",
    "words": "tsvector",
    "v": "{v}.halfvec",
}
_CHANGED = [field.sql for field in FIELDS if field.changes]
_CHANGED_HERE = [name for name in _CHANGED if name not in BESIDE]
_CHANGED_BESIDE = [name for name in _CHANGED if name in BESIDE]
_GIVEN = [*_CHANGED, "id"]
_KEPT_TABLES = ("contents", "tags", "embeddings", "search")
_encode = msgspec.json.Encoder().encode


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {{s}}.{table} ({', '.join(columns)}) VALUES ({', '.join(_value(name) for name in columns)})"


def _value(name: str) -> str:
    return f"%s::{_TYPES[name]}" if name in ("words", "v") else "%s"


def _insert_many(table: str, columns: Sequence[str]) -> str:
    """Into one place, from one JSON text: much quicker to write than as many values.

    The tenant comes from the row of the place: so Citus runs all of it on the worker that has both. Otherwise it would
    read the JSON on the coordinator and send the rows by COPY, which row-level security refuses.
    """
    typed = ", ".join(f"{name} {_TYPES.get(name, 'text')}" for name in columns)
    taken = ", ".join("decode(x.vector, 'hex')" if name == "vector" else f"x.{name}" for name in columns)
    return f"""INSERT INTO {{s}}.{table} (tenant, workspace, {", ".join(columns)})
    SELECT p.tenant, p.workspace, {taken} FROM {{s}}.places p CROSS JOIN json_to_recordset(%s::json) AS x ({typed})
    WHERE p.tenant = %s AND p.workspace = %s"""


_ONCE = " ON CONFLICT (tenant, workspace, id) DO NOTHING RETURNING id"
_EMBEDDING = (*_KEY, "model", "vector")
_VECTOR = (*_KEY, "model", "v")
_SEARCH = (*_KEY, "part", "words")
_TAGGED = (*_KEY, "tag")


class MemoryRows:
    """Writes memories, and the retrievals that are counted of them."""

    def __init__(self, server: Runner) -> None:
        self._runner = server
        self._lock = threading.Lock()
        self._touches: dict[Place, Touches] = {}
        self.tables = PostgresTables(server, self._touches)

    def after_fork(self) -> None:
        """The retrievals that the parent counted are its own to write."""
        self._lock = threading.Lock()
        self._touches.clear()

    # Writing

    def put(self, transaction: OpenTransaction, place: Place, records: Sequence[Record]) -> None:
        if not records:
            return
        head = transaction.heads[place]
        numbered = list(enumerate(records, head.memories + 1))
        transaction.changed(place, "memory", [(seq,) for seq, _ in numbered])
        sizes: list[int] = []
        added = {
            ident
            for cursor in transaction.run(self._inserts(transaction, place, numbered, sizes))
            for (ident,) in rows_of(cursor)
        }
        if len(added) < len(records):
            self._take_out(transaction, place, [seq for seq, _ in numbered])
            first = next((record.id for record in records if record.id not in added), records[0].id)
            raise id_exists(first)
        transaction.heads[place] = head._replace(
            memories=head.memories + len(records),
            added=head.added + len(records),
            added_bytes=head.added_bytes + sum(sizes),
        )
        self._hear(transaction, place, prove_speakers(DIALECT, place, records))

    def _inserts(
        self, transaction: OpenTransaction, place: Place, numbered: Sequence[tuple[int, Record]], sizes: list[int]
    ) -> Iterator[Statement]:
        """Some memories at a time: the server writes them while the next are made ready. One tells which are new.

        `sizes` gets the bytes of content of each."""
        compared = transaction.server.facts.vectors
        for at in range(0, len(numbered), _AT_ONCE):
            rows = [_Rows(place, seq, record) for seq, record in numbered[at : at + _AT_ONCE]]
            sizes += [row.size for row in rows]
            yield from _inserted("memories", _MEMORY, [row.memory for row in rows], _ONCE)
            yield from _inserted("search", _SEARCH, [words for row in rows for words in row.words])
            yield from _inserted("contents", _CONTENT, [row.content for row in rows])
            yield from _inserted("tags", _TAGGED, [tag for row in rows for tag in row.tags])
            yield from _inserted("embeddings", _EMBEDDING, [row.embedding for row in rows if row.embedding])
            yield from _inserted("vectors", _VECTOR, [row.vector for row in rows if row.vector and compared])

    def _hear(self, transaction: OpenTransaction, place: Place, statements: Sequence[Statement]) -> None:
        for cursor in transaction.run(statements) if statements else ():
            transaction.changed(place, "memory", rows_of(cursor))

    def update(self, transaction: OpenTransaction, place: Place, records: Sequence[Record]) -> None:
        where = place.tenant, workspace_of(place)
        records = list({record.id: record for record in records}.values())
        rows = [dict(zip(_GIVEN, to_changes(record), strict=True)) for record in records]
        tags = [(*where, record.id, tag) for record in records for tag in _and_above(record.tags)]
        encoded = _json(rows)
        done = transaction.run(
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
        seqs = dict(done[0].fetchall())
        transaction.changed(place, "memory", [(seq,) for seq in seqs.values()])
        for record in records:
            if record.id not in seqs:
                raise no_memory(record.id)

    def delete(self, transaction: OpenTransaction, place: Place, ids: Sequence[str]) -> None:
        ids = list(dict.fromkeys(ids))
        where = place.tenant, workspace_of(place)
        rows = transaction.execute(_DELETE, (*where, ids)).fetchall()
        gone: dict[str, int] = {ident: seq for ident, seq, _, _ in rows}
        for ident in ids:
            if ident not in gone:
                raise no_memory(ident)
        size = self._take_out(transaction, place, list(gone.values()), ("memories",))
        head = transaction.heads[place]
        transaction.heads[place] = head._replace(added=head.added - len(gone), added_bytes=head.added_bytes - size)
        names = {Name(talk, name) for _, _, talk, name in rows if talk is not None and name is not None}
        self._hear(transaction, place, unprove_speakers(DIALECT, place, names))
        self.touches(place).drop(ids)

    def _take_out(
        self, transaction: OpenTransaction, place: Place, seqs: Sequence[int], but: Sequence[str] = ()
    ) -> int:
        """Delete the rows of some memories. Returns the bytes of content that went."""
        where = place.tenant, workspace_of(place), list(seqs)
        transaction.changed(place, "memory", [(seq,) for seq in seqs])
        cursors = transaction.run(
            [
                Statement(_DELETE_ROWS.format(table=table, size=f" RETURNING {SIZE}" * (table == "contents")), where)
                for table in tables(transaction)
                if table not in but
            ]
        )
        return sum(size for cursor in cursors for (size,) in rows_of(cursor))

    def embed(self, transaction: OpenTransaction, place: Place, model: str, vectors: Mapping[str, bytes]) -> None:
        where = place.tenant, workspace_of(place)
        rows = transaction.execute(_SEQS, (*where, sorted(vectors))).fetchall()
        if not rows:
            return
        seqs = [seq for _, seq in rows]
        self._take_out(
            transaction, place, seqs, [table for table in tables(transaction) if table not in ("embeddings", "vectors")]
        )
        blobs = [(seq, vectors[ident]) for ident, seq in rows]
        models = [{"seq": seq, "embedded": embedded_as(model, len(blob) // 4)} for seq, blob in blobs]
        statements = [Statement(_EMBEDDED, (_json(models), *where))]
        embeddings = [(*where, seq, model, blob) for seq, blob in blobs]
        statements += _inserted("embeddings", _EMBEDDING, embeddings)
        if transaction.server.facts.vectors:
            near = [
                (*where, seq, embedded_as(model, len(blob) // 4), halves(blob)) for seq, blob in blobs if fits(blob)
            ]
            statements += _inserted("vectors", _VECTOR, near)
        transaction.run(statements)

    def damage(self, place: Place) -> list[Damage]:
        """Rows without those that belong to them, as after a restore of some tables only."""
        where = place.tenant, workspace_of(place)
        asked = [Statement(sql, where) for sql in (_UNPLACED, _WITHOUT_CONTENT, _WITHOUT_WORDS, COUNTED)]
        unplaced, lost, unindexed, counted = self._runner.read(place.tenant, asked)
        damages = [Damage(f"{place.tenant}/{workspace_of(place)}", "has memories, but no row in places")] * len(
            unplaced
        )
        damages += [Damage(ident, "has lost its content: its row in contents is missing") for (ident,) in lost]
        damages += [Damage(ident, "is missing from the text index") for (ident,) in unindexed]
        if not lost:  # else the content that is missing is the damage, and there is nothing to count it by
            damages += [
                Damage(
                    f"{place.tenant}/{workspace_of(place)}",
                    f"is counted as {live} memories of {size} bytes, and has {true_live} of {true_size}: run "
                    "`recollect db recount`",
                )
                for live, size, true_live, true_size in counted
                if None not in (live, size) and (live, size) != (true_live, true_size)
            ]
        return damages

    # Retrievals

    def touches(self, place: Place) -> Touches:
        with self._lock:
            return self._touches.setdefault(place, Touches())

    def touch(self, place: Place, ids: Sequence[str], at: datetime) -> None:
        if self.touches(place).add(ids, at):
            self.settle(place)

    def write_touches(self, transaction: OpenTransaction, place: Place) -> Mapping[str, Touched]:
        """Those that wait, at the beginning of a transaction. If they cannot be written, they wait further."""
        touches = self._touches.get(place)
        taken: Mapping[str, Touched] = touches.take() if touches else {}
        if taken and touches is not None:
            try:
                self._write_counts(transaction, place, taken)
            except BaseException:
                touches.put_back(taken)
                raise
        return taken

    def _write_counts(self, transaction: OpenTransaction, place: Place, taken: Mapping[str, Touched]) -> None:
        rows = [{"id": i, "times": taken[i].times, "at": to_micros(taken[i].at)} for i in sorted(taken)]
        transaction.become(place.tenant)
        counted = transaction.execute(_TOUCH, (_json(rows), place.tenant, workspace_of(place)))
        transaction.changed(place, "memory", counted.fetchall())

    def settle(self, place: Place) -> None:
        """Write them now. What cannot be written waits for the next time: no recall may fail by that."""
        if self._runner.transaction is not None or not self._touches.get(place):
            return
        touches = self.touches(place)
        taken: Mapping[str, Touched] = {}
        try:
            with self._runner.writing((place,), seconds=_SOON) as transaction:
                taken = self.write_touches(transaction, place)
        except RecollectError:
            touches.put_back(taken)

    def settle_all(self) -> bool:
        """False if some could not be written."""
        for place in list(self._touches):
            self.settle(place)
        return not any(self._touches.values())


def tables(transaction: OpenTransaction) -> list[str]:
    """Those that a memory has rows in, on the server of a transaction."""
    return ["memories", *_KEPT_TABLES, *(["vectors"] if transaction.server.facts.vectors else [])]


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
    objects = [dict(zip(names, row, strict=True)) for row in zip(*(column for _, column in filled), strict=True)]
    return [Statement(_insert_many(table, names) + end, (_json(objects), tenant[0], workspace[0]))]


def _json(rows: Sequence[Mapping[str, Any]]) -> str:
    return _encode(rows).decode()


class _Rows:
    """What is written of one memory."""

    __slots__ = ("content", "embedding", "id", "memory", "seq", "size", "tags", "vector", "words")

    def __init__(self, place: Place, seq: int, record: Record) -> None:
        where, values = (place.tenant, workspace_of(place), seq), to_values(record)
        text: str = values[-2]
        blob = record.embedding
        if "\0" in text:  # PostgreSQL takes no NUL in a text: the whole of it is in the JSON then
            values = (*values[:-2], text.replace("\0", "\ufffd"), values[-1] or _encode(record.content).decode())
        self.size = sum(len(part.encode()) for part in values[-2:] if part is not None)
        embedded = None if blob is None else embedded_as(record.embedding_model or "", len(blob) // 4)
        key = text_key(text) if record.address.conversation is None else None
        self.seq, self.id = seq, record.id
        self.memory = (*where, *_narrow(values), len(text), speaker_of(record), name_in(record), key, embedded)
        self.content = (*where, *_beside(values))
        self.words = [(*where, part, made) for part, made in enumerate(words.vectors(place, text))]
        self.tags = [(*where, tag) for tag in _and_above(record.tags)] if record.tags else []
        self.embedding = None if blob is None else (*where, record.embedding_model, blob)
        self.vector = (*where, embedded, halves(blob)) if blob is not None and fits(blob) else None


def _and_above(tags: Sequence[str]) -> list[str]:
    """The tags and all that they stand below."""
    above = [tag[:at] for tag in tags for at, char in enumerate(tag) if char == "." and at]
    return list(dict.fromkeys([*tags, *above]))


def fits(blob: bytes) -> bool:
    return len(blob) <= 4 * 16_000


def halves(blob: bytes) -> str:
    """A vector for comparing: normalised, as pgvector reads it."""
    import numpy as np

    vector = np.frombuffer(blob, "<f4").astype(np.float64)
    norm = float(np.sqrt(vector @ vector)) or 1.0
    return "[" + ",".join(map(repr, (vector / norm).astype(np.float16).tolist())) + "]"


SIZE = "octet_length(text) + coalesce(octet_length(data), 0)"
"""The bytes of content of a memory."""
_DELETE_ROWS = "DELETE FROM {{s}}.{table} WHERE tenant = %s AND workspace = %s AND seq = ANY(%s){size}"
COUNTED = f"""SELECT p.live_memories, p.content_bytes, count(m.seq), coalesce(sum({SIZE}), 0)::bigint
    FROM {{s}}.places p LEFT JOIN {{s}}.memories m USING (tenant, workspace)
    LEFT JOIN {{s}}.contents c USING (tenant, workspace, seq)
    WHERE p.tenant = %s AND p.workspace = %s GROUP BY p.tenant, p.workspace"""
"""What a place is counted as, and what it has."""
_SEQS = "SELECT id, seq FROM {s}.memories WHERE tenant = %s AND workspace = %s AND id = ANY(%s)"
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
_UNPLACED = """SELECT 1 FROM {s}.memories m LEFT JOIN {s}.places p USING (tenant, workspace)
    WHERE m.tenant = %s AND m.workspace = %s AND p.tenant IS NULL LIMIT 1"""
_WITHOUT_CONTENT = """SELECT m.id FROM {s}.memories m LEFT JOIN {s}.contents c USING (tenant, workspace, seq)
    WHERE m.tenant = %s AND m.workspace = %s AND c.seq IS NULL ORDER BY m.seq"""
_WITHOUT_WORDS = """SELECT m.id FROM {s}.memories m LEFT JOIN {s}.search c USING (tenant, workspace, seq)
    WHERE m.tenant = %s AND m.workspace = %s AND c.seq IS NULL ORDER BY m.seq"""
