"""Copying a whole store into another kind of store."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click
import msgspec

from recollect.cli import output, text
from recollect.cli.lazy import Leaf
from recollect.cli.output import BAD, CAREFUL, GOOD, QUIET, STRONG, Column
from recollect.cli.paths import PATH
from recollect.cli.progress import bars
from recollect.cli.target import Target, scoped
from recollect.values.errors import AccessError, InputError

if TYPE_CHECKING:
    from recollect.stores.copying.copy import Copied, Loss, Plan
    from recollect.stores.port import Store


_USER = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")
_QUERY = re.compile(r"([?&][a-z]*password=)[^&]*")


def _several_tenants(command: Callable[..., None]) -> Callable[..., None]:
    """In place of the shared option, which names one."""
    params: list[click.Parameter] = command.__click_params__  # pyright: ignore[reportFunctionMemberAccess]
    params[:] = [param for param in params if param.name != "tenant"]
    return click.option(
        "--tenant",
        "tenants",
        multiple=True,
        envvar="RECOLLECT_TENANT",
        metavar="NAME",
        help="Only this tenant; can be given several times.  [default: all]",
    )(command)


@click.command(cls=Leaf)
@click.argument("source", metavar="FROM", type=PATH)
@click.argument("destination", metavar="TO", type=PATH)
@click.option("--dry-run", is_flag=True, help="Look at everything, say what would be lost, and copy nothing.")
@click.option("--lossy", is_flag=True, help="Copy also if TO cannot hold all of it.")
@_several_tenants
@scoped
def copy(target: Target, source: str, destination: str, tenants: Sequence[str], dry_run: bool, lossy: bool) -> None:
    """Copy a whole store into another, of whatever kind.

    All tenants and workspaces: memories in every state with their vectors, what is on shelves, the audit log with its
    hashes, and what undo needs. TO must hold nothing of them. What it cannot hold is named before anything is copied.
    Everything is compared at the end. Killed or not, run it again and it goes on where it was.

    \b
    Example:
      recollect copy sqlite:./memory ledger:./ledger --dry-run
      recollect copy sqlite:./memory ledger:./ledger
    """
    if "store" in target.typed_options:
        raise click.UsageError("FROM and TO are the stores; leave out --store.")
    if bound := sorted(target.address()):
        raise AccessError(f"copy: whole tenants are copied; leave out --{bound[0]}")
    from recollect.stores.copying import copy as copying

    with closing(_source(target, source)) as from_, closing(_opened(target, destination)) as to, bars() as tell:
        if dry_run:
            planned = copying.plan(from_, to, tenants=tenants, progress=tell)
            _show_plan(target, planned, _shown(destination))
            return
        try:
            done = copying.copy(from_, to, tenants=tenants, lossy=lossy, progress=tell)
        except KeyboardInterrupt:
            output.note(f"Broken off: {_shown(destination)} does not have all of it. Run it again, and it goes on.")
            raise
        except InputError as error:
            raise InputError(error.field, error.problem.replace("`lossy`", "--lossy")) from error
    _show(target, done, _shown(destination))


def _shown(location: str) -> str:
    """Without a password."""
    return _QUERY.sub(r"\1…", _USER.sub(r"\1:…@", location))


def _source(target: Target, location: str) -> Store:
    named = msgspec.structs.replace(target, store=location)
    store, home = named.find()
    if home is not None and not home.exists(location):
        raise InputError("source", f"there is no memory at {location}")
    return store


def _opened(target: Target, location: str) -> Store:
    store, home = msgspec.structs.replace(target, store=location).find()
    if home is not None:
        home.exists(location)  # which says so if something else is there
    return store


def _show_plan(target: Target, planned: Plan, destination: str) -> None:
    if target.json:
        output.emit(planned)
        return
    what = f"{text.count(planned.memories)} in {text.count(len(planned.places), 'place', 'places')}"
    if planned.there:
        output.say(f"All of it is there already: {what} in ", (destination, STRONG))
    else:
        verb = "go on with a copy of" if planned.resumes else "copy"
        output.say(f"Would {verb} {what} to ", (destination, STRONG))
    _show_losses(planned.losses, "would be lost")
    if not planned.losses and not planned.there:
        output.say(("Nothing would be lost.", GOOD))


def _show(target: Target, done: Copied, destination: str) -> None:
    if target.json:
        document: dict[str, Any] = msgspec.to_builtins(done)
        output.emit({**document, "memories": done.memories, "verified": True})
        return
    columns = [
        Column("workspace"),
        Column("memories", right=True),
        Column("things", right=True),
        Column("audit", right=True),
        Column("checksum", QUIET),
    ]
    output.table(
        columns,
        [
            (_named(place.tenant, place.workspace), *(f"{n:,}" for n in (place.memories, place.things, place.entries)),
             place.checksum[:19])
            for place in done.places
        ],
    )  # fmt: skip
    _show_losses(done.losses, "was lost")
    if done.there:
        output.say(f"All of it was there already: {text.count(done.memories)} in ", (destination, STRONG), "; ",
                   ("all of it compared.", GOOD))  # fmt: skip
        return
    how = "Went on, and copied" if done.resumed else "Copied"
    again = f" The source changed meanwhile: it was gone through {done.rounds} times." if done.rounds > 1 else ""
    output.say(
        f"{how} {text.count(done.memories)} to ", (destination, STRONG), "; ", ("all of it compared.", GOOD), again
    )


def _show_losses(losses: Sequence[Loss], what: str) -> None:
    for loss in losses:
        output.hanging((what if loss.possible else "impossible", CAREFUL if loss.possible else BAD), str(loss))


def _named(tenant: str, workspace: str | None) -> str:
    name = "(accounts)" if workspace is None else workspace.strip()
    return name if tenant == "default" else f"{tenant}/{name}"
