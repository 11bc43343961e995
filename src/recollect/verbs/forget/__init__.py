"""The verb forget, and the receipt for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from recollect.stores.answers import erase_names, names_any
from recollect.stores.audit import GENESIS, Entry
from recollect.stores.port import HasIntegrityCheck, Place, by_place
from recollect.stores.shelves import ShelfItem, names
from recollect.text.times import point
from recollect.values import validation
from recollect.values.bodies import PROPOSALS
from recollect.values.errors import AccessError, ConcurrencyError, ConflictError, InputError, StoreError
from recollect.values.filters import Filter, belongs_to
from recollect.values.record import Address, Record, new_id
from recollect.verbs.archive import checked_reason, memories_text, reread
from recollect.verbs.forget.lineage import Erasure, plan_erasure
from recollect.verbs.remember.quota import relieve
from recollect.verbs.revise import ancestors
from recollect.view import CHANNELS, CONVERSATIONS, View

_TRIES = 50
Talk = tuple[str, str]
"""A conversation, and the channel that it is in."""
_IN_MEMORY = "the disk refuses it; if this process ends before it is saved, what was on the disk may be back"
_SERVER_DISK = "it is deleted; the server's disk, log and backups hold traces of it until their space is used again"
_SOURCES_CUT = (
    "its oldest sources are not known any more, because it has more than a memory can name; what undo keeps may hold "
    "their words: run compact, which drops that"
)
_NOTHING: Mapping[Place, Collection[str]] = {}
_EMPTIED: dict[str, dict[str, Any]] = {"channels": {"description": ""}}
"""Shelves of what stays when its author goes, and what a person may have written there."""


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
    sources: tuple[str, ...] = ()
    """Erased with them: what they were derived from and was no longer live, such as the turns of an ended talk."""
    remaining: tuple[str, ...] = ()
    """Not erased: live memories that they were derived from, or that were derived from them, and stored sources that
    are not this view's to forget."""
    unreached: tuple[str, ...] = ()
    """What else may hold traces, and is not in the reach of this call."""


_ROOMS = frozenset(("channel", "conversation"))


class Forget(msgspec.Struct, frozen=True):
    """What to forget: everything this view sees that meets all the conditions given."""

    id: str | Sequence[str] | None = None
    tag: str | None = None
    since: datetime | str | None = None
    until: datetime | str | None = None
    conversation: str | None = None
    workspace: str | None = None
    agent: str | None = None
    account: str | None = None
    shared: bool = False
    """Whether an agent or account that forgets by conditions means what is shared, too."""
    reason: str | None = None
    erase: bool = False

    @property
    def whole_owner(self) -> bool:
        """Whether everything of an agent or account is meant, and not only some of its memories."""
        narrower = self.tag, self.since, self.until, self.conversation
        return (self.agent is not None or self.account is not None) and not any(narrower)


class Scrubbed(NamedTuple):
    note: str | None
    """What keeps the disk from being without traces, if something does."""
    damaged: int = 0
    """Lines on the disk of which nobody can tell what they hold."""


_UNSCRUBBED = Scrubbed(None)


class Selection(msgspec.Struct):
    """What is to go, place by place."""

    records: dict[Place, list[Record]]
    things: dict[Place, list[ShelfItem]]
    erasure: Erasure | None = None

    @property
    def every(self) -> list[Record]:
        return [record for group in self.records.values() for record in group]

    @property
    def places(self) -> set[Place]:
        more = self.erasure.places if self.erasure else ()
        return {*self.records, *self.things, *more}


def forget(view: View, request: Forget) -> Receipt:
    view.settle_answers()
    with view.logging_refusals("forget"):
        reason = None if request.reason is None else checked_reason(view, request.reason)
        if request.workspace is not None:
            return _forget_workspace(view, request, reason)
        if request.conversation is not None:
            name = validation.name(request.conversation, "conversation")
            request = replace(request, conversation=view.conversation_id(name, forgotten=request.erase))
        selected = _select(view, request)
    for _ in range(_TRIES):
        places = selected.places
        with view.store.transaction(*places):
            selected = _select(view, request, places)  # as it is now that nobody else can write there
            if not selected.places <= places:
                continue
            entries = _delete(view, selected, request, reason)
        break
    else:
        raise ConflictError("what is to be forgotten is moved or changed by others all the time; try again")
    view.caches.clear()  # this process keeps no copy either
    erased = selected.erasure.going if selected.erasure else {}
    note, damaged = _UNSCRUBBED
    if request.erase:
        traced = _with_traces(view, request, places) | _erase_from_answers(view, erased, places)
        note, damaged = scrub(view, traced, erased)
    if note is None and view.on_disk is not None and any(map(view.on_disk.unsaved, places)):
        note = f"not saved yet: {_IN_MEMORY}"
    relieve(view, selected.records)
    return _receipt(view, request, reason, selected, entries, Scrubbed(note, damaged))


def _erase_from_answers(view: View, erased: Mapping[Place, Collection[str]], done: set[Place]) -> set[Place]:
    """Also in places where nothing else was erased: answers of every workspace may name an account's memories.

    Returns the places that had any.
    """
    shared = any(place.workspace is None for place in erased)
    places = view.store.places(view.address.tenant) if shared else list(erased)
    named = [place for place in places if place not in done and names_any(view.store, place, _gone(erased, place))]
    for place in named:
        with view.store.transaction(place):
            erase_names(view.store, place, _gone(erased, place))
    return set(named)


def _gone(erased: Mapping[Place, Collection[str]], place: Place) -> set[str]:
    """The ids of erased memories that an answer in this place may name: the account's are seen in every workspace."""
    return {*erased.get(place, ()), *erased.get(Place(place.tenant, None), ())}


def _with_traces(view: View, request: Forget, places: set[Place]) -> set[Place]:
    """Also where nothing was found: a process may have been killed before it had removed the last traces, or what was
    derived may have been in another place, and have been taken back by undo."""
    if view.on_disk is None:
        return places
    scope = {place for scoped in _scope(view, request) for place in scoped.places}
    return places | set(filter(view.store.written, scope))


def _receipt(
    view: View, request: Forget, reason: str | None, selected: Selection, entries: Sequence[Entry], scrubbed: Scrubbed
) -> Receipt:
    ids = [ident for entry in entries for ident in entry.meta["deleted"]]
    erasure, audited = selected.erasure, tuple(entry.id for entry in entries)
    if erasure is None:
        return Receipt(view.now(), len(ids), tuple(ids), reason, False, audited, scrubbed.note)
    note = "; ".join(filter(None, (scrubbed.note, _SOURCES_CUT if erasure.is_cut else None))) or None
    sources = tuple(sorted(erasure.sources))
    chosen = {record.id for record in selected.every} | erasure.deleted
    ids = [ident for ident in dict.fromkeys([*ids, *sorted(erasure.deleted)]) if ident in chosen]
    rest = sources, tuple(sorted(erasure.remaining)), _unreached(view, request, erasure, scrubbed.damaged)
    return Receipt(view.now(), len(ids), tuple(ids), reason, note is None, audited, note, *rest)


def _unreached(view: View, request: Forget, erasure: Erasure, damaged: int) -> tuple[str, ...]:
    parts = list(_unreached_of_owner(view, request)) if request.whole_owner else []
    if erasure.unreached:
        ids = ", ".join(sorted(erasure.unreached))
        parts.append(f"sources that were forgotten before, which this view may not erase: {ids}")
    if damaged and not request.whole_owner:
        lines, hold = ("a damaged line", "it holds") if damaged == 1 else (f"{damaged:,} damaged lines", "they hold")
        parts.append(f"{lines} of which nobody can tell what {hold}: see `recollect verify`")
    return tuple(parts)


def _unreached_of_owner(view: View, request: Forget) -> tuple[str, ...]:
    """What a person should know of who is to be erased whole."""
    parts = ["copies made with backup, copy or export before now"]
    if request.account is not None and not view.sees_private:
        parts.append("journals and core memories of agents about the account: this view does not see them")
    if request.agent is not None:
        parts.append("the agent's name in the audit log, as who made its changes")
    if request.account is not None:
        parts.append("memories and workflows that belong to no account, or to another one, and speak of this person")
        parts.append("sessions of a ledger that were made for this person: see `recollect ledger list`")
        parts.append("logins and keys of a server that are bound to the account: see `recollect people` and `keys`")
    if "workspace" in view.bound:
        parts.append("other workspaces: this view is bound to one")
    elif rooms := view.bound & _ROOMS:
        parts.append(f"everything outside the {min(rooms)} that this view is bound to, and other workspaces")
    if isinstance(view.store, HasIntegrityCheck) and any(map(view.store.damage, view.places)):
        parts.append("damaged memories of which nobody can tell whose they are: see `recollect verify`")
    return tuple(parts)


def _conditions(view: View, request: Forget) -> dict[str, Any]:
    conditions: dict[str, Any] = {}
    if request.tag is not None:
        conditions["tags"] = (view.tag_rule(request.tag, "tag"),)
    for field in ("since", "until"):
        if (value := getattr(request, field)) is not None:
            conditions[field] = point(value, field, view.now())
    if request.conversation is not None:
        conditions["conversation"] = request.conversation
    for owner in ("agent", "account"):
        if (name := getattr(request, owner)) is not None:
            conditions[owner] = validation.name(name, owner)
            bound = getattr(view.address, owner)
            if bound not in (None, name):
                raise AccessError(f"{owner}: this view is bound to {bound} and cannot forget for another {owner}")
    return conditions


def _select(view: View, request: Forget, open_places: Iterable[Place] = ()) -> Selection:
    """`open_places` are looked in whether or not there is something to be seen."""
    conditions = _conditions(view, request)
    if request.agent is not None and not view.sees_private:
        raise AccessError("agent: only a key that is bound to the agent, or an admin, forgets all of it")
    if request.shared and not view.forgets_shared:
        raise AccessError("shared: needs the role admin; without it, what is your own is forgotten")
    if request.id is not None:
        if conditions:
            raise InputError("id", "cannot be combined with other conditions")
        wanted = validation.memory_ids(request.id)
        records = view.get(wanted, damaged=True) if request.erase else view.find(wanted, damaged=True)
        selected = _grouped(view, records, {})
        if request.erase:
            missing = set(wanted) - {record.id for record in records}
            selected.erasure = plan_erasure(view, selected.every, missing, open_places)
        return selected
    if not conditions:
        choices = "tag, since, until, conversation, agent, account or workspace"
        raise InputError("id", f"or {choices} must be given: what shall be forgotten?")
    views = _scope(view, request)
    filters = [scoped.where(state=None, **conditions) for scoped in views]
    own = _own(view, request)
    items, thing_matches = _things(view, views, request), _thing_matcher(view, request)
    talks = _conversations(view, views, items, thing_matches) if request.whole_owner else set[Talk]()
    choices = [(where, own) for where in filters]
    if talks:  # what was said in a person's own conversations is that person's, whoever wrote it down
        turns = {"state": None, "tiers": ("conversation",)}
        is_said, thing_matches = _said_in(talks, request), _or_of(talks, thing_matches)
        choices += [(scoped.where(**turns, conversation=talk), is_said) for scoped in views for talk, _ in talks]
        items = _things(view, views, request, thing_matches)
    records = [record for where, chosen in choices for record in view.store.scan(where) if chosen(record)]
    selected = _grouped(view, records, items)
    if selected.places and len(views) > 1:  # so that undo finds it from here, whatever workspaces it was in
        selected.records.setdefault(next(filter(view.store.written, view.places), view.places[1]), [])
    if request.erase:
        places = {*open_places, *selected.things, *(place for scoped in views for place in scoped.places)}
        matchers = _matching(choices), thing_matches
        selected.erasure = plan_erasure(view, selected.every, (), places, *matchers, _may_take(view, request))
    return selected


def _own(view: View, request: Forget) -> Callable[[Record], bool]:
    """By conditions, a view forgets what is its own. What it shares with others it forgets only where that is said."""
    return lambda record: request.shared or view.owns(record)


def _may_take(view: View, request: Forget) -> Callable[[Record], bool]:
    """By conditions, a source goes along under the rule for the memories themselves; by id what a view sees does."""
    own, is_owned = _own(view, request), request.account is not None or request.agent is not None
    return lambda record: own(record) and not (is_owned and _is_anothers(record.address, request))


def _is_anothers(address: Address, request: Forget) -> bool:
    """Whether it belongs to an account or agent that is not the one which is forgotten.

    What a person says in an agent's conversation is the person's; what an agent answers in a person's is too.
    """
    return address.account not in (None, request.account) or request.agent not in (None, address.agent or request.agent)


def _matching(choices: Sequence[tuple[Filter, Callable[[Record], bool]]]) -> Callable[[Record], bool]:
    asks = [(where.matcher(), chosen) for where, chosen in choices]
    return lambda record: any(chosen(record) and ask(record) for ask, chosen in asks)


def _grouped(view: View, records: Sequence[Record], items: dict[Place, list[ShelfItem]]) -> Selection:
    """With the earlier versions of each."""
    every = {(Place.of(record), record.id): record for record in [*records, *ancestors(view, records, damaged=True)]}
    return Selection(by_place(list(every.values())), items)


def _scope(view: View, request: Forget) -> list[View]:
    """This view; for all that belongs to an agent or account one of every workspace, unless it is bound inside one."""
    if not request.whole_owner or view.bound & {"workspace", *_ROOMS}:
        return [view]
    others = [name for name in view.workspaces() if name != view.address.workspace]
    return [view, *(replace(view, address=replace(view.address, workspace=name)) for name in others)]


def _conversations(
    view: View,
    views: Sequence[View],
    items: dict[Place, list[ShelfItem]],
    thing_matches: Callable[[ShelfItem], bool],
) -> set[Talk]:
    """Those that belong to whom everything is forgotten of, also where they were forgotten before."""
    undone = (item for scoped in views for _, undo in view.store.undos(scoped.place) for item in undo.things)
    every = [*(item for group in items.values() for item in group), *filter(thing_matches, undone)]
    talks = {_talk(item) for item in every if item.shelf == CONVERSATIONS and item.parent is not None}
    stored = (item for scoped in views for item in view.store.shelf(scoped.place, CONVERSATIONS))
    # Two people may call theirs the same: what belongs to nobody there is then nobody's.
    return talks - {_talk(item) for item in stored if not thing_matches(item)}


def _talk(item: ShelfItem) -> Talk:
    return item.parent or "", item.body["channel"]


def _said_in(talks: set[Talk], request: Forget) -> Callable[[Record], bool]:
    """Whether something was said in one of these conversations, and belongs to nobody else."""

    def is_said(record: Record) -> bool:
        address = record.address
        if record.tier != "conversation" or _is_anothers(address, request):
            return False
        rooms = {room for talk, room in talks if talk == address.conversation}
        return bool(rooms) and address.channel in (None, *rooms)

    return is_said


def _or_of(talks: set[Talk], matches: Callable[[ShelfItem], bool]) -> Callable[[ShelfItem], bool]:
    def is_note(item: ShelfItem) -> bool:
        rooms = {room for talk, room in talks if talk == item.parent}
        return bool(rooms) and item.body.get("channel") in (None, *rooms) and not (item.account or item.agent)

    return lambda item: matches(item) or is_note(item)


def _things(
    view: View, views: Sequence[View], request: Forget, matches: Callable[[ShelfItem], bool] | None = None
) -> dict[Place, list[ShelfItem]]:
    """What is on the shelves and goes with it: all of a conversation, or all of an agent or account."""
    if request.conversation is not None and not any((request.tag, request.since, request.until)):
        seen = view.sees_conversation(request.conversation)
        items = list(view.store.shelf(view.place, parent=request.conversation)) if seen else []
        matches = _thing_matcher(view, request)
        items = [item for item in items if matches(item)]
        return {view.place: items} if items else {}
    if not request.whole_owner:
        return {}
    matches = matches or _thing_matcher(view, request)
    places = dict.fromkeys(place for scoped in views for place in scoped.places)
    if view.whole and "workspace" not in view.bound:
        places |= dict.fromkeys(place for place in view.store.places(view.address.tenant) if not place.hidden)
    owned = {place: [item for item in view.store.shelf(place) if matches(item)] for place in places}
    return {place: items for place, items in owned.items() if items}


def _thing_matcher(view: View, request: Forget) -> Callable[[ShelfItem], bool]:
    """Whether something on a shelf belongs to what is forgotten."""

    def matches(item: ShelfItem) -> bool:
        if request.conversation is not None:
            own = view.sees(item) and belongs_to(view.address, item.account, item.agent)
            return own and item.parent == request.conversation
        if not request.whole_owner or not belongs_to(view.address, item.account, item.agent):
            return False
        if view.bound & _ROOMS and not _in_room(view, item):
            return False
        about = item.key if (item.account, item.agent) == (None, None) else item.agent  # such as what it may search
        return request.account in (None, item.account) and request.agent in (None, item.agent, about)

    return matches


def _in_room(view: View, item: ShelfItem) -> bool:
    """Whether something on a shelf is inside the channel or conversation that a view is bound to."""
    address = view.address
    channel, inside = item.body.get("channel"), view.sees(item)
    if item.shelf == CHANNELS or (channel is None and item.parent is None):
        return False  # it is the workspace's, or of no channel
    return inside and address.channel in (None, channel) and address.conversation in (None, item.parent)


def _delete(view: View, selected: Selection, request: Forget, reason: str | None) -> list[Entry]:
    """In a transaction over all places of the selection."""
    groups = {place: selected.records.get(place, []) for place in sorted(selected.places, key=repr)}
    if len(groups) > 1:
        view = replace(view, change=view.change or new_id())
    parts = len(groups) if len(groups) > 1 else None
    if request.account is not None and request.erase:  # the reason must not name whose data is gone
        view = replace(view, address=replace(view.address, account=None), acting=view)
    entries: list[Entry] = []
    going = selected.erasure.going if selected.erasure else {}
    everything = {ident for ids in going.values() for ident in ids}
    for place, group in groups.items():
        items, erasure = selected.things.get(place, []), selected.erasure
        more = erasure.rows.get(place, []) if erasure else []
        records = reread(view, place, list({record.id: record for record in [*group, *more]}.values()))
        ids = [record.id for record in records]
        message = f"forgot {memories_text(len(ids))}"
        if ids:
            view.store.delete(place, ids, reason or "")
        for item in items:
            _remove(view, place, item)
        if erasure is None:
            changes: dict[str, Any] = {"deleted": ids, "things_changed": names(items), "parts": parts}
            entries.append(view.log(place, "forget", message, records, items, reason, **changes))
            continue
        documents = {*erasure.documents.get(place, ()), *_drop_proposals(view, place, everything)}
        view.store.purge(place, seqs=view.expired_undo(place), ids=going.get(place, ()), documents=documents)
        view.forget_texts(place, everything)
        erase_names(view.store, place, _gone(going, place))
        # The log names what is gone from undo data or damaged files, too: nobody shall take that for lost.
        ids += sorted(going.get(place, set()) - erasure.sources - set(ids))
        changes = {"deleted": ids, "things_changed": names(items), "parts": parts}
        entries.append(view.log(place, "erase", message, reason=reason, concerning=records, final=True, **changes))
    return entries


def _drop_proposals(view: View, place: Place, ids: Set[str]) -> set[tuple[str, str]]:
    """Remove proposals about memories that are erased: they have the words of who asked. Returns those in undo data."""
    naming = [item.key for item in view.store.shelf(place, PROPOSALS) if not ids.isdisjoint(item.body.get("ids", ()))]
    if naming:
        view.store.remove(place, PROPOSALS, naming)
    undone = (item for _, undo in view.store.undos(place) for item in undo.things if item.shelf == PROPOSALS)
    return {(item.shelf, item.key) for item in undone if not ids.isdisjoint(item.body.get("ids", ()))}


def _remove(view: View, place: Place, item: ShelfItem) -> None:
    if item.shelf in _EMPTIED:  # others go on using it
        emptied = replace(item, body=item.body | _EMPTIED[item.shelf], account=None, agent=None)
        view.store.keep(place, emptied)
    else:
        view.store.remove(place, item.shelf, [item.key])


def scrub(view: View, places: Iterable[Place], erased: Mapping[Place, Collection[str]] = _NOTHING) -> Scrubbed:
    """Leave no trace of what was deleted, nor of damaged lines with the ids of what was `erased`."""
    if view.on_disk is None:
        return Scrubbed(_SERVER_DISK)
    places = list(places)
    try:
        return Scrubbed(None, sum(view.on_disk.scrub(place, erased.get(place, ())) for place in places))
    except ConcurrencyError:
        return Scrubbed("another process still reads older data; run compact to remove the last traces from the disk")
    except StoreError as error:
        if any(map(view.on_disk.unsaved, places)):
            done, then = f"it is forgotten in this process only: {_IN_MEMORY}", "Then forget it again with erase"
        else:
            done = "it is forgotten, which undo cannot take back, but not erased from the disk yet"
            then = "Then run compact, which removes the last traces"
        error.args = (f"{done}: {error}. {then}",)
        raise


def _forget_workspace(view: View, request: Forget, reason: str | None) -> Receipt:
    """The folder goes as a whole. What stays is one line in the tenant's audit log."""
    workspace = view.address.workspace or ""
    if request.workspace != workspace:
        raise AccessError(f"workspace: this view is at {workspace}; a workspace is forgotten from a view of it")
    if not view.whole:
        raise AccessError("workspace: only a view of the whole workspace can forget it, not one bound inside it")
    if not view.sees_private:
        raise AccessError("workspace: needs the role admin, because agents' journals go with it")
    if (
        request.id
        or request.tag
        or request.since
        or request.until
        or request.conversation
        or request.agent
        or request.account
    ):
        raise InputError("workspace", "cannot be combined with other conditions")
    where = view.where(state=None, tiers=("workspace", "channel", "conversation"))
    memories = view.store.count(where).get((), 0)
    head = next(view.store.entries(view.place, newest_first=True, limit=1), None)
    account = Place(view.address.tenant, None)
    with view.store.transaction(account):
        entry = view.log(
            account,
            "forget_workspace",
            f"forgot the workspace {workspace}",
            reason=reason,
            final=True,
            workspace=workspace,
            memories=memories,
            audit_entries=head.seq if head else 0,
            audit_head=head.hash if head else GENESIS,
        )
    view.store.drop(view.place)
    view.caches.clear()
    note = None if view.on_disk is not None else _SERVER_DISK
    return Receipt(view.now(), memories, (), reason, note is None, (entry.id,), note)
