"""Commands that look memories up without a query: list, show, history, diagnose."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.derived import derived
from recollect.cli.lazy import Leaf
from recollect.cli.output import QUIET, STRONG
from recollect.cli.records import empty_hint, facts_of, records_table
from recollect.cli.target import Target, scoped
from recollect.text import short_ids
from recollect.values.record import STATES, Record, utc_now

if TYPE_CHECKING:
    from recollect.verbs.diagnose import Diagnosis

_MOST = 1_000_000
"""The largest limit of the operation."""


@click.command("list", cls=Leaf)
@takes(
    "list",
    hide=("agent", "tag", "state", "newest_first"),
    spelled={"conversation": "--from-conversation"},
    defaults={"limit": 20},
)
@click.option("--state", type=click.Choice([*STATES, "all"]), default="live", show_default=True, help="In which state.")
@click.option("--oldest-first", is_flag=True, help="Oldest first, instead of newest.")
@scoped
def list_(target: Target, call: Call, state: str, oldest_first: bool) -> None:
    """List memories, newest first.

    \b
    Example:
      recollect list --kind preference --since 7d
    """
    limit = call.options["limit"]
    order = {"state": None if state == "all" else state, "newest_first": not oldest_first}
    with target.open() as memory:
        one_more = call.run(memory, **order, limit=limit if limit >= _MOST else limit + 1)
        records = one_more[:limit]
        hint = "" if records else empty_hint(target, memory)
    if target.json:
        output.emit(records)
    elif not records:
        output.say(f"Nothing matched.{hint}")
    else:
        records_table(records, with_state=state != "live")
        if len(one_more) > limit:
            output.note(f"There are more than these {limit}: --limit {min(limit * 5, _MOST)}")


def _print_record(record: Record) -> None:
    output.say((record.text, STRONG))
    output.say("")
    output.facts(facts_of(record))


show = derived(
    "get",
    "Show one memory with everything that is known about it.\n\nID is the whole id, or the short one of tables.",
    "show 2b7bcfad",
    show=_print_record,
    name="show",
)
history = derived(
    "history",
    "Show every version of a memory, oldest first.",
    "history 2b7bcfad",
    show=partial(records_table, with_state=True),
)


@click.command(cls=Leaf)
@click.argument("id")
@scoped
def diagnose(target: Target, id: str) -> None:
    """Say why a memory is, or is not, recalled.

    Knows what expired, was archived and by what, was superseded or forgotten.

    \b
    Example:
      recollect diagnose 2b7bcfad
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
