"""An agent's journal: list, add, consolidate."""

from __future__ import annotations

import click

from recollect.cli import output, text
from recollect.cli.intake import TextArgument, read_text
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import ID, QUIET, Column, Styled
from recollect.cli.records import headline
from recollect.cli.target import Target, scoped
from recollect.values import validation
from recollect.values.record import utc_now

_MOST = 1_000_000
"""The largest limit of the operation, which the whiteboard shares."""
_PRESET = "journal"
"""Whose window counts, unless another is asked for."""


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            "list": "journal:list_",
            "add": "journal:add",
            "prompt": "journal:prompt",
            "consolidate": "journal:consolidate",
        }
    },
)
def journal() -> None:
    """An agent's journal and core memories, and the whiteboard.

    \b
    Example:
      recollect journal --agent gaia
      recollect journal add "met Alice" --agent gaia
    """


@click.command("list", cls=Leaf)
@click.option("--limit", "-n", type=click.IntRange(min=1), default=100, show_default=True, help="How many.")
@click.option("--board", is_flag=True, help="What is on the whiteboard, instead.")
@scoped
def list_(target: Target, limit: int, board: bool) -> None:
    """List an agent's journal and core memories, newest first. Old entries have left the prompt.

    \b
    Example:
      recollect journal list --agent gaia
    """
    with target.open(preset=_PRESET) as memory:
        journal = memory.journal
        count = validation.count(limit, "limit", high=_MOST)
        records = journal.whiteboard.entries()[::-1][:count] if board else journal.recent_first(count)
        expired = {record.id for record in records if journal.has_expired(record)}
    if target.json:
        output.emit([{"memory": record, "expired": record.id in expired} for record in records])
        return
    if not records:
        whose = f"{target.agent} has" if target.agent else "Without --agent there are"
        output.say("The whiteboard is empty." if board else f"{whose} no memories here yet.")
        return
    now = utc_now()
    rows: list[list[Styled]] = [
        [
            text.short(record.id),
            text.ago(record.created_at, now),
            f"{record.kind}, old" if record.id in expired else record.kind,
            (text.one_line(record.text), QUIET if record.id in expired else ""),
        ]
        for record in records
    ]
    output.table([Column("id", ID), Column("made"), Column("kind"), Column("memory", flexible=True)], rows)


@click.command(cls=Leaf)
@click.argument("content", cls=TextArgument, nargs=-1, metavar="TEXT...")
@click.option("--core", is_flag=True, help="A core memory: in the prompt for ever.")
@click.option("--board", is_flag=True, help="On the whiteboard, for all agents of the workspace.")
@scoped
def add(target: Target, content: tuple[str, ...], core: bool, board: bool) -> None:
    """Add an entry: it is in the agent's prompt for a week. TEXT may be piped in.

    \b
    Example:
      recollect journal add "met Alice" --agent gaia
      recollect journal add "I keep promises" --core --agent gaia
    """
    if core and board:
        raise click.UsageError("--core and --board: one or the other.")
    words = validation.content(read_text(content))
    with target.open(create=True, preset=_PRESET, vectors=False) as memory:
        journal = memory.journal
        write = journal.whiteboard.write if board else journal.save_core if core else journal.save
        record = write(words)
    if target.json:
        output.emit(record)
    else:
        output.say("Remembered ", *headline(record))


@click.command(cls=Leaf)
@scoped
def prompt(target: Target) -> None:
    """Print what is put into the agent's prompt.

    \b
    Example:
      recollect journal prompt --agent gaia
    """
    with target.open(preset=_PRESET) as memory:
        text = memory.journal.context()
    if target.json:
        output.emit({"context": text})
    elif text:  # an empty output can be put into a prompt as it is
        output.say(text)


@click.command(cls=Leaf)
@scoped
def consolidate(target: Target) -> None:
    """Summarise what has left the prompt into a core memory, once. The entries stay.

    \b
    Example:
      recollect journal consolidate --agent gaia
    """
    with target.open(preset=_PRESET) as memory:
        made = memory.journal.consolidate()
    if target.json:
        output.emit(made)
        return
    if not made:
        output.say("Nothing to summarise.")
    for record in made:
        output.say("Remembered ", *headline(record))
        output.say((f"from {text.count(len(record.references), 'entry', 'entries')}", QUIET), indent=2)
