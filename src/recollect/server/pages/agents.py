"""Agents: what each keeps for itself. For those who look after the account only."""

from __future__ import annotations

from typing import Any

from recollect.memory import Memory
from recollect.server.pages.site import Done, Visit, action, page, when
from recollect.values.errors import NotFoundError

_LATEST = 100
ASKED = "Delete this memory permanently?"
DELETED = "Memory deleted"
EMPTY = (
    "This agent has no memories yet. Memories will appear here as the agent creates them using save_to_journal or "
    "save_to_core tools."
)
LEAD = "Review and manage this agent's memories. Core memories are permanent; journal entries fade after a week."
"""These are the document's own words, as are those of `counted`."""
_WEEK = 7
WORD = "delete"


def lead(days: float | None) -> str:
    """As the document has it, unless the preset says otherwise: then that is what is true."""
    if days is None:
        return LEAD.replace("permanent; journal entries fade after a week", "permanent, and so are journal entries")
    return LEAD if days == _WEEK else LEAD.replace("a week", f"{days:g} days")


def counted(counts: dict[str, int]) -> str:
    return f"{counts['core']:,} core memories, {counts['journal']:,} journal entries"


@page("/agents", "Agents", rank="admin", template="agents.html", nav="Agents", group="Places")
def agents(visit: Visit) -> dict[str, Any]:
    memory = visit.memory
    own = memory.journal.counts_by_agent()
    total = {name: number for name, number in memory.stats().agents.items() if name}
    nothing = {"core": 0, "journal": 0}
    return {
        "agents": [
            {"name": name, "counts": (counts := own.get(name, nothing)), "told": counted(counts), "total": total[name]}
            for name in sorted(total)
            if _is_own(memory, name)
        ]
    }


def _is_own(memory: Memory, name: str) -> bool:
    return memory.address.agent in (None, name)


@page("/agents/{name}", "Agent Memory", rank="admin", template="agent.html")
def agent(visit: Visit) -> dict[str, Any]:
    own = visit.memory.at(agent=visit.parts["name"])
    journal = own.journal
    counts = journal.counts()
    days = own.preset.retention.window_days.get("journal")
    return {
        "agent": own.address.agent,
        "counts": counts,
        "told": counted(counts),
        "lead": lead(days),
        "empty": EMPTY,
        "asked": ASKED,
        "word": WORD,
        "memories": [
            {
                "id": record.id,
                "content": record.text,
                "memory_type": record.kind,
                "created_at": when(record.created_at),
                "expired": journal.has_expired(record),
            }
            for record in journal.recent_first(_LATEST)
        ],
        "latest": _LATEST,
        "problem": visit.refusal if visit.refused else "",
    }


@action("/agents/{name}/memories/{id}/delete", rank="admin", again="/agents/{name}")
def delete(visit: Visit) -> Done:
    """From the disk, since that is what the question says."""
    visit.confirm(WORD)
    own = visit.memory.at(agent=visit.parts["name"])
    record = own.get(visit.parts["id"])
    if record.kind not in ("core", "journal") or record.address.agent != own.address.agent:
        raise NotFoundError(f"there is no memory {record.id} of this agent")
    own.forget(record.id, erase=True)
    return Done(visit.link(visit.request.path.partition("/memories/")[0]), DELETED)
