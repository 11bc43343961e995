"""The audit log: search it, verify it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import BAD, GOOD, ID, QUIET, STRONG, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.text import short_ids
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.audit import Verified
    from recollect.stores.audit import Entry

_SHOWN = 3


@click.group(
    cls=LazyGroup, default="search", sections={"Commands": {"search": "audit:search", "verify": "audit:verify"}}
)
def audit() -> None:
    """Search and verify the log of every change and refusal.

    \b
    Example:
      recollect audit search forgot
      recollect audit verify
    """


@click.command(cls=Leaf)
@takes("audit.search", hide=("about",), defaults={"limit": 20})
@click.option("--about", metavar="ID", help="Only entries about this memory, stored or deleted.")
@scoped
def search(target: Target, call: Call, about: str | None) -> None:
    """List entries whose message has the text, newest first. Their ids can be undone.

    Each with the memories that it is about, and their first words where they are still there.

    \b
    Example:
      recollect audit search refused
      recollect audit --action forget
      recollect audit search --about 2b7bcfad
    """
    with target.open() as memory:
        ident = "" if about is None else short_ids.resolve_ever(memory, about)
        entries = call.run(memory, about=ident)
        named = [memory.audit.named(entry) for entry in entries]
    if target.json:
        rows = zip(entries, named, strict=True)
        output.emit([{**msgspec.structs.asdict(entry), "named": memories} for entry, memories in rows])
    elif not entries:
        output.say("No entry matched.")
    else:
        _print_entries(entries, named)


def _print_entries(entries: list[Entry], named: list[dict[str, str]]) -> None:
    now = utc_now()
    with_actor = any(entry.actor for entry in entries)
    columns = [Column("id", ID), Column("when"), Column("action")]
    columns += [Column("agent")] * with_actor + [Column("message", flexible=True, wrap=True)]
    rows: list[list[Styled]] = []
    for entry, memories in zip(entries, named, strict=True):
        row: list[Styled] = [text.short(entry.id), text.ago(entry.at, now), entry.action]
        row += [entry.actor or ("-", QUIET)] * with_actor
        rows.append([*row, text.one_line(f"{entry.message}{_about(memories)}")])
    output.table(columns, rows)


def _about(memories: dict[str, str]) -> str:
    """Which memories, in a few words."""
    lines = [f"{text.short(ident)} {words}".rstrip() for ident, words in list(memories.items())[:_SHOWN]]
    more = len(memories) - len(lines)
    return f" · {' · '.join(lines)}{' · …' if more > 0 else ''}" if lines else ""


@click.command(cls=Leaf)
@scoped
def verify(target: Target) -> None:
    """Check every log from its first entry to its last. Exits with 1 if one was tampered with.

    Keep the head hash elsewhere: it proves later that nothing before it was changed.

    \b
    Example:
      recollect audit verify
    """
    with target.open() as memory:
        logs = memory.audit.verify()
    intact = all(log.ok for log in logs)
    if target.json:
        output.emit({"ok": intact, "logs": logs})
    else:
        _print_logs(logs)
    if not intact:
        click.get_current_context().exit(1)


def _print_logs(logs: list[Verified]) -> None:
    if not logs:
        output.say("There are no entries yet.")
    for log in logs:
        name = f"{log.tenant}/{log.workspace}" if log.workspace else f"{log.tenant} (what its accounts share)"
        if log.workspace and log.workspace.startswith(" "):  # the engine's own, such as that of documents
            name = f"{log.tenant} ({log.workspace.strip()})"
        verdict = ("intact", GOOD) if log.ok else ("BROKEN", BAD)
        output.say(verdict, "  ", (name, STRONG), f"  {text.count(log.entries, 'entry', 'entries')}")
        output.say((f"head {log.head}", QUIET), indent=8)
        for break_ in log.breaks:
            output.say((break_.problem, BAD), indent=8)
