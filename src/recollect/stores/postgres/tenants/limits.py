"""How much a tenant may store and ask for, and how much it has: a row in `limits`, which only the owner changes."""

from __future__ import annotations

import msgspec

from recollect.stores.port import TenantLimits
from recollect.stores.postgres.tenants.servers import LIMITS, Servers
from recollect.stores.postgres.tenants.transfer import Side
from recollect.values.errors import InputError

USED = """SELECT coalesce(sum(live_memories), 0)::bigint, coalesce(sum(content_bytes), 0)::bigint,
    count(*) FILTER (WHERE live_memories IS NULL OR content_bytes IS NULL) FROM {s}.places WHERE tenant = %s"""
_SET = """INSERT INTO {s}.limits (tenant, memories, bytes, requests_per_second) VALUES (%s, %s, %s, %s)
    ON CONFLICT (tenant) DO UPDATE SET memories = excluded.memories, bytes = excluded.bytes,
    requests_per_second = excluded.requests_per_second"""

_MOST = 2**53
"""More than any server has, and exact as a number of any kind."""


class TenantUse(msgspec.Struct, frozen=True):
    """The limits of a tenant, and what it has of what they limit."""

    tenant: str
    server: str
    limits: TenantLimits
    memories: int
    bytes: int
    """Of content: the texts and data of memories."""


def set_limits(servers: Servers, tenant: str, *, none: bool = False, **values: float | None) -> TenantUse:
    """Change those limits of a tenant that are given, or with `none` remove all. Returns them, and what is used."""
    for name, value in values.items():
        if value is not None and not (0 <= value <= _MOST and (value > 0 or name != "requests_per_second")):
            raise InputError(name, f"must be a number from 0 to {_MOST:,}, and above 0 for requests a second")
    server = servers.look(tenant).server
    with Side(server, servers.server_of(tenant), tenant).transaction() as run:
        rows = run.rows(f"{LIMITS} FOR UPDATE")
        limits = TenantLimits(*rows[0]) if rows else TenantLimits()
        changes = {name: value for name, value in values.items() if value is not None}
        if none:
            run("DELETE FROM {s}.limits WHERE tenant = %s")
            limits = TenantLimits()
        elif changes:
            limits = msgspec.structs.replace(limits, **changes)
            run(_SET, limits.memories, limits.bytes, limits.requests_per_second)
        ((memories, size, _),) = run.rows(USED)
    return TenantUse(tenant, server, limits, memories, size)
