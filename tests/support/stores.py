"""Every kind of store, and where one of each is for a test.

What is about files on a disk (what is in them, damage, locks, copies in a folder, recollect.toml beside them, what is
kept resident of them) is tried on the stores that are files, `FILES`; what is about tenants on `DATABASES`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import psycopg

from recollect.stores import KINDS
from support import postgres

_CHOSEN = os.environ.get("RECOLLECT_TEST_STORES")
STORES = tuple(_CHOSEN.split(",")) if _CHOSEN else KINDS
"""All of them, or those that are named, as in `RECOLLECT_TEST_STORES=sqlite,postgresql make test`."""
FILES = tuple(kind for kind in STORES if kind != "postgresql")
DATABASES = tuple(kind for kind in STORES if kind not in ("ledger", "notebook"))
"""Those that keep tenants apart: plain files have one."""

_locations: dict[Path, tuple[Path, str]] = {}
"""By its path: the folder that a location stands for, and the location."""


def located(kind: str, path: str | os.PathLike[str]) -> str:
    """Where a store of this kind is that would be at a path if it were files; for the same path the same.

    One on a server is emptied and given to others when the test is over and the folder around it is gone.
    """
    if kind != "postgresql":
        return f"{kind}:{os.fspath(path)}"
    path = Path(path)
    if path not in _locations:
        _locations[path] = next(folder for folder in path.parents if folder.exists()), fresh_location()
    return _locations[path][1]


def traces(location: str, text: bytes) -> list[str]:
    """The files around a store, or the tables of its schema, that hold this or are called so."""
    kind, _, path = location.partition(":")
    if kind != "postgresql":
        around = [*Path(path).parent.rglob("*")]
        named = [str(path) for path in around if text in os.fsencode(path.name)]
        return named + [str(path) for path in around if path.is_file() and text in path.read_bytes()]
    schema = location.rpartition("=")[2]
    connection = _shared.administrator()
    return [table for table in _content(connection, schema)[0] if _holds(connection, f'"{schema}"."{table}"', text)]


def _holds(connection: psycopg.Connection, table: str, text: bytes) -> bool:
    """Whether a row has it, as text or as bytes, which are shown as hexadecimal digits."""
    question = f"SELECT EXISTS (SELECT FROM {table} t WHERE strpos(t::text, %s) > 0 OR t::text ~ %s)"
    bytes_shown = rf"\\x([0-9a-f]{{2}})*{text.hex()}"  # and not anywhere in a hash
    return connection.execute(question.encode(), [text.decode("utf-8", "replace"), bytes_shown]).fetchone() == (True,)


def sweep() -> None:
    """Take back what stood for folders that are gone. Called after each test: names of folders come again."""
    for path, (folder, location) in list(_locations.items()):
        if not folder.exists():
            del _locations[path]
            give_back(location)


class SchemaPool:
    """Schemas on a server, emptied and used again: emptying one takes a millisecond, making one a tenth of a second."""

    def __init__(self, server: Callable[[], postgres.Database]) -> None:
        self._server = server
        self._free: list[str] = []
        self._made: list[str] = []
        self._connection: psycopg.Connection | None = None
        self._usual: dict[tuple[str, ...], int] = {}
        """How many tables and indexes there are in a schema with these tables, if nobody has built any more."""

    def fresh_location(self, *, untouched: bool = False) -> str:
        """A schema with nothing in it, maybe not even tables; `untouched` for one that never had any."""
        while self._free and not untouched:
            if self._emptied(location := self._free.pop()):
                return location
        self._made.append(f"test_{secrets.token_hex(6)}")
        url = self._server().url()
        return f"{url}{'&' if '?' in url else '?'}schema={self._made[-1]}"

    def give_back(self, location: str) -> None:
        """Let another test have this location."""
        self._free.append(location)

    def remove(self) -> None:
        """Leave the server. On one that stays when the run is over, drop all schemas."""
        while postgres.DSN and self._made:
            self.administrator().execute(f'DROP SCHEMA IF EXISTS "{self._made.pop()}" CASCADE'.encode())
        if self._connection:
            self._connection.close()

    def administrator(self) -> psycopg.Connection:
        """A connection as whoever may see all tenants.

        It stays open until the run ends: a new one for each test would take longer than emptying a schema does.
        """
        if self._connection is None or self._connection.closed:
            url = self._server().url()
            options = f"{'&' if '?' in url else '?'}options=-clock_timeout%3D5s"
            self._connection = psycopg.connect(url + options, autocommit=True)
        return self._connection

    def _emptied(self, location: str) -> bool:
        """Empty a schema. One that somebody keeps a lock in or has built something in is given to nobody any more."""
        schema = location.rpartition("=")[2]
        connection = self.administrator()
        tables, relations = _content(connection, schema)
        if relations > self._usual.setdefault(tables, relations):
            return False
        self._usual[tables] = relations
        try:
            connection.execute(";".join(f'DELETE FROM "{schema}"."{table}"' for table in tables).encode())
        except psycopg.errors.LockNotAvailable:
            return False
        return True


def _content(connection: psycopg.Connection, schema: str) -> tuple[tuple[str, ...], int]:
    """The tables that have something of a tenant's, and how much there is in all."""
    relations = connection.execute(
        """
        SELECT relname, NOT relispartition AND relkind IN ('r', 'p') AND EXISTS (
            SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'tenant'
        ) FROM pg_class WHERE relnamespace = to_regnamespace(%s) ORDER BY relname
        """,
        [schema],
    ).fetchall()
    return tuple(name for name, holds in relations if holds), len(relations)


_shared = SchemaPool(postgres.shared)
_distribution = SchemaPool(postgres.distribution)
fresh_location, give_back = _shared.fresh_location, _shared.give_back
"""A schema on the server that all tests share."""


def distribution_pool() -> SchemaPool:
    """The schemas on the distribution's own PostgreSQL."""
    return _distribution


def remove() -> None:
    """Leave the servers."""
    for pool in (_shared, _distribution):
        pool.remove()
