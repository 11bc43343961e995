"""The one value that carries every condition on memories, and what each condition means."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from operator import attrgetter
from typing import TypeVar

import msgspec

from recollect.values.record import Address, Lifetime, Record, Role, State, Tier


class Filter(msgspec.Struct, frozen=True):
    """Which memories. All conditions must hold; an empty or None condition always does.

    `seen_from` is the address that asks: it sees what `visible` says and nothing else, whatever the conditions are.
    """

    seen_from: Address
    now: datetime
    state: State | None = "live"
    tiers: tuple[Tier, ...] = ()
    kinds: tuple[str, ...] = ()
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
    account: str | None = None
    superseded_by: tuple[str, ...] = ()
    hides_private: bool = False
    """Whether agents' journals and core memories are left out."""

    def matches(self, record: Record) -> bool:
        """What a store's own search must agree with."""
        return self.meets()(record)

    def meets(self) -> Callable[[Record], bool]:
        """The conditions as one function, made quick for many records: only those that were given are asked."""
        asks = [*self._field_conditions(), *self._time_conditions()]
        if self.tags or self.any_tags or self.without_tags:
            tagged = _known(self.has_tags)
            asks.append(lambda record: tagged(record.tags))
        if (state := self.state) is not None:
            now = self.now
            asks.append(lambda record: record.state(now) == state)
        allowed: Callable[[tuple[Address, Tier]], bool] = lambda who: self.allows(*who)  # noqa: E731
        may = _known(allowed)
        asks.append(lambda record: may((record.address, record.tier)))

        def meets(record: Record) -> bool:
            for ask in asks:  # noqa: SIM110 - twice as fast as all()
                if not ask(record):
                    return False
            return True

        return meets

    def _field_conditions(self) -> list[Callable[[Record], bool]]:
        asks: list[Callable[[Record], bool]] = []
        for condition, field in ANY_OF.items():
            if values := frozenset(getattr(self, condition)):
                value_of = attrgetter(field)
                asks.append(lambda record, value_of=value_of, values=values: value_of(record) in values)
        if (least := self.min_importance) is not None:
            asks.append(lambda record: record.importance >= least)
        if self.hides_private:
            asks.append(lambda record: not is_private(record))
        return asks

    def _time_conditions(self) -> list[Callable[[Record], bool]]:
        asks: list[Callable[[Record], bool]] = []
        if (since := self.since) is not None:
            asks.append(lambda record: record.created_at >= since)
        if (until := self.until) is not None:
            asks.append(lambda record: record.created_at < until)
        return asks

    def allows(self, address: Address, tier: Tier) -> bool:
        """Whether a memory at this address may be seen, and is meant."""
        return (
            visible_at(self.seen_from, address, tier)
            and (not self.tiers or tier in self.tiers)
            and all(getattr(self, part) in (None, getattr(address, part)) for part in SAME)
        )

    def has_tags(self, tags: tuple[str, ...]) -> bool:
        return (
            all(has_tag(tags, wanted) for wanted in self.tags)
            and (not self.any_tags or any(has_tag(tags, wanted) for wanted in self.any_tags))
            and not any(has_tag(tags, unwanted) for unwanted in self.without_tags)
        )


ANY_OF = {
    "kinds": "kind",
    "roles": "role",
    "sources": "source",
    "lifetimes": "lifetime",
    "superseded_by": "superseded_by",
}
"""Conditions that name several values, one of which a field must have."""
SAME = ("conversation", "channel", "agent", "account")
"""Conditions that are parts of the address."""

WALLED: tuple[Tier, ...] = ("channel", "conversation")
"""Tiers that another channel does not see."""

V = TypeVar("V", bound=Hashable)


def _known(ask: Callable[[V], bool]) -> Callable[[V], bool]:
    """Many records have the same: each value is asked about once."""
    known: dict[V, bool] = {}

    def answer(value: V) -> bool:
        met = known.get(value)
        if met is None:
            met = known[value] = ask(value)
        return met

    return answer


def has_tag(tags: tuple[str, ...], wanted: str) -> bool:
    return any(tag == wanted or tag.startswith(wanted + ".") for tag in tags)


def may_see(view: Address, account: str | None, agent: str | None) -> bool:
    """Whether a view sees what belongs to this account and agent: its own, and what belongs to nobody."""
    return (view.agent is None or agent is None or agent == view.agent) and (
        view.account is None or account is None or account == view.account
    )


def belongs_to(view: Address, account: str | None, agent: str | None) -> bool:
    """Whether it is the view's own. What belongs to nobody is not: a view that forgets by conditions leaves it."""
    return view.agent in (None, agent) and view.account in (None, account)


PRIVATE_KINDS = ("core", "journal")
"""Kinds of memories that are an agent's own where they belong to one."""


def private_owner(record: Record) -> str | None:
    """The agent to whom a memory is private; None where it is not private."""
    return record.address.agent if record.kind in PRIVATE_KINDS else None


def is_private(record: Record) -> bool:
    """Whether only its agent, and who may open the agent's page, sees a memory."""
    return private_owner(record) is not None


def visible(view: Address, record: Record) -> bool:
    return visible_at(view, record.address, record.tier)


def visible_at(view: Address, address: Address, tier: Tier) -> bool:
    """Whether a view may see memories of this address and tier: the isolation rule, in one place.

    A part of the address that the view leaves open sees all; a bound agent or account sees its own and what is shared.
    A channel is a wall: a bound one sees the channel and conversation tiers of that channel only.
    """
    return (
        address.tenant == view.tenant
        and (tier == "account" or address.workspace == view.workspace)
        and may_see(view, address.account, address.agent)
        and (tier not in WALLED or view.channel is None or address.channel == view.channel)
        and (tier != "conversation" or view.conversation is None or address.conversation == view.conversation)
    )
