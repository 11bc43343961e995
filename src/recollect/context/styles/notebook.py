"""`[Memories]`: short notes that share words with the last message, else the latest ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from recollect.context.request import Request
from recollect.context.sections import Drafted, Item, LeftOut, Section
from recollect.policies.injection import Notes
from recollect.policies.ranking import recent_bonus, words
from recollect.values.record import Record
from recollect.view import View

HEAD = "[Memories]"
GUIDANCE = """\
You have persistent memory tools. Use memory_store when:
- The user explicitly asks you to remember something
- You learn a stable fact about the user or project that will be useful across sessions
Do NOT store: transient task context, secrets/tokens, or information already in files.
Use memory_delete to remove outdated memories. Memories are automatically surfaced in your context when relevant."""
"""The Aegis document's section of the system prompt, word for word."""
_VIEWS = 64
"""How many views have their notes cached."""


class InjectedNote(NamedTuple):
    """A memory as it was read. The store gives the same record, or one with the same checksum, until it changes."""

    record: Record
    text: str
    """On one line."""
    words: frozenset[str]


def draft(request: Request, style: Notes) -> Drafted:
    # Not counted as a retrieval: nothing of a note depends on that, and it would make reading write.
    view = request.view
    if injection := view.settings(view.place).injection:
        style = replace(style, **injection)
    guidance = (Section("guidance", (Item(GUIDANCE),), where="prompt", stays=True),) if style.guidance else ()
    limit = style.max_inject_count if request.limit is None else min(request.limit, style.max_inject_count)
    if style.inject_mode == "off" or not limit or not style.max_inject_chars:
        return Drafted(guidance)
    latest = [note for note in _read(view)[::-1] if request.may_show(note.record)]
    chosen: Sequence[InjectedNote] = ()
    if style.inject_mode == "relevant":
        chosen = relevant(latest, request.asked, view.now()) or latest[: min(style.recent, limit)]
    else:
        chosen = latest[:limit]
    notes, left = _fit(chosen, limit, style.max_inject_chars, request)
    items = tuple(Item(_line(note), note.record.id) for note in notes)
    return Drafted((*guidance, Section("memories", items, HEAD, fewest=0)), tuple(left))


def relevant(notes: Sequence[InjectedNote], message: str, now: datetime) -> list[InjectedNote]:
    """Those that share a word with the message, by the Aegis document's score; of equals in the order given."""
    asked = words(message)
    scored = [
        (shared + recent_bonus(note.record.created_at, now), note)
        for note in notes
        if (shared := len(note.words & asked))
    ]
    scored.sort(key=lambda pair: pair[0], reverse=True)
    return [note for _, note in scored]


def _fit(
    notes: Sequence[InjectedNote], limit: int, chars: int, request: Request
) -> tuple[list[InjectedNote], list[LeftOut]]:
    """The notes that fit. A note that is too long is skipped, and shorter ones after it may still fit."""
    fitting: list[InjectedNote] = []
    left: list[LeftOut] = []
    room = chars
    for place, note in enumerate(notes):
        if len(fitting) == limit:
            break
        if len(note.text) <= room:
            room -= len(note.text)
            fitting.append(note)
        elif place < limit:
            why = f"the block is full at {chars:,} characters"
            left.append(LeftOut("memories", why, request.count(note.text), note.record.id))
    return fitting, left


def _line(note: InjectedNote) -> str:
    # Ids and tags are on one line too, whoever wrote them into the file.
    return f"- ({_one_line(', '.join((note.record.id, *note.record.tags[:1])))}) {note.text}"


def _one_line(text: str) -> str:
    """So that a note cannot pass for two."""
    return " ".join(line for line in text.splitlines() if line and not line.isspace())


def _read(view: View) -> list[InjectedNote]:
    """All notes that the view sees, oldest first. Unchanged ones come from the cache."""
    cache = view.cache("notes")
    cached: dict[tuple[str | None, str], InjectedNote] = cache.get(view.address, {})
    injected: dict[tuple[str | None, str], InjectedNote | None] = {}
    unread: dict[tuple[str | None, str], Record] = {}
    for record in view.store.scan(view.narrowed("live", {}), whole=False):
        # A workspace and its account may number their notes alike.
        key = (record.address.workspace, record.id)
        note = cached.get(key)
        if note is not None and _same(note.record, record):
            injected[key] = note
        else:
            injected[key] = None
            unread[key] = record
    if unread:
        injected.update(_notes(view, unread))
    notes = {key: note for key, note in injected.items() if note is not None}
    if unread or len(notes) != len(cached):
        cache.pop(view.address, None)
        while len(cache) >= _VIEWS:
            cache.pop(next(iter(cache)), None)
        cache[view.address] = notes
    return list(notes.values())


def _same(first: Record, second: Record) -> bool:
    return first is second or bool(first.checksum and first.checksum == second.checksum and first.tags == second.tags)


def _notes(view: View, records: dict[tuple[str | None, str], Record]) -> dict[tuple[str | None, str], InjectedNote]:
    """Those whose content the scan left out are asked for; one that has gone meanwhile is none."""
    bare = [record.id for record in records.values() if record.content is None]
    whole = {(record.address.workspace, record.id): record for record in view.get(bare)} if bare else {}
    notes: dict[tuple[str | None, str], InjectedNote] = {}
    for key, record in records.items():
        full = record if record.content is not None else whole.get(key)
        if full is not None:
            notes[key] = InjectedNote(record, _one_line(full.text), words(full.text))
    return notes
