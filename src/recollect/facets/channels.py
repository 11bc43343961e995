"""Channels: rooms of a workspace, each for conversations about one topic."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import Annotated

import msgspec

from recollect.facets.shelf import Shelf
from recollect.operations import Doc, Names, operation
from recollect.policies.secrets import screen, screen_name
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.bodies import CHANNELS as SHELF
from recollect.values.bodies import DEFAULT_CHANNEL as DEFAULT
from recollect.values.bodies import LONGEST_DESCRIPTION, default_channel_id
from recollect.values.errors import AccessError, ConflictError, NotFoundError
from recollect.values.record import new_id
from recollect.view import View


class Channel(msgspec.Struct, frozen=True):
    id: str
    workspace_id: str
    name: str
    """What `at(channel=…)` takes."""
    description: str
    is_default: bool
    created_at: datetime


class Channels:
    """The channels of the view's workspace. There is always one, `general`, for what belongs to no other."""

    def __init__(self, view: View) -> None:
        self._view = view

    @operation("POST /channels", does="creates")
    def create(
        self,
        name: Annotated[str, Doc("The name of the channel.")],
        description: Annotated[str, Doc("What it is for.")] = "",
    ) -> Channel:
        """ConflictError where there is one of that name."""
        view = self._view
        with view.logging_refusals("channels"):
            view.screen_address()
            screen_name(view.preset.secrets, "channel", str(name))
            name = validation.name(name, "channel")
            description = validation.or_empty(validation.label, description, "description", LONGEST_DESCRIPTION)
            screen(view.preset.secrets, "description", description)
        if "channel" in view.bound and name != view.address.channel:
            raise AccessError(f"channel: this view is bound to {view.address.channel} and makes no other")
        together = view.as_one_change()
        shelf = _shelf(together)
        with shelf.transaction():
            if name == DEFAULT or shelf.stored(name):
                raise ConflictError(f"there is a channel {name} already")
            keep_default(together)
            return _save(together, name, new_id(), description)

    @operation("GET /channels")
    def list(self) -> builtins.list[Channel]:
        """All of them, the default first."""
        channels = [_channel(item) for item in self._view.things(SHELF)]
        if not any(
            channel.is_default for channel in channels
        ):  # the default channel is stored together with the first thing in it
            channels.append(_channel(_thing(self._view, DEFAULT, default_channel_id(*self._view.place), "")))
        bound = self._view.address.channel if "channel" in self._view.bound else None
        seen = [channel for channel in channels if bound in (None, channel.name)]
        return sorted(seen, key=lambda channel: not channel.is_default)

    @operation("GET /channels/{name}")
    def get(self, name: Annotated[str, Names("channel"), Doc("The channel's name or id.")]) -> Channel:
        """By its name or id. NotFoundError where there is none."""
        for channel in self.list():
            if name in (channel.name, channel.id):
                return channel
        raise NotFoundError(f"there is no channel {validation.name(name, 'channel')} in this workspace")


def keep_default(view: View) -> None:
    """Write it, where it is not yet. Called in a transaction."""
    if not _shelf(view).stored(DEFAULT):
        _save(view, DEFAULT, default_channel_id(*view.place), "")


def _shelf(view: View) -> Shelf[Channel]:
    return Shelf(view, SHELF, _channel, action="channel")


def _save(view: View, name: str, ident: str, description: str) -> Channel:
    (stored,) = _shelf(view).save("made a channel", _thing(view, name, ident, description), expect=0)
    return _channel(stored)


def _thing(view: View, name: str, ident: str, description: str) -> ShelfItem:
    body = {"id": ident, "workspace": view.address.workspace, "name": name, "description": description}
    author = (view.address.account, view.address.agent) if description else (None, None)
    return _shelf(view).thing(name, body, None, *author)


def _channel(item: ShelfItem) -> Channel:
    body = item.body
    return Channel(
        body["id"], body["workspace"], body["name"], body["description"], body["name"] == DEFAULT, item.created_at
    )
