"""Tenants on several servers: list them, move one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import click

from recollect.cli import output, text
from recollect.cli.db import is_postgres, location_of
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import CAREFUL, QUIET, STRONG, Column, Styled
from recollect.cli.progress import bars
from recollect.cli.target import Target, scoped
from recollect.values.errors import InputError

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.stores.port import TenantLimits
    from recollect.stores.postgres.tenants.moving import MoveReceipt
    from recollect.stores.postgres.tenants.servers import Servers


_COMMANDS = {"list": "tenants:list_", "limit": "tenants:limit", "move": "tenants:move"}


@click.group(cls=LazyGroup, default="list", sections={"Commands": _COMMANDS})
def tenants() -> None:
    """List the tenants of a store; on PostgreSQL also limit one, or move one.

    \b
    Example:
      recollect tenants --store postgresql://home/memories --server b=postgresql://b/memories
      recollect tenants move acme --to b --store postgresql://home/memories --server b=postgresql://b/memories
    """


def _with_servers(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--server", "servers", multiple=True, metavar="NAME=URL", help="Another server; can be given several times."
    )(command)


def _opened(target: Target, servers: Sequence[str]) -> Servers:
    from recollect.stores.postgres.connections import Location
    from recollect.stores.postgres.server import Server
    from recollect.stores.postgres.tenants.servers import Servers

    named: dict[str, Server] = {}
    for server in servers:
        name, equals, url = server.partition("=")
        if not equals or not url.startswith(("postgresql://", "postgres://")):
            raise InputError("server", f"{name} needs a URL, as in {name or 'b'}=postgresql://user@host/database")
        named[name] = Server(Location.of(url))
    return Servers(Server(location_of(target)), named)


def _count(memory: Memory, tenant: str, workspace: str) -> int:
    tiers = memory.at(tenant=tenant, workspace=workspace).stats().tiers
    return sum(number for tier, number in tiers.items() if tier != "account")


def _list_in_folder(target: Target) -> None:
    from recollect.stores.port import Administered

    store, home = target.find()
    with target.open((store, home), report_damage=False, vectors=False, usual=()) as memory:
        names = store.tenants() if isinstance(store, Administered) else []
        workspaces = {name: memory.at(tenant=name).workspaces() for name in names}
        counts = {name: sum(_count(memory, name, own) for own in workspaces[name]) for name in names}
    if target.json:
        output.emit([{"tenant": name, "workspaces": len(workspaces[name]), "memories": counts[name]} for name in names])
    elif not names:
        output.say("There are no tenants yet.")
    else:
        rows: list[list[Styled]] = [[name, f"{len(workspaces[name]):,}", f"{counts[name]:,}"] for name in names]
        numbers = [Column("workspaces", right=True), Column("memories", right=True)]
        output.table([Column("tenant", STRONG), *numbers], rows)


@click.command("list", cls=Leaf)
@_with_servers
@scoped
def list_(target: Target, servers: Sequence[str]) -> None:
    """List all tenants with their workspaces and memories.

    On PostgreSQL also the server that each is on, its bytes and its limits; only members of the role recollect_admin
    may list them. The store itself is the server `home`. Tenants on a server that --server does not name are listed
    without a number.

    \b
    Example:
      recollect tenants list --store postgresql://home/memories --server b=postgresql://b/memories
    """
    if not is_postgres(target):
        _list_in_folder(target)
        return
    with closing(_opened(target, servers)) as opened:
        tenants = opened.tenants()
    if target.json:
        output.emit(tenants)
    elif not tenants:
        output.say("There are no tenants yet.")
    else:
        rows: list[list[Styled]] = [
            [
                tenant.tenant,
                tenant.server,
                _of(
                    "" if tenant.memories is None else f"{tenant.memories:,}", tenant.limits and tenant.limits.memories
                ),
                _of("" if tenant.bytes is None else f"{tenant.bytes:,}", tenant.limits and tenant.limits.bytes),
                _rate(tenant.limits),
                (f"moving to {tenant.moving_to}" if tenant.moving_to else "", CAREFUL),
            ]
            for tenant in tenants
        ]
        numbers = [Column(name, right=True) for name in ("memories", "bytes", "a second")]
        output.table([Column("tenant"), Column("server"), *numbers, Column("")], rows)


def _of(used: str, limit: int | None) -> str:
    return used if limit is None else f"{used} of {limit:,}"


def _rate(limits: TenantLimits | None) -> str:
    rate = limits and limits.requests_per_second
    return "" if rate is None else f"{rate:g}"


@click.command(cls=Leaf)
@click.argument("name", metavar="TENANT")
@click.option("--memories", type=click.IntRange(0), metavar="N", help="How many memories it may have.")
@click.option("--bytes", "size", type=click.IntRange(0), metavar="N", help="How many bytes their content may have.")
@click.option(
    "--requests-per-second",
    "rate",
    type=click.FloatRange(0.1, 1e6),
    metavar="X",
    help="Over time, of `recollect serve`.",
)
@click.option("--none", "unlimited", is_flag=True, help="Take all its limits away.")
@_with_servers
@scoped
def limit(
    target: Target,
    name: str,
    memories: int | None,
    size: int | None,
    rate: float | None,
    unlimited: bool,
    servers: Sequence[str],
) -> None:
    """Limit how much a tenant may store and ask for, or show its limits.

    What would pass a limit is refused with a LimitError, and nothing of it is stored; deleting and erasing are always
    allowed. Limits that are not given stay as they are. A server heeds a new --requests-per-second after 30 seconds at
    most. The role must own the tables (recollect_owner).

    \b
    Example:
      recollect tenants limit acme --memories 100000 --bytes 50000000 --store postgresql://home/memories
      recollect tenants limit acme --none --store postgresql://home/memories
    """
    from recollect.stores.postgres.tenants.limits import set_limits
    from recollect.values import validation

    if unlimited and (memories, size, rate) != (None, None, None):
        raise click.UsageError("give either limits or --none.")
    values = {"memories": memories, "bytes": size, "requests_per_second": rate}
    with closing(_opened(target, servers)) as opened:
        use = set_limits(opened, validation.name(name, "tenant"), none=unlimited, **values)
    if target.json:
        output.emit(use)
        return
    rows: list[list[Styled]] = [
        ["memories", f"{use.memories:,}", _limit(use.limits.memories)],
        ["bytes", f"{use.bytes:,}", _limit(use.limits.bytes)],
        ["requests a second", "", _limit(use.limits.requests_per_second)],
    ]
    output.table([Column(use.tenant), Column("has", right=True), Column("may have", right=True)], rows)


def _limit(value: float | None) -> str:
    return "no limit" if value is None else f"{value:,}"


@click.command(cls=Leaf)
@click.argument("name", metavar="TENANT")
@click.option("--to", metavar="SERVER", help="The server to move it to: one of --server, or home.")
@click.option("--rollback", is_flag=True, help="Take a move back that was begun: the tenant stays where it is.")
@click.option("--empty", is_flag=True, help="Also a tenant that has nothing yet, so that it begins there.")
@_with_servers
@scoped
def move(target: Target, name: str, to: str | None, rollback: bool, empty: bool, servers: Sequence[str]) -> None:
    """Move a tenant to another server while it is read and written.

    Its memories, shelves and audit log are copied while it is used; for some milliseconds at the end writers wait.
    Everything is compared before the source is emptied. Killed or not, run it again and it goes on, or take it back
    with --rollback. Processes that should follow the tenant name the servers: Memory(…, servers={…}). The role must
    own the tables (recollect_owner) on both servers.

    \b
    Example:
      recollect tenants move acme --to b --store postgresql://home/memories --server b=postgresql://b/memories
      recollect tenants move acme --rollback --store postgresql://home/memories --server b=postgresql://b/memories
    """
    from recollect.stores.postgres.tenants import moving

    if rollback == (to is not None):
        raise click.UsageError("give either --to SERVER or --rollback.")
    with closing(_opened(target, servers)) as opened, bars() as tell:
        receipt = moving.roll_back(opened, name) if to is None else moving.move(opened, name, to, tell, empty=empty)
    if target.json:
        output.emit(receipt)
    else:
        _show(receipt)


def _show(receipt: MoveReceipt) -> None:
    if receipt.state == "rolled back":
        output.say((receipt.tenant, STRONG), f" stays on {receipt.source}; what was copied is gone.")
        return
    if receipt.state == "there already":
        output.say((receipt.tenant, STRONG), f" is on {receipt.target} already.")
        return
    count = text.count(receipt.memories)
    output.say("Moved ", (receipt.tenant, STRONG), f" from {receipt.source} to {receipt.target}: {count}.")
    waited = "" if receipt.frozen_ms is None else f"; writers waited {receipt.frozen_ms:g} ms"
    output.say((f"{sum(receipt.rows.values()):,} rows in {receipt.seconds:.1f} s{waited}", QUIET))
    output.say((f"checksum {receipt.checksum}", QUIET))
