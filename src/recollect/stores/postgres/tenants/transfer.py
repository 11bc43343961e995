"""The rows of one tenant on two servers: copied from one to the other, and compared.

As JSON by the names of the columns, as the servers themselves write and read them. Nothing is renumbered.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from recollect.stores.postgres.connections import PATIENCE, Connection, driver, translated
from recollect.stores.postgres.server import Server
from recollect.stores.postgres.statements import DURABLE, whose
from recollect.stores.postgres.tenants.placement import What
from recollect.stores.tables.engine import Rows
from recollect.values.errors import AccessError

_MOST_BYTES = 4_000_000
"""Of rows in one statement."""
# Both servers must write a value as the same text, whatever they are configured to.
_ALIKE = ("SET LOCAL bytea_output = 'hex'", "SET LOCAL extra_float_digits = 1", "SET LOCAL statement_timeout = 0")
_HASH = "('x' || left(encode(sha256(convert_to(row_to_json(t)::text, 'UTF8')), 'hex'), 16))::bit(64)::bigint"
_PLACES = "tenant, workspace, memories, things, entries, sealed, live_memories, content_bytes"
"""Of a place; an index that its vectors have is not moved."""


class Side:
    """One tenant on one server, as the owner of the tables."""

    def __init__(self, name: str, server: Server, tenant: str) -> None:
        self.name = name
        self.tenant = tenant
        self.server = server
        seen = server.facts
        if not seen.may_upgrade:
            raise AccessError(
                f"{server.location.shown}: only the owner of the tables moves and limits tenants, which the role "
                f"{seen.user} is not: connect as {seen.owner}, or as a member of it"
            )

    @contextmanager
    def transaction(self, level: str = "", patience: float = PATIENCE) -> Generator[Run]:
        """Committed at the end, taken back on an error."""
        seen = self.server.facts
        begin = [f"BEGIN {level}", *seen.begin, whose(self.tenant)]
        if seen.owner != seen.user:
            begin.append(f'SET LOCAL ROLE "{seen.owner}"')
        begin += [*_ALIKE, f"SET LOCAL lock_timeout = {max(1, int(patience * 1000))}"]
        with self.server.connections.lent() as connection:
            try:
                with connection.pipeline():
                    for statement in begin:
                        connection.execute(statement, prepare=False)
                yield Run(self, connection)
                if connection.execute("SHOW synchronous_commit").fetchone() == ("off",):
                    connection.execute(DURABLE)
                connection.execute("COMMIT", prepare=False)
            except driver().Error as error:
                raise translated(error, self.server.location) from error
            finally:
                if not connection.closed and connection.pgconn.transaction_status:
                    connection.execute("ROLLBACK", prepare=False)


class Run:
    """Statements of one transaction."""

    def __init__(self, side: Side, connection: Connection) -> None:
        self.side = side
        self._connection = connection

    def __call__(self, sql: str, *values: Any) -> Any:
        """The first value is the tenant."""
        return self._connection.execute(self.side.server.sql(sql), (self.side.tenant, *values))

    def named(self, sql: str, **values: Any) -> Any:
        """One of the values is called `tenant`."""
        return self._connection.execute(self.side.server.sql(sql), {"tenant": self.side.tenant, **values})

    def rows(self, sql: str, *values: Any) -> Rows:
        return self(sql, *values).fetchall()


class Group(NamedTuple):
    """Tables whose rows come and go together."""

    what: What
    tables: tuple[str, ...]
    """The first one has a row for each key, or several."""
    key: tuple[str, ...]
    """Behind the workspace."""


Key = tuple[str, *tuple[Any, ...]]
"""The workspace and what comes behind it."""


def groups(side: Side) -> list[Group]:
    vectors = ("vectors",) if side.server.facts.vectors else ()
    return [
        Group("memory", ("memories", "contents", "tags", "embeddings", "search", *vectors), ("seq",)),
        Group("undo", ("undo_items",), ("entry",)),
        Group("audit", ("audit",), ("seq",)),
        Group("thing", ("things",), ("shelf", "key")),
        Group("head", ("places",), ()),
    ]


def tables(side: Side) -> list[str]:
    return [table for group in groups(side) for table in group.tables]


def page(run: Run, group: Group, after: Key | None, size: int) -> list[Key]:
    """The next keys in their order."""
    names = ", ".join(("workspace", *group.key))
    beyond = "" if after is None else f"AND ({names}) > ({', '.join(['%s'] * (1 + len(group.key)))})"
    whose = f"{{s}}.{group.tables[0]} WHERE tenant = %s {beyond}"
    return run.rows(f"SELECT DISTINCT {names} FROM {whose} ORDER BY {names} LIMIT {size}", *(after or ()))


def copied(run: Run, group: Group, keys: Iterable[Key]) -> dict[str, list[str]]:
    """The rows of some keys, by table."""
    rows: dict[str, list[str]] = {table: [] for table in group.tables}
    for workspace, chosen in _by_workspace(keys).items():
        clause, values = _these(group, chosen)
        for table in group.tables:
            sql = f"SELECT row_to_json(t)::text FROM ({_rows_of(table)} AND workspace = %s {clause}) t"
            rows[table] += [row for (row,) in run.rows(sql, workspace, *values)]
    return rows


def write(run: Run, rows: Mapping[str, Sequence[str]]) -> None:
    """A memory that was taken back while it was copied has the id of one that is not removed here yet.

    It is passed over: both are in the log of changes, and follow.
    """
    for table, texts in rows.items():
        sql = f"""INSERT INTO {{s}}.{table} SELECT x.* FROM (SELECT %s::text AS tenant) whose,
            json_populate_recordset(NULL::{{s}}.{table}, %s::json) x
            WHERE x.tenant = whose.tenant ON CONFLICT DO NOTHING"""
        for some in _in_pieces(texts):
            run(sql, some)


def remove(run: Run, group: Group, keys: Iterable[Key]) -> None:
    for workspace, chosen in _by_workspace(keys).items():
        clause, values = _these(group, chosen)
        for table in group.tables:
            run(f"DELETE FROM {{s}}.{table} WHERE tenant = %s AND workspace = %s {clause}", workspace, *values)


def limits_of(run: Run) -> list[str]:
    """The tenant's row in limits, if it has one."""
    return [row for (row,) in run.rows("SELECT row_to_json(t)::text FROM {s}.limits t WHERE tenant = %s")]


def write_limits(run: Run, rows: Sequence[str]) -> None:
    """In place of those that are there."""
    run("DELETE FROM {s}.limits WHERE tenant = %s")
    write(run, {"limits": rows})


def remove_all(run: Run, workspace: str | None = None) -> None:
    if workspace is None:
        run("DELETE FROM {s}.limits WHERE tenant = %s")
    for table in tables(run.side):
        if workspace is None:
            run(f"DELETE FROM {{s}}.{table} WHERE tenant = %s")
        else:
            run(f"DELETE FROM {{s}}.{table} WHERE tenant = %s AND workspace = %s", workspace)


def holds_something(run: Run) -> bool:
    parts = [f"EXISTS (SELECT FROM {{s}}.{table} WHERE tenant = x.tenant)" for table in tables(run.side)]
    ((exists,),) = run.rows(f"SELECT {' OR '.join(parts)} FROM (SELECT %s::text AS tenant) x")
    return exists


# Comparing

Digest = dict[tuple[str, Key], tuple[int, int]]
"""By table and key: how many rows there are, and the sum of their hashes."""


def digest_of(run: Run, group: Group, keys: Iterable[Key]) -> Digest:
    digest: Digest = {}
    for workspace, chosen in _by_workspace(keys).items():
        clause, values = _these(group, chosen)
        digest |= _digest(run, group, f"AND workspace = %s {clause}", (workspace, *values))
    return digest


def digest_between(run: Run, group: Group, after: Key | None, until: Key | None) -> Digest:
    """Of all keys behind one and up to another."""
    names = ", ".join(("workspace", *group.key))
    clauses, values = list[str](), list[Any]()
    for edge, way in ((after, ">"), (until, "<=")):
        if edge is not None:
            clauses.append(f"AND ({names}) {way} ({', '.join(['%s'] * len(edge))})")
            values += edge
    return _digest(run, group, " ".join(clauses), values)


def _digest(run: Run, group: Group, clause: str, values: Sequence[Any]) -> Digest:
    names = ", ".join(("workspace", *group.key))
    digest: Digest = {}
    for table in group.tables:
        sql = f"SELECT {names}, count(*), sum({_HASH}) FROM ({_rows_of(table)} {clause}) t GROUP BY {names}"
        for *key, count, summed in run.rows(sql, *values):
            digest[table, tuple(key)] = count, int(summed)
    return digest


def differing(first: Digest, other: Digest) -> set[Key]:
    return {key for table, key in first.keys() | other.keys() if first.get((table, key)) != other.get((table, key))}


def counts(run: Run) -> dict[str, int]:
    names = tables(run.side)
    parts = [f"(SELECT count(*) FROM {{s}}.{table} WHERE tenant = x.tenant)" for table in names]
    (row,) = run.rows(f"SELECT {', '.join(parts)} FROM (SELECT %s::text AS tenant) x")
    return dict(zip(names, row, strict=True))


def sums(run: Run) -> dict[str, str]:
    """A checksum of everything, by table."""
    checksums: dict[str, str] = {}
    for table in tables(run.side):
        ((count, summed),) = run.rows(f"SELECT count(*), coalesce(sum({_HASH}), 0) FROM ({_rows_of(table)}) t")
        checksums[table] = f"{count}:{int(summed) % (1 << 64):016x}"
    return checksums


# Inside


def _rows_of(table: str) -> str:
    return f"SELECT {_PLACES if table == 'places' else '*'} FROM {{s}}.{table} WHERE tenant = %s"


def _by_workspace(keys: Iterable[Key]) -> dict[str, list[Sequence[Any]]]:
    grouped: dict[str, list[Sequence[Any]]] = {}
    for workspace, *key in keys:
        grouped.setdefault(workspace, []).append(key)
    return grouped


def _these(group: Group, keys: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
    """A condition for some keys of one workspace."""
    if not group.key:
        return "", []
    if len(group.key) == 1:
        return f"AND {group.key[0]} = ANY(%s::bigint[])", [[number for (number,) in keys]]
    columns = [list(column) for column in zip(*keys, strict=True)]
    arrays = ", ".join(["%s::text[]"] * len(columns))
    return f"AND ({', '.join(group.key)}) IN (SELECT * FROM unnest({arrays}))", columns


def _in_pieces(texts: Sequence[str]) -> Iterator[str]:
    piece, size = list[str](), 0
    for text in texts:
        if piece and size + len(text) > _MOST_BYTES:
            yield f"[{','.join(piece)}]"
            piece, size = [], 0
        piece.append(text)
        size += len(text)
    if piece:
        yield f"[{','.join(piece)}]"


def key_of(workspace: str, key: str) -> Key:
    """As the log of changes has it."""
    return (workspace, *msgspec.json.decode(key))
