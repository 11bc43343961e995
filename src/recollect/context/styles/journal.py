"""`# Your Private Memory`: an agent's core memories and the journal of its window, and the whiteboard."""

from __future__ import annotations

from recollect.context.request import Request
from recollect.context.sections import Drafted, Item, Section
from recollect.facets.journal import CORE, Part, private, shared
from recollect.policies.injection import Diary


def draft(request: Request, style: Diary) -> Drafted:
    # Not counted as a retrieval: what is in the prompt is a matter of its age alone.
    view, zone = request.view, request.zone
    agent = view.address.agent
    sections = tuple(_section(part) for part in (*private(view, zone), *shared(view, zone)))
    return Drafted(sections, prompt=f"You are {agent}." if agent else "")


def _section(part: Part) -> Section:
    """Core memories are who the agent is, and stay; of the others the oldest go first."""
    items = tuple(Item(text, ident) for text, ident in part.entries)
    fewest = None if part.name == CORE else 0
    return Section(part.name, items, part.head, where="prompt", fewest=fewest, oldest_first=True)
