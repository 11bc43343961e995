"""Looking after all tenants: `maintain --all-tenants`, by as many processes as one likes.

They share the work by the leases of the jobs. Each goes through the tenants in an order of its own, so that they are
seldom at the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from recollect.cli import output
from recollect.cli.maintaining import print_done, seconds, stop_on_signal
from recollect.cli.output import STRONG
from recollect.cli.target import Target
from recollect.values.errors import RecollectError, StoreError

if TYPE_CHECKING:
    from recollect.maintenance.schedule import Maintained
    from recollect.memory import Memory
    from recollect.stores.port import Store


def look_after_all(target: Target, watch: bool, **options: Any) -> None:
    """Once, or until told to stop. What is wrong with one tenant keeps nobody from the others."""
    target.check_whole("maintain")
    for part in ("tenant", "workspace"):
        if part in target.address():
            raise click.UsageError(f"--all-tenants is about all of them: leave out --{part}.")
    located = target.find()
    with target.open(located, usual=()) as memory, stop_on_signal() as stop:
        while True:
            well = _round(target, located[0], memory, stop.is_set, options)
            if not watch or stop.wait(seconds(memory)):
                break
    if not well:
        click.get_current_context().exit(1)


def _round(target: Target, store: Store, memory: Memory, stopping: Callable[[], bool], options: dict[str, Any]) -> bool:
    """Whether all went well."""
    from recollect.server.upkeep import workspaces

    reports: list[dict[str, Any]] = []
    well = idle = True
    try:
        note_away(store)
        for view in workspaces(store, memory):
            if stopping():
                break
            try:
                done = view.maintain(**options, stopping=stopping)
            except RecollectError as error:  # of this one; perhaps only now
                well = False
                output.note(f"recollect: {_name(view)}: {error}")
                continue
            if done.jobs:
                idle = False
                reports.append({"tenant": view.address.tenant, "workspace": view.address.workspace, **_plain(done)})
                if not target.json:
                    output.say((_name(view), STRONG))
                    print_done(done, view, target, options["dry_run"])
    except StoreError as error:  # the store is away
        well = False
        output.note(f"recollect: {error}")
    if target.json:
        output.emit({"dry_run": options["dry_run"], "workspaces": reports})
    elif idle and well and not stopping():
        output.say("Nothing to do.")
    return well


def note_away(store: Store) -> None:
    """Say whom a command about all tenants does not reach."""
    from recollect.stores.port import HasRemoteTenants

    if isinstance(store, HasRemoteTenants) and (away := store.away()):
        named = ", ".join(f"{tenant} on {server}" for tenant, server in sorted(away.items()))
        output.note(f"recollect: left out, being on other servers: {named}")


def _plain(done: Maintained) -> dict[str, Any]:
    return msgspec.to_builtins(done)


def _name(view: Memory) -> str:
    return f"{view.address.tenant}/{view.address.workspace}"
