"""Commands that look memories up without a query: list, show, history, why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text
from recollect.cli.conditions import conditions
from recollect.cli.lazy import Leaf
from recollect.cli.output import QUIET, STRONG
from recollect.cli.records import empty_hint, facts_of, records_table
from recollect.cli.target import Target, scoped
from recollect.text import short_ids
from recollect.values.record import STATES, utc_now

if TYPE_CHECKING:
    from recollect.verbs.diagnose import Diagnosis

_MOST = 100_000


@click.command("list", cls=Leaf)
@click.option("--state", type=click.Choice([*STATES, "all"]), default="live", show_default=True, help="In which state.")
@click.option("--oldest-first", is_flag=True, help="Oldest first, instead of newest.")
@click.option("--limit", "-n", type=click.IntRange(1, _MOST), default=20, show_default=True, help="How many.")
@conditions
@scoped
def list_(target: Target, state: str, oldest_first: bool, limit: int, where: dict[str, Any]) -> None:
    """List memories, newest first.

    \b
    Example:
      recollect list --kind preference --since 7d
    """
    where |= {"state": None if state == "all" else state, "newest_first": not oldest_first}
    with target.open() as memory:
        one_more = memory.list(**where, limit=limit + 1)
        records = one_more[:limit]
        hint = "" if records else empty_hint(target, memory)
    if target.json:
        output.emit(records)
    elif not records:
        output.say(f"Nothing found.{hint}")
    else:
        records_table(records, with_state=state != "live")
        if len(one_more) > limit:
            output.note(f"There are more than these {limit}: --limit {min(limit * 5, _MOST)}")


@click.command(cls=Leaf)
@click.argument("id")
@scoped
def show(target: Target, id: str) -> None:
    """Show one memory with everything that is known about it.

    ID is the whole id, or the short one that tables show.

    \b
    Example:
      recollect show 2b7bcfad
    """
    with target.open() as memory:
        record = memory.get(short_ids.resolve(memory, id))
    if target.json:
        output.emit(record)
        return
    output.say((record.text, STRONG))
    output.say("")
    output.facts(facts_of(record))


@click.command(cls=Leaf)
@click.argument("id")
@scoped
def history(target: Target, id: str) -> None:
    """Show every version of a memory, oldest first.

    \b
    Example:
      recollect history 2b7bcfad
    """
    with target.open() as memory:
        versions = memory.history(short_ids.resolve(memory, id))
    if target.json:
        output.emit(versions)
    else:
        records_table(versions, with_state=True)


@click.command(cls=Leaf)
@click.argument("id")
@scoped
def why(target: Target, id: str) -> None:
    """Say why a memory is, or is not, recalled.

    Knows what expired, was archived and by what, was superseded or forgotten.

    \b
    Example:
      recollect why 2b7bcfad
    """
    with target.open() as memory:
        diagnosis = memory.diagnose(short_ids.resolve_ever(memory, id))
    if target.json:
        output.emit(diagnosis)
    else:
        _print_diagnosis(diagnosis)


def _print_diagnosis(diagnosis: Diagnosis) -> None:
    now = utc_now()
    reason = f"is gone ({diagnosis.reason})" if diagnosis.status == "forgotten" else diagnosis.reason
    output.say((text.short(diagnosis.id), output.ID), " ", (reason, STRONG))
    output.facts(
        [
            ("status", diagnosis.status),
            ("since", text.moment(diagnosis.at, now) if diagnosis.at else None),
            ("current version", (text.short(diagnosis.current), output.ID) if diagnosis.current else None),
            ("strength", None if diagnosis.strength is None else f"{diagnosis.strength:.2f} (importance after decay)"),
            ("id", (diagnosis.id, QUIET)),
        ],
        indent=2,
    )
