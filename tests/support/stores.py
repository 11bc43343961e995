"""Every kind of store, and where one of each is for a test.

What is about files on a disk (what is in them, damage, locks, copies in a folder, recollect.toml beside them, what is
kept resident of them) is tried on the stores that are files, `FILES`; what is about tenants on `DATABASES`.
"""

from __future__ import annotations

import os
import secrets
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

_given: dict[Path, tuple[Path, str]] = {}
"""By its path: the folder that a location stands for, and the location."""
_free: list[str] = []
_made: list[str] = []
_connections: list[psycopg.Connection] = []
_usual: dict[tuple[str, ...], int] = {}
"""How many tables and indexes there are in a schema with these tables, if nobody has built any more."""


def located(kind: str, path: str | os.PathLike[str]) -> str:
    """Where a store of this kind is that would be at a path if it were files; for the same path the same.

    One on a server is emptied and given to others when the test is over and the folder around it is gone.
    """
    if kind != "postgresql":
        return f"{kind}:{os.fspath(path)}"
    path = Path(path)
    if path not in _given:
        _given[path] = next(folder for folder in path.parents if folder.exists()), fresh_location()
    return _given[path][1]


def traces(location: str, text: bytes) -> list[str]:
    """The files around a store, or the tables of its schema, that hold this or are called so."""
    kind, _, path = location.partition(":")
    if kind != "postgresql":
        around = [*Path(path).parent.rglob("*")]
        named = [str(one) for one in around if text in os.fsencode(one.name)]
        return named + [str(one) for one in around if one.is_file() and text in one.read_bytes()]
    schema = location.rpartition("=")[2]
    connection = _administrator()
    return [table for table in _content(connection, schema)[0] if _holds(connection, f'"{schema}"."{table}"', text)]


def _holds(connection: psycopg.Connection, table: str, text: bytes) -> bool:
    """Whether a row has it, as text or as bytes, which are shown as hexadecimal digits."""
    question = f"SELECT EXISTS (SELECT FROM {table} t WHERE strpos(t::text, %s) > 0 OR t::text ~ %s)"
    bytes_shown = rf"\\x([0-9a-f]{{2}})*{text.hex()}"  # and not anywhere in a hash
    return connection.execute(question.encode(), [text.decode("utf-8", "replace"), bytes_shown]).fetchone() == (True,)


def sweep() -> None:
    """Take back what stood for folders that are gone. Called after each test: names of folders come again."""
    for path, (folder, found) in list(_given.items()):
        if not folder.exists():
            del _given[path]
            give_back(found)


def fresh_location(*, untouched: bool = False) -> str:
    """A schema on the shared server with nothing in it, maybe not even tables; `untouched` for one that never had any.

    Emptying one takes a millisecond, making one twenty.
    """
    while _free and not untouched:
        if _emptied(found := _free.pop()):
            return found
    _made.append(f"test_{secrets.token_hex(6)}")
    url = postgres.shared().url()
    return f"{url}{'&' if '?' in url else '?'}schema={_made[-1]}"


def give_back(found: str) -> None:
    """Let another test have this location."""
    _free.append(found)


def remove() -> None:
    """Leave the shared server. On one that stays when the run is over, drop all schemas."""
    while postgres.DSN and _made:
        _drop(_made.pop())
    while _connections:
        _connections.pop().close()


def _emptied(found: str) -> bool:
    """Empty a schema. One that somebody keeps a lock in or has built something in is given to nobody any more."""
    schema = found.rpartition("=")[2]
    connection = _administrator()
    tables, relations = _content(connection, schema)
    if relations > _usual.setdefault(tables, relations):
        return False
    _usual[tables] = relations
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


def _drop(schema: str) -> None:
    _administrator().execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE'.encode())


def _administrator() -> psycopg.Connection:
    """A connection to the shared server as whoever may see all tenants.

    It stays open until the run ends: a new one for each test would take longer than emptying a schema does.
    """
    if not _connections or _connections[-1].closed:
        url = postgres.shared().url()
        options = f"{'&' if '?' in url else '?'}options=-clock_timeout%3D5s"
        _connections.append(psycopg.connect(url + options, autocommit=True))
    return _connections[-1]
