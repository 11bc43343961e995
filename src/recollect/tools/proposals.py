"""Proposals as tools: what the user asked to forget or correct, and a model may confirm once the user agrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from recollect.facets.proposals import Proposal
from recollect.tools.base import COUNT, TEXT, Result, ToolCall, fields, many, returns, tool

_Id = Annotated[str, Meta(min_length=1, max_length=64, description="The id of the proposal.")]
_SHAPE = {"id": TEXT, "act": TEXT, "asked": TEXT, "value": TEXT}
_RETURNED = returns((), **_SHAPE, memories=many(TEXT))


def _proposal(proposal: Proposal, call: ToolCall) -> Result:
    return {name: getattr(proposal, name) for name in _SHAPE} | {"memories": list(proposal.ids)}


@tool(
    "list_proposals",
    "proposals",
    "List proposals",
    "List what the user asked you to forget or correct and that was not sure enough to be done. Ask the user which.",
    offer={},
    output=returns(count=COUNT, proposals=many(fields((), **_SHAPE, memories=many(TEXT)))),
)
def _several(proposals: Sequence[Proposal], call: ToolCall) -> Result:
    return {"count": len(proposals), "proposals": [_proposal(each, call) for each in proposals]}


tool(
    "confirm_proposal",
    "confirm",
    "Confirm a proposal",
    "Do what a proposal says, once the user has agreed. `undo` takes it back.",
    offer={
        "id": _Id,
        "ids": Annotated[
            Annotated[str, Meta(min_length=1, max_length=36)] | None,
            Meta(description="Only this one of its memories; all of them if left out."),
        ],
    },
    output=_RETURNED,
)(_proposal)
tool(
    "dismiss_proposal",
    "dismiss",
    "Dismiss a proposal",
    "Drop a proposal that the user does not want. The memories stay as they are.",
    offer={"id": _Id},
    output=_RETURNED,
)(_proposal)
