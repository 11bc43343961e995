"""The audit log as a view sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from recollect.operations import Doc, Names, operation
from recollect.policies.secrets import screen
from recollect.stores.audit import GENESIS, TEXTS, Break, Entry, Text, check
from recollect.stores.port import Place
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.record import render
from recollect.view import INSIDE, PARTLY_PRIVATE, View

NOTE = "recorded a note"
"""What the log itself says of words that somebody recorded."""
_AGAIN = 5
_NAMING = ("created", "changed", "deleted", "removed", "restored")
_NAMED = 100
_MOST_TEXTS = 100
_MOST = 1_000_000
_WORDS = 8


def _few_words(text: str) -> str:
    words = text.split(maxsplit=_WORDS)
    few = " ".join(words[:_WORDS])[:80]
    return few if len(words) <= _WORDS and few == " ".join(words) else f"{few.rstrip()}…"


def with_words(view: View, entry: Entry) -> Entry:
    """An entry of this view's own with the words that stand beside it."""
    items = (item for place in view.places for item in view.store.find(place, TEXTS, [entry.id]))
    return next((_with_text(entry, _text(item)) for item in items), entry)


def _text(item: ShelfItem) -> Text:
    return msgspec.convert(item.body, Text)


def _with_text(entry: Entry, text: Text) -> Entry:
    """An entry as it is shown: with the words that stand beside it, in place of their hash."""
    meta = {key: value for key, value in entry.meta.items() if key not in ("text", "request")}
    return replace(entry, message=text.message, meta=meta if text.details is None else meta | {"details": text.details})


def _in_json(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


class Verified(msgspec.Struct, frozen=True):
    """One log, checked from its first entry to its last."""

    tenant: str
    workspace: str | None
    entries: int
    head: str
    """The hash of the last entry. Kept elsewhere, it proves later that nothing before it was changed."""
    breaks: tuple[Break, ...]

    @property
    def ok(self) -> bool:
        return not self.breaks


class AuditLog:
    """Every change and every refusal, in order, hash-chained. It can be added to and read; nothing changes it."""

    def __init__(self, view: View) -> None:
        self._view = view

    @operation("POST /audit", does="creates")
    def record(
        self,
        action: Annotated[str, Doc("What was done, in one word.")],
        message: Annotated[str, Doc("What to log.")],
        meta: Annotated[Mapping[str, Any] | None, Doc("Names and JSON values to log with it.")] = None,
    ) -> Entry:
        """Log something an agent did. Secrets are refused here too."""
        view = self._view
        with view.logging_refusals("audit"):
            view.screen_address()
            action = validation.kind(action, "action")
            text = validation.query(message, "message")
            if not 0 < len(text) <= 10_000:
                raise validation.InputError("message", "must be 1 to 10,000 characters")
            details = validation.metadata(meta, "meta")
            screen(view.preset.secrets, "message", text)
            screen(view.preset.secrets, "meta", render(details))
        with view.store.transaction(view.place):
            about = [value for value in details.values() if isinstance(value, str)]  # such as a memory's id
            entry = view.log_text(view.place, action, NOTE, Text.of(text, details), about=about)
        return _with_text(entry, Text.of(text, details))

    @operation("GET /audit")
    def search(
        self,
        text: Annotated[str, Doc("Only entries with this text in the message, in any case.")] = "",
        *,
        action: Annotated[str, Doc("Only this action: remember, revise, forget, erase, undo, refuse, …")] = "",
        about: Annotated[str, Names("memory"), Doc("Only entries about this memory.")] = "",
        limit: Annotated[int, Doc("The most entries.")] = 10,
    ) -> list[Entry]:
        """Entries whose message has the text, whatever its case, newest first.

        `action` is what was done, such as `remember`, `revise`, `forget`, `erase`, `undo` or `refuse`; `about` is a
        memory's id.
        """
        text, limit = validation.query(text, "text"), validation.count(limit, "limit")
        return self.matching((text,) if text else (), about, limit, action)

    @operation("POST /audit/named")
    def named(self, entry: Annotated[Entry, Doc("An entry of the log.")]) -> dict[str, str]:
        """The ids that an entry names, each with the first words of the memory.

        The log itself holds no content: of what was forgotten, or what this view does not see, there are no words.
        """
        if not isinstance(entry, Entry):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise validation.InputError("entry", f"must be an entry of the log, not {type(entry).__name__}")
        ids = list(dict.fromkeys(ident for change in _NAMING for ident in entry.meta.get(change, ())))[:_NAMED]
        excerpts = {record.id: _few_words(record.text) for record in self._view.get(ids)} if ids else {}
        return {ident: excerpts.get(ident, "") for ident in ids}

    @operation("GET /audit/matching")
    def matching(
        self,
        texts: Annotated[Sequence[str], Doc("Texts of which the message must have one.")],
        about: Annotated[str, Names("memory"), Doc("Only entries about this memory.")] = "",
        limit: Annotated[int, Doc("The most entries.")] = 10,
        action: Annotated[str, Doc("Only this action.")] = "",
    ) -> list[Entry]:
        """Entries whose message has one of the texts, newest first."""
        texts = [validation.query(text, "texts") for text in validation.sequence(texts, "texts")]
        if len(texts) > _MOST_TEXTS:
            raise validation.InputError("texts", f"{len(texts)} are over the limit of {_MOST_TEXTS}")
        about, limit = (
            validation.or_empty(validation.memory_id, about, "about"),
            validation.count(limit, "limit", high=_MOST),
        )
        action = validation.or_empty(validation.kind, action, "action")
        entries: dict[str, Entry] = {}
        for place in self._places(everywhere=self._view.address.agent is not None):
            # Entries that this view may not see are skipped, so more have to be read.
            stored = (entry for entry in self._stored(place, texts, about) if action in ("", entry.action))
            shown = (seen for entry in stored if (seen := self._seen(place, entry, texts, about)) is not None)
            entries |= {entry.id: entry for entry in islice(shown, limit)}
        return [entries[ident] for ident in sorted(entries, reverse=True)[:limit]]

    def _stored(self, place: Place, texts: Sequence[str], about: str) -> Iterator[Entry]:
        """Entries that have one of the texts in the log or beside it, the newest first."""
        store = self._view.store
        in_log = store.entries(place, contains=texts, about=about, newest_first=True)
        if not texts:
            return in_log
        beside = {item.key: item for text in texts for item in store.shelf(place, TEXTS, contains=_in_json(text))}
        # By the hash that an entry has of its text: of those beside the log few are found.
        newest = (beside[key] for key in sorted(beside, reverse=True))
        named = (entry for item in newest for entry in store.entries(place, about=_text(item).hash, limit=1))
        fitting = (entry for entry in named if not about or about in msgspec.json.encode(entry.meta).decode())
        return merge(in_log, fitting, key=lambda entry: entry.id, reverse=True)

    def _seen(self, place: Place, entry: Entry, texts: Sequence[str], about: str) -> Entry | None:
        """An entry as this view may see it. The log is the organisation's: everybody sees that something was
        done, but the ids and the reason are shown only to those who may see the memories.

        What somebody recorded is seen as a memory is, by the same account and channel only, but by all agents.
        An entry about nothing but an agent's journal and core memories is seen by who sees those.
        """
        view = self._view
        inside = view.bound & INSIDE
        if not view.sees_entry(entry):
            return None
        own = place in view.places and (view.whole or (not inside and entry.actor == view.address.agent))
        own = own and view.sees_entry(entry, PARTLY_PRIVATE)
        if about and not own:
            return None
        item = next(iter(view.store.find(place, TEXTS, [entry.id])), None) if "text" in entry.meta else None
        recorded = entry.message == NOTE or "details" in entry.meta
        if recorded and item is None and "account" in view.bound:
            return None  # it was recorded before its account was, or is erased
        if item is not None and not view.sees(replace(item, agent=None)):
            return None if recorded else replace(entry, meta={})
        if item is not None and (own or recorded):
            entry = _with_text(entry, _text(item))
        elif not own and not recorded:
            entry = replace(entry, message=entry.message.partition(": ")[0])
        if texts and not any(text.casefold() in entry.message.casefold() for text in texts):
            return None
        details = {"details": entry.meta["details"]} if "details" in entry.meta else {}
        return entry if own else replace(entry, meta=details)

    @operation("GET /audit/verification", rank="admin", slow=True)
    def verify(self) -> list[Verified]:
        """Check each log that this view can see, entry by entry."""
        return [result for place in self._places() if (result := self._verify(place))]

    def _verify(self, place: Place) -> Verified | None:
        """Again where it seems broken: a workspace may be forgotten and begun anew while it is read."""
        verified = self._read(place)
        for _ in range(_AGAIN):
            if verified is None or verified.ok:
                break
            verified = self._read(place)
        return verified

    def _read(self, place: Place) -> Verified | None:
        store, count, head = self._view.store, 0, GENESIS

        def counted() -> Iterator[Entry]:
            nonlocal count, head
            for entry in store.entries(place):
                count, head = count + 1, entry.hash
                yield entry

        texts = {item.key: _text(item).hash for item in store.shelf(place, TEXTS)}
        breaks = check(counted(), store.written(place), texts)
        if not count and not breaks:
            return None
        return Verified(place.tenant, place.workspace, count, head, tuple(breaks))

    def _places(self, everywhere: bool = False) -> list[Place]:
        """The places whose log this view reads: its workspace and the shared one; all, if it has no workspace."""
        view, tenant = self._view, self._view.address.tenant
        if "workspace" in view.bound or (view.bound - {"tenant"} and not everywhere):
            return list(view.places)
        others = [place for place in view.store.places(tenant) if not place.hidden]
        return list(dict.fromkeys([*view.places, *others]))
