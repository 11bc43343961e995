"""The one value that carries every condition on memories, and what each condition means."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from recollect.record import Address, Lifetime, Record, Role, State, Tier


class Filter(msgspec.Struct, frozen=True):
    """Which memories. All conditions must hold; an empty or None condition always does.

    `view` is the address that asks: it sees what `visible` says and nothing else, whatever the other conditions are.
    """

    view: Address
    now: datetime
    state: State | None = "live"
    tiers: tuple[Tier, ...] = ()
    kinds: tuple[str, ...] = ()
    without_kinds: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ()
    sources: tuple[str, ...] = ()
    lifetimes: tuple[Lifetime, ...] = ()
    tags: tuple[str, ...] = ()
    """All of these. A tag stands for those below it too: `security` for `security.authentication`."""
    any_tags: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()
    since: datetime | None = None
    """Created at this time or later."""
    until: datetime | None = None
    """Created before this time."""
    min_importance: float | None = None
    conversation: str | None = None
    channel: str | None = None
    agent: str | None = None
    superseded_by: tuple[str, ...] = ()

    def matches(self, record: Record) -> bool:
        """What a store's own search must agree with."""
        return (
            visible(self.view, record) and self._state(record) and self._fields(record) and self.has_tags(record.tags)
        )

    def meets(self) -> Callable[[Record], bool]:
        """The same as `matches`, made quick for many records: only the conditions that were given are asked."""
        asks: list[Callable[[Record], bool]] = []
        if self.kinds:
            kinds = frozenset(self.kinds)
            asks.append(lambda record: record.kind in kinds)
        if self.without_kinds:
            unwanted = frozenset(self.without_kinds)
            asks.append(lambda record: record.kind not in unwanted)
        if (least := self.min_importance) is not None:
            asks.append(lambda record: record.importance >= least)
        if self.tags or self.any_tags or self.without_tags:
            asks.append(self._known_tags())
        if any(getattr(self, name) for name in _SELDOM) or self.since is not None or self.until is not None:
            asks.append(self._fields)
        if self.state == "live":
            now = self.now
            asks.append(
                lambda record: (
                    record.superseded_by is None
                    and record.archived_at is None
                    and (record.expires_at is None or record.expires_at > now)
                )
            )
        elif self.state is not None:
            asks.append(self._state)
        seen: dict[tuple[Address, Tier], bool] = {}

        def meets(record: Record) -> bool:
            for ask in asks:
                if not ask(record):
                    return False
            key = (record.address, record.tier)
            may = seen.get(key)
            if may is None:
                may = seen[key] = visible(self.view, record)
            return may

        return meets

    def _known_tags(self) -> Callable[[Record], bool]:
        """Many records have the same tags."""
        known: dict[tuple[str, ...], bool] = {}

        def ask(record: Record) -> bool:
            tags = record.tags
            meets = known.get(tags)
            if meets is None:
                meets = known[tags] = self.has_tags(tags)
            return meets

        return ask

    def _state(self, record: Record) -> bool:
        return self.state is None or record.state(self.now) == self.state

    def _fields(self, record: Record) -> bool:
        address = record.address
        return (
            (not self.tiers or record.tier in self.tiers)
            and (not self.kinds or record.kind in self.kinds)
            and record.kind not in self.without_kinds
            and (not self.roles or record.role in self.roles)
            and (not self.sources or record.source in self.sources)
            and (not self.lifetimes or record.lifetime in self.lifetimes)
            and (self.since is None or record.created_at >= self.since)
            and (self.until is None or record.created_at < self.until)
            and (self.min_importance is None or record.importance >= self.min_importance)
            and (self.conversation is None or address.conversation == self.conversation)
            and (self.channel is None or address.channel == self.channel)
            and (self.agent is None or address.agent == self.agent)
            and (not self.superseded_by or record.superseded_by in self.superseded_by)
        )

    def has_tags(self, tags: tuple[str, ...]) -> bool:
        return (
            all(has_tag(tags, wanted) for wanted in self.tags)
            and (not self.any_tags or any(has_tag(tags, wanted) for wanted in self.any_tags))
            and not any(has_tag(tags, unwanted) for unwanted in self.without_tags)
        )


_SELDOM = (
    "tiers",
    "roles",
    "sources",
    "lifetimes",
    "conversation",
    "channel",
    "agent",
    "superseded_by",
)


def has_tag(tags: tuple[str, ...], wanted: str) -> bool:
    return any(tag == wanted or tag.startswith(wanted + ".") for tag in tags)


def visible(view: Address, record: Record) -> bool:
    return visible_at(view, record.address, record.tier)


def visible_at(view: Address, address: Address, tier: Tier) -> bool:
    """Whether a view may see memories of this address and tier: the isolation rule, in one place.

    A part of the address that the view leaves open sees all; a bound agent or account sees its own and what is shared.
    """
    return (
        address.tenant == view.tenant
        and (tier == "account" or address.workspace == view.workspace)
        and (view.agent is None or address.agent is None or address.agent == view.agent)
        and (view.account is None or address.account is None or address.account == view.account)
        and (tier != "channel" or view.channel is None or address.channel == view.channel)
        and (tier != "conversation" or view.conversation is None or address.conversation == view.conversation)
    )
