"""Proposals: what was asked of the memory in conversations, and waits to be confirmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text
from recollect.cli.derived import derived
from recollect.cli.lazy import LazyGroup
from recollect.cli.output import STRONG, Column, Styled
from recollect.values.errors import NotFoundError

if TYPE_CHECKING:
    from recollect.facets.proposals import Proposal
    from recollect.memory import Memory


@click.group(
    cls=LazyGroup,
    default="list",
    sections={"Commands": {"list": "proposals:list_", "confirm": "proposals:confirm", "dismiss": "proposals:dismiss"}},
)
def proposals() -> None:
    """What users asked to forget or correct, and what may have changed.

    It waits to be confirmed where it is not sure which memories are meant, or too many.

    \b
    Example:
      recollect proposals
      recollect proposals confirm 071752802c9e4d85 --yes
    """


def _print_proposals(proposals: Sequence[Proposal]) -> None:
    if not proposals:
        output.say("There are no proposals.")
        return
    rows: list[list[Styled]] = [
        [
            (proposal.id, STRONG),
            proposal.act,
            text.count(len(proposal.ids), "memory", "memories"),
            text.one_line(proposal.asked),
        ]
        for proposal in proposals
    ]
    output.table([Column("id"), Column("act"), Column("of"), Column("asked", wrap=True)], rows)


def _subject(memory: Memory, arguments: Mapping[str, Any]) -> str:
    for proposal in memory.proposals():
        if proposal.id == arguments["id"]:
            if proposal.act == "replace":
                return "the older of two memories, by the newer"
            if proposal.act == "correct":
                return f"the old version of a memory; the new one is {proposal.value!r}"
            return text.count(len(arguments.get("ids") or proposal.ids), "memory", "memories")
    raise NotFoundError(f"there is no proposal {arguments['id']!r}; `recollect proposals` lists all")


list_ = derived("proposals", "List the proposals, the newest first.", "proposals", show=_print_proposals, name="list")
confirm = derived(
    "confirm",
    "Do what a proposal says. `undo` takes it back.",
    "proposals confirm 071752802c9e4d85",
    show=lambda proposal: output.say(f"Confirmed: {text.count(len(proposal.ids), 'memory', 'memories')}."),
    subject=_subject,
)
dismiss = derived(
    "dismiss",
    "Drop a proposal. The memories stay as they are.",
    "proposals dismiss 071752802c9e4d85",
    show=lambda proposal: output.say("Dismissed ", (proposal.id, STRONG), "."),
)
