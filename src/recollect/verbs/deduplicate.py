"""The verb deduplicate: memories that say the same in the same words become one, and the others its history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from recollect.stores.port import Place, by_place
from recollect.text.words import normal
from recollect.values import validation
from recollect.values.errors import InputError
from recollect.values.record import Record, joined_sources, storing_order
from recollect.values.validation import MAX_REFERENCES, MAX_TAGS
from recollect.verbs.archive import memories_text
from recollect.view import View

Alike = Literal["text", "words"]

_canonical = msgspec.json.Encoder(order="sorted").encode


class Duplicates(msgspec.Struct, frozen=True):
    """Memories that say the same."""

    keep: Record
    """What stays: the newest."""
    others: tuple[Record, ...]
    """What becomes its history."""
    alike: Alike
    """To the letter, or but for spaces, capitals at the beginnings of words, and how the sentence ends."""


def deduplicate(view: View, *, dry_run: bool, groups: Sequence[Duplicates] | None) -> list[Duplicates]:
    """Merge the duplicates that `find` returns, or these. Memories that were changed meanwhile are skipped."""
    if groups is None:
        wanted = find(_statements(view), view.preset.remember.max_tags)
    else:
        with view.logging_refusals("deduplicate"):
            wanted = _checked(view, groups)
    if dry_run or not wanted:
        return wanted
    places = list(by_place([group.keep for group in wanted]))
    view = view.as_one_change()
    with view.store.transaction(*places):  # all of it or none
        return [group for place in places for group in _merge(view, place, wanted)]


def _checked(view: View, groups: Any) -> list[Duplicates]:
    listed = list(validation.sequence(groups, "groups"))
    if not all(isinstance(group, Duplicates) for group in listed):
        raise InputError("groups", "must be some of what `deduplicate(dry_run=True)` returned")
    members = [record.id for group in listed for record in (group.keep, *group.others)]
    if len(set(members)) < len(members):
        raise InputError("groups", "a memory is in two of them")
    if members:
        view.find(members)
    return listed


def _statements(view: View) -> list[Record]:
    """What stands for itself: a turn of a conversation has its meaning from those around it."""
    return [record for record in view.scan(view.where()) if record.address.conversation is None]


def _merge(view: View, place: Place, groups: Sequence[Duplicates]) -> list[Duplicates]:
    """In a transaction."""
    before: list[Record] = []
    after: list[Record] = []
    done: list[Duplicates] = []
    for group in groups:
        if Place.of(group.keep) != place:
            continue
        # Read and compared anew: one may have been changed since it was shown.
        current = view.store.get(place, [record.id for record in (group.keep, *group.others)])
        for again in find([record for record in current if record.state(view.now()) == "live"], None):
            before += [again.keep, *again.others]
            after += [
                joined(again.keep, again.others),
                *(replace(other, superseded_by=again.keep.id) for other in again.others),
            ]
            done.append(again)
    if done:
        view.store.update(place, after)
        count = sum(len(group.others) for group in done)
        message = f"merged {count:,} that say the same into {memories_text(len(done))}"
        view.log(place, "merge", message, before, changed=[record.id for record in after])
    return done


def joined(keep: Record, others: Sequence[Record]) -> Record:
    """The memory with tags and references of its duplicates, up to the limits."""
    every = (keep, *others)
    ends = [record.expires_at for record in every if record.expires_at is not None]
    return replace(
        keep,
        tags=tuple(dict.fromkeys(tag for record in every for tag in record.tags))[:MAX_TAGS],
        references=tuple(dict.fromkeys(ref for record in every for ref in record.references))[:MAX_REFERENCES],
        derived_from=joined_sources(*(record.derived_from for record in every)),
        importance=max(record.importance for record in every),
        access_count=sum(record.access_count for record in every),
        accessed_at=max(record.accessed_at for record in every),
        lifetime="long_term" if any(record.lifetime == "long_term" for record in every) else keep.lifetime,
        expires_at=max(ends) if len(ends) == len(every) else None,
    )


def find(records: Iterable[Record], max_tags: int | None = None) -> list[Duplicates]:
    """Groups of memories that say the same of the same, at the same address, as far as one can have all their tags."""
    alike: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for record in records:
        text = record.content if isinstance(record.content, str) else None
        words = normal(text) if text is not None else _canonical(record.content)
        times = record.expires_at, record.valid_from, record.valid_until
        circumstances = record.kind, record.role, record.source, times, _canonical(record.metadata)
        alike[record.address, record.tier, words, circumstances].append(record)
    groups: list[Duplicates] = []
    for members in alike.values():
        keep, *others = sorted(members, key=lambda record: (record.created_at, storing_order(record.id)), reverse=True)
        tags, fitting = set(keep.tags), list[Record]()
        for other in others:
            if len(tags.union(other.tags)) <= min(max_tags or MAX_TAGS, MAX_TAGS):
                tags.update(other.tags)
                fitting.append(other)
        if fitting:
            same = len({record.text for record in (keep, *fitting)}) == 1
            groups.append(Duplicates(keep, tuple(fitting), "text" if same else "words"))
    return groups
