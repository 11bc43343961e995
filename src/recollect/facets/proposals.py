"""Changes that wait to be confirmed: what a user asked for and is too much or not sure, and what may have changed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from recollect.facets.shelf import Shelf
from recollect.maintenance.steps import Step, apply
from recollect.policies.secrets import screen
from recollect.stores.port import Place
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.bodies import PROPOSALS, ProposedAct
from recollect.values.errors import ConflictError, InputError, NotFoundError
from recollect.verbs.forget import Forget, forget
from recollect.verbs.revise import revise
from recollect.view import View

MOST_PROPOSALS = 100
"""Proposals of a place; the oldest go first."""
_DAYS = timedelta(days=30)
_LONGEST = 500


class Proposal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was asked of the memory and is not done yet."""

    id: str
    act: ProposedAct
    """`replace`: the second of two memories takes the place of the first."""
    asked: str
    """The sentence, in the user's words; of a possible change, why it may be one."""
    ids: tuple[str, ...]
    """The memories that it would forget, or of which it would correct one; or the older and the newer."""
    value: str = ""
    """What the corrected memory would say."""
    asked_at: datetime | None = None


def propose(view: View, act: ProposedAct, sentence: str, ids: Sequence[str], value: str) -> str:
    """Keep a proposal for 30 days. Returns its id: the same for the same words and memories."""
    sentence, value = sentence[:_LONGEST], value[:_LONGEST]
    for field, text in (("asked", sentence), ("value", value)):
        screen(view.preset.secrets, field, text)
    address, shelf, now = view.address, _shelf(view), view.now()
    owner = address.account, address.agent, address.channel
    ident = hashlib.blake2b(msgspec.json.encode((*owner, act, sentence, *ids)), digest_size=8).hexdigest()
    room = {} if address.channel is None else {"channel": address.channel}
    body: dict[str, Any] = msgspec.to_builtins(Proposal(ident, act, sentence, tuple(ids), value, now))
    item = shelf.thing(ident, body | room, None, address.account, address.agent)
    with shelf.transaction():
        shelf.save("proposed a change", item)
        every = sorted(view.store.shelf(view.place, PROPOSALS), key=lambda item: item.created_at)
        over = len(every) - MOST_PROPOSALS
        old = [item.key for n, item in enumerate(every) if n < over or item.created_at < now - _DAYS]
        if old:
            view.store.remove(view.place, PROPOSALS, old)
    return ident


def proposals(view: View) -> list[Proposal]:
    """Those that the view sees, the newest first."""
    waiting = [_proposal(item) for item in reversed(_waiting(view))]
    both = {ident for proposal in waiting if proposal.act == "replace" for ident in proposal.ids}
    live = {record.id for record in view.get(list(both)) if record.state(view.now()) == "live"} if both else set[str]()
    return [proposal for proposal in waiting if proposal.act != "replace" or live.issuperset(proposal.ids)]


def confirm(view: View, ident: str, ids: str | Sequence[str] | None) -> Proposal:
    """Do what a proposal says, to the memories of it that are named, as one change."""
    item = _item(view, ident)
    proposal = _proposal(item)
    view = view.as_one_change()
    with view.logging_refusals("proposals"):
        chosen = proposal.ids if ids is None else tuple(validation.memory_ids(ids))
        if not set(chosen) <= set(proposal.ids):
            raise InputError("ids", "names a memory that the proposal does not")
        present = [record.id for record in view.get(chosen) if record.superseded_by is None]
        if proposal.act == "replace" and set(chosen) != set(present):
            raise ConflictError("one of the two memories was changed meanwhile; nothing is left to replace")
        if proposal.act == "correct" and len(present) > 1:
            raise InputError("ids", f"must say which one is to be corrected: {', '.join(present)}")
    with view.store.transaction(*dict.fromkeys(view.places)):
        if proposal.act == "correct" and present:
            revise(view, present[0], {"content": proposal.value})
        elif proposal.act == "replace":
            old, new = proposal.ids
            (record,) = view.get([old])
            apply(view, Place.of(record), [Step(old, "supersede", proposal.asked, new)], "supersede", "{} as confirmed")
        elif present:
            forget(view, Forget(id=present, reason=proposal.asked))
        _shelf(view).remove("confirmed a proposal", [item])
    return msgspec.structs.replace(proposal, ids=tuple(present))


def dismiss(view: View, ident: str) -> Proposal:
    """Drop a proposal. Nothing else is changed."""
    item = _item(view, ident)
    _shelf(view).remove("dismissed a proposal", [item])
    return _proposal(item)


def _waiting(view: View) -> list[ShelfItem]:
    oldest = view.now() - _DAYS
    return sorted((i for i in _shelf(view).things() if i.created_at >= oldest), key=lambda item: item.created_at)


def _item(view: View, ident: str) -> ShelfItem:
    with view.logging_refusals("proposals"):
        name = validation.name(ident, "id")
    for item in _waiting(view):
        if item.key == name:
            return item
    raise NotFoundError(f"there is no proposal {name} that this view can see")


def _shelf(view: View) -> Shelf[Proposal]:
    return Shelf(view, PROPOSALS, _proposal, action="proposal")


def _proposal(item: ShelfItem) -> Proposal:
    return msgspec.convert(item.body, Proposal)
