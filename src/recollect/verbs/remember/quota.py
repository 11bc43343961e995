"""Makes room after a commit: enforces the quota of an agent and the size limit of a place."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Set
from itertools import islice

from msgspec.structs import replace

from recollect.policies.ranking import Evidence
from recollect.policies.retention import over_quota
from recollect.stores.port import Place, by_place
from recollect.values.errors import StoreError
from recollect.values.filters import Filter
from recollect.values.record import Address, Record
from recollect.verbs.archive import archive, memories_text, reread
from recollect.view import View

_log = logging.getLogger(__name__)


def keep_quota(view: View, added: int) -> None:
    """Archive what this agent has over the quota, in all of the tenant's workspaces, and a hundredth of it more.

    Counting is not free, so a count is trusted until this process has added what was left, or a hundredth of the quota.
    That is why room for as many is made at once. What was added is stored by now: nothing here may fail the caller.
    """
    quota = view.quota
    if quota is None:
        return
    rooms, key = view.cache("quota"), (view.address.tenant, view.address.agent, quota)
    rooms[key] = rooms.get(key, 0) - added
    if rooms[key] >= 0:
        return
    # Archived memories can be restored. Forgotten ones are gone after 30 days: never forget more than needed.
    spare = quota // 100 if view.preset.retention.quota_action == "archive" else 0
    try:
        live = sum(_counts(view).values())
        if live > quota:
            live -= len(settle(view, spare=spare))
    except StoreError as error:  # the next write enforces the quota again
        _log.warning("quota of %s not kept yet: %s", view.address.agent or "no agent", error)
        return
    rooms[key] = min(max(quota - live, 0), quota // 100)


def over(view: View) -> list[Record]:
    """What this agent has over the quota, in the order in which it goes."""
    return _over(view, _counts(view))


def settle(view: View, only: Set[str] | None = None, spare: int = 0) -> list[Record]:
    """Archive or forget what is over the quota, as the preset says, and return it; of that, only what was named.

    `spare` more go than the quota asks for. Place by place, since a process cannot open all files at once. Each time
    the agent's memories are counted again, while whoever else sees to a quota of this tenant waits for the first of its
    workspaces: of two at once, the second would otherwise take as many again.
    """
    counts = _counts(view)
    going = [record for record in _over(view, counts, spare) if only is None or record.id in only]
    first = min(counts, default=None)
    gone: list[Record] = []
    for place, group in by_place(going).items():
        with view.store.transaction(*sorted({place, first or place})):
            excess = _excess(view, _counts(view), spare)
            live = [record for record in reread(view, place, group) if record.state(view.now()) == "live"]
            gone += _remove(view, place, live[:excess])
    return gone


def _remove(view: View, place: Place, going: list[Record]) -> list[Record]:
    if not going:
        return []
    over = f"{memories_text(len(going))} over the quota of {view.quota:,}"
    if view.preset.retention.quota_action == "archive":
        return archive(view, going, "quota", f"archived {over}")
    ids = [record.id for record in going]
    view.store.delete(place, ids, "quota")
    view.log(place, "quota", f"forgot {over}", going, deleted=ids)
    return going


def _excess(view: View, counts: Mapping[Place, int], spare: int) -> int:
    """How many are to go, so that `spare` may be added before the next count."""
    live, quota = sum(counts.values()), view.quota
    return live - quota + spare if quota is not None and live > quota - spare else 0


def _counts(view: View, places: Iterable[Place] | None = None) -> dict[Place, int]:
    """How much this agent has that counts towards the quota, in each of these places, or wherever there are any."""
    if places is None:
        places = [place for place in view.store.places(view.address.tenant) if place.workspace and not place.reserved]
    agent = view.address.agent or ""
    return {place: view.store.count(_owned(view, place), ("agent",)).get((agent,), 0) for place in places}


def _over(view: View, counts: Mapping[Place, int], spare: int = 0) -> list[Record]:
    agent, order = view.address.agent, view.preset.retention.quota_order
    if not (excess := _excess(view, counts, spare)):
        return []
    first: list[Record] = []
    for where in [_owned(view, place) for place, count in counts.items() if count]:
        # Filter has no "agent IS NULL": read some more and filter here.
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
    """Compact a place and drop memories that faded below the preset's limit. Returns the bytes freed."""
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
                faded = reread(view, place, faded)
                ids = [record.id for record in faded]
                view.store.delete(place, ids, f"relevance below {limit:g}")
                message = f"removed {memories_text(len(ids))} of a relevance below {limit:g}"
                view.log(place, "compact", message, concerning=faded, deleted=ids)
    return view.on_disk.compact(place)
