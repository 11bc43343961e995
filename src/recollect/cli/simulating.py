"""What time will do to memories: simulate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.intake import check_new
from recollect.cli.lazy import Leaf
from recollect.cli.output import CAREFUL, QUIET, STRONG, Column, Styled
from recollect.cli.paths import PATH
from recollect.cli.target import Target, scoped
from recollect.values.errors import InputError

if TYPE_CHECKING:
    from recollect.maintenance.simulation import Event, Simulation
    from recollect.memory import Memory

_SAMPLE = 8


@click.command(cls=Leaf)
@takes("simulate")
@click.option("--svg", metavar="FILE", type=PATH, help="Also draw what is left, by kind and tier.")
@click.option("--force", "-f", is_flag=True, help="Replace FILE if it is there.")
@scoped
def simulate(target: Target, call: Call, svg: str | None, force: bool) -> None:
    """Show what will be promoted, archived, merged, expired or lost, when and why. Changes nothing.

    It supposes that nothing is stored or recalled meanwhile, and that maintenance runs every day.

    \b
    Example:
      recollect simulate --preset atlas --days 90
      recollect simulate --svg retention.svg
    """
    if svg is not None:
        check_new(svg, force)
    with target.open(vectors=False) as memory:
        ahead: Simulation = call.run(memory)
        if svg is not None:
            _draw(ahead, svg)
        if not target.json:
            _print(ahead, memory)
    if target.json:
        output.emit(ahead)
    elif svg is not None:
        output.say(("Drawn in ", QUIET), svg)


def _draw(ahead: Simulation, file: str) -> None:
    try:
        Path(file).write_text(ahead.svg(), "utf-8")
    except OSError as error:
        raise InputError("svg", f"cannot write {file}: {error.strerror}") from None


def _print(ahead: Simulation, memory: Memory) -> None:
    from recollect.maintenance.plot import sparkline

    if not ahead.live[0] and not ahead.events:
        output.say("There is nothing live to look at.")
        return
    rows: list[Sequence[Styled]] = [
        [line.kind, line.tier, f"{line.live[0]:,}", f"{line.live[-1]:,}", sparkline(line.live)]
        for line in ahead.retained
    ]
    rows.append([("all", STRONG), "", f"{ahead.live[0]:,}", f"{ahead.live[-1]:,}", sparkline(ahead.live)])
    numbers = [Column("today", right=True), Column(f"day {ahead.days}", right=True)]
    output.table([Column("kind"), Column("tier"), *numbers, Column("")], rows)
    counts = Counter(event.change for event in ahead.events if not event.held)
    changes = [f"{change} {number:,}" for change, number in sorted(counts.items())]
    held = sum(event.held for event in ahead.events)
    output.say("")
    output.say(", ".join(changes) if changes else "Nothing will happen to them.")
    if held:
        output.say((f"{held:,} more wait for someone to decide", CAREFUL))
    _print_events(ahead.events, memory)


def _print_events(events: Sequence[Event], memory: Memory) -> None:
    if not events:
        return
    rows: list[Sequence[Styled]] = [
        [f"day {event.day}", event.change, text.short(event.id), text.one_line(memory.get(event.id).text), event.why]
        for event in events[:_SAMPLE]
    ]
    columns = [Column("when"), Column("what"), Column("id", QUIET), Column("memory", flexible=True)]
    output.table([*columns, Column("why", wrap=True)], rows)
    if len(events) > _SAMPLE:
        output.say((f"and {len(events) - _SAMPLE:,} more; --json lists all", QUIET))
