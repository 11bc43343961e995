"""Which server a tenant is on, and whether it is on its way to another.

Whoever writes holds a shared lock of the tenant and looks under it whether the tenant is being moved. Whoever moves it
changes that under the exclusive lock, so nobody writes who has not seen it.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, NamedTuple

import msgspec

from recollect.values.errors import ConcurrencyError, MovedError

HOME = "home"
"""The name of the server that knows where all tenants are."""
MOVES = "SELECT state, server, move FROM {s}.moves WHERE tenant = %s"
AWAY = "SELECT tenant, server FROM {s}.placements WHERE server <> %s"
PLACEMENT = "SELECT server, move FROM {s}.placements WHERE tenant = %s"
# Beside the row of the move, so that Citus runs it on the worker that has it: otherwise the rows would go by COPY.
LOG = """INSERT INTO {s}.changes (tenant, workspace, what, key) SELECT m.tenant, x.workspace, x.what, x.key
    FROM {s}.moves m CROSS JOIN unnest(%s::text[], %s::text[], %s::text[]) AS x (workspace, what, key)
    WHERE m.tenant = %s"""

State = Literal["copying", "frozen", "gone", "arriving"]
What = Literal["memory", "audit", "undo", "thing", "head", "drop"]
"""What a change was made to. A dropped workspace loses everything in it."""


class Placement(NamedTuple):
    server: str = HOME
    move: str = ""
    """By which it came there."""


class Movement(NamedTuple):
    """What a server knows of a tenant's move."""

    state: State
    server: str
    """Where it goes or went; of one that arrives, where from."""
    move: str


class FrozenError(ConcurrencyError):
    """The last of a tenant is being moved: a matter of milliseconds, unless whoever moves it was stopped."""

    def __init__(self, tenant: str) -> None:
        super().__init__(
            f"the tenant {tenant} is being moved to another server; trying again is safe. If nobody moves it any more, "
            f"run `recollect tenants move {tenant}` again, or with --rollback"
        )


def moved(tenant: str, server: str) -> MovedError:
    return MovedError(
        f"the tenant {tenant} was moved to the server {server!r}: open that one, or name it, as in "
        f"Memory(…, servers={{{server!r}: 'postgresql://…'}})",
        server,
    )


def lock_key(schema: str, tenant: str) -> int:
    """What PostgreSQL locks for a tenant: the same in every process."""
    digest = hashlib.blake2b(f"{schema}\0{tenant}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def encoded(*key: Any) -> str:
    """The key of a row behind its workspace."""
    return msgspec.json.encode(key).decode()
