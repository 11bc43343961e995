"""The schema of a PostgreSQL server: bring it up to date, look at it, print the roles."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from recollect.cli import output
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import BAD, CAREFUL, GOOD, QUIET, Column
from recollect.cli.progress import bars
from recollect.cli.target import Target, scoped
from recollect.values.errors import AccessError, InputError

if TYPE_CHECKING:
    from recollect.stores.postgres.admin.nearest import IndexChange
    from recollect.stores.postgres.admin.status import Check
    from recollect.stores.postgres.connections import Location

_COMMANDS = {
    "upgrade": "db:upgrade",
    "status": "db:status",
    "roles": "db:roles",
    "restore-check": "db:restore_check",
    "index": "db:index",
    "recount": "db:recount",
    "partitions": "db:partitions",
    "metrics": "db:metrics",
}
_LOOKS = {"ok": GOOD, "note": CAREFUL, "problem": BAD}


@click.group(cls=LazyGroup, sections={"Commands": _COMMANDS})
def db() -> None:
    """Set up a PostgreSQL server, and look after its schema.

    \b
    Example:
      recollect db upgrade --store postgresql://postgres@localhost/memories
      recollect db status --store postgresql://app@localhost/memories
    """


def is_postgres(target: Target) -> bool:
    from recollect.stores import split

    return split(target.location)[0] in ("postgresql", "postgres")


def location_of(target: Target) -> Location:
    from recollect.stores.postgres.connections import Location

    if not is_postgres(target):
        raise InputError("store", f"{target.shown} is not PostgreSQL; pass --store postgresql://user@host/database")
    return Location.of(target.location)


@click.command(cls=Leaf)
@click.option("--plan", "planned", is_flag=True, help="Only say what is pending, and which tables it locks and reads.")
@scoped
def upgrade(target: Target, planned: bool) -> None:
    """Make the schema, or bring it up to date. Safe to run again, and by many at once.

    Others go on reading and writing: for the lock of a table it waits half a second, gives way and tries again for a
    minute. Indexes of large tables are built concurrently; killed in the middle, run it again.

    Makes the roles recollect_owner, recollect_app and recollect_admin too where the connecting role may do that;
    `recollect db roles` prints the SQL for somebody who may. Repairs owners, policies, functions and grants of
    recollect's tables where they are not as it makes them, as after a restore without the roles.

    \b
    Example:
      recollect db upgrade --plan --store postgresql://postgres@localhost/memories
      recollect db upgrade --store postgresql://postgres@localhost/memories
    """
    if planned:
        _show_plan(target)
        return
    from recollect.stores.postgres.admin.counters import recount as recount_places
    from recollect.stores.postgres.admin.status import bring_up_to_date

    location = location_of(target)
    done = bring_up_to_date(location)
    with suppress(AccessError):  # what this role may not count is counted with the next change of each workspace
        if counted := recount_places(location, only_uncounted=True):
            done.made.append(f"counters of {len(counted):,} workspaces")
    if target.json:
        output.emit({"done": done.made, "repaired": done.repaired, "left": done.left})
        return
    for what in done.made:
        output.say(("made ", QUIET), what)
    for what in done.repaired:
        output.say(("repaired ", QUIET), what)
    for what in done.left:
        output.say(("left as it is: ", CAREFUL), f"{what}; that is for an administrator to change")
    output.say("The schema is up to date.")


def _show_plan(target: Target) -> None:
    from recollect.stores.postgres.admin.plan import upgrade_plan

    migrations = upgrade_plan(location_of(target))
    if target.json:
        output.emit({"pending": migrations})
        return
    for migration in migrations:
        output.say(migration.name, ("" if migration.transaction else "  indexes, built concurrently", QUIET))
        for table in migration.tables:
            work = "" if table.work == "none" else f", {table.work} of some {table.seconds:g} s"
            output.say(f"  {table.table:<12} {table.lock}{work}", (f"  {table.bytes / 1e6:,.1f} MB", QUIET))
        if not migration.tables:
            output.say(("  locks no table that is there", QUIET))
    if not migrations:
        output.say("The schema is up to date.")


@click.command(cls=Leaf)
@scoped
def status(target: Target) -> None:
    """Say how the server is set up. Changes nothing; exits with 1 if something is wrong.

    \b
    Example:
      recollect db status --store postgresql://app@localhost/memories
    """
    from recollect.stores.postgres.admin.status import status as checks_of

    _print_checks(target, checks_of(location_of(target)))


@click.command(cls=Leaf)
@scoped
def restore_check(target: Target) -> None:
    """Say what a restore has left wrong. Changes nothing; exits with 1 if something is wrong.

    Looks at roles, owners, grants and policies, at pgvector, and at the rows of all tenants: whether those of
    different tables belong together, whether the counters are behind them, and whether every audit log has its end.
    Needs a superuser, or a member of recollect_admin and recollect_app.

    \b
    Example:
      recollect db restore-check --store postgresql://postgres@localhost/memories
    """
    from recollect.stores.postgres.admin.restored import check_restore

    _print_checks(target, check_restore(location_of(target)))


def _print_checks(target: Target, checks: Sequence[Check]) -> None:
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
    from recollect.stores.postgres.admin.status import roles_for

    statements = roles_for(location_of(target))
    if target.json:
        output.emit({"sql": statements})
    else:
        click.echo("".join(f"{statement};\n" for statement in statements), nl=False)


@click.command(cls=Leaf)
@click.option(
    "--above", type=click.IntRange(min=1), help="Vectors from which a place gets an index.  [default: 20,000]"
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@scoped
def index(target: Target, above: int | None, dry_run: bool) -> None:
    """Give large workspaces an index of their vectors, and take it from those that have shrunk.

    Up to some 20,000 vectors are compared one by one, which is exact. Run it every night, as a role that may act as
    the owner of the tables. Writers do not wait for it. Says which share of the true ten each index finds.

    \b
    Example:
      recollect db index --store postgresql://postgres@localhost/memories --dry-run
    """
    from recollect.stores.postgres.admin.nearest import ABOVE, Indexer

    indexer = Indexer(location_of(target), above or ABOVE)
    quiet = target.json or dry_run
    changes = indexer.plan() if dry_run else indexer.run() if quiet else indexer.run(_print_change)
    if target.json:
        output.emit({"dry_run": dry_run, "changes": changes})
        return
    if dry_run:
        for change in changes:
            _print_change(change)
    if not changes:
        output.say("No workspace is so large that it needs an index.")


def _print_change(change: IndexChange) -> None:
    recall = "" if change.recall is None else f", finds {change.recall:.0%} of the true ten"
    place = f"{change.tenant} / {change.workspace}"
    output.say((f"{change.action:<6}", QUIET), place, f"  {change.vectors:,} vectors of {change.model}{recall}")


@click.command(cls=Leaf)
@scoped
def recount(target: Target) -> None:
    """Count the memories and bytes of all workspaces again, where `recollect doctor` says that a count is wrong.

    Limits of tenants go by these counts. One workspace at a time, whose writers wait meanwhile; readers do not. Needs a
    role that may act as the owner of the tables and sees all tenants.

    \b
    Example:
      recollect db recount --store postgresql://postgres@localhost/memories
    """
    from recollect.stores.postgres.admin.counters import recount as recount_places

    changed = recount_places(location_of(target))
    if target.json:
        output.emit({"changed": changed})
        return
    for place in changed:
        output.say(
            f"{place.tenant} / {place.workspace}  {place.memories:,} memories, {place.bytes:,} bytes",
            (f"  (was {_count(place.memories_before)}, {_count(place.bytes_before)})", QUIET),
        )
    output.say("All counts are right." if not changed else f"Corrected {len(changed):,} counts.")


@click.command(cls=Leaf)
@click.argument("number", type=click.IntRange(1, 1024), required=False)
@scoped
def partitions(target: Target, number: int | None) -> None:
    """Show how many partitions the table of vectors has, or spread it over NUMBER of them.

    Sixteen are made at first. Tenants are spread by a hash of their name, so more partitions keep each of them small
    where there are very many tenants. All vectors are copied in one transaction: whoever stores a vector waits until it
    is over, for 10 s at most, and gets a ConcurrencyError then; readers wait only at its end. Indexes of large
    workspaces are dropped: run `recollect db index` afterwards. Needs a role that may act as the owner of the tables.

    \b
    Example:
      recollect db partitions 64 --store postgresql://postgres@localhost/memories
    """
    from recollect.stores.postgres.admin.partitions import partition_count, repartition

    location = location_of(target)
    if number is None:
        count = partition_count(location)
        output.emit({"partitions": count}) if target.json else output.say(f"{count} partitions")
        return
    with bars() as tell:
        done = repartition(location, number, lambda copied, total: tell("copying tenants", copied, total))
    if target.json:
        output.emit(done)
        return
    if done.before == done.partitions:
        output.say(f"The table of vectors has {done.partitions} partitions already.")
        return
    output.say(f"{done.vectors:,} vectors of {done.tenants:,} tenants are in {done.partitions} partitions now.")
    if done.indexes_dropped:
        output.say((f"{done.indexes_dropped} indexes were dropped: run `recollect db index`.", CAREFUL))


def _count(value: int | None) -> str:
    return "not counted" if value is None else f"{value:,}"


@click.command(cls=Leaf)
@scoped
def metrics(target: Target) -> None:
    """Print numbers about the server for Prometheus: whether it answers, tenants by size, indexes of vectors.

    `recollect serve` shows the same at /metrics, with what its own process did. What only a member of recollect_admin
    may count is left out for others. Exits with 1 if the server does not answer.

    \b
    Example:
      recollect db metrics --store postgresql://admin@localhost/memories
    """
    from recollect.server.metrics import exposition
    from recollect.stores.postgres.metrics import ServerGauges
    from recollect.stores.postgres.tenants.placement import HOME

    gauges = ServerGauges(HOME, location_of(target))
    values = gauges.values()
    if target.json:
        output.emit(
            {"metrics": [{"name": m.name, "labels": dict(m.labels), "value": m.value, "help": m.help} for m in values]}
        )
    else:
        click.echo(exposition(values), nl=False)
    if gauges.problem:
        output.note(gauges.problem)
        click.get_current_context().exit(1)
