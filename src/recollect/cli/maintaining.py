"""What time does to memories: maintain."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.intake import piped
from recollect.cli.lazy import Leaf
from recollect.cli.output import CAREFUL, GOOD, QUIET, STRONG, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.maintenance.jobs import EVERY
from recollect.values.errors import StoreError

if TYPE_CHECKING:
    from recollect.maintenance.schedule import JobReport, Maintained
    from recollect.maintenance.steps import Step
    from recollect.memory import Memory

_SAMPLE = 5
_JOBS = [job.name for job in EVERY]
_JOB_HELP = f"Only this job, due or not: {', '.join(_JOBS)}."
_DONE = {"archive": "archived", "promote": "promoted", "merge": "merged", "supersede": "superseded", "forget": "forgot"}


@click.command(cls=Leaf)
@takes("maintain", hide=("jobs", "only"))
@click.option("--review", is_flag=True, help="Show each change that is held back or merges memories, and ask.")
@click.option("--job", "jobs", multiple=True, type=click.Choice(_JOBS), metavar="NAME", help=_JOB_HELP)
@click.option("--watch", is_flag=True, help="Go on, and run due jobs, until Ctrl-C or SIGTERM.")
@click.option("--all-tenants", is_flag=True, help="In every workspace of every tenant.")
@scoped
def maintain(target: Target, call: Call, review: bool, jobs: tuple[str, ...], watch: bool, all_tenants: bool) -> None:
    """Run the jobs that are due, as the preset says.

    They archive what has decayed, keep the quota, consolidate, make missing vectors, and drop what it takes to undo
    changes older than 30 days. Each change is in the audit log and can be undone. Several processes may run this at
    once: a job is done by one of them. --watch ends on Ctrl-C or SIGTERM, after the job that it is in.

    \b
    Example:
      recollect maintain --preset atlas --dry-run
      recollect maintain --preset inklings --review
      recollect maintain --all-tenants --watch --store postgresql://localhost/memories
    """
    options: dict[str, Any] = {**call.options, "jobs": jobs or None}
    dry_run, force = options["dry_run"], options["force"]
    if watch and (dry_run or review):
        raise click.UsageError("--watch runs unasked: leave out --dry-run and --review.")
    if review and (dry_run or force):
        raise click.UsageError("--review asks about each change: leave out --dry-run and --force.")
    if all_tenants:
        if review:
            raise click.UsageError("--review asks about one workspace: leave out --all-tenants.")
        from recollect.cli.workers import look_after_all

        look_after_all(target, watch, **options)
        return
    with target.open() as memory:
        if watch:
            _watch(memory, target, **options)
            return
        done = _reviewed(memory, **options) if review else memory.maintain(**options)
        if target.json:
            output.emit({"dry_run": dry_run, **msgspec.to_builtins(done)})
        else:
            print_done(done, memory, target, dry_run)


def _watch(memory: Memory, target: Target, **options: Any) -> None:
    with stop_on_signal() as stop:
        while not stop.is_set():
            try:
                done = memory.maintain(**options, stopping=stop.is_set)
            except StoreError as error:  # busy or full now, and perhaps not the next time
                output.note(f"recollect: {error}")
            else:
                if target.json:
                    output.emit(done)
                elif done.jobs:
                    print_done(done, memory, target, dry_run=False)
            stop.wait(seconds(memory))


def seconds(memory: Memory) -> float:
    return 60.0 * memory.preset.maintenance.watch_minutes


@contextmanager
def stop_on_signal() -> Generator[threading.Event]:
    """An event that SIGINT and SIGTERM set, so that the job under way is finished first."""
    stop = threading.Event()

    def on_signal(number: int, frame: object) -> None:
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _reviewed(memory: Memory, **options: Any) -> Maintained:
    """Ask about what is held back or takes another's place, then do what was agreed to and what needs no asking."""
    if piped():
        raise click.UsageError("--review asks on a terminal, and there is none.")
    plan: dict[str, Any] = {**options, "dry_run": True}
    planned = memory.maintain(**plan)
    chosen: list[str] = []
    for report in planned.jobs:
        waiting = {step.id for step in report.held}
        for step in (*report.steps, *report.held):
            if step.id in waiting or step.by is not None:
                _side_by_side(memory, step)
                if not click.confirm(f"{step.change.capitalize()} it?", err=True):
                    continue
            chosen.append(step.id)
    agreed: dict[str, Any] = {**options, "force": True, "only": chosen}
    return memory.maintain(**agreed)


def _side_by_side(memory: Memory, step: Step) -> None:
    output.say((f"{step.change}: ", STRONG), step.why)
    rows: list[Sequence[Styled]] = [[("goes", CAREFUL), text.short(step.id), _words(memory, step.id)]]
    if step.by is not None:
        rows.append([("stays", GOOD), text.short(step.by), _words(memory, step.by)])
    output.table([Column(""), Column("id", QUIET), Column("memory", flexible=True)], rows)


def _words(memory: Memory, ident: str) -> str:
    from recollect.values.errors import NotFoundError

    try:
        return text.one_line(memory.get(ident).text)
    except NotFoundError:  # of another workspace, or gone by now
        return "(not seen from here)"


def print_done(done: Maintained, memory: Memory, target: Target, dry_run: bool) -> None:
    reports = [report for report in done.jobs if report.steps or report.held or report.count or report.note]
    if not reports:
        output.say("Nothing to do.")
    for report in reports:
        _print_report(report, memory, dry_run)
    if any(report.steps for report in reports) and not dry_run:
        output.say((f"Take the last change back with: recollect undo{target.typed}", QUIET))


def _print_report(report: JobReport, memory: Memory, dry_run: bool) -> None:
    counts = {change: sum(step.change == change for step in report.steps) for change in _DONE}
    parts = [
        f"{change if dry_run else _DONE[change]} {text.count(number)}" for change, number in counts.items() if number
    ]
    if report.count:
        parts.append(_other(report, dry_run))
    summary = ", ".join(parts) or report.note
    summary = f"would {summary}" if dry_run and parts else summary
    where = "" if report.workspace is not None else ", in the account"
    output.say(f"{summary[:1].upper()}{summary[1:]}", (f" ({report.job}{where})", QUIET))
    if parts and report.note:
        output.say((report.note, CAREFUL), indent=2)
    _print_steps(report.steps, memory)
    if report.held:
        held = f"{text.count(len(report.held))} held back; --review asks about each, --force does it:"
        output.say((held, CAREFUL), indent=2)
        _print_steps(report.held, memory)


def _other(report: JobReport, dry_run: bool) -> str:
    if report.job == "embed":
        return f"{'make' if dry_run else 'made'} {text.count(report.count, 'vector', 'vectors')}"
    if report.job == "undo":
        changes = text.count(report.count, "old change", "old changes")
        return f"{'drop' if dry_run else 'dropped'} what it takes to undo {changes}"
    return f"freed {text.size(report.count)}"


def _print_steps(steps: Sequence[Step], memory: Memory) -> None:
    if not steps:
        return
    rows: list[Sequence[Styled]] = [
        [f"  {step.change}", text.short(step.id), _words(memory, step.id), f"{step.why}{_instead(step)}"]
        for step in steps[:_SAMPLE]
    ]
    output.table([Column("  "), Column("id", QUIET), Column("memory", flexible=True), Column("why", wrap=True)], rows)
    if len(steps) > _SAMPLE:
        output.say((f"and {len(steps) - _SAMPLE:,} more; --json lists all", QUIET), indent=2)


def _instead(step: Step) -> str:
    return "" if step.by is None else f"; {text.short(step.by)} stays"
