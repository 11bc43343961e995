"""Which memories went into which answer: written down with each context, and read again by its id."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from recollect.context.request import Request
from recollect.context.sections import Context, Section
from recollect.policies.secrets import find
from recollect.stores.answers import named
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.bodies import ANSWERS, MOST_LEFT_OUT, AnswerBody
from recollect.values.errors import NotFoundError
from recollect.values.record import Record
from recollect.view import View

_MOST_VERSIONS = 100
"""So many newer versions of a memory are followed to the one that holds now."""
_LONGEST_WHY = 500
_log = logging.getLogger("recollect.answers")
AnswerState = Literal["live", "expired", "archived", "superseded", "forgotten", "hidden"]


class AnswerMemory(msgspec.Struct, frozen=True):
    """A memory that an answer names, as it is now."""

    id: str
    state: AnswerState
    """`forgotten`: it is deleted; `hidden`: it is damaged, or not for this view."""
    content: Any = None
    """None for a memory that is forgotten or hidden."""
    replaced_by: str | None = None
    """The id of the version that holds now."""
    relevance: float | None = None
    """For the question, where the memory was recalled by one."""
    why: str | None = None
    """Why it was left out; None for a memory that went into the answer."""

    @property
    def text(self) -> str:
        """Its content as text, or what became of it."""
        if self.state in ("forgotten", "hidden"):
            return "was forgotten" if self.state == "forgotten" else "cannot be shown here"
        return self.content if isinstance(self.content, str) else msgspec.json.encode(self.content).decode()


class AnswerSources(msgspec.Struct, frozen=True):
    """Which memories were put before the model for one answer."""

    id: str
    """The `id` of its context."""
    at: datetime
    question: str | None
    """None where the preset keeps only its hash, where it looked like a credential, or after an erasure."""
    question_sha256: str | None
    tokens: int
    """Of all that was put in."""
    memories: tuple[AnswerMemory, ...]
    """In the order in which they were put in."""
    left_out: tuple[AnswerMemory, ...] = ()
    """At most 100 of those that were found and not put in, and why."""
    erased: int = 0
    """How many of its memories were erased since: their ids and the question went with them."""
    conversation: str | None = None
    channel: str | None = None
    account: str | None = None
    agent: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.question or self.id}: {self.tokens:,} tokens"]
        lines += [f"  {memory.id}: {memory.text}" for memory in self.memories]
        lines += [f"  {self.erased:,} erased"] if self.erased else []
        return "\n".join([*lines, *(f"  left out: {memory.id}: {memory.why}" for memory in self.left_out)])


# Writing down


def keep(request: Request, made: Context, sections: Iterable[Section]) -> None:
    """Have it written which memories went into a context. Never fails: the context is made."""
    view = request.view
    wanted = view.counts and view.keeps_answers and view.preset.context.keep != "nothing"
    if not wanted or view.answers is None or not made.memories:
        return
    try:
        now, owner = view.now(), view.address
        body = _body(request, made, sections)
        item = ShelfItem(ANSWERS, made.id, body, owner.conversation, owner.account, owner.agent, 0, now, now)
        view.answers.add(view.place, item, view.oldest_answer())
    except Exception:
        _log.warning("which memories went into an answer was not kept", exc_info=True)


def _body(request: Request, made: Context, sections: Iterable[Section]) -> dict[str, Any]:
    view, question = request.view, request.query
    body: dict[str, Any] = {"tokens": 0, "memories": []}
    shares = {share.name: share.tokens for share in made.report.sections}
    for section in sections:
        used = [item for item in section.items if item.id is not None]
        body["memories"] += [{"id": item.id, "relevance": item.relevance} for item in used]
        body["tokens"] += shares.get(section.name, 0) if used else 0
    left = [left for left in made.report.left_out if left.id is not None][:MOST_LEFT_OUT]
    body["left_out"] = [{"id": item.id, "why": item.why[:_LONGEST_WHY]} for item in left]
    if question and not find(question, view.preset.secrets):
        is_whole = view.preset.context.keep == "all"
        digest = None if is_whole else hashlib.sha256(question.encode()).hexdigest()
        body |= {"question": question} if is_whole else {"question_sha256": digest}
    return body if view.address.channel is None else body | {"channel": view.address.channel}


# Reading


def sources(view: View, ident: str) -> AnswerSources:
    """NotFoundError for an answer that is unknown, too old, of no memory, or not this view's."""
    ident = validation.memory_id(ident)
    view.settle_answers()
    items = [item for item in view.things_at(ANSWERS, [ident]) if _sees(view, item)]
    if not items:
        raise NotFoundError(f"answer {ident} is not known: it is too old, had no memories, or is not yours")
    return _answers(view, items)[0]


def latest(view: View, limit: int, after: str | None) -> list[AnswerSources]:
    limit = validation.count(limit, "limit", high=1000)
    if after is not None:
        sources(view, after)
    view.settle_answers()
    items: list[ShelfItem] = []
    for item in view.things(ANSWERS, parent=view.address.conversation, newest_first=True, after=after):
        if _sees(view, item):
            items.append(item)
            if len(items) == limit:
                break
    return _answers(view, items)


def _sees(view: View, item: ShelfItem) -> bool:
    """Also of a view that is bound to a conversation: it sees the answers in this one."""
    return view.sees(item) and view.address.conversation in (None, item.parent)


def _answers(view: View, items: Sequence[ShelfItem]) -> list[AnswerSources]:
    ids = list(dict.fromkeys(ident for item in items for ident in named(item.body)))
    records = {record.id: record for record in view.get(ids)} if ids else {}
    rest = [ident for ident in ids if ident not in records]
    places = dict.fromkeys(view.places) if rest else ()
    hidden = {record.id for place in places for record in view.store.get(place, rest)}
    return [_answer(view, item, records, hidden) for item in items]


def _answer(view: View, item: ShelfItem, records: dict[str, Record], hidden: set[str]) -> AnswerSources:
    body = msgspec.convert(item.body, AnswerBody)

    def memory(ident: str, relevance: float | None, why: str | None) -> AnswerMemory:
        record = records.get(ident)
        if record is None:
            return AnswerMemory(ident, "hidden" if ident in hidden else "forgotten", None, None, relevance, why)
        newest = _newest(view, record) if record.superseded_by is not None else None
        return AnswerMemory(ident, record.state(view.now()), record.content, newest, relevance, why)

    return AnswerSources(
        item.key,
        item.created_at,
        body.question,
        body.question_sha256,
        body.tokens,
        tuple(memory(used.id, used.relevance, None) for used in body.memories),
        tuple(memory(unused.id, None, unused.why) for unused in body.left_out),
        body.erased,
        item.parent,
        body.channel,
        item.account,
        item.agent,
    )


def _newest(view: View, record: Record) -> str:
    """The id of the last version of a memory that this view sees."""
    for _ in range(_MOST_VERSIONS):
        newer = view.get([record.superseded_by]) if record.superseded_by is not None else []
        if not newer:
            break
        record = newer[0]
    return record.id
