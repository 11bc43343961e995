"""Copying stores into stores of any kind: exact, resumable, verified.

A place is copied as `following` does it: memories, things on shelves, then the audit log. Equal entries appended in the
same order to an empty log get the same numbers and hashes, so the log verifies in the copy as it did before.

How far a copy has come is seen from what the target holds. What cannot be seen is whether that was copied, or put there
by somebody else. So before anything is written to a place of the target, that place is claimed for this very copy, by a
thing on a shelf of a reserved workspace of the target: it goes wherever the target goes, and is as durable. When all is
verified, that workspace is dropped as a whole, and only then the copy counts as finished. One that was killed between
that and saying so left a target without claims which holds all of the source: where both are the same, there is nothing
left to do, and nothing is refused.

A source may be written to meanwhile. After all places were followed, the sums of all of them are compared. Each memory
was then read twice, once before and once after the moment in between; where all are the same, the target is the whole
source as it was at that moment. Where some are not, it is followed and compared again, a few times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from recollect.stores.copying.following import Pair, Sums, memories_of, shown
from recollect.stores.integrity import damage_in
from recollect.stores.port import (
    NO_SETTINGS,
    Administered,
    HasIdentity,
    HasLimits,
    HasRemoteTenants,
    OnDisk,
    Place,
    Store,
)
from recollect.stores.sessions import Preferences, SessionCompaction, SessionStore
from recollect.stores.shelves import ShelfItem
from recollect.values.errors import ConcurrencyError, InputError, MovedError, StoreError
from recollect.values.record import Record, utc_now

CLAIMS = " copying"
"""The workspace of the target that says what is being copied into it."""
_ROUNDS = 4
_TOLD = 5
"""So many problems are named in a message."""

Progress = Callable[[str, int, int | None], object]
"""Told what is being done, how many memories that was done to, and to how many it will be."""


class Loss(msgspec.Struct, frozen=True):
    """Something that would not be in the copy as it is in the source."""

    tenant: str
    workspace: str | None
    problem: str
    fields: tuple[str, ...] = ()
    """What of the memories would come back as another value."""
    possible: bool = True
    """Whether the rest can be copied all the same."""

    def __str__(self) -> str:
        return f"{shown(Place(self.tenant, self.workspace))}: {self.problem}"


class Plan(msgspec.Struct, frozen=True):
    """What a copy would do."""

    tenants: tuple[str, ...]
    places: tuple[Place, ...]
    memories: int
    resumes: bool
    """Whether it goes on with one that was not finished, or of which all is there."""
    losses: tuple[Loss, ...]
    there: bool = False
    """Whether all of it is there already."""

    def check(self, lossy: bool) -> None:
        """InputError if the target cannot hold it, or not all of it."""
        if problem := _problem(self.losses, lossy):
            raise InputError("target", problem)


def _problem(losses: Iterable[Loss], lossy: bool) -> str:
    problems = [loss for loss in losses if not (lossy and loss.possible)]
    if not problems:
        return ""
    named = "; ".join(map(str, problems[:_TOLD]))
    more = f"; and {len(problems) - _TOLD:,} more" if len(problems) > _TOLD else ""
    anyway = ". `lossy` copies the rest" if all(loss.possible for loss in problems) else ""
    return f"would not hold all of the source: {named}{more}{anyway}"


class CopiedPlace(msgspec.Struct, frozen=True):
    """What a place holds, in the source and in the copy alike."""

    tenant: str
    workspace: str | None
    memories: int
    things: int
    entries: int
    """Of the audit log."""
    checksum: str
    """Of all of that, in order, with vectors and what undo needs."""


class Copied(msgspec.Struct, frozen=True):
    places: tuple[CopiedPlace, ...]
    losses: tuple[Loss, ...]
    resumed: bool
    rounds: int
    """How often the source was gone through. More than one: it was written to meanwhile."""
    there: bool = False
    """Whether all of it was there already: it was compared, and nothing was copied."""

    @property
    def memories(self) -> int:
        return sum(place.memories for place in self.places)


class _Compared(NamedTuple):
    place: Place
    source: Sums
    target: Sums


class _Claim(msgspec.Struct, frozen=True):
    """What a place of the source was when its copy began."""

    first: str
    """The hash of the first entry of its log, which no other place has."""
    written: int


class _Claims:
    """What the target holds of a copy that is not finished."""

    def __init__(self, target: Store, tenants: Sequence[str]) -> None:
        self._target = target
        places = (Place(tenant, CLAIMS) for tenant in tenants)
        self._place = next(
            (place for place in places if place in target.places(place.tenant)), Place(tenants[0], CLAIMS)
        )
        items = target.shelf(self._place, "claims")
        self.by_place = {Place(*msgspec.json.decode(item.key)): msgspec.convert(item.body, _Claim) for item in items}

    def claim(self, source: Store, place: Place) -> _Claim:
        """That of the place, made where there is none."""
        if place not in self.by_place:
            if place in self._target.places(place.tenant):
                raise InputError("target", f"somebody else wrote to {shown(place)} meanwhile")
            claim = self.by_place[place] = _claim(source, place)
            now = utc_now()
            body: dict[str, object] = msgspec.to_builtins(claim)
            self._target.keep(self._place, ShelfItem("claims", _key(place), body, created_at=now, changed_at=now))
        return self.by_place[place]

    def drop(self, place: Place) -> None:
        """One that the source has no more."""
        self._target.drop(place)
        self._target.remove(self._place, "claims", [_key(place)])
        del self.by_place[place]

    def finish(self) -> None:
        self._target.drop(self._place)


def _key(place: Place) -> str:
    return msgspec.json.encode(place).decode()


def _claim(source: Store, place: Place) -> _Claim:
    first = next(iter(source.entries(place, limit=1)), None)
    return _Claim(first.hash if first else "", source.written(place))


# Before anything is copied


def plan(source: Store, target: Store, *, tenants: Sequence[str] = (), progress: Progress | None = None) -> Plan:
    """Look at everything, and write nothing. InputError if the target is no place for this copy."""
    return _plan(source, target, tenants, progress)[0]


def _plan(
    source: Store, target: Store, tenants: Sequence[str], progress: Progress | None
) -> tuple[Plan, list[_Compared]]:
    """With what was compared, where the target holds all of it already."""
    _check_apart(source, target)
    names = _tenants(source, tenants)
    places = _places(source, names)
    state = _state(source, target, names, places)
    total = sum(_count(source, place) for place in places)
    counting = _Counting(progress, "Checking", total)
    losses = [loss for place in places for loss in _losses(source, target, place, counting)]
    compared = list[_Compared]()
    if state == "alike":
        counting = _Counting(progress, "Verifying", 2 * total)
        compared = [_same(source, target, place, _changed(losses, place), counting) for place in places]
    planned = Plan(tuple(names), tuple(places), total, state != "empty", tuple(losses), state == "alike")
    return planned, compared


def _check_apart(source: Store, target: Store) -> None:
    roots = [os.path.realpath(root) if (root := getattr(store, "root", None)) else None for store in (source, target)]
    identities = [store.identity() if isinstance(store, HasIdentity) else None for store in (source, target)]
    if source is target or any(first is not None and first == other for first, other in (roots, identities)):
        raise InputError("target", "is where the source is; give another place")
    for store, other in ((source, roots[1]), (target, roots[0])):
        if isinstance(store, OnDisk) and other is not None:
            store.check_apart(other)


def _tenants(source: Store, wanted: Sequence[str]) -> list[str]:
    """Those that were named, of which no list is needed; else all, if all can be reached."""
    for tenant in wanted:
        if not source.places(tenant):
            raise InputError("tenant", f"there is no {tenant!r} in the source")
    if wanted:
        return sorted(set(wanted))
    if isinstance(source, HasRemoteTenants) and (away := source.away()):
        named = ", ".join(f"{tenant} on {server}" for tenant, server in sorted(away.items())[:_TOLD])
        more = f" and {len(away) - _TOLD:,} more" if len(away) > _TOLD else ""
        raise MovedError(
            f"copy: not all tenants of the source are on its server ({named}{more}), and none is left out silently: "
            "name those to copy, and copy the others from where they are",
            min(away.items())[1],
        )
    return sorted(source.tenants()) if isinstance(source, Administered) else ["default"]


def _places(source: Store, tenants: Iterable[str]) -> list[Place]:
    places = [place for tenant in tenants for place in source.places(tenant)]
    if not places:
        raise InputError("source", "holds nothing")
    if any(place.workspace == CLAIMS for place in places):
        raise InputError("source", "is itself a copy that was not finished; run that one again first")
    return places


def _state(
    source: Store, target: Store, tenants: Sequence[str], places: Sequence[Place]
) -> Literal["empty", "begun", "alike"]:
    """Whether it holds the beginning of this copy, or as much as all of it. InputError if it holds anything else."""
    claims = _Claims(target, tenants).by_place
    if not claims and _alike(source, target, tenants, places):
        return "alike"
    _check_claimed(target, tenants, claims)
    for place, claim in claims.items():
        if place in places and claim.first not in ("", _claim(source, place).first):
            raise InputError("target", f"holds the beginning of a copy of something else, in {shown(place)}")
    if claims and not claims.keys() & set(places):
        raise InputError("target", "holds the beginning of a copy of something else")
    return "begun" if claims else "empty"


def _alike(source: Store, target: Store, tenants: Sequence[str], places: Sequence[Place]) -> bool:
    """As far as that is quick to see. What is something else is refused without reading all of it."""
    held = {place for tenant in tenants for place in target.places(tenant)}
    return held == set(places) and all(_count(source, place) == _count(target, place) for place in places)


def _same(source: Store, target: Store, place: Place, changed: frozenset[str], counting: _Counting) -> _Compared:
    pair = Pair(source, target, place, changed, 0)
    pair.match()
    compared = _Compared(place, pair.sums(source, counting), pair.sums(target, counting))
    if compared.source != compared.target:
        raise _refused(place)
    return compared


def _refused(place: Place) -> InputError:
    return InputError("target", f"holds something already, in {shown(place)}; give one that is new or empty")


def _check_claimed(target: Store, tenants: Sequence[str], claims: Mapping[Place, _Claim]) -> None:
    for place in (place for tenant in tenants for place in target.places(tenant)):
        if place.workspace != CLAIMS and place not in claims:
            raise _refused(place)


def _changed(losses: Iterable[Loss], place: Place) -> frozenset[str]:
    """The fields that the target changes there."""
    return frozenset(field for loss in losses if Place(loss.tenant, loss.workspace) == place for field in loss.fields)


def _losses(source: Store, target: Store, place: Place, counting: _Counting) -> Iterator[Loss]:
    for damage in damage_in(source, place):
        yield Loss(*place, f"{damage.where}: {damage.problem}")
    yield from _settings_lost(source, target, place)
    records = counting.each(source.scan(memories_of(place)))
    if isinstance(target, HasLimits):
        for short in target.shortfalls(place, records):
            yield Loss(*place, short.problem, short.fields, bool(short.fields))
    elif not isinstance(source, OnDisk) and (changed := sum(record.checksum != record.digest() for record in records)):
        yield Loss(*place, f"{changed:,} do not match their checksum")


def _settings_lost(source: Store, target: Store, place: Place) -> Iterator[Loss]:
    """What people have set is not among what every store keeps."""
    if isinstance(source, OnDisk) and (settings := source.settings(place)) != NO_SETTINGS:
        target_settings = target.settings(place) if isinstance(target, OnDisk) else NO_SETTINGS
        if settings != target_settings:
            yield Loss(*place, "its settings of decay, quota or injection are not copied")
    if isinstance(source, SessionStore) and (session := source.session(place)) is not None:
        usual = None, SessionCompaction(), Preferences()
        if (session.user_id, session.compaction_config, session.preferences) != usual:
            yield Loss(*place, "who the session is for, and its preferences, are not copied")


def _count(store: Store, place: Place) -> int:
    return sum(store.count(memories_of(place)).values())


class _Counting:
    """Tells of progress."""

    def __init__(self, progress: Progress | None, what: str, total: int | None) -> None:
        self._progress, self._what, self._total = progress, what, total
        self._done = 0

    def __call__(self, more: int) -> None:
        self._done += more
        if self._progress is not None:
            self._progress(self._what, self._done, self._total)

    def each(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            yield record
            self(1)


# Copying


def copy(
    source: Store,
    target: Store,
    *,
    tenants: Sequence[str] = (),
    lossy: bool = False,
    progress: Progress | None = None,
) -> Copied:
    """Copy all tenants, or these, into a store that holds nothing of theirs yet.

    All places of each tenant, the reserved ones too: memories in every state with their vectors, things on shelves
    with their versions and times, the audit log with its hashes, and what undo needs. Do it again if it was killed: it
    goes on where it was, and where all of it is there it is compared and left alone. InputError, with nothing changed,
    if the target holds something else, or cannot hold all of it; with `lossy`, only if it cannot hold a place at all.
    ConcurrencyError if the source changes all the time; StoreError if the target does not hold what it was given.
    """
    planned, held = _plan(source, target, tenants, progress)
    planned.check(lossy)
    if held:
        return Copied(tuple(map(_copied, held)), planned.losses, planned.resumes, 1, there=True)
    claims = _Claims(target, planned.tenants)
    copying = _Copying(source, target, planned, claims, lossy, progress)
    before, compared = list[_Compared](), list[_Compared]()
    for rounds in range(1, _ROUNDS + 1):
        try:
            before, compared = compared, copying.round()
        except InputError as error:
            if rounds == 1:
                raise
            raise StoreError(f"copy: the target does not hold what it was given: {error.problem}") from error
        if all(comparison.source == comparison.target for comparison in compared):
            _check_claimed(target, planned.tenants, claims.by_place)
            target.close()  # what was put off is written, or told to be lost, before it counts as finished
            claims.finish()
            return Copied(tuple(map(_copied, compared)), tuple(copying.losses), planned.resumes, rounds)
        if _sources(before) == _sources(compared):
            break
    raise _failure(before, compared)


def _sources(compared: Sequence[_Compared]) -> list[Sums]:
    return [comparison.source for comparison in compared]


class _Copying:
    def __init__(
        self, source: Store, target: Store, planned: Plan, claims: _Claims, lossy: bool, progress: Progress | None
    ) -> None:
        self._source, self._target, self._planned, self._claims = source, target, planned, claims
        self._lossy, self._progress = lossy, progress
        self._pairs: dict[Place, Pair] = {}
        self.losses = list(planned.losses)

    def round(self) -> list[_Compared]:
        """Follow every place, then compare every place, so that there is a moment in between."""
        places = _places(self._source, self._planned.tenants)
        for place in self._claims.by_place.keys() - set(places):
            self._claims.drop(place)
            self._pairs.pop(place, None)
        counting = _Counting(self._progress, "Copying", self._planned.memories)
        for place in places:
            self._pair(place).follow(counting)
        self._target.close()  # so that what is compared is what it keeps, and not what it remembers
        counting = _Counting(self._progress, "Verifying", 2 * self._planned.memories)
        now = _places(self._source, self._planned.tenants)
        return [self._compare(place, counting) for place in dict.fromkeys([*now, *self._claims.by_place])]

    def _pair(self, place: Place) -> Pair:
        if place not in self._pairs:
            if place not in self._planned.places:
                self._look_at(place)
            claim = self._claims.claim(self._source, place)
            changed = _changed(self.losses, place)
            self._pairs[place] = Pair(self._source, self._target, place, changed, claim.written, self._planned.resumes)
        return self._pairs[place]

    def _look_at(self, place: Place) -> None:
        """At one that was not there when all others were."""
        losses = list(_losses(self._source, self._target, place, _Counting(None, "", None)))
        if problem := _problem(losses, self._lossy):
            raise StoreError(f"copy: the target {problem}")
        self.losses += losses

    def _compare(self, place: Place, counting: _Counting) -> _Compared:
        pair = self._pair(place)
        if isinstance(self._target, OnDisk) and (unsaved := self._target.unsaved(place)):
            raise StoreError(f"copy: the disk of the target refuses {unsaved:,} writes; make room, and copy again")
        return _Compared(place, pair.sums(self._source, counting), pair.sums(self._target, counting))


def _copied(comparison: _Compared) -> CopiedPlace:
    sums = comparison.target
    return CopiedPlace(*comparison.place, sums.memories, sums.things, sums.entries, sums.checksum)


def _failure(before: Sequence[_Compared], compared: Sequence[_Compared]) -> StoreError:
    differing = [comparison for comparison in compared if comparison.source != comparison.target]
    parts = [
        f"{shown(comparison.place)}: {', '.join(comparison.source.differences(comparison.target))}"
        for comparison in differing
    ]
    named = "; ".join(parts[:_TOLD])
    if _sources(before) != _sources(compared):
        return ConcurrencyError(
            f"copy: the source is written to all the time, last in {named}. The target is not complete: copy again "
            "when the source rests, or copy a backup of it"
        )
    return StoreError(
        f"copy: the target does not hold the same as the source in {named}. Remove it, and copy into a new one"
    )
