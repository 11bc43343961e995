"""Keys for programs that use a server, managed where its store is."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from recollect.cli import output, times
from recollect.cli.asking import confirm
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import QUIET, STRONG, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.cli.text import moment
from recollect.values.errors import InputError
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.server.access.accounts import Accounts
    from recollect.server.access.keys import IssuedKey

ROLES = ("reader", "member", "admin", "owner")
BOUND = ("tenant", "workspace", "account", "agent")


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            "list": "keys:list_",
            "create": "keys:create",
            "rotate": "keys:rotate",
            "remove": "keys:remove",
        }
    },
    former={"revoke": "remove --yes"},
)
def keys() -> None:
    """Make, list and remove the keys of a server.

    \b
    Example:
      recollect keys create laptop --role member
      recollect keys create reports --role reader --tenant acme --workspace sales
      recollect keys remove 3f2a91bc07de
    """


@contextmanager
def open_accounts(target: Target) -> Generator[Accounts]:
    from recollect.memory import view_of
    from recollect.server.access.accounts import Accounts

    with target.open(target.find(), create=True, report_damage=False, vectors=False) as memory:
        yield Accounts(view_of(memory).store)


def bound(target: Target) -> dict[str, str | None]:
    """What the shared options bind a key or a person to."""
    for part in ("channel", "conversation"):
        if getattr(target, part) is not None:
            raise InputError(part, f"a key or a person is bound to {', '.join(BOUND)} only; leave out --{part}")
    return {part: value for part in BOUND if (value := getattr(target, part)) is not None}


@click.command("list", cls=Leaf)
@scoped
def list_(target: Target) -> None:
    """List the keys, newest first. Secrets are shown once, when they are made.

    \b
    Example:
      recollect keys --tenant acme
    """
    with open_accounts(target) as accounts:
        keys = accounts.keys.list(target.tenant)
    if target.json:
        output.emit(keys)
    elif not keys:
        output.say("There are no keys yet. Make one with `recollect keys create NAME`.")
    else:
        rows: list[list[Styled]] = [
            [
                key.id,
                key.name,
                key.rank,
                (
                    " ".join(f"{part}={value}" for part in BOUND if (value := getattr(key, part))) or "all tenants",
                    QUIET,
                ),
                "revoked"
                if key.revoked_at
                else "expired"
                if key.expires_at and key.expires_at <= utc_now()
                else (moment(key.last_used, utc_now()) if key.last_used else "never used"),
            ]
            for key in keys
        ]
        columns = [Column("id"), Column("name"), Column("role"), Column("bound to"), Column("last used")]
        output.table(columns, rows)


@click.command(cls=Leaf)
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="member", show_default=True, help="What it may do.")
@click.option("--expires", metavar="TIME", help="When it stops working: ISO 8601, or 90d from now.")
@click.option("--all-tenants", is_flag=True, help="For a service that names the tenant in each request.")
@scoped
def create(target: Target, name: str, role: str, expires: str | None, all_tenants: bool) -> None:
    """Make a key, bound to what --tenant, --workspace, --account and --agent say. Its secret is shown this once.

    A reader looks, a member also writes, an admin also maintains and manages keys, an owner may all.

    \b
    Example:
      recollect keys create laptop --role member --tenant acme --agent atlas
    """
    with open_accounts(target) as accounts:
        _tell(
            target,
            accounts.keys.create(
                name, role, expires_at=times.future(expires, "expires"), all_tenants=all_tenants, **bound(target)
            ),
        )


def _tell(target: Target, made: IssuedKey) -> None:
    if target.json:
        output.emit(made)
        return
    output.say((made.secret, STRONG))
    output.note(f"Keep it: it is shown this once. Its id is {made.key.id}.")


@click.command(cls=Leaf)
@click.argument("id")
@scoped
def rotate(target: Target, id: str) -> None:
    """Give a key another secret. The one before it stops working at once.

    \b
    Example:
      recollect keys rotate 3f2a91bc07de
    """
    with open_accounts(target) as accounts:
        _tell(target, accounts.keys.rotate(id))


@click.command(cls=Leaf)
@click.argument("id")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@scoped
def remove(target: Target, id: str, yes: bool) -> None:
    """Remove a key: it stops working at once, in every process that serves this store.

    \b
    Example:
      recollect keys remove 3f2a91bc07de
    """
    if not yes:
        with open_accounts(target) as accounts:
            named = accounts.keys.get(id).name
        confirm(f"Remove the key {id} ({named}) for good?", no="nothing was removed")
    with open_accounts(target) as accounts:
        key = accounts.keys.revoke(id)
    if target.json:
        output.emit(key)
    else:
        output.say(f"Removed {key.name} ({key.id}).")
