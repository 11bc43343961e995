"""The knowledge base: documents that a tenant's agents search, and never change."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from recollect.facets.knowledge.documents import (
    SHELF,
    Change,
    Document,
    Ingested,
    Passage,
    Refused,
    Status,
    inside,
    passages_of,
    passages_text,
    place_of,
    thing_of,
    unseen,
)
from recollect.facets.knowledge.ingest import IngestRequest, ingest, set_status
from recollect.facets.knowledge.searching import ALLOWED, allowed, ranked
from recollect.operations import AgentName, Doc, DocumentId, QueryText, Reason, operation
from recollect.policies.ranking import Calibrated
from recollect.policies.secrets import screen_name
from recollect.stores.shelves import ShelfItem, names
from recollect.values import validation
from recollect.values.errors import AccessError, InputError
from recollect.verbs.archive import checked_reason
from recollect.verbs.forget import Receipt, scrub
from recollect.verbs.forget.lineage import drop_undos
from recollect.view import View

if TYPE_CHECKING:
    from recollect.documents.files import TextFormat

__all__ = ["Document", "Ingested", "Knowledge", "Passage", "Refused", "Status"]

_LONGEST = 500


class Knowledge:
    """Documents of a tenant, cut into passages and searched by meaning and words.

    Documents are on a shelf, their passages are records; both in a workspace of the tenant's own that no name reaches.
    So passages are no memories: `recall`, `stats`, `export`, `workspaces` and quotas pass them over, they never fade or
    expire, and `consult` asks for them as the source `knowledge`. `backup`, `verify` and the vectors made in the
    background include them. Only what is published is searched: passages of a draft are archived.

    All of a tenant's views read what is published, an agent in the categories that it was allowed, which are all unless
    `allow` says otherwise. Only the owner's view, bound to no agent, account, channel or conversation, sees drafts and
    writes.
    """

    def __init__(self, view: View, owner: bool | None = None) -> None:
        """`owner` says whether it is the owner's; without it the view does."""
        self._view = view
        self._owner = view.whole if owner is None else owner
        self._place = place_of(view)
        self._inside = inside(view)

    # Writing

    @operation("POST /knowledge", does="creates", rank="admin", takes_file=True)
    def add(
        self,
        text: Annotated[str | None, Doc("The text of the document.")] = None,
        *,
        path: Annotated[str | os.PathLike[str] | None, Doc("A file to read it from.")] = None,
        title: Annotated[str | None, Doc("Its title; the first heading if it is left out.")] = None,
        category: Annotated[str | None, Doc("Its category; `general` if it is left out.")] = None,
        status: Annotated[Status | None, Doc("draft or published.")] = None,
        source: Annotated[str | None, Doc("What the document is known by.")] = None,
        format: Annotated[TextFormat, Doc("The format of the text.")] = "md",
    ) -> Document:
        """Add a text or a file; one that is there is read again if it has changed, and else nothing is written.

        A file is known by its path and a text by its title, unless `source` names it. New ones are drafts in the
        category `general`; what is there keeps its title, category and status where none is given. Lines that look
        like a secret are masked, and named in `left_out` of the document.
        `format` is that of the text: md, txt or html.
        """
        with self._writing():
            if path is not None and text is None:
                request = self._file(Path(os.path.abspath(path)), source, title, category, status)
            elif text is not None and path is None:
                request = self._text(text, format, source, title, category, status)
            else:
                raise InputError("text", "or path must be given, and not both")
            return ingest(self._inside, self._place, request)[0]

    @operation(does="creates", rank="admin")
    def add_folder(
        self,
        path: Annotated[str | os.PathLike[str], Doc("A folder, or one file.")],
        *,
        category: Annotated[str | None, Doc("The category of all these documents.")] = None,
        status: Annotated[Status | None, Doc("draft or published.")] = None,
        name: Annotated[str | None, Doc("The folder's name in the sources, wherever it is on the disk.")] = None,
        progress: Callable[[int], object] | None = None,
    ) -> Ingested:
        """Add every md, txt, html, pdf and docx file below a folder, or one file, each in a transaction of its own.

        A second run goes on where the first ended, and reads only what has changed. Files that cannot be read, or
        that are nothing but a secret, are in `refused`, and the others go on. Lines that look like a secret are masked,
        and are in `left_out`. Sources are the files' paths, or `name/…` if the folder
        has a `name`, which stays the same wherever the folder is. `progress` is called with how many files are done.
        """
        from recollect.documents.files import inside as files_in

        with self._writing():
            folder = Path(os.path.abspath(path))
            files = list(files_in(folder))
            prefix = None if name is None else validation.label(name, "name", _LONGEST)
            self._checked("", None, category, status)
        above = folder.parent if folder.is_file() else folder
        counts: dict[Change, int] = {"added": 0, "changed": 0, "unchanged": 0}
        refused: list[Refused] = []
        left_out: list[Refused] = []
        chunks = 0
        for number, file in enumerate(files, 1):
            source = str(file) if prefix is None else f"{prefix}/{file.relative_to(above).as_posix()}"
            try:
                with self._writing():
                    request = self._file(file, source, None, category, status)
                    document, change = ingest(self._inside, self._place, request)
                counts[change] += 1
                chunks += document.chunks if change != "unchanged" else 0
                left_out += [Refused(_shown(source), place) for place in document.left_out if change != "unchanged"]
            except (InputError, OSError) as error:
                refused.append(Refused(_shown(source), str(error)))
            if progress is not None:
                progress(number)
        return Ingested(**counts, chunks=chunks, refused=tuple(refused), left_out=tuple(left_out))

    @operation("POST /knowledge/{id}/publish", does="changes", rank="admin")
    def publish(self, id: DocumentId) -> Document:
        """Have it searched from now on."""
        with self._writing():
            return set_status(self._inside, self._place, validation.memory_id(id), "published")

    @operation("POST /knowledge/{id}/withdraw", does="changes", rank="admin")
    def withdraw(self, id: DocumentId) -> Document:
        """A draft again: it stays, and is searched no more."""
        with self._writing():
            return set_status(self._inside, self._place, validation.memory_id(id), "draft")

    @operation("DELETE /knowledge/{id}", does="removes", rank="admin")
    def remove(
        self,
        id: DocumentId,
        *,
        reason: Reason = None,
    ) -> Receipt:
        """Erase a document with its passages, from the disk and for good."""
        view, place = self._inside, self._place
        with self._writing():
            why = None if reason is None else checked_reason(self._view, reason)
            ident = validation.memory_id(id)
        thing_of(view, place, ident)  # before a transaction, which would begin a place for what is not there
        with view.store.transaction(place):
            ids = passages_of(view, place, thing_of(view, place, ident))
            if ids:
                view.store.delete(place, ids, why or "")
            view.store.remove(place, SHELF, [ident])
            drop_undos(view, place, ids, lambda item: (item.shelf, item.key) == (SHELF, ident))
            message = f"removed a document of {passages_text(len(ids))}"
            entry = view.log(place, "knowledge", message, reason=why, final=True, document=ident, deleted=ids)
        note = scrub(view, [place]).note
        return Receipt(view.now(), len(ids), tuple(ids), why, note is None, (entry.id,), note)

    @operation("PUT /knowledge-access/{agent}", does="changes", rank="admin", replaces_in="knowledge")
    def allow(
        self,
        agent: AgentName,
        categories: Annotated[
            Iterable[str] | None, Doc("The categories that it may search; None for all, an empty list for none.")
        ],
    ) -> None:
        """Let an agent search these categories only; none at all for an empty list, and every one again for None."""
        view, place = self._inside, self._place
        with self._writing():
            screen_name(view.preset.secrets, "agent", agent if isinstance(agent, str) else "")  # pyright: ignore[reportUnnecessaryIsInstance]
            agent = validation.name(agent, "agent")
            chosen = None if categories is None else self._categories(categories)
        now = view.now()
        with view.store.transaction(place):
            rule = ShelfItem(ALLOWED, agent, {"categories": list(chosen or ())}, created_at=now, changed_at=now)
            before = view.store.find(place, ALLOWED, [agent])
            if chosen is not None:
                view.store.keep(place, rule)
            elif before:
                view.store.remove(place, ALLOWED, [agent])
            else:
                return
            message = "changed what an agent may search"
            view.log(place, "knowledge", message, (), before or [rule], things_changed=names([rule]))

    # Reading

    @operation("GET /knowledge-access/{agent}")
    def allowed(self, agent: AgentName) -> builtins.list[str] | None:
        """The categories that an agent may search; None for all."""
        return allowed(self._view, validation.name(agent, "agent"))

    @operation("GET /knowledge")
    def list(
        self,
        *,
        category: Annotated[str | None, Doc("Only this category.")] = None,
        status: Annotated[Status | None, Doc("Only drafts, or only published ones.")] = None,
        contains: Annotated[str | None, Doc("Only documents with this text in the title or the source.")] = None,
    ) -> builtins.list[Document]:
        """Documents in the order in which they were added. `contains` is a text in the title or the source."""
        wanted = None if category is None else self._category(category)
        state = None if status is None else validation.choice(status, "status", Status)
        words = "" if contains is None else validation.query(contains, "contains").casefold()
        return [
            document
            for document in self._seen(self._view.store.shelf(self._place, SHELF))
            if wanted in (None, document.category)
            and state in (None, document.status)
            and words in f"{document.title}\n{document.source}".casefold()
        ]

    @operation("GET /knowledge/{id}")
    def get(self, id: DocumentId) -> Document:
        """One document, without its text. NotFoundError if this view cannot see it."""
        ident = validation.memory_id(id)
        for document in self._seen(self._view.store.find(self._place, SHELF, [ident])):
            return document
        raise unseen(ident)

    @operation("POST /knowledge-search", asks_model=True)
    def search(
        self,
        query: QueryText,
        *,
        categories: Annotated[Iterable[str] | None, Doc("Only in these categories.")] = None,
        limit: Annotated[int, Doc("The most passages.")] = 5,
    ) -> builtins.list[Passage]:
        """The passages of published documents that best answer a question, best first.

        `categories` narrows it further, and never beyond what the agent is allowed.
        """
        rank = self._view.preset.ranking
        wanted = None if categories is None else self._categories(categories)
        return ranked(self._view, query, rank if isinstance(rank, Calibrated) else None, wanted, limit)

    def _seen(self, items: Iterable[ShelfItem]) -> builtins.list[Document]:
        """Those that this view may know of."""
        agent = self._view.address.agent
        limit = None if agent is None else allowed(self._view, agent)
        return [
            document
            for document in map(Document.of, items)
            if self._owner or (document.status == "published" and (limit is None or document.category in limit))
        ]

    # Checking

    @contextmanager
    def _writing(self) -> Generator[None]:
        with self._view.logging_refusals("knowledge"):
            self._view.screen_address("tenant")
            if not self._owner:
                bound = [part for part in ("agent", "account", "channel", "conversation") if part in self._view.bound]
                raise AccessError(f"knowledge: a view bound to the {bound[0]} reads it; only the owner's view writes")
            yield

    def _file(
        self, path: Path, source: str | None, title: str | None, category: str | None, status: Status | None
    ) -> IngestRequest:
        from recollect.documents.files import load

        checked = self._checked(str(path) if source is None else source, title, category, status)
        return IngestRequest(load(path), *checked)

    def _text(
        self,
        text: Any,
        format: TextFormat,
        source: str | None,
        title: str | None,
        category: str | None,
        status: Status | None,
    ) -> IngestRequest:
        from recollect.documents.files import MAX_BYTES, TextFormat, from_text

        kind = validation.choice(format, "format", TextFormat)
        if not isinstance(text, str):
            raise InputError("text", f"must be text, not {type(text).__name__}")
        if len(text) > MAX_BYTES:
            raise InputError("text", f"{len(text):,} characters is over the limit of {MAX_BYTES:,}")
        self._checked("" if source is None else source, title, category, status)
        raw = from_text(text, kind, title or source or "text")
        name = source or title or raw.read().title[:_LONGEST]
        if not name:
            raise InputError("title", "must be given, since the text has no heading")
        return IngestRequest(raw, *self._checked(name, title, category, status))

    def _checked(
        self, source: str, title: str | None, category: str | None, status: Status | None
    ) -> tuple[str, str | None, str | None, Status | None]:
        rules = self._view.preset.secrets
        for field, value in (("source", source), ("title", title)):
            if isinstance(value, str):
                screen_name(rules, field, value)
        return (
            validation.or_empty(validation.label, source, "source", _LONGEST),
            None if title is None else validation.label(title, "title", 200),
            None if category is None else self._category(category),
            None if status is None else validation.choice(status, "status", Status),
        )

    def _category(self, name: Any, field: str = "category") -> str:
        if isinstance(name, str):
            screen_name(self._view.preset.secrets, field, name)
        return validation.label(name, field)

    def _categories(self, names: Any) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(self._category(name, "categories") for name in validation.sequence(names, "categories"))
        )


def _shown(source: str) -> str:
    """The path of a file, whatever bytes its name has."""
    return os.fsencode(source).decode(errors="backslashreplace")
