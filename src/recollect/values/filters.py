"""The one value that carries every condition on memories, and what each condition means."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import msgspec

from recollect.values.record import (
    COMPARE,
    OPPOSITE,
    STATE_TESTS,
    Address,
    Lifetime,
    Operator,
    Record,
    Role,
    State,
    Tier,
)


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
    valid_at: datetime | None = None
    """Valid at this time, as far as is known: neither from later on, nor until then."""
    min_importance: float | None = None
    conversation: str | None = None
    channel: str | None = None
    agent: str | None = None
    account: str | None = None
    superseded_by: tuple[str, ...] = ()
    hides_private: bool = False
    """Whether agents' journals and core memories are left out."""

    def comparisons(self) -> list[Comparison]:
        """What the fields of a memory are compared with. What a view sees, and tags, come besides."""
        pairs = ((condition, getattr(self, condition.name)) for condition in CONDITIONS)
        compared = [Comparison(c.field, c.operator, value) for c, value in pairs if value is not None and value != ()]
        return compared if self.state is None else [*compared, *state_comparisons(self.state, self.now)]

    def bare(self) -> Filter:
        """All that is seen in this state, whatever the conditions; but not what is hidden by one."""
        return Filter(
            seen_from=self.seen_from,
            now=self.now,
            state=self.state,
            tiers=self.tiers,
            sources=self.sources,  # categories of documents that an agent may search
            until=None if self.state else self.until,  # what came later than the time that is asked about
            hides_private=self.hides_private,
        )

    def matches(self, record: Record) -> bool:
        """What a store's own search must agree with."""
        return self.matcher()(record)

    def matcher(self) -> Callable[[Record], bool]:
        """The conditions as one function, made quick for many records: only those that were given are asked."""
        tests = [_test(each) for each in self.comparisons() if each.field not in PLACED]
        if self.hides_private:
            tests.append(lambda record: not is_private(record))
        if self.tags or self.any_tags or self.without_tags:
            tagged = _cached(self.has_tags)
            tests.append(lambda record: tagged(record.tags))
        may = _cached(self.address_matcher())
        tests.append(lambda record: may((record.address, record.tier)))

        def matches(record: Record) -> bool:
            for test in tests:  # noqa: SIM110 - twice as fast as all()
                if not test(record):
                    return False
            return True

        return matches

    def address_matcher(self) -> Callable[[tuple[Address, Tier]], bool]:
        """Whether memories at an address and of a tier may be seen, and are meant."""
        placed = [each for each in self.comparisons() if each.field in PLACED]

        def allows(who: tuple[Address, Tier]) -> bool:
            address, tier = who
            return visible_at(self.seen_from, address, tier) and all(
                each.holds(tier if each.field == "tier" else getattr(address, each.field)) for each in placed
            )

        return allows

    def has_tags(self, tags: tuple[str, ...]) -> bool:
        return (
            all(has_tag(tags, wanted) for wanted in self.tags)
            and (not self.any_tags or any(has_tag(tags, wanted) for wanted in self.any_tags))
            and not any(has_tag(tags, unwanted) for unwanted in self.without_tags)
        )


class Condition(NamedTuple):
    """A condition of a filter: the field of a memory that it looks at, and how they are compared."""

    name: str
    field: str
    operator: Operator


CONDITIONS = (
    Condition("tiers", "tier", "among"),
    Condition("kinds", "kind", "among"),
    Condition("roles", "role", "among"),
    Condition("sources", "source", "among"),
    Condition("lifetimes", "lifetime", "among"),
    Condition("superseded_by", "superseded_by", "among"),
    Condition("conversation", "conversation", "equal"),
    Condition("channel", "channel", "equal"),
    Condition("agent", "agent", "equal"),
    Condition("account", "account", "equal"),
    Condition("since", "created_at", "at_least"),
    Condition("until", "created_at", "below"),
    Condition("valid_at", "valid_from", "begun"),
    Condition("valid_at", "valid_until", "ahead"),
    Condition("min_importance", "importance", "at_least"),
)
PLACED = frozenset(("tier", "conversation", "channel", "agent", "account"))
"""Fields that are the tier or a part of the address: many memories share them."""


class Comparison(NamedTuple):
    """One field of a memory, and what it is compared with. SQL and the masks of resident copies are made from these."""

    field: str
    operator: Operator
    value: Any

    def holds(self, value: Any) -> bool:
        return COMPARE[self.operator](value, self.value)


def _test(comparison: Comparison) -> Callable[[Record], bool]:
    compare, wanted, value_of = COMPARE[comparison.operator], comparison.value, attrgetter(comparison.field)
    if comparison.operator == "among":
        wanted = frozenset(wanted)
    return lambda record: compare(value_of(record), wanted)


def state_comparisons(state: State, now: datetime) -> list[Comparison]:
    """A memory is in the first state of `STATE_TESTS` whose test holds, and live if none does."""
    compared: list[Comparison] = []
    for other, field, operator in STATE_TESTS:
        if other == state:
            return [*compared, Comparison(field, operator, now)]
        compared.append(Comparison(field, OPPOSITE[operator], now))
    return compared


class Wall(NamedTuple):
    """What a part of an address keeps from views that are bound to another value of it."""

    part: str
    tiers: tuple[Tier, ...]
    """Which memories stand behind it; all if there are none here."""
    shared: bool
    """Whether memories without a value are on both sides."""

    def is_open(self, bound: str | None, value: str | None, tier: Tier) -> bool:
        return (
            bound is None
            or value == bound
            or (self.shared and value is None)
            or bool(self.tiers and tier not in self.tiers)
        )


WALLS = (
    Wall("agent", (), True),
    Wall("account", (), True),
    Wall("channel", ("channel", "conversation"), False),
    Wall("conversation", ("conversation",), False),
)

V = TypeVar("V", bound=Hashable)


def _cached(ask: Callable[[V], bool]) -> Callable[[V], bool]:
    """Many records have the same: each value is asked about once."""
    results: dict[V, bool] = {}

    def answer(value: V) -> bool:
        met = results.get(value)
        if met is None:
            met = results[value] = ask(value)
        return met

    return answer


def has_tag(tags: tuple[str, ...], wanted: str) -> bool:
    return any(tag == wanted or tag.startswith(wanted + ".") for tag in tags)


def may_see(view: Address, account: str | None, agent: str | None) -> bool:
    """Whether a view sees what belongs to this account and agent: its own, and what belongs to nobody."""
    return view.agent in (None, agent or view.agent) and view.account in (None, account or view.account)


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
    if address.tenant != view.tenant or (tier != "account" and address.workspace != view.workspace):
        return False
    for wall in WALLS:
        # Asked of every memory that is read, so a wall that the view has not is passed without a call.
        bound = getattr(view, wall.part)
        if bound is not None and not wall.is_open(bound, getattr(address, wall.part), tier):
            return False
    return True
