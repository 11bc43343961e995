"""Tenants on several servers: list them, move one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import click

from recollect.cli import output, text
from recollect.cli.db import location_of
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import CAREFUL, QUIET, STRONG, Column, Styled
from recollect.cli.progress import bars
from recollect.cli.target import Target, scoped
from recollect.values.errors import InputError

if TYPE_CHECKING:
    from recollect.stores.postgres.tenants.moving import MoveReceipt
    from recollect.stores.postgres.tenants.servers import Servers


@click.group(cls=LazyGroup, default="list", sections={"Commands": {"list": "tenants:list_", "move": "tenants:move"}})
def tenants() -> None:
    """List the tenants on PostgreSQL servers, or move one while it is used.

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


@click.command("list", cls=Leaf)
@_with_servers
@scoped
def list_(target: Target, servers: Sequence[str]) -> None:
    """List all tenants, the server that each is on, and how many memories it has.

    Only members of the role recollect_admin may. The store itself is the server `home`. Those on a server that was not
    named with --server are listed without a number.

    \b
    Example:
      recollect tenants list --store postgresql://home/memories --server b=postgresql://b/memories
    """
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
                "" if tenant.memories is None else f"{tenant.memories:,}",
                (f"moving to {tenant.moving_to}" if tenant.moving_to else "", CAREFUL),
            ]
            for tenant in tenants
        ]
        output.table([Column("tenant"), Column("server"), Column("memories", right=True), Column("")], rows)


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
