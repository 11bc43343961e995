"""Diagnosis of one memory, and of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Literal

import msgspec

from recollect.audit import AuditLog, with_words
from recollect.policies.decay import strength
from recollect.policies.extraction import read_turn
from recollect.policies.personal import find_personal, secret_in
from recollect.policies.retention import decayed, early
from recollect.policies.secrets import find
from recollect.policies.sensitive_topics import topics
from recollect.presets import Preset
from recollect.stores.audit import Entry
from recollect.stores.integrity import CHANGED, damaged, is_intact
from recollect.stores.port import Damage, HasAdvice, HasIntegrityCheck, Place
from recollect.values import validation
from recollect.values.bodies import PROPOSALS
from recollect.values.errors import AccessError, CorruptionError
from recollect.values.record import Record, State, moved, render
from recollect.verbs import deduplicate
from recollect.view import PARTLY_PRIVATE, View


class Diagnosis(msgspec.Struct, frozen=True):
    """Where a memory stands, and why."""

    id: str
    status: State | Literal["forgotten", "unknown"]
    reason: str
    at: datetime | None = None
    current: str | None = None
    """The version that holds now, if this one was superseded."""
    strength: float | None = None
    """Its importance after decay."""


_ARCHIVED = {
    "archive": "was archived by hand",
    "decay": "had decayed below the limit and was archived",
    "early": "was of too little importance and was archived",
    "quota": "was archived to keep the quota",
    "consolidate": "had faded, or was over the cap, and was archived by consolidation",
}


def diagnose(view: View, ident: str) -> Diagnosis:
    """Why a memory is not recalled any more, or that nothing keeps it from being recalled."""
    ident = validation.memory_id(ident)
    records = view.get([ident])
    if not records:
        return _absent(view, ident)
    record = records[0]
    now = view.now()
    state, left = record.state(now), strength(record, view.decay, now)
    if state == "superseded":
        current = _current(view, record)
        return Diagnosis(ident, state, f"is outdated: superseded by {record.superseded_by}", None, current, left)
    if state == "archived":
        entry = next(_about(view, ident, *_ARCHIVED), None)
        why = _ARCHIVED[entry.action] if entry else "is archived"
        return Diagnosis(ident, state, why, record.archived_at, None, left)
    if state == "expired":
        return Diagnosis(
            ident, state, f"expired: a {record.kind} is kept for a limited time", record.expires_at, None, left
        )
    return Diagnosis(ident, state, f"can be recalled{_not_read(record)}", record.created_at, None, left)


def _not_read(record: Record) -> str:
    """Which parts of what a user said give no facts, because they are not the user's own words."""
    if record.role != "user":
        return ""
    reasons = dict.fromkeys(block.reason for block in read_turn(record.text).left)
    return f"; facts are not read from parts of it: {', '.join(reasons)}" if reasons else ""


def _absent(view: View, ident: str) -> Diagnosis:
    for entry in _about(view, ident, "forget", "erase", "undo"):
        if view.address.agent in (None, entry.actor) and not view.bound & {"account", "channel", "conversation"}:
            return Diagnosis(ident, "forgotten", with_words(view, entry).message, entry.at)
    return Diagnosis(ident, "unknown", "was never stored here, or belongs to someone else")


def _about(view: View, ident: str, *actions: str) -> Iterator[Entry]:
    for place in view.places:
        for entry in view.store.entries(place, about=ident, newest_first=True):
            # What agents log themselves is below `details`, and proves nothing.
            named = view.sees_entry(entry) and view.sees_entry(entry, PARTLY_PRIVATE)
            if named and entry.action in actions and any(ident in entry.meta.get(key, ()) for key in _CHANGED):
                yield entry


_CHANGED = ("changed", "deleted", "removed")


def _current(view: View, record: Record) -> str | None:
    *_, last = record, *view.successors(record)
    return last.id if last.superseded_by is None else None


def secret_of(preset: Preset, record: Record) -> str | None:
    """The rule by which the preset would refuse the memory: of all in which somebody may have written something."""
    for text in (record.text, render(record.metadata)):
        if rule := secret_in(text, preset.personal, preset.secrets):
            return rule
    others = (find(text, preset.secrets) for text in (" ".join(record.tags), record.source or ""))
    return next(filter(None, others), None)


class Day(msgspec.Struct, frozen=True):
    """Counts of one day in UTC."""

    on: date
    states: Mapping[str, int]
    """How many of it are in each state now."""

    @property
    def total(self) -> int:
        return sum(self.states.values())


class StoreStats(msgspec.Struct, frozen=True):
    """Counts of what a view sees, and the bytes on disk of the places it looks in."""

    total: int
    states: Mapping[str, int]
    kinds: Mapping[str, int]
    tiers: Mapping[str, int]
    agents: Mapping[str, int]
    """Per agent; shared memories under the empty name."""
    embedded: int
    size_bytes: int
    unsaved: int = 0
    """Writes of this process that the disk refuses; they are in memory only."""
    daily: tuple[Day, ...] = ()
    """The last days, the latest last, where they were asked for."""


_MOST_DAYS = 3650
_DAY = timedelta(days=1)


def _daily(view: View, days: int) -> tuple[Day, ...]:
    tomorrow = moved(view.now().replace(hour=0, minute=0, second=0, microsecond=0), _DAY)
    daily: list[Day] = []
    for back in range(validation.count(days, "days", low=0, high=_MOST_DAYS), 0, -1):
        start, end = moved(tomorrow, -back * _DAY), moved(tomorrow, (1 - back) * _DAY)
        counts = view.store.count(view.where(state=None, since=start, until=end), ("state",))
        daily.append(Day(start.date(), {state: number for (state,), number in counts.items()}))
    return tuple(daily)


def stats(view: View, days: int = 0) -> StoreStats:
    """In every state. Only a view of a whole workspace sees bytes on disk."""
    where = view.where(state=None)
    counts = view.store.count(where, ("state", "kind", "tier", "agent", "embedded"))
    states, kinds, tiers, agents, embedded = (Counter[str]() for _ in range(5))
    for values, number in counts.items():
        for counter, value in zip((states, kinds, tiers, agents, embedded), values, strict=True):
            counter[value] += number
    size = sum(view.on_disk.size(place) for place in view.places) if view.on_disk and view.whole else 0
    total = sum(states.values())
    return StoreStats(
        total,
        dict(states),  # and not as a Counter: a server gives a dict, too
        dict(kinds),
        dict(tiers),
        dict(agents),
        embedded["yes"],
        size,
        view.unsaved,
        _daily(view, days),
    )


class Finding(msgspec.Struct, frozen=True):
    """One kind of trouble, how much of it, and what helps."""

    problem: str
    severity: Literal["error", "warning", "info"]
    count: int
    advice: str
    examples: tuple[str, ...] = ()


def personal_data(preset: Preset, text: str) -> list[Finding]:
    """What identifies a person or is sensitive in a text, and what the preset does with it."""
    personal, secrets, automatic = preset.personal, preset.secrets, preset.personal.of_automatic()
    findings: list[Finding] = []
    for item in find_personal(text):
        action = personal.action(item.type, secrets)
        advice = f"{_DONE[action]}; automatically {_DONE[automatic.action(item.type, secrets)]}"
        findings.append(Finding(item.type, "error" if action == "refuse" else "info", 1, advice, (item.mask,)))
    done = {"tag": "kept with the tag sensitive.{}", "refuse": "refused", "ignore": "kept as any other"}[
        personal.topics
    ]
    severity = "error" if personal.topics == "refuse" else "info"
    return findings + [Finding(topic, severity, 1, done.format(topic)) for topic in topics(text)]


_DONE = {"keep": "kept with a tag", "mask": "kept masked, with a tag", "refuse": "refused"}


class Health(msgspec.Struct, frozen=True):
    memories: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


_ADVICE: dict[str, tuple[Literal["error", "warning", "info"], str]] = {
    "not saved yet": ("error", "make room on the disk before this process ends; they are written with the next write"),
    "corrupt": ("error", "export leaves the damaged memories out and names them; import the rest into a new folder"),
    "audit log broken": ("error", "the log was changed outside recollect; compare it with a backup"),
    "set-up is wrong": ("error", "recollect db status says more, and recollect db upgrade repairs what it can"),
    "secrets": ("error", "forget them with --erase, and change the credentials"),
    "personal data": ("info", "card numbers and the like; `[personal]` of the preset says what is done with them"),
    "duplicates": ("warning", "doctor --fix duplicates shows them, and merges them"),
    "decayed": ("info", "maintain archives them"),
    "expired": ("info", "they are not recalled any more; forget them if they must not be kept"),
    "unimportant": ("info", "eligible for early cleanup: maintain --early archives them"),
    "possible changes": ("info", "newer memories may say otherwise: recollect proposals shows and decides them"),
    "never recalled": ("info", "older than 30 days and never asked for"),
    "set-up": ("info", "it works, and could be better: recollect db status"),
}


def _readable(view: View, problems: list[str]) -> Iterator[Record]:
    """Every memory, up to the first that cannot be read."""
    try:
        yield from view.store.scan(view.where(state=None))
    except CorruptionError as error:
        problems.append(str(error))


def _breaks(view: View) -> list[str]:
    try:
        return [b.problem for log in AuditLog(view).verify() for b in log.breaks]
    except CorruptionError as error:
        return [str(error)]


def verify(view: View) -> list[Damage]:
    """The damage in the places of a view."""
    if not view.whole:
        raise AccessError("verify: only a view of the whole workspace can verify it, not one bound inside it")
    return [_named(view, place, damage) for place in view.checked_places() for damage in damaged(view.store, place)]


def _missing(view: View) -> Iterator[Damage]:
    """What a store finds by itself, and of memories outside the view, which doctor does not read, their checksums."""
    if isinstance(view.store, HasIntegrityCheck):
        for place in view.checked_places():
            damages = view.store.damage(place) if place in view.places else damaged(view.store, place)
            yield from (_named(view, place, damage) for damage in damages)


def _named(view: View, place: Place, damage: Damage) -> Damage:
    """With the workspace, where it is another than the view's."""
    return damage if place in view.places else damage._replace(where=f"{place.workspace}: {damage.where}")


def _of_the_store(view: View, corrupt: list[str], *, deep: bool) -> dict[str, list[str]]:
    """What is wrong with the files or the server, and not with single memories."""
    lost = [f"{damage.where}: {damage.problem}" for damage in _missing(view)]
    problems = {
        "corrupt": lost if view.on_disk is not None else corrupt + lost,
        "audit log broken": _breaks(view),
    }
    if deep:
        again = (f"{damage.where}: {damage.problem}" for damage in verify(view))
        problems["corrupt"] = list(dict.fromkeys((*problems["corrupt"], *again)))
    if isinstance(view.store, HasAdvice):
        problems["set-up"] = view.store.remarks()
        problems["set-up is wrong"] = view.store.problems() if deep else []
    return problems


def doctor(view: View, *, deep: bool = False) -> Health:
    """Look at everything this view can see; what concerns the files only if it sees the whole workspace.

    `deep` also reads everything on the disk again, and asks the store how it is set up.
    """
    problems: dict[str, list[str]] = {problem: [] for problem in _ADVICE}
    now, retention, decay = view.now(), view.preset.retention, view.decay
    statements: list[Record] = []
    count = 0
    for record in _readable(view, problems["corrupt"]):
        count += 1
        if view.on_disk is None and not is_intact(record):
            problems["corrupt"].append(f"{record.id}: {CHANGED}")
        if secret_of(view.preset, record):
            problems["secrets"].append(record.id)
        elif find_personal(record.text):
            problems["personal data"].append(record.id)
        state = record.state(now)
        if state == "expired":
            problems["expired"].append(record.id)
        if state != "live":
            continue
        if record.address.conversation is None:
            statements.append(record)
        if decayed(retention, record, decay, now):
            problems["decayed"].append(record.id)
        if early(retention, record):
            problems["unimportant"].append(record.id)
        if not record.access_count and (now - record.created_at).days >= 30:
            problems["never recalled"].append(record.id)
    problems["duplicates"] = [
        other.id for group in deduplicate.find(statements, view.preset.remember.max_tags) for other in group.others
    ]
    with suppress(CorruptionError):  # which is told already
        problems["possible changes"] = [item.key for item in view.things(PROPOSALS) if item.body["act"] == "replace"]
    if view.whole:
        problems |= _of_the_store(view, problems["corrupt"], deep=deep)
    problems["not saved yet"] = ["a write that the disk refuses is in memory only"] * view.unsaved
    findings = (
        Finding(problem, severity, len(problems[problem]), advice, tuple(problems[problem][:5]))
        for problem, (severity, advice) in _ADVICE.items()
        if problems[problem]
    )
    return Health(count, tuple(findings))
