"""The schema of a PostgreSQL server: bring it up to date, look at it, print the roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from recollect.cli import output
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import BAD, CAREFUL, GOOD, QUIET, Column
from recollect.cli.target import Target, scoped
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.stores.postgres.connections import Location

_COMMANDS = {"upgrade": "db:upgrade", "status": "db:status", "roles": "db:roles"}
_LOOKS = {"ok": GOOD, "note": CAREFUL, "problem": BAD}


@click.group(cls=LazyGroup, sections={"Commands": _COMMANDS})
def db() -> None:
    """Set up a PostgreSQL server, and look after its schema.

    \b
    Example:
      recollect db upgrade --store postgresql://postgres@localhost/memories
      recollect db status --store postgresql://app@localhost/memories
    """


def location_of(target: Target) -> Location:
    from recollect.stores import split
    from recollect.stores.postgres.connections import Location

    kind, _ = split(target.location)
    if kind not in ("postgresql", "postgres"):
        raise InputError("store", f"{target.location} is not on a server; pass --store postgresql://user@host/database")
    return Location.of(target.location)


@click.command(cls=Leaf)
@scoped
def upgrade(target: Target) -> None:
    """Make the schema, or bring it up to date. Safe to run again, and by many at once.

    Makes the roles recollect_owner, recollect_app and recollect_admin too where the connecting role may do that;
    `recollect db roles` prints the SQL for somebody who may.

    \b
    Example:
      recollect db upgrade --store postgresql://postgres@localhost/memories
    """
    from recollect.stores.postgres.status import bring_up_to_date

    done = bring_up_to_date(location_of(target))
    if target.json:
        output.emit({"done": done})
        return
    for what in done:
        output.say(("made ", QUIET), what)
    output.say("The schema is up to date.")


@click.command(cls=Leaf)
@scoped
def status(target: Target) -> None:
    """Say how the server is set up. Changes nothing; exits with 1 if something is wrong.

    \b
    Example:
      recollect db status --store postgresql://app@localhost/memories
    """
    from recollect.stores.postgres.status import status as checks_of

    checks = checks_of(location_of(target))
    wrong = any(check.level == "problem" for check in checks)
    if target.json:
        output.emit({"ok": not wrong, "checks": checks})
    else:
        rows = [[check.name, (check.level, _LOOKS[check.level]), check.told] for check in checks]
        output.table([Column(""), Column(""), Column("", flexible=True, wrap=True)], rows)
    if wrong:
        click.get_current_context().exit(1)


@click.command(cls=Leaf)
@scoped
def roles(target: Target) -> None:
    """Print the SQL that makes the roles, for an administrator to run.

    For servers where the role that sets up recollect may not make roles itself. Run `recollect db upgrade` afterwards.

    \b
    Example:
      recollect db roles --store postgresql://me@db.example.com/memories | psql -U postgres memories
    """
    from recollect.stores.postgres.status import roles_for

    statements = roles_for(location_of(target))
    if target.json:
        output.emit({"sql": statements})
    else:
        click.echo("".join(f"{statement};\n" for statement in statements), nl=False)
