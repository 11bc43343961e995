"""The verb `profile`: what current statements say of the user, or of somebody else, as a few short lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from recollect.runtime import imports
from recollect.text.fence import inside
from recollect.text.languages import codes, language
from recollect.text.query import TextQuery
from recollect.text.short_ids import shortened
from recollect.text.statements.claims import ME, Claim, read
from recollect.text.terms import index_entries
from recollect.text.words import stem
from recollect.values import validation
from recollect.values.filters import PRIVATE_KINDS, Filter
from recollect.values.record import Record, moved, storing_order
from recollect.view import View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.stores.shortlist import Shortlist

_MOST_LINES = 20
_MOST_CHARACTERS = 1200
_MOST_OF_SLOT = 5
"""So many lines of a slot that has several values, such as allergies."""
_LONGEST_LINE = 200
"""Characters of a memory that are shown in the text."""
_LONGEST_STATEMENT = 500
"""Longer memories are documents, and no statements about somebody."""
_LONGEST_SUBJECT = 200
_ROUNDS = (24, 120)
"""So many of the newest memories with the words of a slot are read, and so many if those do not tell its value."""
_OTHERS = 30
"""So many of these may say neither "I" nor "my": "Allergic to nuts"."""
_ME_WORDS = tuple(
    """i im my me we our ich bin mein meine mich mir wir unser unsere je j mon ma mes moi nous yo mi mis soy vivo
trabajo llamo nací cumplo""".split()
)
"""They come first in a search for statements, because it has room for so many words only."""
_AMONG = 400_000
"""As if there were so many memories: ids of eight characters, whatever else is stored, so that the text stays."""
_TURN = "conversation"


class ProfileLine(msgspec.Struct, frozen=True):
    slot: str
    """What the memory tells, such as `employer`."""
    label: str
    """The same for readers, such as `work`."""
    text: str
    """The memory as it is stored."""
    id: str
    """Of the memory."""
    since: datetime
    """Since when it is so, as far as is known: when the memory was stored, where it does not say."""


class PersonProfile(msgspec.Struct, frozen=True):
    """What current statements say of somebody. The same as long as none of these statements changes."""

    subject: str | None
    """The name; None for the user."""
    lines: tuple[ProfileLine, ...]
    text: str
    """A line for each, with the short id of its memory, for a prompt."""

    def __str__(self) -> str:
        return self.text


class _ProfileSlot(NamedTuple):
    label: str
    words: str = ""
    """By which its statements are found, where the slot has no words of its own in the languages."""


_LEAVES = "quit left fired laid retired unemployed resigned gekündigt entlassen gefeuert arbeitslos rente"
_SLOTS: dict[str, _ProfileSlot] = {
    "name": _ProfileSlot("name"),
    "age": _ProfileSlot("age"),
    "birthday": _ProfileSlot("birthday"),
    "home": _ProfileSlot("home"),
    "employer": _ProfileSlot("work", _LEAVES),
    "occupation": _ProfileSlot("work"),
    "school": _ProfileSlot("studies"),
    "studies": _ProfileSlot("studies"),
    "relationship": _ProfileSlot("family"),
    "partner": _ProfileSlot("family"),
    "diet": _ProfileSlot("diet"),
    "allergy": _ProfileSlot("allergies"),
    "smoking": _ProfileSlot("health"),
    "drinking": _ProfileSlot("health"),
    "setting native language": _ProfileSlot("language", "native language"),
    "setting mother tongue": _ProfileSlot("language", "mother tongue"),
    "setting time zone": _ProfileSlot("time zone", "time zone timezone"),
    "answer_language": _ProfileSlot("answers"),
    "answer_length": _ProfileSlot("answers"),
    "answer_form": _ProfileSlot("answers"),
}
"""What a profile has, in its order. Addresses, numbers and prices are left to recall: few answers need them."""


_ORDERS = {"answer_language", "answer_length", "answer_form"}
"""Told as an order, without "I" or "my"."""


def profile(view: View, subject: str | None = None, without_tags: Iterable[str] | None = None) -> PersonProfile:
    """The newest current statement of each slot. Reads a bounded number of memories, however many there are."""
    name = None if subject is None else _checked(subject)
    now = view.now()
    where = view.narrowed("live", {"without_tags": without_tags, "valid_at": now})
    asked = where.seen_from, where.hides_private, where.without_tags, name
    state = [view.store.written(place) for place in view.places]
    made_before = view.cache("profile")
    if (before := made_before.get(asked)) and before.state == state and before.at <= now < before.until:
        return before.profile
    made, ends = _read(view, where, name)
    if len(made_before) >= _MOST_KEPT:
        made_before.clear()
    made_before[asked] = _MadeBefore(state, now, min([*ends, moved(now, _STAYS)]), made)
    return made


class _MadeBefore(NamedTuple):
    """A profile, and while it is the same: nothing was written since, and nothing of it has ended."""

    state: list[int]
    at: datetime
    until: datetime
    profile: PersonProfile


_MOST_KEPT = 1000
_STAYS = timedelta(minutes=1)
"""What begins to be valid later shows up after so long."""


def _read(view: View, where: Filter, name: str | None) -> tuple[PersonProfile, list[datetime]]:
    """The profile, and when memories of it end."""
    kinds = [kind for (kind,) in view.store.count(where, ("kind",)) if kind not in (_TURN, *PRIVATE_KINDS)]
    if not kinds:
        return PersonProfile(name, (), ""), []
    imports.load("recollect.stores.shortlist")
    search = _StatementSearch(view, msgspec.structs.replace(where, kinds=tuple(sorted(kinds))), name)
    lines: dict[str, ProfileLine] = {}
    ends: list[datetime] = []
    for slot, records in search.current().items():
        for record in records:
            since = record.valid_from or record.created_at
            ends += [end for end in (record.expires_at, record.valid_until) if end is not None]
            lines.setdefault(record.id, ProfileLine(slot, _SLOTS[slot].label, record.text, record.id, since))
    return _fitted(name, list(lines.values())[:_MOST_LINES]), ends


def _checked(subject: str) -> str:
    name = " ".join(validation.query(subject, "subject").replace('"', " ").split())
    return validation.label(name, "subject", _LONGEST_SUBJECT)


def _fitted(name: str | None, lines: list[ProfileLine]) -> PersonProfile:
    """With as many lines as have room."""
    texts = line_texts(lines)
    while sum(len(text) + 1 for text in texts) > _MOST_CHARACTERS:
        texts.pop()
    return PersonProfile(name, tuple(lines[: len(texts)]), "\n".join(texts))


def line_texts(lines: Sequence[ProfileLine], ids: bool = True) -> list[str]:
    """The lines as a prompt has them: of a long memory its beginning only."""
    short = shortened([line.id for line in lines], _AMONG)
    texts = [inside(line.text) for line in lines]
    texts = [text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 2].rstrip()} …" for text in texts]
    return [
        f"- ({short[line.id]} {line.label}) {text}" if ids else f"- ({line.label}) {text}"
        for line, text in zip(lines, texts, strict=True)
    ]


class _StatementSearch:
    """Looks for the statements of all slots together, so that each memory is read once."""

    def __init__(self, view: View, where: Filter, name: str | None) -> None:
        self._view = view
        self._where = where
        self._name = name
        self._read: dict[str, Record] = {}

    def current(self) -> dict[str, list[Record]]:
        """The memories that tell what is so now, by slot, in the order of the slots."""
        newest = self._candidates()
        current: dict[str, list[Record]] = {}
        for most in _ROUNDS:
            unknown = [slot for slot in _SLOTS if not current.get(slot)]
            self._load(ident for slot in unknown for ident in newest[slot][:most])
            claims = self._claims()
            for slot in unknown:
                # Further back than it was looked for, a newer statement may have been missed.
                last = self._read.get(newest[slot][most - 1]) if len(newest[slot]) >= most else None
                pairs = claims.get(slot, ())
                current[slot] = _holding(pair for pair in pairs if last is None or _age(pair[0]) >= _age(last))
        return {slot: current[slot] for slot in _SLOTS}

    def _candidates(self) -> Mapping[str, Sequence[str]]:
        """The newest memories that may tell a slot, newest first: by its words, or all that name the person."""
        if self._name is not None:
            named = self._newest(TextQuery(phrases=(self._name,)), False)
            return dict.fromkeys(_SLOTS, named)
        return {slot: self._newest(TextQuery(_words(slot)), slot not in _ORDERS) for slot in _SLOTS}

    def _newest(self, words: TextQuery, of_me: bool) -> list[str]:
        """Their ids, newest first. `of_me` is whether most of what is looked for says "I" or "my"."""
        from recollect.stores.shortlist import Ask

        asked = TextQuery((*_ME_WORDS, *words.words)) if of_me else words

        newest: list[tuple[int, Any, str]] = []
        for shortlist in self._view.store.search(Ask(self._where, asked, each=_ROUNDS[-1], around=0)):
            ids, created = shortlist.block.ids, shortlist.block.created
            positions = _newest_positions(shortlist, words, of_me)
            newest += [(int(created[at]), storing_order(ids[at]), ids[at]) for at in positions]
        return [ident for *_, ident in sorted(newest, reverse=True)[: _ROUNDS[-1]]]

    def _load(self, candidates: Iterable[str]) -> None:
        """Read what is not read yet."""
        ids = list(dict.fromkeys(ident for ident in candidates if ident not in self._read))
        if ids:
            matches = self._where.matcher()
            self._read |= {record.id: record for record in self._view.get(ids) if matches(record)}

    def _claims(self) -> dict[str, list[tuple[Record, Claim]]]:
        """What the memories say of the person, by slot, newest first."""
        claims: dict[str, list[tuple[Record, Claim]]] = {}
        for record in sorted(self._read.values(), key=_age, reverse=True):
            if not self._may_tell(record):
                continue
            statement = read(record.text)
            if statement.unsure or statement.temporary:
                continue
            for claim in statement.claims:
                slot = _slot_of(claim)
                if slot is not None and self._is_about(claim, record.text):
                    claims.setdefault(slot, []).append((record, claim))
        return claims

    def _may_tell(self, record: Record) -> bool:
        """Whether the user says it, or nobody in particular. "I" is this view's account, and nobody else."""
        if record.role not in (None, "user"):
            return False
        return self._name is not None or record.address.account == self._view.address.account

    def _is_about(self, claim: Claim, text: str) -> bool:
        if self._name is None:
            return claim.owner == ME
        name = self._name.lower()
        if name.startswith("my "):
            return claim.owner == "my " + " ".join(map(stem, name.split()[1:]))
        # "Mara Keller" is Mara; "mara cat" is her cat, of which the text has no capital.
        return claim.owner == name or (claim.owner.startswith(f"{name} ") and claim.owner.title() in text)


def _age(record: Record) -> tuple[datetime, Any]:
    return record.created_at, storing_order(record.id)


def _newest_positions(shortlist: Shortlist, words: TextQuery, of_me: bool) -> list[int]:
    """Of what has a word of the slot, or every phrase. What says "I" or "my" comes first: it is of the user."""
    import numpy as np

    block, seen = shortlist.block, shortlist.seen.mask
    may_tell = seen & (block.length <= _LONGEST_STATEMENT)
    if words.words:
        may_tell &= _having(shortlist, words.words)
    groups = [(may_tell, _ROUNDS[-1])]
    if of_me:
        says_me = _having(shortlist, _ME_WORDS)
        groups = [(may_tell & says_me, _ROUNDS[-1] - _OTHERS), (may_tell & ~says_me, _OTHERS)]
    newest: list[int] = []
    for mask, most in groups:
        at = np.flatnonzero(mask)
        newest += at[np.argsort(block.created[at], kind="stable")[::-1][:most]].tolist()
    return newest


def _having(shortlist: Shortlist, words: Sequence[str]) -> NDArray[np.bool_]:
    """Which memories have one of these words, of those that were looked for."""
    import numpy as np

    has = np.zeros(len(shortlist.seen.mask), np.bool_)
    for entry in index_entries(TextQuery(tuple(words))):
        if (positions := shortlist.words.get(entry)) is not None:
            has[positions] = True
    return has


@cache
def _words(slot: str) -> tuple[str, ...]:
    """The words of a slot in all languages."""
    own = " ".join(slots[slot].words for slots in (language(code).slots for code in codes()) if slot in slots)
    return tuple(dict.fromkeys(f"{_SLOTS[slot].words} {own}".split()))


@cache
def _stored_slots() -> dict[str, str]:
    """Slots by how claims call them: of "setting" they name the thing, as its stem."""
    return {" ".join([first, stem(rest)]) if rest else first: slot
            for slot in _SLOTS for first, _, rest in [slot.partition(" ")]}  # fmt: skip


def _slot_of(claim: Claim) -> str | None:
    return _stored_slots().get(claim.slot)


def _holding(claims: Iterable[tuple[Record, Claim]]) -> list[Record]:
    """Of the claims of one slot, newest first, the memories of those that hold now."""
    return list(_current(claims))[:_MOST_OF_SLOT]


def _current(claims: Iterable[tuple[Record, Claim]]) -> Iterator[Record]:
    denied: set[str] = set()
    values: list[frozenset[str]] = []
    for record, claim in claims:
        if claim.ended:
            return
        if claim.denied:
            denied |= claim.value
        elif claim.single:
            # Where the newest value was denied since, nobody knows the value: an older one was over before it.
            if not claim.value & denied:
                yield record
            return
        elif not claim.value & denied and not any(claim.value <= value for value in values):
            values.append(claim.value)
            yield record
