"""Room for what is new: the quota of an agent, and the size of a place. Both are seen to after a commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from itertools import islice

from msgspec.structs import replace

from recollect.errors import ConcurrencyError
from recollect.filters import Filter
from recollect.policies.ranking import Evidence
from recollect.policies.retention import over_quota
from recollect.record import Address, Record
from recollect.stores.port import Place, by_place
from recollect.verbs.archive import archive, memories_text, reread
from recollect.view import View


def keep_quota(view: View, added: int) -> None:
    """Archive what this agent has over the quota, in all of the tenant's workspaces.

    Counting is not free, so a count is trusted until this process has added what was left, or a hundredth of the quota.
    """
    quota = view.quota
    if quota is None:
        return
    rooms, key = view.memo("quota"), (view.address.tenant, view.address.agent, quota)
    rooms[key] = rooms.get(key, 0) - added
    if rooms[key] >= 0:
        return
    live = sum(_counts(view).values())
    if live > quota:
        with suppress(ConcurrencyError):  # what was added is stored, and whoever adds next sees to the quota again
            settle(view)
    rooms[key] = min(max(quota - live, 0), quota // 100)


def over(view: View) -> list[Record]:
    """What this agent has over the quota, in the order in which it goes."""
    return _over(view, _counts(view))


def settle(view: View, only: Set[str] | None = None) -> list[Record]:
    """Archive or forget what is over the quota, as the preset says, and return it; of that, only what was named.

    Counted and chosen while nobody else can write where this agent has something: of two that see to it at once, the
    second would otherwise take as many again.
    """
    holding = [place for place, count in _counts(view).items() if count]
    with view.store.transaction(*holding):
        going = [record for record in _over(view, _counts(view, holding)) if only is None or record.id in only]
        over = f"{memories_text(len(going))} over the quota of {view.quota:,}"
        if view.preset.retention.quota_action == "archive":
            return archive(view, going, "quota", f"archived {over}")
        for place, group in by_place(going).items():
            gone = reread(view, place, group)
            ids = [record.id for record in gone]
            view.store.delete(place, ids, "quota")
            view.log(place, "quota", f"forgot {over}", gone, deleted=ids)
        return going


def _counts(view: View, places: Iterable[Place] | None = None) -> dict[Place, int]:
    """How much this agent has that counts towards the quota, in each of these places, or wherever there are any."""
    if places is None:
        places = [place for place in view.store.places(view.address.tenant) if place.workspace and not place.reserved]
    agent = view.address.agent or ""
    return {place: view.store.count(_owned(view, place), ("agent",)).get((agent,), 0) for place in places}


def _over(view: View, counts: Mapping[Place, int]) -> list[Record]:
    quota, agent, order = view.quota, view.address.agent, view.preset.retention.quota_order
    if quota is None or (excess := sum(counts.values()) - quota) <= 0:
        return []
    first: list[Record] = []
    for where in [_owned(view, place) for place, count in counts.items() if count]:
        # A filter cannot ask for what is nobody's, so that of those some more are looked at.
        going_first = view.store.scan(where, order=order, limit=excess if agent else None, whole=False)
        first += islice((record for record in going_first if record.address.agent == agent), excess)
    return over_quota(first, len(first) - excess, order)


def _owned(view: View, place: Place) -> Filter:
    """What counts towards the quota in a place; of no agent in particular where the view has none."""
    where = view.where(tiers=("workspace", "channel", "conversation"), agent=view.address.agent)
    return replace(where, seen_from=Address(*place))


def relieve(view: View, places: Iterable[Place]) -> None:
    """After a commit: compact the places that have grown too full."""
    for place in places:
        if view.on_disk is not None and view.on_disk.crowded(place):
            make_room(view, place)


def make_room(view: View, place: Place) -> int:
    """Compact a place, without what has faded beyond the preset's limit. Returns the bytes freed."""
    if view.on_disk is None:
        return 0
    limit = view.preset.retention.compact_below
    if limit is not None and not place.reserved:
        now, rank, decay = view.now(), view.preset.ranking.score, view.settings(place).decay or view.preset.decay
        every = Filter(seen_from=Address(*place), now=now, state=None)
        faded = [
            record
            for record in view.store.scan(every, whole=False)
            if Place.of(record) == place and rank(Evidence(record, ""), decay, now).value < limit
        ]
        if faded:
            with view.store.transaction(place):
                ids = [record.id for record in reread(view, place, faded)]
                view.store.delete(place, ids, f"relevance below {limit:g}")
                message = f"removed {memories_text(len(ids))} of a relevance below {limit:g}"
                view.log(place, "compact", message, deleted=ids)
    return view.on_disk.compact(place)
