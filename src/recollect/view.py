"""Where a verb stands: a store, a preset, a clock, and the address that it must not leave."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import msgspec
from msgspec.structs import astuple

from recollect.documents.skills import Skills
from recollect.models.vectors import Embedding
from recollect.operations import Doc, Names
from recollect.policies.decay import Decay
from recollect.policies.maintenance import expired_undo
from recollect.policies.secrets import screen_name
from recollect.presets import Preset
from recollect.stores.answers import PendingAnswers
from recollect.stores.audit import TEXTS, Entry, Text, request_meta
from recollect.stores.integrity import CHANGED, intact, is_intact, readable
from recollect.stores.port import KNOWLEDGE, NO_SETTINGS, After, OnDisk, Order, Place, Settings, Store, by_place
from recollect.stores.sessions import session_store
from recollect.stores.shelves import ShelfItem
from recollect.stores.undo import Undo
from recollect.text.times import point
from recollect.values import validation
from recollect.values.bodies import CHANNELS, CONVERSATIONS, REF_CODES, is_ref_code
from recollect.values.errors import AccessError, CorruptionError, InputError, NotFoundError, SecretError, StoreError
from recollect.values.filters import PRIVATE_KINDS, Filter, belongs_to, is_private, may_see, private_owner, visible
from recollect.values.record import Address, Record, Role, State, Tier, UnsavedRecord, moved, new_id, parse_time

if TYPE_CHECKING:
    from recollect.models.llm import Llm
    from recollect.recall.sources import Source

_PATH = ("tenant", "workspace", "channel", "conversation")
_OWNERS = ("account", "agent")
INSIDE = frozenset(("account", "channel", "conversation"))
"""Parts of an address that the audit log does not name."""
CHANGES = ("created", "changed", "deleted", "things_changed")
"""Details of an audit entry that hold the ids of changed memories and things."""
PRIVATE, PARTLY_PRIVATE = "private", "partly_private"
"""Details of an audit entry about agents' journals or core memories, with hashes of the agents: `private` if the entry
is about nothing else, `partly_private` if it is about other memories or things, too."""


_ALIKE = 1000
"""How many ids with the same beginning or end are read. If there are more, the caller must give a longer part."""
_UNDO_EVERY = 64
"""Every so many audit entries, expired undo data is dropped. So it goes even where nobody runs maintenance."""


_SUBSETS = tuple(product((True, False), repeat=3))


class SearchConditions(TypedDict, total=False):
    """Which memories to list or recall. All conditions must hold; None is the same as not given."""

    kind: Annotated[str | None, Doc("Only this kind.")]
    tier: Annotated[Tier | None, Doc("Only of this tier.")]
    role: Annotated[Role | None, Doc("Only from this role.")]
    source: Annotated[str | None, Doc("Only from this source.")]
    tag: Annotated[str | None, Doc("Only with this tag, or one below it.")]
    tags: Annotated[Iterable[str] | None, Doc("Only with all of these tags, or ones below them.")]
    without_tags: Annotated[Iterable[str] | None, Doc("Only without any of these tags, and ones below them.")]
    since: Annotated[datetime | str | None, Doc("Only made at this time or later: 2026-03-01, 7d, yesterday, …")]
    until: Annotated[datetime | str | None, Doc("Only made before this time.")]
    valid_at: Annotated[datetime | str | None, Doc("Only what was or will be so at this time, as far as is known.")]
    min_importance: Annotated[float | None, Doc("Only this important or more, from 0 to 1.")]
    conversation: Annotated[str | None, Names("conversation"), Doc("Only of this conversation: its id or ref code.")]
    agent: Annotated[str | None, Names("agent"), Doc("Only of this agent, without those of no agent.")]


_CONDITIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "kind": ("kinds", lambda value: (validation.kind(value),)),
    "tier": ("tiers", lambda value: (validation.choice(value, "tier", Tier),)),
    "role": ("roles", lambda value: (validation.choice(value, "role", Role),)),
    "source": ("sources", lambda value: (validation.label(value, "source"),)),
    "min_importance": ("min_importance", lambda value: validation.importance(value, "min_importance")),
    "agent": ("agent", lambda value: validation.name(value, "agent")),
}
"""Each condition's field in a filter, and the rule for its value."""


class View(msgspec.Struct, frozen=True):
    """What every verb gets: a store, a preset, a clock and an address. A view can be narrowed, and never widened."""

    store: Store
    preset: Preset
    clock: Callable[[], datetime]
    address: Address = Address()
    bound: frozenset[str] = frozenset()
    """The parts of the address that the caller has chosen. They cannot be changed any more."""
    embedding: Embedding | None = None
    """Makes vectors; None to search by words only."""
    llm: Llm | None = None
    """Summarizes and judges; None to use the built-in rules."""
    on_disk: OnDisk | None = None
    """The store if it keeps files on this machine, else None."""
    caches: dict[str, dict[Any, Any]] = {}
    """See `cache`. All views of the same memory share them."""
    skills: Skills = Skills()
    sources: tuple[Source, ...] = ()
    """What `consult` searches besides the memories and the audit log."""
    counts: bool = True
    """Whether a recall counts as a retrieval. False where a person only previews what a model would see."""
    answers: PendingAnswers | None = None
    """Writes down which memories went into which answer; None where nobody does."""
    keeps_answers: bool = True
    """Whether the contexts of this view are written down. False for a reader of a server, who changes nothing."""
    sees_private: bool = True
    """Whether this view sees agents' journals and core memories. On a server only the agent's key and admins do."""
    forgets_shared: bool = True
    """Whether `forget(shared=True)` is allowed."""
    change: str | None = None
    """The id that several changes share so that they are undone together; None if each is on its own."""
    acting: View | None = None
    """The view of who makes the change, if it is made on behalf of this view's owner."""

    def at(self, **parts: str | None) -> View:
        """A narrower view. AccessError for a part of the address that is bound to another value already."""
        chosen = {part: self._named(part, value) for part, value in parts.items() if value is not None}
        for part, value in chosen.items():
            if value != getattr(self.address, part):
                self._check_free(part)
        address = msgspec.structs.replace(self.address, **chosen)
        return msgspec.structs.replace(self, address=address, bound=self.bound | set(chosen))

    def _named(self, part: str, value: Any) -> str:
        try:
            return validation.name(value, part)
        except InputError:  # the error quotes the value, which may be a secret
            if isinstance(value, str):
                screen_name(self.preset.secrets, part, value)
            raise

    def screen_address(self, *parts: str) -> None:
        """SecretError if one of these parts of the address, by default any, looks like a credential.

        Called before writes only: what an earlier version stored under such a name can still be read and forgotten.
        """
        for part in self.bound.intersection(parts) if parts else self.bound:
            screen_name(self.preset.secrets, part, getattr(self.address, part))

    def _check_free(self, part: str) -> None:
        if part in self.bound:
            raise AccessError(f"{part}: this view is bound to {getattr(self.address, part)} and cannot be moved")
        # A view that is bound to something inside a tenant or workspace must not move to another one.
        inside = _PATH[_PATH.index(part) + 1 :] + _OWNERS if part in ("tenant", "workspace") else ()
        if below := sorted(self.bound.intersection(inside)):
            raise AccessError(f"{part}: this view is bound to {below[0]} already; choose the {part} first, or with it")

    def now(self) -> datetime:
        now = self.clock()
        return now if now.tzinfo is UTC else parse_time(now, "clock")

    def where(self, **conditions: Any) -> Filter:
        return Filter(seen_from=self.address, now=self.now(), hides_private=not self.sees_private, **conditions)

    def narrowed(self, state: State | None, conditions: Mapping[str, Any], zone: tzinfo | None = None) -> Filter:
        """A filter from a caller's conditions. `zone` is the caller's time zone."""
        fields: dict[str, Any] = {}
        for name, value in conditions.items():
            if name not in SearchConditions.__annotations__:
                raise TypeError(f"{name} is not a condition; known: {', '.join(SearchConditions.__annotations__)}")
            if value is None:
                continue
            if name in ("since", "until", "valid_at"):
                fields[name] = point(value, name, self.now(), zone)
            elif name == "conversation":
                fields[name] = self.conversation_id(validation.name(value, name))
            elif name in ("tag", "tags"):
                fields["tags"] = (
                    *fields.get("tags", ()),
                    *(self.tags(value) if name == "tags" else [self.tag_rule(value, name)]),
                )
            elif name == "without_tags":
                fields[name] = self.tags(value)
            else:
                field, check = _CONDITIONS[name]
                fields[field] = check(value)
        return self.where(state=None if state is None else validation.choice(state, "state", State), **fields)

    @property
    def tag_rule(self) -> Callable[..., str]:
        """The function that validates a tag, as the preset wants it."""
        return validation.any_tag if self.preset.remember.any_tags else validation.tag

    def tags(self, values: Any) -> tuple[str, ...]:
        return validation.tags(values, rule=self.tag_rule)

    @property
    def decay(self) -> Decay:
        """How memories fade: the setting of this place, else that of the preset."""
        return self.settings(self.place).decay or self.preset.decay

    @property
    def quota(self) -> int | None:
        """How many live memories there may be: the setting of this place, else that of the preset."""
        quota = self.settings(self.place).quota
        return self.preset.retention.quota if quota is None else quota

    def settings(self, place: Place) -> Settings:
        """The settings that people have put beside the data of a place."""
        return NO_SETTINGS if self.on_disk is None else self.on_disk.settings(place)

    def cache(self, name: str) -> dict[Any, Any]:
        """The cache of this name, which all views of the same memory share. Each module has its own."""
        return self.caches.setdefault(name, {})

    @property
    def place(self) -> Place:
        return Place(self.address.tenant, self.address.workspace)

    @property
    def places(self) -> tuple[Place, Place]:
        """The two places that this view reads: its workspace, and what accounts share across workspaces."""
        return self.place, Place(self.address.tenant, None)

    def as_one_change(self) -> View:
        """This view with a change id, so that all changes made through it are undone together."""
        return self if self.change else msgspec.structs.replace(self, change=new_id())

    def workspaces(self) -> list[str]:
        """The names of the tenant's workspaces that hold something."""
        places = self.store.places(self.address.tenant)
        return [place.workspace for place in places if place.workspace is not None and not place.reserved]

    @property
    def unsaved(self) -> int:
        """How many writes to this view's places are in memory only, because the disk refuses them."""
        if "workspace" not in self.bound and (sessions := session_store(self.store)) is not None:
            return sessions.unsaved_writes(self.address.tenant)
        return 0 if self.on_disk is None else sum(map(self.on_disk.unsaved, self.places))

    def checked_places(self) -> list[Place]:
        """The places whose damage concerns this view: its own, the tenant's documents, and all sessions of a ledger."""
        if "workspace" in self.bound:
            return list(self.places)
        documents = Place(self.address.tenant, KNOWLEDGE)
        sessions = self.store.places(self.address.tenant) if session_store(self.store) is not None else []
        return list(dict.fromkeys([*self.places, documents, *(place for place in sessions if not place.hidden)]))

    def mark_unsaved(self, records: Sequence[Record]) -> list[Record]:
        """The records that were just written, those that the disk refused as UnsavedRecord.

        A place saves its writes in order, so one unsaved write means that the later ones are unsaved, too.
        """
        disk = self.on_disk
        if disk is None:
            return list(records)
        waiting = {place for place in by_place(records) if disk.unsaved(place)}
        if not waiting:
            return list(records)
        return [UnsavedRecord(*astuple(record)) if Place.of(record) in waiting else record for record in records]

    @property
    def whole(self) -> bool:
        """Whether this view sees everything in its workspace."""
        return not self.bound.intersection(("account", "channel", "conversation", "agent"))

    def get(self, ids: Sequence[str], *, damaged: bool = False) -> list[Record]:
        """The memories under these ids that exist and that this view may see, in whatever state.

        Those that were changed outside recollect are left out, unless `damaged`, which `forget` needs to delete them.
        """
        records = self._stored(ids)
        return records if damaged else list(intact(records))

    def successors(self, record: Record) -> Iterator[Record]:
        """What superseded it, directly and after, oldest first."""
        seen = {record.id}  # an import may bring a circle
        while (successor := record.superseded_by) is not None and successor not in seen:
            versions = self.get([successor])
            if not versions:
                return
            record = versions[0]
            seen.add(record.id)
            yield record

    def scan(
        self,
        where: Filter,
        *,
        order: Order = "oldest",
        after: After | None = None,
        limit: int | None = None,
        contains: str | None = None,
    ) -> Iterator[Record]:
        """The store's scan, without memories that were changed outside recollect."""
        return intact(self.store.scan(where, order=order, after=after, limit=limit, contains=contains))

    def _stored(self, ids: Sequence[str]) -> list[Record]:
        own, shared = self.places
        records = [record for record in self.store.get(own, ids) if self.sees_memory(record)]
        if len(records) < len(ids) and own != shared:
            records += [record for record in self.store.get(shared, ids) if self.sees_memory(record)]
        return records

    def ids_like(self, part: str, limit: int) -> list[str]:
        """Ids of memories that this view sees, in whatever state, and that begin or end with `part`."""
        alike = [ident for place in dict.fromkeys(self.places) for ident in self.store.ids_like(place, part, _ALIKE)]
        seen = {record.id for record in self.get(alike, damaged=True)} if alike else set[str]()
        return sorted(seen, key=lambda ident: (ident != part, ident))[:limit]

    def sees_memory(self, record: Record) -> bool:
        return visible(self.address, record) and (self.sees_private or not is_private(record))

    def check_private(self, kind: str, agent: str | None) -> None:
        """AccessError where this view may not see or change memories of this kind that belong to this agent."""
        if not self.sees_private and agent is not None and kind in PRIVATE_KINDS:
            raise AccessError(f"{kind}: only a key that is bound to the agent {agent}, or an admin, may do this")

    def find(self, ids: str | Sequence[str], *, damaged: bool = False) -> list[Record]:
        """These memories, in order. NotFoundError for one that does not exist, or that this view may not see;
        CorruptionError for one that was changed outside recollect, unless `damaged`."""
        wanted = validation.memory_ids(ids)
        records = {record.id: record for record in self._stored(wanted)}
        for ident in wanted:
            if ident not in records:
                raise NotFoundError(unseen(ident))
            if not damaged and not is_intact(records[ident]):
                raise CorruptionError(f"memory {ident} {CHANGED}. Restore it from a backup, or forget it")
        return [records[ident] for ident in wanted]

    def find_one(self, ident: str, field: str = "id") -> Record:
        return self.find(validation.memory_id(ident, field))[0]

    def things(
        self, shelf: str | None, *, parent: str | None = None, newest_first: bool = False, after: str | None = None
    ) -> Iterator[ShelfItem]:
        """The things on one shelf of this place, or on all shelves.

        Things whose body cannot be read are left out, so that one damaged thing does not break a whole list.
        """
        stored = self.store.shelf(self.place, shelf, parent=parent, newest_first=newest_first, after=after)
        return readable(self.place, stored)

    def things_at(self, shelf: str, keys: Sequence[str]) -> list[ShelfItem]:
        """The things under these keys, without those whose body cannot be read."""
        return list(readable(self.place, self.store.find(self.place, shelf, keys)))

    def sees(self, item: ShelfItem) -> bool:
        """Whether this view may see a thing on a shelf: by its owner and, if it is in a channel, by that."""
        channel = self.address.channel
        room = item.key if item.shelf == CHANNELS else item.body.get("channel")
        in_channel = channel is None or room in (None, channel)
        return in_channel and may_see(self.address, item.account, item.agent)

    def owns(self, record: Record) -> bool:
        """Whether a memory is this view's own and not shared. Only such ones `forget` takes by conditions."""
        return belongs_to(self.address, record.address.account, record.address.agent)

    def conversation_id(self, name: str, *, forgotten: bool = False) -> str:
        """The id of the conversation with this ref code, if it is one's; else the name as it is.

        With `forgotten` also of one that was forgotten and can be brought back.
        """
        if not is_ref_code(name):
            return name
        codes = self.things_at(REF_CODES, [name])
        if forgotten and not codes:
            undone = (item for _, undo in self.store.undos(self.place) for item in undo.things)
            codes = [item for item in undone if (item.shelf, item.key) == (REF_CODES, name) and item.version]
        return next((code.body["conversation"] for code in codes if self.sees(code)), name)

    def sees_conversation(self, conversation: str) -> bool:
        """Whether a conversation is in this view's channel. One that was never started is in none."""
        rooms = {item.body["channel"] for item in self.things(CONVERSATIONS, parent=conversation)}
        return not rooms or self.address.channel in (None, *rooms)

    def settle_answers(self) -> None:
        """Have the store know all answers of this process, before they are read, copied or erased."""
        if self.answers is not None:
            self.answers.settle()

    def oldest_answer(self) -> datetime:
        """Answers from before this time are not kept."""
        return moved(self.now(), -timedelta(days=self.preset.context.keep_days))

    def touch(self, records: Sequence[Record]) -> None:
        """Count these memories as retrieved now."""
        if not self.counts:
            return
        now = self.now()
        for place, group in by_place(records).items():
            self.store.touch(place, [record.id for record in group], now)

    def log(
        self,
        place: Place,
        action: str,
        message: str,
        before: Sequence[Record] = (),
        items: Sequence[ShelfItem] = (),
        reason: str | None = None,
        concerning: Iterable[Record] = (),
        **meta: Any,
    ) -> Entry:
        """Add an entry to the place's audit log; a detail that is None is left out.

        `concerning` are memories that the entry names besides those in `before`. A `reason` is a person's own words:
        it is stored beside the log, which holds its hash only. With a `reason`, call this in a transaction.
        """
        text = None if reason is None else Text.of(f"{message}: {reason}")
        owners = {private_owner(record) for records in (before, concerning) for record in records}
        return self.log_text(place, action, message, text, before, items, owners=owners, **meta)

    def log_text(
        self,
        place: Place,
        action: str,
        message: str,
        text: Text | None,
        before: Sequence[Record] = (),
        items: Sequence[ShelfItem] = (),
        about: Iterable[str] = (),
        owners: Set[str | None] = frozenset(),
        **meta: Any,
    ) -> Entry:
        """Add an entry with a person's words. Called in a transaction. `about` are ids that the words are about.

        `owners` are the agents whose private memories the entry names, and None if it names memories of no agent.
        """
        meta["part_of"] = meta.get("part_of") or self.change
        details, ident = {key: value for key, value in meta.items() if value is not None}, new_id()
        if any(details.get(key) for key in ("final", "part_of", *CHANGES)):
            details |= self._undo_details(place, ident)
        if agents := owners - {None}:
            shared = None in owners or items
            details[PARTLY_PRIVATE if shared else PRIVATE] = sorted(_hashed((ident, agent)) for agent in agents)
        details |= request_meta()
        if text is not None:
            ids = [*about, *(name for key in CHANGES for name in details.get(key, ()))]
            owner = None, self.address.account, self.address.agent
            channel = {} if self.address.channel is None else {"channel": self.address.channel}
            body = text.body(ids) | channel
            item = ShelfItem(TEXTS, ident, body, *owner, created_at=self.now(), changed_at=self.now())
            self.store.keep(place, item)
            details["text"] = text.hash
        entry = Entry(0, ident, self.now(), action, message, (self.acting or self)._actor(), details)
        entry = self.store.append(place, entry, Undo.of(before, details.get("deleted", ()), items))
        if entry.seq % _UNDO_EVERY == 0:
            self.drop_expired_undo(place)
        return entry

    def sees_entry(self, entry: Entry, detail: str = PRIVATE) -> bool:
        """Whether this view may see the memories that make an audit entry, or a part of it, private."""
        fingerprints, agent = entry.meta.get(detail), self.address.agent
        return not fingerprints or (
            self.sees_private and (agent is None or fingerprints == [_hashed((entry.id, agent))])
        )

    def expired_undo(self, place: Place) -> list[int]:
        """The entries of the audit log whose undo data is older or larger than the preset keeps."""
        return expired_undo(self.preset.maintenance, self.store.undo_sizes(place), self.now())

    def drop_expired_undo(self, place: Place) -> int:
        """Drop expired undo data. Called in a transaction. Returns for how many changes."""
        expired = self.expired_undo(place)
        return self.store.purge(place, seqs=expired) if expired else 0

    def forget_texts(self, place: Place, ids: Set[str]) -> None:
        """Remove the texts of audit entries that name these memories. Called in a transaction."""
        items = [item.key for item in self.store.shelf(place, TEXTS) if not ids.isdisjoint(item.body["ids"])]
        self.store.remove(place, TEXTS, items)

    def _undo_details(self, place: Place, ident: str) -> dict[str, Any]:
        """Details that `undo` needs later: the actor's fingerprints, and the length of the account's log now,
        which orders changes across the two logs."""
        details: dict[str, Any] = {}
        if fingerprints := (self.acting or self).actor_fingerprints(ident):
            details["by"] = fingerprints
        if (place.workspace is None or place.reserved) and (
            workspace := (self.acting or self).workspace_fingerprint(ident)
        ):
            details["from"] = workspace
        account = Place(place.tenant, None)
        with suppress(StoreError):  # the account's log may be unreadable, and that must not fail this write
            if place != account and (account_entries := self.store.written(account)):
                details["after"] = account_entries
        return details

    def workspace_fingerprint(self, ident: str) -> str | None:
        """A hash that tells from which workspace a change of what accounts share was made."""
        workspace = self.address.workspace
        return None if workspace is None else _hashed((ident, workspace))

    def actor_fingerprint(self, ident: str) -> str | None:
        """A hash of this view's account, channel and conversation, which says who made a change without naming them.

        None for a view that is bound to none of them.
        """
        address = self.address
        parts = address.account, address.channel, address.conversation
        return _hashed((ident, *parts)) if self.bound & INSIDE else None

    def actor_fingerprints(self, ident: str) -> list[str]:
        """The fingerprints of this view and of all wider ones: a wider view may undo the changes of a narrower one."""
        if not self.bound & INSIDE:
            return []
        parts = (self.address.account, self.address.channel, self.address.conversation)
        wider = {tuple(part if chosen else None for part, chosen in zip(parts, some, strict=True)) for some in _SUBSETS}
        return sorted(_hashed((ident, *some)) for some in wider if any(some))

    def _actor(self) -> str | None:
        """The agent, or None if its name looks like a credential: the audit log can never be edited."""
        with suppress(SecretError):
            self.screen_address("agent")
            return self.address.agent
        return None

    def new_in(self, *places: Place) -> None:
        """Called after a commit: have vectors made for the new memories of these places."""
        if self.embedding is not None:
            for place in places:
                self.embedding.nudge(place)

    @contextmanager
    def logging_refusals(self, verb: str) -> Generator[None]:
        """Notes an InputError or AccessError of the block in the audit log, and raises it again."""
        try:
            yield
        except (InputError, AccessError) as error:
            self.log_refusal(verb, error)
            raise

    def log_refusal(self, verb: str, error: InputError | AccessError) -> None:
        """Note a refusal in the audit log: the field and the rule, never the value."""
        field = error.field if isinstance(error, InputError) else str(error).partition(":")[0]
        name, rule = type(error).__name__, error.rule if isinstance(error, SecretError) else None
        with suppress(StoreError, SecretError):
            self.screen_address("tenant", "workspace")  # the log would be stored under that very name
            if (place := self._refusal_place()) is not None:
                message = f"{verb} refused: {field} ({name})"
                self.log(place, "refuse", message, verb=verb, field=field, error=name, rule=rule)

    def _refusal_place(self) -> Place | None:
        """The place whose log notes a refusal: this one, or the tenant's if nothing is stored here, or None.

        A refusal creates no place, or a caller that may only read could fill a disk with names. A view that has chosen
        neither tenant nor workspace always gets the default place: it cannot name a second one.
        """
        if not self.bound.intersection(("tenant", "workspace")):
            return self.place
        places = self.store.places(self.address.tenant)
        return next((place for place in self.places if place in places), None)


def _hashed(parts: tuple[str | None, ...]) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=8).hexdigest()


def unseen(ident: str) -> str:
    return f"there is no memory {ident} that this view can see"
