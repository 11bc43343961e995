"""Short ids: as short as people and models can tell them apart by, and read back from any beginning or end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from recollect.values.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from recollect.memory import Memory

FULL = 32
"""Characters of an id of ours."""
LEAST = 4
_ODDS = 10_000
_SHOWN = 100
_ALL_ENTRIES = 10_000
_LISTED = 4


def resolve(memory: Memory, short_id: str) -> str:
    """The id of the one memory that is meant, in whatever state."""
    return resolve_all(memory, [short_id])[0]


def resolve_all(memory: Memory, short_ids: Sequence[str]) -> list[str]:
    return [_resolved(memory, _plain(word)) for word in short_ids]


def _resolved(memory: Memory, word: str) -> str:
    """A whole id as it is: whether there is such a memory the verb says that it is for."""
    return word if len(word) == FULL else _only(word, _alike(memory, word), "id", "memory")


def _alike(memory: Memory, word: str) -> list[str]:
    """Ids that begin or end so; of those in capitals what is meant is the small letters."""
    try:
        exact = memory.ids_like(word, limit=_SHOWN)
        return exact if word == word.lower() or word in exact else memory.ids_like(word.lower(), limit=_SHOWN)
    except InputError:
        return []  # no id looks like that


def resolve_ever(memory: Memory, short_id: str) -> str:
    """As `resolve`, and memories that only the audit log still knows."""
    word = _plain(short_id)
    if len(word) == FULL:
        return word
    alike = _alike(memory, word)
    if word in alike:
        return word
    named = [ident for entry in memory.audit.search(limit=_ALL_ENTRIES) for ident in _named(entry.meta)]
    return _only(word, [*alike, *named], "id", "memory")


def resolve_change(memory: Memory, short_id: str) -> str:
    """The id of a change in the audit log."""
    word = _plain(short_id)
    if len(word) == FULL:
        return word
    return _only(word, [entry.id for entry in memory.audit.search(limit=_ALL_ENTRIES)], "change", "change")


def _plain(short_id: str) -> str:
    """A UUID may be written with hyphens and capitals; some stores have ids of their own, which are left alone."""
    bare = short_id.replace("-", "").lower()
    return bare if len(bare) == FULL else short_id


def _named(meta: dict[str, Any]) -> Iterable[str]:
    for key in ("created", "changed", "deleted", "removed", "restored"):
        yield from meta.get(key, [])


def _only(word: str, idents: Sequence[str], field: str, noun: str) -> str:
    if word in idents:
        return word
    if len(word) < LEAST:
        raise InputError(field, f"there is no {noun} {word!r}; of an id give at least {LEAST} characters")
    low = word.lower()
    matching = list(dict.fromkeys(ident for ident in idents if ident.startswith(low) or ident.endswith(low)))
    if not matching:
        raise NotFoundError(f"there is no {noun} {word[:40]!r} that this view can see")
    if len(matching) > 1:
        listed = ", ".join(matching[:_LISTED]) + (", …" if len(matching) > _LISTED else "")
        many = f"{len(matching):,} {'memories' if noun == 'memory' else f'{noun}s'}"
        raise InputError(field, f"{word!r} is the beginning or end of {many}: {listed}; give more of it")
    return matching[0]


def shortened(idents: Sequence[str], among: int) -> dict[str, str]:
    """The end of each id, which is random where its beginning is the time, as short as tells it from the others.

    Another of `among` that are not given has the same in one of ten thousand cases: `resolve` then asks for more.
    """
    length = LEAST
    while 16**length < among * _ODDS:
        length += 1
    return {ident: _end(ident, idents, length) for ident in idents}


def _end(ident: str, idents: Sequence[str], length: int) -> str:
    for size in range(length, FULL if len(ident) == FULL else 0):
        end = ident[-size:]
        if not any(other != ident and (other.startswith(end) or other.endswith(end)) for other in idents):
            return end
    return ident  # some stores have ids of their own, which are short
