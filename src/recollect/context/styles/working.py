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
    results, failures = federation.gather(view, request.query, most=most)
    left = [LeftOut("memories", f"the source {failure.source} failed: {failure.reason}", 0) for failure in failures]
    chunks = {name: those for name, those in results.items() if name == _KNOWLEDGE}
    others = {name: those for name, those in results.items() if name != _KNOWLEDGE}
    recalled = _not_in_conversation(request, federation.merged(view, request.query, others), "memories", left)[:limit]
    passages = _not_in_conversation(request, federation.merged(view, request.query, chunks), _KNOWLEDGE, left)
    passages.sort(key=lambda passage: -passage.similarity)
    federation.touch(view, recalled)
    agent = view.address.agent
    return Drafted(
        (
            Section("now", (Item(_now(request)),), where="prompt"),
            _memories(request, recalled, style.fewer_memories),
            _chunks(request, passages[: style.chunks], style.fewer_chunks),
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
    turn_hashes = {content_hash(text) for text in request.talk.texts}
    results = [result for result in results if result.record is None or request.may_show(result.record)]
    unrepeated = [result for result in results if content_hash(result.text) not in turn_hashes]
    left += [
        LeftOut(section, "it is in the conversation already", 0, result.record.id)
        for result in results
        if result.record is not None and result not in unrepeated
    ]
    return unrepeated


def _memories(request: Request, results: Sequence[Result], fewest: int) -> Section:
    items = tuple(Item(_fenced(request, result), result.record and result.record.id) for result in results)
    return Section("memories", items, where="each", fewest=fewest, step=max(len(items) - fewest, 1))


def _fenced(request: Request, result: Result) -> str:
    return f"{OPEN}\nFrom {_origin(request, result)}. {DATA}\n- {inside(result.text)}\n{CLOSE}"


def _chunks(request: Request, results: Sequence[Result], fewest: int) -> Section:
    items = tuple(Item(f"- ({_origin(request, result)}) {inside(result.text)}") for result in results)
    return Section(_KNOWLEDGE, items, _HEAD, CLOSE, fewest=fewest, step=max(len(items) - fewest, 1))


def _origin(request: Request, result: Result) -> str:
    """Source, title, day and id, as far as there are any."""
    day = local(result.at, request.zone).date().isoformat() if result.at is not None else None
    facts = (result.source, result.meta.get("title"), day, result.id)
    return ", ".join(inside(part) for part in facts if isinstance(part, str) and part)
