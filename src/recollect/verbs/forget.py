"""Forgetting, and the receipt for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect import validation
from recollect.errors import AccessError, ConcurrencyError, InputError, StoreError
from recollect.record import Record, new_id
from recollect.stores.audit import GENESIS, Entry
from recollect.stores.port import Place, by_place
from recollect.stores.shelves import Thing, names
from recollect.text.times import point
from recollect.verbs.archive import checked_reason, memories_text, reread
from recollect.verbs.quota import relieve
from recollect.verbs.revise import ancestors
from recollect.view import View

REF_CODES = "ref_codes"
"""The shelf of what conversations are called in links."""


class Receipt(msgspec.Struct, frozen=True):
    """What was forgotten. `ids` include the earlier versions of what was named."""

    at: datetime
    count: int
    ids: tuple[str, ...]
    reason: str | None
    erased: bool
    """Whether it is gone from the disk for good. If not, `undo` can bring it back until `compact`."""
    entries: tuple[str, ...]
    """The ids of the audit entries; `undo` takes them."""
    note: str | None = None


class Forget(msgspec.Struct, frozen=True):
    """What to forget: everything this view sees that meets all the conditions given."""

    id: str | Sequence[str] | None = None
    tag: str | None = None
    since: datetime | str | None = None
    until: datetime | str | None = None
    conversation: str | None = None
    workspace: str | None = None
    agent: str | None = None
    shared: bool = False
    """Whether an agent that forgets by conditions means what is shared, too."""
    reason: str | None = None
    erase: bool = False


def forget(view: View, wish: Forget) -> Receipt:
    with view.refusing("forget"):
        reason = None if wish.reason is None else checked_reason(view, wish.reason)
        if wish.workspace is not None:
            return _forget_workspace(view, wish, reason)
        if wish.conversation is not None:
            wish = replace(wish, conversation=_meant(view, validation.name(wish.conversation, "conversation")))
        records = _select(view, wish)
        things = _things(view, wish)
    groups = by_place(list({record.id: record for record in [*records, *ancestors(view, records)]}.values()))
    if things or (wish.erase and wish.conversation is not None):  # there may be notes that were cleared before
        groups.setdefault(view.place, [])
    whole = new_id() if len(groups) > 1 else None
    with view.store.transaction(*groups):
        entries = [
            _delete(view, place, group, things if place == view.place else [], wish, reason, whole)
            for place, group in groups.items()
        ]
    view.memos.clear()  # this process keeps no copy either
    note = scrub(view, groups) if wish.erase else None
    if note is None and view.unsaved:
        note = "not saved yet: the disk refuses it, and it is forgotten in this process only"
    relieve(view, groups)
    ids = tuple(ident for entry in entries for ident in entry.meta["deleted"])
    erased = wish.erase and note is None
    return Receipt(view.now(), len(ids), ids, reason, erased, tuple(entry.id for entry in entries), note)


def _meant(view: View, conversation: str) -> str:
    """The id of a conversation that is named by its ref code."""
    address = view.address
    for ref in view.store.find(view.place, REF_CODES, [conversation]):
        mine = address.agent is None or ref.agent in (None, address.agent)
        if mine and (address.account is None or ref.account in (None, address.account)):
            return ref.body["conversation"]
    return conversation


def _select(view: View, wish: Forget) -> list[Record]:
    conditions: dict[str, Any] = {}
    if wish.tag is not None:
        conditions["tags"] = (view.tag_rule(wish.tag, "tag"),)
    if wish.since is not None:
        conditions["since"] = point(wish.since, "since", view.now())
    if wish.until is not None:
        conditions["until"] = point(wish.until, "until", view.now())
    if wish.conversation is not None:
        conditions["conversation"] = wish.conversation
    if wish.agent is not None:
        conditions["agent"] = validation.name(wish.agent, "agent")
        if view.address.agent not in (None, wish.agent):
            raise AccessError(f"agent: this view is bound to {view.address.agent} and cannot forget for another agent")
    if wish.id is not None:
        if conditions:
            raise InputError("id", "cannot be combined with other conditions")
        return view.find(wish.id)
    if not conditions:
        raise InputError(
            "id", "or tag, since, until, conversation, agent or workspace must be given: what shall be forgotten?"
        )
    records = view.store.scan(view.where(state=None, **conditions))
    mine = view.address.agent
    return [record for record in records if mine is None or wish.shared or record.address.agent == mine]


def _things(view: View, wish: Forget) -> list[Thing]:
    """A conversation goes with what is kept for it, as far as this view sees that."""
    if wish.conversation is None or any((wish.tag, wish.since, wish.until)):
        return []
    address = view.address
    return [
        thing
        for thing in view.store.shelf(view.place, parent=wish.conversation)
        if address.agent in (None, thing.agent) and address.account in (None, thing.account)
    ]


def _delete(
    view: View,
    place: Place,
    group: list[Record],
    things: list[Thing],
    wish: Forget,
    reason: str | None,
    whole: str | None,
) -> Entry:
    """In a transaction."""
    group = reread(view, place, group)
    ids = [record.id for record in group]
    message = f"forgot {memories_text(len(ids))}{f': {reason}' if reason else ''}"
    view.store.delete(place, ids, reason or "")
    for thing in things:
        view.store.remove(place, thing.shelf, [thing.key])
    if wish.erase:
        view.store.forget_before(place, about=[*ids, *filter(None, [wish.conversation])])
        return view.log(place, "erase", message, part_of=whole, deleted=ids)
    return view.log(place, "forget", message, group, things, part_of=whole, deleted=ids, things_changed=names(things))


def scrub(view: View, places: Iterable[Place]) -> str | None:
    """Leave no trace of what was deleted. Returns what keeps it from being so, if something does."""
    if not (places := list(places)):
        return None
    if view.on_disk is None:
        return "it is deleted; the server's disk, log and backups hold traces of it until their space is used again"
    try:
        for place in places:
            view.on_disk.scrub(place)
    except ConcurrencyError:
        return "another process still reads older data; run compact to remove the last traces from the disk"
    except StoreError as error:
        done = "it is forgotten, which undo cannot take back, but not erased from the disk yet"
        error.args = (f"{done}: {error}. Then run compact, which removes the last traces",)
        raise
    return None


def _forget_workspace(view: View, wish: Forget, reason: str | None) -> Receipt:
    """The folder goes as a whole. What stays is one line in the tenant's audit log."""
    workspace = view.address.workspace or ""
    if wish.workspace != workspace:
        raise AccessError(f"workspace: this view is at {workspace}; a workspace is forgotten from a view of it")
    if not view.whole:
        raise AccessError("workspace: only a view of the whole workspace can forget it, not one bound inside it")
    if wish.id or wish.tag or wish.since or wish.until or wish.conversation or wish.agent:
        raise InputError("workspace", "cannot be combined with other conditions")
    where = view.where(state=None, tiers=("workspace", "channel", "conversation"))
    memories = view.store.count(where).get((), 0)
    head = next(view.store.entries(view.place, newest_first=True, limit=1), None)
    entry = view.log(
        Place(view.address.tenant, None),
        "forget_workspace",
        f"forgot the workspace {workspace}{f': {reason}' if reason else ''}",
        workspace=workspace,
        memories=memories,
        audit_entries=head.seq if head else 0,
        audit_head=head.hash if head else GENESIS,
    )
    view.store.drop(view.place)
    view.memos.clear()
    return Receipt(view.now(), memories, (), reason, True, (entry.id,))
