"""Conversations: each in a channel, active, then idle, then archived. What is for one only ends with it."""

from __future__ import annotations

import builtins
import secrets
import string
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from recollect.facets.channels import DEFAULT, Channels, keep_default
from recollect.facets.conversations.contents import Contents
from recollect.facets.conversations.persist import TURN, persist, stored
from recollect.facets.shelf import Shelf
from recollect.operations import ConversationId, Doc, Names, former_name, operation
from recollect.policies.secrets import screen
from recollect.stores.port import Place, by_place
from recollect.stores.shelves import ShelfItem, names
from recollect.text.fence import without
from recollect.values import validation
from recollect.values.bodies import CONVERSATIONS as SHELF
from recollect.values.bodies import LONGEST_TITLE, REF_CODE_LENGTH, REF_CODES, Status, is_ref_code
from recollect.values.errors import ConflictError, ConversationTransitionError, NotFoundError
from recollect.values.record import Record, Tier, new_id, parse_time
from recollect.verbs.archive import memories_text
from recollect.verbs.remember import remember
from recollect.view import View

Speaker = Literal["user", "assistant"]
_NEXT: dict[Status, tuple[Status, ...]] = {"active": ("idle", "archived"), "idle": ("archived",), "archived": ()}
_LETTERS = string.digits + string.ascii_letters


class Conversation(msgspec.Struct, frozen=True):
    id: str
    """What `at(conversation=…)` takes."""
    ref_code: str
    """Eleven letters and digits that stand for it in a link."""
    channel_id: str
    channel: str
    """The name of its channel."""
    title: str
    status: Status
    started_at: datetime
    ended_at: datetime | None = None
    agent: str | None = None
    account: str | None = None


class Conversations:
    """The conversations that a view sees: its own, and those that belong to no agent or account."""

    def __init__(self, view: View) -> None:
        self._view = view

    @operation("POST /conversations", does="creates")
    def start(
        self,
        title: Annotated[str, Doc("What it is about.")] = "",
        *,
        channel: Annotated[
            str | None,
            Names("channel"),
            Doc("The channel that it is in; the view's, else `general`, if it is left out."),
        ] = None,
    ) -> Conversation:
        """A new one, active. In the view's channel, else in the one named, else in `general`.

        Where the view is bound to a conversation, that is the one that is started.
        """
        view, place, address = self._view.as_one_change(), self._view.place, self._view.address
        with view.logging_refusals("conversations"):
            view.screen_address()
            title = validation.or_empty(validation.label, title, "title", LONGEST_TITLE)
            screen(view.preset.secrets, "title", title)
            named = "" if channel is None else validation.or_empty(validation.name, channel, "channel")
        room = Channels(view).get(named or address.channel or DEFAULT)
        ident, now = address.conversation or new_id(), view.now()
        body = {"title": title, "channel_id": room.id, "channel": room.name, "status": "active", "ended_at": None}
        # Two users may call theirs the same, and so may two channels: each has its own.
        owner = ident, address.account, address.agent
        key = msgspec.json.encode((*owner, room.name)).decode()
        with view.store.transaction(place):
            ref = next(code for code in _ref_codes() if not view.store.find(place, REF_CODES, [code]))
            items = [
                ShelfItem(SHELF, key, {**body, "ref_code": ref}, *owner, created_at=now, changed_at=now),
                ShelfItem(REF_CODES, ref, _reference(ident, key, room.name), *owner, created_at=now, changed_at=now),
            ]
            if any(_is_started(item, owner, room.name) for item in view.store.shelf(place, SHELF, parent=ident)):
                raise ConflictError(f"conversation {ident} was started already")
            keep_default(view)
            stored, _ = _shelf(view).save("started a conversation", *items, expect=0)
        return _conversation(stored)

    @operation("GET /conversations/{id}")
    def get(self, id: ConversationId) -> Conversation:
        """By its id or its ref code."""
        return _conversation(self._thing(id))

    @operation("GET /conversations")
    def list(
        self,
        *,
        status: Annotated[Status | None, Doc("Only those in this state; without it, all but archived ones.")] = None,
        channel: Annotated[str | None, Names("channel"), Doc("Only those of this channel.")] = None,
        contains: Annotated[str, Doc("Only those with this text in the title.")] = "",
        limit: Annotated[int, Doc("The most conversations.")] = 100,
        after: Annotated[str | None, Names("conversation"), Doc("Go on after the conversation with this id.")] = None,
    ) -> builtins.list[Conversation]:
        """The newest first, without those that are archived unless `status` says so. `after` is the last one's id."""
        limit = validation.count(limit, "limit", high=10_000)
        wanted: tuple[str, ...] = ("active", "idle")
        if status is not None:
            wanted = (validation.choice(status, "status", Status),)
        room = None if channel is None else Channels(self._view).get(channel).id
        folded = validation.query(contains, "contains").casefold()
        behind = None if after is None else self._thing(after).key
        conversations: builtins.list[Conversation] = []
        for item in _shelf(self._view).things(newest_first=True, after=behind):
            conversation = _conversation(item)
            meant = (
                conversation.status in wanted
                and room in (None, conversation.channel_id)
                and folded in conversation.title.casefold()
            )
            if meant and self._sees(item):
                conversations.append(conversation)
            if len(conversations) == limit:
                break
        return conversations

    @operation("POST /conversations/{id}/end", does="changes", asks_model=True)
    def end(self, id: ConversationId) -> Conversation:
        """End one that is active: what matters of it is kept, and memories for it alone are cleared.

        Requests in it such as "forget my address" are acted on now.
        """
        return self._become(id, "idle")

    idle = former_name("idle", end)

    @operation("POST /conversations/{id}/archive", does="changes", asks_model=True)
    def archive(self, id: ConversationId) -> Conversation:
        """Put one away, out of lists. One that is active ends first. Its scratchpad is kept."""
        return self._become(id, "archived")

    @operation("POST /conversations/{id}/turns", does="creates")
    def say(
        self,
        id: ConversationId,
        role: Annotated[Speaker, Doc("Who says it.")],
        text: Annotated[str, Doc("What is said.")],
    ) -> Record:
        """Add a turn to one that is active. It is for that conversation only; what matters of it stays at its end."""
        view, conversation = self._view, self.get(id)
        inside = view.at(channel=conversation.channel, conversation=conversation.id)
        with inside.logging_refusals("say"):
            fields = {"content": without(validation.content(text)), "kind": TURN, "tier": "conversation"}
            fields["role"] = validation.choice(role, "role", Speaker)
        for turn in remember(inside, [fields], unless=lambda: self.get(conversation.id).status != "active"):
            return turn
        raise ConflictError(
            f"conversation {conversation.id} is {self.get(conversation.id).status}; nothing can be said in it"
        )

    @operation("POST /observations", does="creates")
    def observe(
        self,
        content: Annotated[str, Doc("One statement.")],
        *,
        kind: Annotated[str, Doc("fact, preference, procedure, decision, task or error.")] = "fact",
        importance: Annotated[float | None, Doc("From 0 to 1; judged from the words if it is left out.")] = None,
        tier: Annotated[Tier | None, Doc("Who sees it; by its kind if it is left out.")] = None,
        tags: Annotated[Iterable[str] | None, Doc("Words to find it by.")] = None,
        valid_from: Annotated[datetime | str | None, Doc("Since when it is so, as ISO 8601.")] = None,
        valid_until: Annotated[datetime | str | None, Doc("Until when it is so, as ISO 8601.")] = None,
    ) -> Record:
        """Keep something that was learnt while working. How far it is seen goes by its kind, unless `tier` says so.

        It names the conversation that the view is bound to. What is known already is counted, and not stored again.
        """
        view = self._view
        with view.logging_refusals("observe"):
            kind = validation.kind(kind)
        fields = {"content": content, "kind": kind, "importance": importance, "tags": tags, "tier": tier}
        fields |= {"valid_from": valid_from, "valid_until": valid_until}
        return stored(view, [{**fields, "source": "observation"}], view.address.conversation)[0]

    def _become(self, id: str, status: Status) -> Conversation:
        view, item = self._view.as_one_change(), self._thing(id)
        conversation = _conversation(item)
        _check(conversation, status)
        contents: Contents | None = None
        if conversation.status == "active":
            contents = Contents(view, conversation.id, (conversation.channel, conversation.agent, conversation.account))
        spoken: dict[tuple[str | None, str | None], builtins.list[Record]] = {}
        is_read = False
        while True:
            # No lock, because a model may be asked. If two processes end the conversation, facts are stored once.
            turns = _by_speaker(contents.new_turns() if contents is not None else [])
            # One call at most: it reads who said most. Others, and turns that come meanwhile, are read by rules.
            most = max(turns, key=lambda owner: len(turns[owner])) if turns and not is_read else None
            for speaker, theirs in turns.items():
                every = spoken.setdefault(speaker, [])
                start = len(every)
                every += theirs
                inside = _in(view, conversation, *speaker)
                persist(inside, conversation.id, every, start, ask_model=speaker == most)
            is_read = is_read or bool(turns)
            with view.store.transaction(*_homes(view)):
                item = self._again(item)  # as it is now that nobody else can write there
                _check(_conversation(item), status)
                if contents is None or item.body["status"] != "active":
                    return _end(view, item, status, [])
                contents.refresh()
                if not contents.has_new_turns():
                    return _end(view, item, status, contents.ending())

    def _thing(self, id: str) -> ShelfItem:
        view, name = self._view, validation.name(id, "conversation")
        refs = view.things_at(REF_CODES, [name]) if is_ref_code(name) else []
        items = view.things_at(SHELF, [refs[0].body["key"]]) if refs else list(view.things(SHELF, parent=name))
        own = view.address.account, view.address.agent
        for item in sorted(items, key=lambda item: (item.account, item.agent) != own):
            if self._sees(item):
                return item
        raise NotFoundError(_unseen(name))

    def _again(self, item: ShelfItem) -> ShelfItem:
        """The same as it is stored now. NotFoundError where it was forgotten meanwhile."""
        for current in self._view.things_at(SHELF, [item.key]):
            if self._sees(current):
                return current
        raise NotFoundError(_unseen(item.parent or item.key))

    def _sees(self, item: ShelfItem) -> bool:
        return self._view.sees(item) and self._view.address.conversation in (None, item.parent)


def _unseen(ident: str) -> str:
    return f"there is no conversation {ident} that this view can see"


def _is_started(item: ShelfItem, owner: tuple[str, str | None, str | None], channel: str) -> bool:
    return (item.parent, item.account, item.agent, item.body["channel"]) == (*owner, channel)


def _shelf(view: View) -> Shelf[Conversation]:
    return Shelf(view, SHELF, _conversation, action="conversation")


def _homes(view: View) -> builtins.list[Place]:
    """Where memories of a conversation can be: its workspace, and what accounts share if there is any."""
    stored = view.store.places(view.address.tenant)
    return [place for place in view.places if place == view.place or place in stored]


def _end(view: View, item: ShelfItem, status: Status, over: Sequence[Record]) -> Conversation:
    """Delete the memories that end with the conversation, and store its status. Called in a transaction."""
    place, now = view.place, view.now()
    groups = by_place(over)
    for home, records in groups.items():
        view.store.delete(home, [record.id for record in records], "the conversation has ended")
        if home != place:  # an account's, which are in a place of their own
            ids = [record.id for record in records]
            view.log(home, "conversation", f"cleared {memories_text(len(ids))} of a conversation", records, deleted=ids)
    cleared = groups.get(place, [])
    body = {**item.body, "status": status, "ended_at": item.body["ended_at"] or now}
    stored = view.store.keep(place, replace(item, body=msgspec.to_builtins(body), changed_at=now))
    message = f"a conversation is {status}" + (f"; cleared {memories_text(len(over))}" if over else "")
    deleted = [record.id for record in cleared] or None
    view.log(place, "conversation", message, cleared, [item], deleted=deleted, things_changed=names([item]))
    return _conversation(stored)


def _reference(conversation: str, key: str, channel: str) -> dict[str, str]:
    """The body of a ref code."""
    return {"conversation": conversation, "key": key, "channel": channel}


def _by_speaker(turns: Iterable[Record]) -> dict[tuple[str | None, str | None], builtins.list[Record]]:
    """Group turns by their owner: an agent's memories stay its own, whoever ends the conversation."""
    groups: dict[tuple[str | None, str | None], builtins.list[Record]] = {}
    for turn in turns:
        groups.setdefault((turn.address.agent, turn.address.account), []).append(turn)
    return groups


def _in(view: View, conversation: Conversation, agent: str | None, account: str | None) -> View:
    """The view in which facts of a conversation are stored: that of the speaker, in its channel."""
    address = replace(view.address, channel=conversation.channel, agent=agent, account=account)
    bound = view.bound - {"conversation", "agent", "account"}
    return replace(view, address=address, bound=bound, acting=view)


def _check(conversation: Conversation, wanted: Status) -> None:
    if wanted not in _NEXT[conversation.status]:
        raise ConversationTransitionError(conversation.id, conversation.status, wanted, _NEXT[conversation.status])


def _ref_codes() -> Iterator[str]:
    while True:
        yield "".join(secrets.choice(_LETTERS) for _ in range(REF_CODE_LENGTH))


def _conversation(item: ShelfItem) -> Conversation:
    body = item.body
    ended = body["ended_at"] and parse_time(body["ended_at"], "ended_at")
    return Conversation(
        item.parent or item.key,
        body["ref_code"],
        body["channel_id"],
        body["channel"],
        body["title"],
        body["status"],
        item.created_at,
        ended,
        item.agent,
        item.account,
    )
