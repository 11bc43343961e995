"""Working memory: who the agent is and what time it is, each memory a system message, then knowledge."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.context.request import Request
from recollect.context.sections import Drafted, Item, LeftOut, Section
from recollect.policies.injection import Working
from recollect.policies.ranking import content_hash
from recollect.recall import consult as federation
from recollect.recall.consult import MEMORY, MOST, Result
from recollect.text.fence import CLOSE, DATA, OPEN, inside
from recollect.values.record import local

_KNOWLEDGE = "knowledge"
"""The source whose findings have a section of their own."""
_HEAD = f"{OPEN}\nFrom the organisation's documents, most similar first. {DATA}"


def draft(request: Request, style: Working) -> Drafted:
    view, limit = request.view, request.limit or style.memories
    most = {**MOST, MEMORY: max(limit, MOST[MEMORY]), _KNOWLEDGE: max(style.chunks, MOST[_KNOWLEDGE])}
    found, failures = federation.gather(view, request.query, most=most)
    left = [LeftOut("memories", f"the source {one.source} failed: {one.reason}", 0) for one in failures]
    chunks = {name: those for name, those in found.items() if name == _KNOWLEDGE}
    others = {name: those for name, those in found.items() if name != _KNOWLEDGE}
    recalled = _not_in_conversation(request, federation.merged(view, request.query, others), "memories", left)[:limit]
    known = _not_in_conversation(request, federation.merged(view, request.query, chunks), _KNOWLEDGE, left)
    known.sort(key=lambda one: -one.similarity)
    federation.touch(view, recalled)
    agent = view.address.agent
    return Drafted(
        (
            Section("now", (Item(_now(request)),), where="prompt"),
            _memories(request, recalled, style.fewer_memories),
            _chunks(request, known[: style.chunks], style.fewer_chunks),
        ),
        tuple(left),
        f"You are {agent}." if agent else "",
    )


def _now(request: Request) -> str:
    now = local(request.view.now(), request.zone)
    return f"Current date and time: {now:%A}, {now.isoformat(sep=' ', timespec='minutes')}"


def _not_in_conversation(
    request: Request, results: Sequence[Result], section: str, left: list[LeftOut]
) -> list[Result]:
    """Without what the conversation has in it already."""
    said = {content_hash(text) for text in request.talk.texts}
    kept = [one for one in results if content_hash(one.text) not in said]
    left += [
        LeftOut(section, "it is in the conversation already", 0, one.record.id)
        for one in results
        if one.record is not None and one not in kept
    ]
    return kept


def _memories(request: Request, results: Sequence[Result], fewest: int) -> Section:
    items = tuple(Item(_fenced(request, one), one.record and one.record.id) for one in results)
    return Section("memories", items, where="each", fewest=fewest, step=max(len(items) - fewest, 1))


def _fenced(request: Request, one: Result) -> str:
    return f"{OPEN}\nFrom {_origin(request, one)}. {DATA}\n- {inside(one.text)}\n{CLOSE}"


def _chunks(request: Request, results: Sequence[Result], fewest: int) -> Section:
    items = tuple(Item(f"- ({_origin(request, one)}) {inside(one.text)}") for one in results)
    return Section(_KNOWLEDGE, items, _HEAD, CLOSE, fewest=fewest, step=max(len(items) - fewest, 1))


def _origin(request: Request, one: Result) -> str:
    """Source, title, day and id, as far as there are any."""
    day = local(one.at, request.zone).date().isoformat() if one.at is not None else None
    said = (one.source, one.meta.get("title"), day, one.id)
    return ", ".join(inside(part) for part in said if isinstance(part, str) and part)
