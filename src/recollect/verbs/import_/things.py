"""Checking what an import puts on shelves: each thing must be one that the engine itself could have stored there."""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

from recollect.policies.secrets import screen, screen_name
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.bodies import (
    BODIES,
    CHANNELS,
    CONVERSATIONS,
    DEFAULT_CHANNEL,
    LONGEST_DESCRIPTION,
    LONGEST_TITLE,
    REF_CODES,
    check_body,
    default_channel_id,
)
from recollect.values.errors import AccessError, InputError, shown
from recollect.values.filters import belongs_to
from recollect.values.record import render
from recollect.view import View

_OF_ALL = ("jobs", "reviews")
"""Shelves that concern everybody in the workspace and have no owner: only a view of all of it imports to them."""
_REF_CODE = re.compile(r"[0-9A-Za-z]{11}")


class ThingCheck:
    """Checks the things of one import, and then that its ref codes point at conversations."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._count = 0
        self._conversations: dict[str, ShelfItem] = {}
        self._ref_codes: dict[int, ShelfItem] = {}

    def check(self, item: ShelfItem) -> None:
        """InputError or AccessError that names `source` and the number of the thing."""
        view, self._count = self._view, self._count + 1
        where, rules = f"thing {self._count}", view.preset.secrets
        screen(rules, "body", render({item.key: item.body}))
        for field in ("shelf", "parent", "account", "agent"):
            screen_name(rules, field, getattr(item, field) or "")
        if item.shelf not in BODIES:
            name = shown(item.shelf, repr(item.shelf[:40]))
            raise InputError("source", f"{where}: {name} is not a shelf of an export")
        try:
            _check_fields(item)
        except InputError as error:
            raise InputError("source", f"{where} on the shelf {item.shelf}: {error}") from None
        if item.shelf in _OF_ALL and not view.whole:
            raise AccessError(f"source: {where}: only a view of the whole workspace imports {item.shelf}")
        if not (belongs_to(view.address, item.account, item.agent) and view.sees(item)):
            raise AccessError(f"source: {where} belongs to another agent, account or channel than this view")
        if item.shelf == CONVERSATIONS:
            self._conversations[item.key] = item
        elif item.shelf == REF_CODES:
            self._ref_codes[self._count] = item

    def check_links(self) -> None:
        """InputError for a ref code that points at no conversation of the import or of the place."""
        view = self._view
        for number, ref in self._ref_codes.items():
            key = ref.body["key"]
            here = view.things_at(CONVERSATIONS, [key])
            talk = self._conversations.get(key) or next(filter(view.sees, here), None)
            if talk is None or (talk.parent or talk.key) != ref.body["conversation"]:
                problem = "points at no conversation of the export or of this workspace"
                raise InputError("source", f"thing {number} on the shelf {ref.shelf}: {problem}")


def thing_here(view: View, item: ShelfItem) -> ShelfItem:
    """A thing with the ids of channels that this place has, whatever they were where the export was made."""
    if item.shelf == CHANNELS:
        body = item.body | {"workspace": view.address.workspace}
        if item.key == DEFAULT_CHANNEL:
            body["id"] = default_channel_id(*view.place)
        return replace(item, body=body)
    if item.shelf == CONVERSATIONS:
        name = item.body["channel"]
        rooms = [room.body["id"] for room in view.things_at(CHANNELS, [name])]
        if name == DEFAULT_CHANNEL:
            rooms.append(default_channel_id(*view.place))
        return replace(item, body=item.body | {"channel_id": rooms[0]}) if rooms else item
    return item


def _check_fields(item: ShelfItem) -> None:
    """What the types allow, but the facet that writes to the shelf would not."""
    validation.query(item.key, "key")
    validation.metadata(item.body, "body", validation.MAX_CONTENT_BYTES)
    for part in ("parent", "account", "agent"):
        if (name := getattr(item, part)) is not None:
            validation.name(name, part)
    check_body(item.shelf, item.body)
    body = item.body
    if body.get("channel") is not None:
        validation.name(body["channel"], "channel")
    if item.shelf == CHANNELS:
        _check_channel(item)
    elif item.shelf == CONVERSATIONS:
        _check_key(item)
        validation.or_empty(validation.label, body["title"], "title", LONGEST_TITLE)
    elif item.shelf == REF_CODES and not _REF_CODE.fullmatch(item.key):
        raise InputError("key", "must be 11 letters and digits")
    elif item.shelf == "scratchpad":
        validation.label(body["key"], "key", 100)
    elif item.shelf == "cases":
        validation.memory_ids(body.get("ids", []))


def _check_key(item: ShelfItem) -> None:
    """InputError where a conversation has the key of somebody else's, who could not start that one any more.

    Earlier versions stored a conversation under its id.
    """
    ident = item.parent or item.key
    owner = ident, item.account, item.agent
    keys = [msgspec.json.encode(parts).decode() for parts in (owner, (*owner, item.body["channel"]))]
    if item.key not in (ident, *keys):
        raise InputError("key", "is not made of the conversation's id, account, agent and channel")


def _check_channel(item: ShelfItem) -> None:
    name, description = validation.name(item.body["name"], "name"), item.body["description"]
    if name != item.key:
        raise InputError("name", "is not the key that the channel is stored under")
    validation.memory_id(item.body["id"])
    validation.or_empty(validation.label, description, "description", LONGEST_DESCRIPTION)
    if name == DEFAULT_CHANNEL and (description or item.account or item.agent):
        raise InputError("description", f"the channel {DEFAULT_CHANNEL} belongs to nobody and has no description")
