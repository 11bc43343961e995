"""What the knowledge base holds: documents on a shelf, and the passages that were made of them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from recollect.policies.ranking import Score
from recollect.recall.hits import Explanation, Hit
from recollect.stores.port import KNOWLEDGE, Place
from recollect.stores.shelves import ShelfItem
from recollect.values.errors import NotFoundError
from recollect.values.record import Address
from recollect.view import View

KIND = "knowledge"
WORKSPACE = KNOWLEDGE
"""Reserved (`Place.reserved`): it is in no list of workspaces, and no view of memories reaches it."""
SHELF = "knowledge"
GENERAL = "general"
"""The category of documents without one."""

Status = Literal["draft", "published"]
Change = Literal["added", "changed", "unchanged"]


class Document(msgspec.Struct, frozen=True):
    id: str
    title: str
    source: str
    """Where it comes from: the path of a file, or the name it was given. One source is one document."""
    category: str
    status: Status
    hash: str
    """Of the content. The same content is not read again."""
    chunks: int
    """How many passages it was cut into."""
    created_at: datetime
    updated_at: datetime
    version: int
    left_out: tuple[str, ...] = ()
    """Lines or pages that look like a secret and were masked, each with the rule: `line 7: password`."""

    @classmethod
    def of(cls, item: ShelfItem) -> Document:
        body = item.body
        named = (item.key, body["title"], body["source"], body["category"], body["status"], body["hash"])
        times = item.created_at, item.changed_at
        return cls(*named, len(body["chunks"]), *times, item.version, tuple(body.get("left_out", ())))


class Passage(msgspec.Struct, frozen=True):
    """A part of a document that answers a question."""

    id: str
    document: str
    title: str
    category: str
    source: str
    trail: tuple[str, ...]
    """The headings that lead to it, the title first."""
    where: str
    """`line 12`, `page 3`."""
    text: str
    at: datetime
    """When the document was read."""
    scored: Score

    @classmethod
    def of(cls, hit: Hit, document: Document) -> Passage:
        record, metadata = hit.memory, hit.memory.metadata
        named = document.id, document.title, document.category, document.source
        where = tuple(metadata["trail"]), metadata["where"]
        return cls(record.id, *named, *where, record.text, record.created_at, hit.scored)

    @property
    def score(self) -> float:
        return self.scored.value

    def explain(self) -> Explanation:
        return Explanation(self.scored.value, self.scored.how, self.scored.parts)


class Refused(msgspec.Struct, frozen=True):
    """A file, or a passage of one, that was passed over, and why."""

    source: str
    reason: str


class Ingested(msgspec.Struct, frozen=True):
    """What became of the files of a folder."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    chunks: int = 0
    """Passages that were written."""
    refused: tuple[Refused, ...] = ()
    left_out: tuple[Refused, ...] = ()
    """Passages of files that were added without them, because they look like secrets."""


def place_of(view: View) -> Place:
    return Place(view.address.tenant, WORKSPACE)


def inside(view: View) -> View:
    """The view of the tenant's knowledge, whoever looks at it."""
    return replace(view, address=Address(*place_of(view)), bound=frozenset())


def thing_of(view: View, place: Place, ident: str) -> ShelfItem:
    items = view.store.find(place, SHELF, [ident])
    if not items:
        raise unseen(ident)
    return items[0]


def passages_of(view: View, place: Place, item: ShelfItem | None) -> list[str]:
    """The ids of a document's passages, as far as they are there."""
    return [] if item is None else [passage.id for passage in view.store.get(place, item.body["chunks"])]


def passages_text(number: int) -> str:
    return "1 passage" if number == 1 else f"{number:,} passages"


def unseen(ident: str) -> NotFoundError:
    return NotFoundError(f"there is no document {ident} that this view can see")
