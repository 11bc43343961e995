"""Consolidation: score, promote, prune, merge and cap. A plan, made of values; nothing is ever deleted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import numpy as np

from recollect.maintenance import similar
from recollect.maintenance.steps import JobPlan, Step, scope
from recollect.policies.decay import Decay, strength
from recollect.policies.maintenance import Consolidation
from recollect.text.statements import fingerprint
from recollect.values.record import Record, storing_order


def plan(
    records: Sequence[Record], rules: Consolidation, decay: Decay, now: datetime, *, merging: bool = True
) -> JobPlan:
    """What would be done to live memories of one place. Each is promoted, and otherwise changed, once at most."""
    relevance = {record.id: strength(record, decay, now) for record in records}
    steps: list[Step] = []
    pruned: set[str] = set()
    for record in records:
        if record.lifetime != "short_term":
            continue
        score = relevance[record.id]
        if score > rules.promote_above and record.access_count > rules.promote_uses:
            used = f"it was recalled {record.access_count} times"
            why = f"relevance {score:.3g} is above {rules.promote_above:g}, and {used}"
            steps.append(Step(record.id, "promote", why))
        elif score < rules.prune_below:
            steps.append(Step(record.id, "archive", f"relevance {score:.3g} is below {rules.prune_below:g}"))
            pruned.add(record.id)
    left = [record for record in records if record.id not in pruned]
    note = ""
    if merging:
        merges, note = same(left, rules.same_above)
        steps += merges
        gone = {step.id for step in merges}
        left = [record for record in left if record.id not in gone]
    over = _over_cap(left, relevance, rules.cap)
    whys = {step.id: step.why for step in over}
    # What would be merged into a memory that is archived itself is archived with it.
    steps = [Step(step.id, "archive", whys[step.by]) if step.by in whys else step for step in steps]
    return JobPlan(tuple(steps + over), note=note)


def _over_cap(records: Sequence[Record], relevance: dict[str, float], cap: int) -> list[Step]:
    scopes: dict[object, list[Record]] = defaultdict(list)
    for record in records:
        scopes[scope(record)].append(record)
    steps: list[Step] = []
    for members in scopes.values():
        if len(members) > cap:
            members.sort(key=lambda record: (relevance[record.id], record.created_at, storing_order(record.id)))
            why = f"among the least relevant of {len(members):,}, and {cap:,} may stay"
            steps += [Step(record.id, "archive", why) for record in members[: len(members) - cap]]
    return steps


def same(records: Sequence[Record], above: float) -> tuple[list[Step], str]:
    """Merges of memories that say the same, and what there is to know about them.

    Of the same address, tier and kind, with the same numbers, names and negations: those of the same text, and those of
    a higher cosine. Turns of a conversation have their meaning from those around them, and are left alone.
    """
    homes: dict[tuple[object, ...], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.role is None:
            text = record.text
            homes[record.address, record.tier, record.kind, fingerprint(text)][text].append(record)
    alike = {max(twins, key=_standing).id: twins for home in homes.values() for twins in home.values()}
    heads = {record.id: record for twins in alike.values() for record in twins if record.id in alike}
    distrusted = _distrusted(list(heads.values()), above)
    steps: list[Step] = []
    for home in homes.values():
        members = [heads[max(twins, key=_standing).id] for twins in home.values()]
        into = _close(members, above, distrusted) if len(members) > 1 else {}
        for member in members:
            keep, cosine = into.get(member.id, (member.id, 1.0))
            for twin in alike[member.id]:
                if twin.id != keep:
                    equal = twin.text == heads[keep].text
                    why = "the same text" if equal else f"the same meaning, by a cosine of {cosine:.3f} above {above:g}"
                    steps.append(Step(twin.id, "merge", why, keep))
    return steps, "vectors that hardly differ were not compared: the model may be broken" if distrusted else ""


def _standing(record: Record) -> tuple[object, ...]:
    """Of those that say the same the one that stays: used most, and of those the newest."""
    return record.access_count, record.created_at, record.id


_Model = tuple[str | None, int]


def _vectors(records: Sequence[Record]) -> dict[_Model, tuple[list[Record], similar.Floats]]:
    """By model and size, those whose vectors have a direction, at length one."""
    groups: dict[_Model, list[Record]] = defaultdict(list)
    for record in records:
        if record.embedding:
            groups[record.embedding_model, len(record.embedding)].append(record)
    made: dict[_Model, tuple[list[Record], similar.Floats]] = {}
    for model, members in groups.items():
        if model[1] % 4 == 0:
            rows = np.frombuffer(b"".join([m.embedding or b"" for m in members]), "<f4").reshape(len(members), -1)
            good = similar.usable(rows)
            made[model] = [members[row] for row in np.flatnonzero(good)], similar.unit(rows[good])
    return made


def _distrusted(records: Sequence[Record], above: float) -> set[_Model]:
    return {model for model, (_, units) in _vectors(records).items() if similar.tells_nothing(units, above)}


def _close(records: Sequence[Record], above: float, distrusted: set[_Model]) -> dict[str, tuple[str, float]]:
    """By the id of a memory the one that says the same and stays, and how alike they are.

    Each is compared with the one that stays itself: what is like something that is like it may be something else.
    """
    into: dict[str, tuple[str, float]] = {}
    for model, (members, units) in _vectors(records).items():
        pairs = None if model in distrusted or len(members) < 2 else similar.pairs(units, above)
        if pairs is None or not len(pairs):
            continue
        near: dict[int, list[int]] = defaultdict(list)
        for a, b in pairs.tolist():
            near[a].append(b)
            near[b].append(a)
        staying: set[int] = set()
        for row in sorted(near, key=lambda row: _standing(members[row]), reverse=True):
            if members[row].id in into:
                continue
            staying.add(row)
            for other in near[row]:
                if other not in staying and members[other].id not in into:
                    into[members[other].id] = members[row].id, float(units[row] @ units[other])
    return into
