"""The scratchpad of a conversation: notes under names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.derived import derived
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import ID, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.values.errors import NotFoundError
from recollect.values.record import render, utc_now

if TYPE_CHECKING:
    from recollect.facets.scratchpad import Note


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            "list": "scratchpad:list_",
            "read": "scratchpad:read",
            "write": "scratchpad:write",
            "clear": "scratchpad:clear",
        }
    },
)
def scratchpad() -> None:
    """Notes of the conversation that --conversation names, under keys of your own.

    \b
    Example:
      recollect scratchpad write plan "first the tests" --conversation release
      recollect scratchpad --conversation release
    """


def _print_notes(notes: Sequence[Note]) -> None:
    if not notes:
        output.say("The scratchpad is empty.")
        return
    now = utc_now()
    rows: list[list[Styled]] = [
        [note.key, text.ago(note.updated_at, now), text.one_line(render(note.value))] for note in notes
    ]
    output.table([Column("key", ID), Column("written"), Column("value", flexible=True)], rows)


list_ = derived("scratchpad.list", "List the notes, by key.", "scratchpad --conversation release", show=_print_notes)
read = derived(
    "scratchpad.note",
    "Print the note under a key.",
    "scratchpad read plan --conversation release",
    show=lambda note: output.say(render(note.value)),
    name="read",
)
write = derived(
    "scratchpad.write",
    "Write a note, in place of the one under the same key.",
    'scratchpad write plan "first the tests" --conversation release',
    show=lambda note: output.say("Wrote ", (note.key, ID)),
)


@click.command(cls=Leaf)
@takes("scratchpad.clear")
@scoped
def clear(target: Target, call: Call) -> None:
    """Remove the note under a key, or all notes.

    \b
    Example:
      recollect scratchpad clear plan --conversation release
    """
    with target.open(vectors=False) as memory:
        arguments = call.arguments(memory)
        number = call.run_with(memory, arguments)
    if not number and "key" in arguments:
        raise NotFoundError(f"the scratchpad of this conversation has nothing under {arguments['key']!r}")
    if target.json:
        output.emit({"removed": number})
    else:
        output.say(f"Removed {text.count(number, 'note', 'notes')}.")
