"""`# Your Private Memory`: an agent's core memories and the journal of its window, and the whiteboard."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple

from recollect.context.request import Request
from recollect.context.sections import Drafted, Item, Section
from recollect.policies.injection import Diary
from recollect.policies.retention import in_window
from recollect.stores.port import Order
from recollect.text.fence import CLOSE, DATA, OPEN, inside
from recollect.values.record import Record, local, moved
from recollect.verbs.remember.draft import WHITEBOARD
from recollect.view import View

CORE, JOURNAL = "core", "journal"
_TITLE = "# Your Private Memory"
_CORE_HEAD = "## Core Memories (permanent)"
_JOURNAL_HEAD = "## Recent Journal Entries"
_BOARD_HEAD = f"# Shared Whiteboard\n{OPEN}\nWhat the agents of this workspace wrote for each other. {DATA}"


class Excerpt(NamedTuple):
    """A heading, and below it a line for each memory."""

    name: str
    head: str
    entries: tuple[tuple[str, str], ...]
    """Text and id."""
    tail: str = ""

    @property
    def text(self) -> str:
        return "\n".join(filter(None, (self.head, *(text for text, _ in self.entries), self.tail)))


def draft(request: Request, style: Diary) -> Drafted:
    # Not counted as a retrieval: journal entries are chosen by their age alone.
    view, zone = request.view, request.zone
    agent = view.address.agent
    without = request.without_tags
    sections = tuple(_section(passage) for passage in (*private(view, zone, without), *shared(view, zone, without)))
    return Drafted(sections, prompt=f"You are {agent}." if agent else "")


def _section(passage: Excerpt) -> Section:
    """Core memories are who the agent is, and stay; of the others the oldest go first."""
    items = tuple(Item(text, ident) for text, ident in passage.entries)
    fewest = None if passage.name == CORE else 0
    return Section(passage.name, items, passage.head, passage.tail, where="prompt", fewest=fewest, oldest_first=True)


def private(view: View, zone: tzinfo, without_tags: tuple[str, ...] = ()) -> list[Excerpt]:
    """What the agent remembers for itself. Joined with an empty line between them, the document's block."""
    core = tuple((f"- {_indented(record.text)}", record.id) for record in in_prompt(view, CORE, without_tags))
    journal = tuple(
        (f"- [{_day(record, zone)}] {_indented(record.text)}", record.id)
        for record in in_prompt(view, JOURNAL, without_tags)
    )
    passages = [Excerpt(CORE, _CORE_HEAD, core), Excerpt(JOURNAL, _JOURNAL_HEAD, journal)]
    passages = [passage for passage in passages if passage.entries]
    return [passage._replace(head=f"{_TITLE}\n\n{passage.head}") for passage in passages[:1]] + passages[1:]


def shared(view: View, zone: tzinfo, without_tags: tuple[str, ...] = ()) -> list[Excerpt]:
    """What all agents of the workspace share. Others wrote it, and it is in the system prompt: it is fenced."""
    entries = tuple(
        (f"- [{', '.join(filter(None, (_day(record, zone), _author(record))))}] {inside(record.text)}", record.id)
        for record in owned(view, None, (WHITEBOARD,), without_tags=without_tags)
        if in_window(view.preset.retention, record, view.now())
    )
    return [Excerpt(WHITEBOARD, _BOARD_HEAD, entries, CLOSE)] if entries else []


def in_prompt(view: View, kind: str, without_tags: tuple[str, ...] = ()) -> list[Record]:
    """Oldest first. The store is asked for the window only: before it there may be years."""
    retention, now = view.preset.retention, view.now()
    days = retention.window_days.get(kind)
    since = None if days is None else moved(now, -timedelta(days=days))
    records = owned(view, view.address.agent, (kind,), since=since, without_tags=without_tags)
    return [record for record in records if in_window(retention, record, now)]


def owned(
    view: View,
    agent: str | None,
    kinds: tuple[str, ...] = (CORE, JOURNAL),
    *,
    since: datetime | None = None,
    newest_first: bool = False,
    whole: bool = True,
    without_tags: tuple[str, ...] = (),
) -> Iterator[Record]:
    """Of exactly this agent, or of none: a filter without an agent would see everyone's."""
    where = view.where(kinds=kinds, agent=agent, since=since, without_tags=without_tags)
    order: Order = "newest" if newest_first else "oldest"
    records = view.scan(where, order=order) if whole else view.store.scan(where, order=order, whole=False)
    return (record for record in records if record.address.agent == agent)


def _day(record: Record, zone: tzinfo) -> str:
    return local(record.created_at, zone).date().isoformat()


def _author(record: Record) -> str:
    # People edit these files by hand, so there may be anything.
    return " ".join(inside(str(record.metadata.get("author", ""))).split())


def _indented(text: str) -> str:
    """Further lines are indented, so that no memory can begin a heading or another memory."""
    first, *rest = text.splitlines() or [""]
    return "\n".join([first, *(f"  {line}" if line else "" for line in rest)])
