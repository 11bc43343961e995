"""Statements, and how names stand in them."""

from __future__ import annotations

from typing import Any

from recollect.stores.port import Place
from recollect.stores.tables.engine import Rows
from recollect.values.errors import StoreError

DURABLE = "SET LOCAL synchronous_commit = on"
"""Only where it is off: everything else is as durable, or more."""
FOR_PLACE = "SELECT {} FROM {{s}}.places p WHERE p.tenant = %s AND p.workspace = %s"
"""Call a function for the row of a place: on Citus it runs where that row is, in the same transaction."""


def answers(cursor: Any) -> bool:
    """Whether rows come back. Asked of the result itself: psycopg's description makes an object for every column."""
    return cursor.pgresult is not None and cursor.pgresult.nfields > 0


def rows_of(cursor: Any) -> Rows:
    return cursor.fetchall() if answers(cursor) else []


def workspace_of(place: Place) -> str:
    """As a column has it."""
    return "" if place.workspace is None else place.workspace


def place_of(tenant: str, workspace: str) -> Place:
    return Place(tenant, workspace or None)


def whose(tenant: str) -> str:
    return f"SET LOCAL recollect.tenant = {literal(tenant)}"


def literal(text: str) -> str:
    """A text inside a statement: nothing in it can end it, however the server reads backslashes."""
    if "\0" in text:
        raise StoreError("a name must not hold the character NUL")
    quoted = text.replace("'", "''")
    return " E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in quoted else f"'{quoted}'"
