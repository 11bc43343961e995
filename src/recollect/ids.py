"""Ids as people and models give them: whole, or any beginning or end that only one id has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from recollect.errors import InputError, NotFoundError
from recollect.text.short import FULL, LEAST

if TYPE_CHECKING:
    from recollect.memory import Memory

_EVERYTHING = 1_000_000
_ALL_ENTRIES = 10_000
_LISTED = 4


def resolve(memory: Memory, given: str) -> str:
    """The id of the one memory that is meant, in whatever state."""
    return resolve_all(memory, [given])[0]


def resolve_all(memory: Memory, given: Sequence[str]) -> list[str]:
    words = [_plain(word) for word in given]
    if all(len(word) == FULL or _is_there(memory, word) for word in words):
        return words
    known = [record.id for record in memory.list(state=None, limit=_EVERYTHING)]
    return [_only(word, known, "id", "memory") for word in words]


def _is_there(memory: Memory, word: str) -> bool:
    """Some stores have ids of their own, which are short."""
    try:
        memory.get(word)
    except (InputError, NotFoundError):
        return False
    return True


def resolve_ever(memory: Memory, given: str) -> str:
    """As `resolve`, and memories that only the audit log still knows."""
    word = _plain(given)
    if len(word) == FULL:
        return word
    known = [record.id for record in memory.list(state=None, limit=_EVERYTHING)]
    named = [ident for entry in memory.audit.search(limit=_ALL_ENTRIES) for ident in _named(entry.meta)]
    return _only(word, [*known, *named], "id", "memory")


def resolve_change(memory: Memory, given: str) -> str:
    """The id of a change in the audit log."""
    word = _plain(given)
    if len(word) == FULL:
        return word
    return _only(word, [entry.id for entry in memory.audit.search(limit=_ALL_ENTRIES)], "change", "change")


def _plain(given: str) -> str:
    """A UUID may be written with hyphens and capitals; some stores have ids of their own, which are left alone."""
    bare = given.replace("-", "").lower()
    return bare if len(bare) == FULL else given


def _named(meta: dict[str, Any]) -> Iterable[str]:
    for key in ("created", "changed", "deleted", "removed", "restored"):
        yield from meta.get(key, [])


def _only(word: str, known: Sequence[str], field: str, noun: str) -> str:
    if word in known:
        return word
    if len(word) < LEAST:
        raise InputError(field, f"there is no {noun} {word!r}; of an id give at least {LEAST} characters")
    low = word.lower()
    found = list(dict.fromkeys(ident for ident in known if ident.startswith(low) or ident.endswith(low)))
    if not found:
        raise NotFoundError(f"there is no {noun} {word[:40]!r} that this view can see")
    if len(found) > 1:
        listed = ", ".join(found[:_LISTED]) + (", …" if len(found) > _LISTED else "")
        many = f"{len(found):,} {'memories' if noun == 'memory' else f'{noun}s'}"
        raise InputError(field, f"{word!r} is the beginning or end of {many}: {listed}; give more of it")
    return found[0]
