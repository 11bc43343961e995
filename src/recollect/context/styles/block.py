"""One fenced block within a budget: what the last message brings to mind, each with its id and day."""

from __future__ import annotations

from recollect.context.messages import tokens_of
from recollect.context.request import Request
from recollect.context.sections import Drafted, Item, LeftOut, Section
from recollect.policies.injection import Block
from recollect.policies.ranking import content_hash
from recollect.recall.hits import Hits
from recollect.recall.recall import recall
from recollect.text.fence import CLOSE, DATA, OPEN, inside
from recollect.text.short_ids import shortened
from recollect.values.record import Record, local

_HEAD = f"{OPEN}\nWhat you remember that may matter here, best first, each with its {{}}. {DATA}"
_PLAIN = str.maketrans("()[]", "    ")
"""Where a memory is from must not look like the end of that."""
_LARGEST = 0.5
"""One memory may take so much of the block."""
_SHORTEST_ENTRY = 12
"""Tokens. Hardly a memory takes less, with its id and day."""
_MOST = 1000
_ENOUGH = 250
"""Tokens for memories that are worth more than the older turns of the conversation."""
_JOINT = 4
"""Tokens for what stands between the block and the message that it is put into."""
_TRIES = 10
"""After so many that have no room no shorter one is looked for."""


def draft(request: Request, style: Block) -> Drafted:
    count, most = request.count, _tokens(request, style)
    head = _HEAD.format("id and day" if request.ids else "day")
    room = most - count(f"{head}\n{CLOSE}")
    hits = _hits(request, style, room)
    short = _short(request, hits)
    turn_hashes = {content_hash(text) for text in request.talk.texts}
    items: list[Item] = []
    left: list[LeftOut] = [] if hits or not hits.report else [LeftOut("memories", hits.report, 0)]
    records: list[Record] = []
    too_large = 0
    for hit in hits:
        record = hit.memory
        if request.is_in_profile(record):
            records.append(record)  # it was retrieved, though it is not shown twice
            continue
        if content_hash(record.text) in turn_hashes:
            left.append(LeftOut("memories", "it is in the conversation already", 0, record.id))
            continue
        text = _entry(record, short.get(record.id), int(_LARGEST * most), request)
        size = count(text) + 1
        if size > room:
            left.append(LeftOut("memories", f"the block is full at {most:,} tokens", size, record.id))
            too_large += 1
            if too_large == _TRIES:
                break
            continue
        room -= size
        items.append(Item(text, record.id, hit.relevance))
        records.append(record)
    request.touch(records)
    return Drafted((Section("memories", tuple(items), head, CLOSE, fewest=0),), tuple(left))


def _tokens(request: Request, style: Block) -> int:
    """How long the block may be: of a budget, what the conversation leaves."""
    if request.budget is None:
        return style.tokens
    talk = [*request.talk.system, *(message for unit in request.talk.units for message in unit.messages)]
    left = request.budget - sum(tokens_of(message, request.count) for message in talk)
    left -= request.profile.tokens(request.count) + _JOINT if request.profile is not None else 0
    # Where next to nothing is left, older turns give way to memories; else the turns stay.
    reserved = style.tokens if left < min(style.tokens, _ENOUGH) else 0
    return max(reserved, min(style.most_tokens, left - _JOINT))


def _hits(request: Request, style: Block, room: int) -> Hits:
    """As many as have room, where nobody says how many."""
    limit = request.limit or style.memories or min(max(room // _SHORTEST_ENTRY, 1), _MOST)
    if not request.query:
        return Hits()
    without = {"without_tags": request.without_tags or None}
    return recall(request.view, request.query, without, limit=limit, touch=False, min_relevance=request.min_relevance)


def _short(request: Request, hits: Hits) -> dict[str, str]:
    """What tools take for an id, where there are tools: a whole one is longer than many a memory."""
    if not request.ids or not hits:
        return {}
    view = request.view
    among = sum(view.store.count(view.narrowed(None, {})).values())
    return shortened([hit.memory.id for hit in hits], among)


def _entry(record: Record, ident: str | None, most: int, request: Request) -> str:
    """With its beginning only, where it is very long."""
    text = inside(record.text)
    size = request.count(text)
    if size > most:
        text = text[: max(len(text) * most // size, 1)].rstrip() + " …"
    return f"- ({_origin(record, ident, request)}) {text}"


def _origin(record: Record, ident: str | None, request: Request) -> str:
    """Id and day, and who said it, or where it is from, unless that was the user."""
    day = local(record.created_at, request.zone).date().isoformat()
    who = record.source if record.role is None else record.role
    # Half the tokens without hyphens, which leaves room for the id.
    facts = (
        ident,
        day.replace("-", "") if ident else day,
        inside(who).translate(_PLAIN) if who and who != "user" else None,
    )
    return " ".join(filter(None, facts))
