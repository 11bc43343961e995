"""The verb deduplicate: memories that say the same become one, and the others its history."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple
from unicodedata import category

import msgspec
from msgspec.structs import replace

from recollect import validation
from recollect.errors import ConflictError
from recollect.policies.ranking import content_hash
from recollect.record import Record
from recollect.stores.port import Place, by_place
from recollect.text.words import NEGATION, WORD
from recollect.validation import MAX_REFERENCES, MAX_TAGS
from recollect.verbs.archive import memories_text
from recollect.view import View

Alike = Literal["text", "words", "meaning"]

_CLOSE = 0.95
"""The cosine from which two memories may mean the same."""
_CROWDED = 200
"""Memories that share their rarest word. More of them are lines of one form, each with another value."""
_FILLERS = frozenset("a an the that so very really just also".split())
"""Words that change nothing where they are added."""
_SIGNS = frozenset("?#%&@*/\\-_")
"""What is no word, but tells C from C#, 5 from 5 % and a question from a statement; beside these all symbols do."""


class Duplicates(msgspec.Struct, frozen=True):
    """Memories that say the same."""

    keep: Record
    """What stays: the newest of the longest."""
    others: tuple[Record, ...]
    """What becomes its history."""
    alike: Alike
    """In their text but for case and spaces, in their words in order, or in their meaning."""


class _Read(NamedTuple):
    record: Record
    words: tuple[str, ...]
    guard: tuple[object, ...]
    """What two memories that say the same must have in common: numbers, names and whether they deny."""


def deduplicate(view: View, *, dry_run: bool, groups: Sequence[Duplicates] | None) -> list[Duplicates]:
    """Merge what `find` finds, or these. What was changed meanwhile is left alone."""
    groups = find(_statements(view)) if groups is None else list(groups)
    if dry_run or not groups:
        return groups
    with view.refusing("deduplicate"):
        wanted = validation.memory_ids([r.id for group in groups for r in (group.keep, *group.others)])
        seen = {record.id for record in view.find(wanted)}
    done: list[Duplicates] = []
    for place in by_place([group.keep for group in groups]):
        here = [group for group in groups if Place.of(group.keep) == place and group.keep.id in seen]
        with view.store.transaction(place):
            done += _merge(view, place, here)
    return done


def _statements(view: View) -> list[Record]:
    """What stands for itself: a turn of a conversation has its meaning from those around it."""
    live = view.store.scan(view.where())
    return [record for record in live if record.address.conversation is None and record.role is None]


def _merge(view: View, place: Place, groups: Sequence[Duplicates]) -> list[Duplicates]:
    now, done = view.now(), list[Duplicates]()
    before: list[Record] = []
    after: list[Record] = []
    for group in groups:
        members = (group.keep, *group.others)
        there = {record.id: record for record in view.store.get(place, [record.id for record in members])}
        keep, others = there.get(group.keep.id), [there[other.id] for other in group.others if other.id in there]
        if keep is None or keep.state(now) != "live" or keep.id in {record.id for record in before}:
            continue
        others = [one for one in others if one.state(now) == "live" and (one.address, one.tier) == _where(keep)]
        if not others:
            continue
        before += [keep, *others]
        after += [_joined(keep, others), *(replace(other, superseded_by=keep.id) for other in others)]
        done.append(Duplicates(keep, tuple(others), group.alike))
    if not done:
        return []
    count = sum(len(group.others) for group in done)
    if len({record.id for record in after}) < len(after):
        raise ConflictError("groups: a memory is in two of them")
    view.store.update(place, after)
    message = f"merged {count:,} that say the same into {memories_text(len(done))}"
    view.log(place, "merge", message, before, changed=[record.id for record in after])
    return done


def _where(record: Record) -> tuple[object, object]:
    return record.address, record.tier


def _joined(keep: Record, others: Sequence[Record]) -> Record:
    """With what was known of the others, as far as there is room."""
    every = (keep, *others)
    return replace(
        keep,
        tags=tuple(dict.fromkeys(tag for record in every for tag in record.tags))[:MAX_TAGS],
        references=tuple(dict.fromkeys(ref for record in every for ref in record.references))[:MAX_REFERENCES],
        importance=max(record.importance for record in every),
        access_count=sum(record.access_count for record in every),
        accessed_at=max(record.accessed_at for record in every),
        expires_at=None
        if any(record.expires_at is None for record in every)
        else max(record.expires_at for record in every if record.expires_at is not None),
    )


def find(records: Iterable[Record]) -> list[Duplicates]:
    """Groups of live memories that say the same, at the same address. A memory is in one group at most."""
    homes: dict[tuple[object, ...], list[_Read]] = defaultdict(list)
    for record in records:
        # As they are: "lived" is not "lives".
        text = record.text.strip()
        words = tuple(word for word in WORD.findall(text.casefold()) if word not in _FILLERS)
        words = (*words, *(sign for sign in text if sign in _SIGNS or category(sign)[0] == "S")) or (text,)
        homes[record.address, record.tier, record.kind].append(_Read(record, words, _guard(text, words)))
    groups: list[Duplicates] = []
    for home in homes.values():
        by_words: dict[tuple[str, ...], list[_Read]] = defaultdict(list)
        for read in home:
            by_words[read.words].append(read)
        close = _close([max(reads, key=_standing) for reads in by_words.values()])
        for reads in by_words.values():
            kept = max(reads, key=_standing)
            if kept.record.id in close.taken:
                continue
            near = [one for other in close.into.get(kept.record.id, ()) for one in by_words[other.words]]
            others = [read.record for read in (*reads, *near) if read is not kept]
            if others:
                groups.append(Duplicates(kept.record, tuple(others), _alike(kept.record, others, bool(near))))
    return groups


class _Close(NamedTuple):
    into: dict[str, list[_Read]]
    """By the id of a memory those whose words are all in it, and which mean the same."""
    taken: set[str]


def _close(reads: Sequence[_Read]) -> _Close:
    """Compares only what shares its rarest word: what says the same in fewer words has none that the other lacks."""
    counts = Counter(word for read in reads for word in set(read.words))
    having: dict[str, list[_Read]] = defaultdict(list)
    for read in reads:
        for word in set(read.words):
            having[word].append(read)
    result = _Close({}, set())
    for short in sorted(reads, key=lambda read: len(read.words)):
        if short.record.embedding is None:
            continue
        rarest = min(short.words, key=lambda word: (counts[word], word))
        if counts[rarest] > _CROWDED:
            continue
        fits = [read for read in having[rarest] if read is not short and _says_as_much(read, short)]
        if fits and short.record.id not in result.into:
            best = max(fits, key=_standing)
            result.into.setdefault(best.record.id, []).append(short)
            result.taken.add(short.record.id)
    for ident in result.taken:
        result.into.pop(ident, None)
    return result


def _says_as_much(long: _Read, short: _Read) -> bool:
    a, b = long.record, short.record
    if long.guard != short.guard or len(long.words) <= len(short.words) or a.embedding_model != b.embedding_model:
        return False
    rest = iter(long.words)
    return all(word in rest for word in short.words) and _cosine(a, b) > _CLOSE


def _cosine(a: Record, b: Record) -> float:
    if a.embedding is None or b.embedding is None or len(a.embedding) != len(b.embedding):
        return -1.0
    import numpy as np

    left, right = np.frombuffer(a.embedding, "<f4"), np.frombuffer(b.embedding, "<f4")
    length = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / length if length else -1.0


def _guard(text: str, words: Sequence[str]) -> tuple[object, ...]:
    numbers = tuple(word for word in words if any(letter.isdigit() for letter in word))
    names = frozenset(word.casefold() for word in WORD.findall(text)[1:] if word[0].isupper())
    return numbers, names, len(NEGATION.findall(text))


def _standing(read: _Read) -> tuple[object, ...]:
    """Of those that say the same the one that stays: says most, and is the newest."""
    return len(read.words), read.record.created_at, read.record.id


def _alike(kept: Record, others: Sequence[Record], near: bool) -> Alike:
    if near:
        return "meaning"
    texts = {content_hash(record.text) for record in (kept, *others)}
    return "text" if len(texts) == 1 else "words"
