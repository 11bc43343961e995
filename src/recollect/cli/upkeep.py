"""Looking after everything in a store: verify, rebuild, migrate."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec.structs import replace

from recollect.cli import batch, output, text
from recollect.cli.lazy import Leaf
from recollect.cli.output import BAD, GOOD, STRONG, Column, Styled
from recollect.cli.progress import progress
from recollect.cli.sessions import opened, print_damage
from recollect.cli.target import Target, scoped_to_store, scoped_to_workspace
from recollect.cli.workers import note_away
from recollect.values.errors import NotFoundError

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.stores.port import Damage, Place, Store

T = TypeVar("T")


@click.command(cls=Leaf)
@scoped_to_workspace
def verify(target: Target) -> None:
    """Compare everything in the store with its checksums. Exits with 1 if something is damaged.

    Looks at all tenants and workspaces, or at those that --tenant and --workspace name.

    \b
    Example:
      recollect verify --store ledger:./memory
    """
    target.check_whole("verify")
    damages = _verified(target)
    _print_verified(target, damages)
    if any(damages.values()):
        click.get_current_context().exit(1)


def _verified(target: Target) -> dict[Place, list[Damage]]:
    """The damage of each place that the options name."""
    from recollect.stores.integrity import damage_in

    store, home = target.find()
    damages: dict[Place, list[Damage]] = {}
    with target.open((store, home), report_damage=False, usual=()):
        places = _places(store, target)
        with progress("Verifying", len(places)) as tell:
            for place in places:
                damages[place] = damage_in(store, place)
                tell(len(damages))
    return damages


def damage_elsewhere(target: Target) -> dict[str, list[str]]:
    """What is damaged in the tenant's other workspaces, by their names. On a server nothing: its own doctor looks."""
    if target.served:
        return {}
    here = target.workspace or target.defaults.workspace or "default"
    tenant = target.tenant or target.defaults.tenant or "default"
    whole = replace(target, tenant=tenant, workspace=None, agent=None, account=None, channel=None, conversation=None)
    return {
        _name(place): [f"{damage.where}: {damage.problem}" for damage in damages]
        for place, damages in _verified(whole).items()
        if damages and place.workspace != here
    }


def _places(store: Store, target: Target) -> list[Place]:
    from recollect.stores.port import Administered, Place

    tenants = [target.tenant or "default"]
    if target.tenant is None and isinstance(store, Administered):
        note_away(store)
        tenants = store.tenants()
    places: list[Place] = []
    for tenant in tenants:
        places += [p for p in store.places(tenant) if p.workspace and target.workspace in (None, p.workspace)]
        places.append(Place(tenant, None))
    if target.workspace is not None and all(place.workspace is None for place in places):
        raise NotFoundError(f"there is no workspace {target.workspace}")
    return places


def _print_verified(target: Target, by_place: dict[Place, list[Damage]]) -> None:
    number = sum(map(len, by_place.values()))
    if target.json:
        rows = [
            {"tenant": place.tenant, "workspace": place.workspace, "damage": [damage._asdict() for damage in damages]}
            for place, damages in by_place.items()
        ]
        output.emit({"ok": not number, "places": rows})
        return
    workspaces = sum(place.workspace is not None for place in by_place)
    if not workspaces and not number:
        output.say("There is nothing to verify yet.")
        return
    looked = f"Verified {text.count(workspaces, 'workspace', 'workspaces')}: "
    if not number:
        output.say(looked, ("every checksum matches", GOOD))
        return
    output.say(looked, (f"{text.count(number, 'thing is', 'things are')} damaged", BAD))
    for place, damages in by_place.items():
        if damages:
            output.say("")
            output.say((_name(place), STRONG))
            print_damage(damages)


def _name(place: Place) -> str:
    own = place.workspace or "what accounts share"
    return own if place.tenant == "default" else f"{place.tenant}/{own}"


def _one_or_all(command: Callable[..., None]) -> Callable[..., None]:
    """A session as an argument; without it, all of them."""

    @wraps(command)
    def run(target: Target, session: str | None, named: str | None) -> None:
        target.check_whole(command.__name__)
        command(target, session or named)

    option = click.option("--session", "named", metavar="ID", hidden=True)
    return click.argument("session", metavar="[ID]", required=False)(option(run))


@click.command(cls=Leaf)
@scoped_to_store
@_one_or_all
def rebuild(target: Target, session: str | None) -> None:
    """Make the index of a session anew from its log; without ID, of every session.

    \b
    Example:
      recollect ledger rebuild --store ledger:./memory
      recollect ledger rebuild sess_20260110_alice
    """
    with opened(target, session, usual=("tenant",)) as memory:
        counts, failed = _each(memory, session, "Rebuilding", memory.sessions.rebuild_index)
    if target.json:
        done = [{"session": name, "entries": number} for name, number in counts.items()]
        output.emit({"rebuilt": done, "failed": failed})
    elif not counts and not failed:
        output.say("There are no sessions yet.")
    elif counts:
        rows: list[list[Styled]] = [[name, f"{number:,}"] for name, number in counts.items()]
        output.table([Column("session", wrap=True), Column("memories", right=True)], rows)
        output.say(f"Rebuilt the index of {text.count(len(counts), 'session', 'sessions')}.")
    batch.end(failed, quiet=target.json)


def _each(
    memory: Memory, session: str | None, label: str, do: Callable[[str], T]
) -> tuple[dict[str, T], dict[str, str]]:
    """For all sessions; for one that was named, an error is an error."""
    return batch.each(label, memory.workspaces(), do) if session is None else ({session: do(session)}, {})


@click.command(cls=Leaf)
@scoped_to_store
@_one_or_all
def migrate(target: Target, session: str | None) -> None:
    """Bring sessions that an older version wrote up to date.

    The next write to a session does so too; this does it now, for one session or for all of them.

    \b
    Example:
      recollect ledger migrate --store ledger:./memory
    """
    with opened(target, session, usual=("tenant",)) as memory:
        done, failed = _each(memory, session, "Migrating", memory.sessions.migrate)
    migrated = [name for name, changed in done.items() if changed]
    current = [name for name, changed in done.items() if not changed]
    if target.json:
        output.emit({"migrated": migrated, "up_to_date": current, "failed": failed})
    elif not done and not failed:
        output.say("There are no sessions yet.")
    else:
        _print_migrated(migrated, len(current))
    batch.end(failed, quiet=target.json)


def _print_migrated(migrated: list[str], current: int) -> None:
    for name in migrated:
        output.say(("migrated", GOOD), "  ", (name, STRONG))
    if migrated:
        rest = f"; {text.count(current, 'was', 'were')} up to date already" if current else ""
        output.say(f"Migrated {text.count(len(migrated), 'session', 'sessions')}{rest}.")
    elif current:
        output.say(f"{text.count(current, 'session was', 'sessions were')} up to date already.")
