"""Turns a text or a file into a document with passages. Unchanged documents are not written again."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from recollect.facets.knowledge.documents import (
    GENERAL,
    KIND,
    SHELF,
    Change,
    Document,
    Status,
    passages_text,
    thing_of,
)
from recollect.facets.knowledge.masking import mask
from recollect.policies.secrets import find
from recollect.stores.port import Place
from recollect.stores.shelves import ShelfItem, names
from recollect.values.errors import InputError, SecretError
from recollect.values.record import Address, Record, digest, new_id
from recollect.verbs.remember.quota import relieve
from recollect.view import View

if TYPE_CHECKING:
    from recollect.documents.chunks import Chunk
    from recollect.documents.files import Raw

IMPORTANCE = 0.5


class IngestRequest(NamedTuple):
    """A document to store. A field that is None keeps its value, or gets the default."""

    raw: Raw
    source: str
    title: str | None
    category: str | None
    status: Status | None

    @property
    def id(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()[:32]

    def met_by(self, item: ShelfItem | None) -> bool:
        """Whether nothing has to be read; the status may still differ."""
        return item is not None and (
            item.body["hash"] == self.raw.hash
            and self.title in (None, item.body["title"])
            and self.category in (None, item.body["category"])
        )


def ingest(view: View, place: Place, request: IngestRequest) -> tuple[Document, Change]:
    """A reader sees the document as it was or as it is, never both and never neither.

    Reading it, cutting and screening take long, and are done before anything is locked.
    """
    item = next(iter(view.store.find(place, SHELF, [request.id])), None)
    if request.met_by(item):
        return set_status(view, place, request.id, request.status), "unchanged"
    read = _read(view, request, item)
    with view.store.transaction(place):
        before = next(iter(view.store.find(place, SHELF, [request.id])), None)
        if request.met_by(before):  # somebody else was quicker
            return set_status(view, place, request.id, request.status), "unchanged"
        stored = _replace(view, place, request, read, before)
    view.new_in(place)
    relieve(view, [place])
    return Document.of(stored), "added" if before is None else "changed"


def set_status(view: View, place: Place, ident: str, status: Status | None) -> Document:
    """Nothing is written where it is so already, or where None is wanted."""
    if status in (None, thing_of(view, place, ident).body["status"]):
        return Document.of(thing_of(view, place, ident))
    now = view.now()
    with view.store.transaction(place):
        item = thing_of(view, place, ident)
        passages = view.store.get(place, item.body["chunks"])
        archived = now if status == "draft" else None
        view.store.update(place, [replace(passage, archived_at=archived) for passage in passages])
        changed = replace(item, body={**item.body, "status": status}, changed_at=now)
        stored = view.store.keep(place, changed, expect=item.version)
        done = "published" if status == "published" else "withdrew"
        ids, changed_things = [passage.id for passage in passages], names([item])
        message = f"{done} a document"
        meta: dict[str, Any] = {"document": ident, "changed": ids, "things_changed": changed_things}
        view.log(place, "knowledge", message, passages, [item], **meta)
    return Document.of(stored)


class _Read(NamedTuple):
    title: str
    chunks: list[Chunk]
    left_out: list[str]


def _read(view: View, request: IngestRequest, item: ShelfItem | None) -> _Read:
    from recollect.documents.chunks import cut

    read, rules = request.raw.read(), view.preset.secrets
    masked = mask(read.blocks, rules, request.raw.format in ("md", "txt"))
    if masked.rule and not masked.rest:
        place = masked.left_out[0].partition(": ")[0]
        raise SecretError(f"{request.raw.name}, {place}" if place else request.raw.name, masked.rule)
    chosen = request.title or (item.body["title"] if item is not None and item.body["titled"] else None)
    own = "" if find(read.title, rules) else read.title[:200]
    title = chosen or own or request.raw.name
    chunks: list[Chunk] = []
    left_out = masked.left_out
    for chunk in cut(title, masked.blocks):
        if rule := find(chunk.text, rules):  # only with the headings or lines that were put together here
            left_out.append(f"{chunk.at}: {rule}")
        else:
            chunks.append(chunk)
    if not chunks and left_out:
        raise SecretError(request.raw.name, left_out[0].rpartition(": ")[2])
    return _Read(title, chunks, left_out)


def _replace(view: View, place: Place, request: IngestRequest, read: _Read, before: ShelfItem | None) -> ShelfItem:
    """In a transaction."""
    now, old = view.now(), {} if before is None else before.body
    status = request.status or old.get("status", "draft")
    category = request.category or old.get("category", GENERAL)
    address = Address(*place, conversation=request.id)  # passages of one document stand beside each other
    records = [_record(view, address, chunk, category, status) for chunk in read.chunks]
    replaced = view.store.get(place, before.body["chunks"]) if before is not None else []
    gone = [passage.id for passage in replaced]
    if gone:
        view.store.delete(place, gone, "replaced")
    stored = view.store.put(place, records)
    body = {
        "title": read.title,
        "titled": request.title is not None or old.get("titled", False),
        "source": request.source,
        "category": category,
        "status": status,
        "hash": request.raw.hash,
        "chunks": [record.id for record in stored],
        "left_out": read.left_out,
    }
    item = ShelfItem(SHELF, request.id, body, created_at=now, changed_at=now)
    done = "added a document" if before is None else "replaced a document"
    message = f"{done} of {passages_text(len(stored))}"
    meta: dict[str, Any] = {
        "created": body["chunks"],
        "deleted": gone or None,
        "things_changed": names([item]),
        "document": request.id,
    }
    view.log(place, "knowledge", message, replaced, [before or item], **meta)
    return view.store.keep(place, item, expect=0 if before is None else before.version)


def _record(view: View, address: Address, chunk: Chunk, category: str, status: Status) -> Record:
    """A passage as a record: its category is the source, and one that may not be searched is archived."""
    now, ident = view.now(), new_id()
    text = chunk.text
    if not text.strip():
        raise InputError("text", "has no text that could be searched")
    return Record(
        ident,
        address,
        "workspace",
        KIND,
        text,
        IMPORTANCE,
        now,
        now,
        source=category,
        metadata={"trail": list(chunk.trail), "where": chunk.at},
        archived_at=now if status == "draft" else None,
        checksum=digest(ident, "workspace", KIND, None, text, now),
    )
