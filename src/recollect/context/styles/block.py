"""One fenced block within a budget: what the last message brings to mind, each with its id and day."""

from __future__ import annotations

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


def draft(request: Request, style: Block) -> Drafted:
    view, count = request.view, request.count
    limit = request.limit or style.memories
    hits = (
        recall(view, request.query, {}, limit=limit, touch=False, min_relevance=request.min_relevance)
        if request.query
        else Hits()
    )
    head = _HEAD.format("id and day" if request.ids else "day")
    room = style.tokens - count(f"{head}\n{CLOSE}")
    short = _short(request, hits)
    turn_hashes = {content_hash(text) for text in request.talk.texts}
    items: list[Item] = []
    left: list[LeftOut] = [] if hits or not hits.report else [LeftOut("memories", hits.report, 0)]
    records: list[Record] = []
    for hit in hits:
        record = hit.memory
        if content_hash(record.text) in turn_hashes:
            left.append(LeftOut("memories", "it is in the conversation already", 0, record.id))
            continue
        text = _entry(record, short.get(record.id), int(_LARGEST * style.tokens), request)
        size = count(text) + 1
        if size > room:
            left.append(LeftOut("memories", f"the block is full at {style.tokens:,} tokens", size, record.id))
            continue
        room -= size
        items.append(Item(text, record.id))
        records.append(record)
    request.touch(records)
    return Drafted((Section("memories", tuple(items), head, CLOSE, fewest=0),), tuple(left))


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
