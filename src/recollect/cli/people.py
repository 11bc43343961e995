"""People who log in to a server, managed where its store is."""

from __future__ import annotations

import sys

import click

from recollect.cli import output
from recollect.cli.asking import confirm
from recollect.cli.keys import BOUND, ROLES, bound, open_accounts
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import QUIET, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.cli.text import moment
from recollect.values.record import utc_now


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            "list": "people:list_",
            "add": "people:add",
            "password": "people:password",
            "remove": "people:remove",
        }
    },
)
def people() -> None:
    """Add, list and remove the people who log in to a server.

    \b
    Example:
      recollect people add ada --role admin --tenant acme
    """


@click.command("list", cls=Leaf)
@scoped
def list_(target: Target) -> None:
    """List the people who can log in.

    \b
    Example:
      recollect people
    """
    with open_accounts(target) as accounts:
        people = accounts.people.list(target.tenant)
    if target.json:
        output.emit(people)
    elif not people:
        output.say("There is nobody yet. Add somebody with `recollect people add NAME`.")
    else:
        rows: list[list[Styled]] = [
            [
                person.name,
                person.rank,
                (" ".join(f"{part}={value}" for part in BOUND if (value := getattr(person, part))), QUIET),
                moment(person.last_login, utc_now()) if person.last_login else "never",
            ]
            for person in people
        ]
        output.table([Column("name"), Column("role"), Column("bound to"), Column("last login")], rows)


def _password() -> str:
    """Typed twice, or the first line of a pipe."""
    if sys.stdin.isatty():
        return click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return sys.stdin.readline().rstrip("\n")


@click.command(cls=Leaf)
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="member", show_default=True, help="What they may do.")
@click.option("--no-password", is_flag=True, help="They come by OpenID Connect only, with NAME as their e-mail.")
@click.option("--subject", metavar="ID", help="What the provider calls them: then their e-mail alone is not enough.")
@scoped
def add(target: Target, name: str, role: str, no_password: bool, subject: str | None) -> None:
    """Add somebody, bound to what --tenant, --workspace, --account and --agent say.

    The password is asked for, or read from the first line of stdin. It needs 12 characters. Somebody without one comes
    by the provider that `recollect serve --oidc-issuer` names.

    \b
    Example:
      recollect people add ada --role admin
      recollect people add ada@example.org --role admin --no-password
    """
    with open_accounts(target) as accounts:
        password = None if no_password else _password()
        person = accounts.people.add(name, password, role, subject=subject, **bound(target))
    if target.json:
        output.emit(person)
    else:
        output.say(f"Added {person.name}, {person.rank}.")


@click.command(cls=Leaf)
@click.argument("name")
@scoped
def password(target: Target, name: str) -> None:
    """Set another password. Everywhere they are logged in, they are logged out.

    \b
    Example:
      recollect people password ada
    """
    with open_accounts(target) as accounts:
        accounts.people.get(name, target.tenant)
        accounts.people.set_password(name, _password(), target.tenant)
    if target.json:
        output.emit({"name": name})
    else:
        output.say(f"{name} has another password.")


@click.command(cls=Leaf)
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@scoped
def remove(target: Target, name: str, yes: bool) -> None:
    """Remove a person, who is logged out at once.

    \b
    Example:
      recollect people remove ada
    """
    if not yes:
        confirm(f"Remove {name} for good?", no="nobody was removed")
    with open_accounts(target) as accounts:
        accounts.people.remove(name, target.tenant)
    if target.json:
        output.emit({"name": name})
    else:
        output.say(f"Removed {name}.")
