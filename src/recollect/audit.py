"""The audit log as a view sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect import validation
from recollect.policies.secrets import screen
from recollect.record import render
from recollect.stores.audit import GENESIS, Break, Entry, check
from recollect.stores.port import Place
from recollect.view import INSIDE, View

_AGAIN = 5
_NAMING = ("created", "changed", "deleted", "removed", "restored")
_NAMED = 100
_WORDS = 8


def _few_words(text: str) -> str:
    words = text.split(maxsplit=_WORDS)
    few = " ".join(words[:_WORDS])[:80]
    return few if len(words) <= _WORDS and few == " ".join(words) else f"{few.rstrip()}…"


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

    def record(self, action: str, message: str, meta: Mapping[str, Any] | None = None) -> Entry:
        """Log something an agent did. Secrets are refused here too."""
        view = self._view
        with view.refusing("audit"):
            view.screen_address()
            action = validation.kind(action, "action")
            text = validation.query(message, "message")
            if not 0 < len(text) <= 10_000:
                raise validation.InputError("message", "must be 1 to 10,000 characters")
            details = validation.metadata(meta, "meta")
            screen(view.preset.secrets, "message", text)
            screen(view.preset.secrets, "meta", render(details))
        return view.log(view.place, action, text, details=details)

    def search(self, text: str = "", *, action: str = "", about: str = "", limit: int = 10) -> list[Entry]:
        """Entries whose message has the text, whatever its case, newest first.

        `action` is what was done, such as `remember`, `revise`, `forget`, `erase`, `undo` or `refuse`; `about` is a
        memory's id.
        """
        text, limit = validation.query(text, "text"), validation.count(limit, "limit")
        done = validation.kind(action, "action") if action else ""
        ident = validation.memory_id(about, "about") if about else ""
        return self.matching((text,) if text else (), ident, limit, done)

    def named(self, entry: Entry) -> dict[str, str]:
        """The ids that an entry names, each with the first words of the memory.

        The log itself holds no content: of what was forgotten, or what this view does not see, there are no words.
        """
        ids = list(dict.fromkeys(ident for change in _NAMING for ident in entry.meta.get(change, ())))[:_NAMED]
        told = {record.id: _few_words(record.text) for record in self._view.get(ids)} if ids else {}
        return {ident: told.get(ident, "") for ident in ids}

    def matching(self, texts: Sequence[str], about: str = "", limit: int = 10, action: str = "") -> list[Entry]:
        """Entries whose message has one of the texts, newest first."""
        entries: list[Entry] = []
        for place in self._places(everywhere=self._view.address.agent is not None):
            # Of what is not the view's own, more may have to be passed over.
            stored = self._view.store.entries(place, contains=texts, about=about, newest_first=True)
            done = (entry for entry in stored if action in ("", entry.action))
            shown = (seen for entry in done if (seen := self._seen(place, entry, texts, about)) is not None)
            entries += islice(shown, limit)
        return sorted(entries, key=lambda entry: entry.id, reverse=True)[:limit]

    def _seen(self, place: Place, entry: Entry, texts: Sequence[str], about: str) -> Entry | None:
        """The log is the organisation's: all see what was done; to which memories, and why, who may see them."""
        view = self._view
        inside = view.bound & INSIDE
        if place in view.places and (view.whole or (not inside and entry.actor == view.address.agent)):
            return entry
        if about:
            return None
        details = entry.meta.get("details")
        if details is None:
            message = entry.message.partition(": ")[0]
            if texts and not any(text.casefold() in message.casefold() for text in texts):
                return None
            return replace(entry, message=message, meta={})
        return replace(entry, meta={"details": details})

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

        breaks = check(counted(), store.written(place))
        if not count and not breaks:
            return None
        return Verified(place.tenant, place.workspace, count, head, tuple(breaks))

    def _places(self, everywhere: bool = False) -> list[Place]:
        """The view's workspace and what its tenant shares; all workspaces where none was chosen, and for agents."""
        view, tenant = self._view, self._view.address.tenant
        if view.bound - {"tenant"} and not everywhere:
            return list(view.places)
        others = [place for place in view.store.places(tenant) if not place.hidden]
        return list(dict.fromkeys([*view.places, *others]))
