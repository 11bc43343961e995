"""Searching the knowledge base, within what an agent may search."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.facets.knowledge.documents import KIND, SHELF, Document, Passage, inside, place_of
from recollect.policies.decay import NoDecay
from recollect.policies.ranking import Ranking
from recollect.recall.consult import formula
from recollect.recall.hits import Hit
from recollect.recall.question import Question
from recollect.recall.run import RecallRun
from recollect.recall.sources import Found
from recollect.values import validation
from recollect.view import View

ALLOWED = "knowledge.categories"
_AGAIN = 10


def allowed(view: View, agent: str) -> list[str] | None:
    """The categories that an agent may search; None for all."""
    items = view.store.find(place_of(view), ALLOWED, [agent])
    return list(items[0].body["categories"]) if items else None


def ranked(
    view: View, query: str, ranking: Ranking | None, wanted: tuple[str, ...] | None, limit: int
) -> list[Passage]:
    """Best first, by a formula; without one by that which weighs sources against each other."""
    query, limit = validation.query(query), validation.count(limit, "limit", high=1000)
    here, place, sought = inside(view), place_of(view), _sought(view, wanted)
    # Where there is nothing, no model need be asked for the meaning of the question.
    if sought == () or not query.strip() or next(view.store.shelf(place, SHELF, limit=1), None) is None:
        return []
    where = here.where(tiers=("workspace",), kinds=(KIND,), sources=sought or ())
    rank = ranking or formula(view.preset)
    hits = _steady(here, Question(query, [where], limit, doubles=True, ranking=rank, decay=NoDecay()))
    keys = dict.fromkeys(hit.memory.address.conversation or "" for hit in hits)
    documents = {item.key: Document.of(item) for item in view.store.find(place, SHELF, list(keys))}
    named = [(hit, documents.get(hit.memory.address.conversation or "")) for hit in hits]
    return [Passage.of(hit, document) for hit, document in named if document is not None]


def search_knowledge(view: View, query: str, limit: int) -> list[Found]:
    """For `consult`."""
    return [
        Found(
            text=passage.text,
            similarity=next(part.value for part in passage.scored.parts if part.name == "similarity"),
            at=passage.at,
            id=passage.id,
            meta={
                "title": passage.title,
                "category": passage.category,
                "document": passage.document,
                "where": passage.where,
            },
        )
        for passage in ranked(view, query, None, None, limit)
    ]


def _sought(view: View, wanted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The categories to search; None for all."""
    agent = view.address.agent
    limit = None if agent is None else allowed(view, agent)
    if limit is None or wanted is None:
        return wanted if limit is None else tuple(limit)
    return tuple(name for name in wanted if name in limit)


def _steady(view: View, question: Question) -> Sequence[Hit]:
    """Hits of one state: what is replaced after it was found and before it is read would be missing."""
    tries: list[Sequence[Hit]] = []
    while len(tries) < _AGAIN:
        before = view.store.written(view.place)
        tries.append(RecallRun(view, question).hits())
        if view.store.written(view.place) == before:
            return tries[-1]
    return max(tries, key=len)  # somebody writes all the time: the one from which nothing is missing
