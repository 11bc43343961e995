"""Which memory contradicts an older one about the same thing. Where it is not sure, it says no.

Two plain statements contradict if they say the same of the same subject in the same words, but with another value of
the same sort ("The limit is 100", "The limit is 250"), and if what they say can have one value only. Or if one denies
the other. That is read off the words, in English; in other languages nothing is found. What may be an addition, a
question, a supposition, hearsay or of another time never counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.maintenance.steps import Plan, Step
from recollect.text.words import NEGATION, stem
from recollect.values.record import Record, storing_order

_LONGEST = 16
"""Words. Longer statements say more than one thing."""
_CROWDED = 12
"""More statements of one form than this are a series, such as readings, and each stands for itself."""
_MOST_VALUE = 3

_UNSURE = frozenset(
    """if unless maybe perhaps might could would should suppose supposing whether said says think thinks thought believe
    believes asked asks guess probably possibly was were had did used been will also too another other others and or
    but plus both besides additionally sometimes often usually once yesterday tomorrow today ago last next""".split()
)
"""Words by which a statement is no plain one about now."""
_ADDS = re.compile(r"\bas well\b|\bin addition\b|\?|\bmay be\b|;|\n", re.IGNORECASE)

_FRAMES = sorted(
    (
        tuple(frame.split())
        for frame in (
            "is|are|am|is called|is named|is in|are in|is based in|is located in|is on|is on the|is at|is due on|"
            "is due|is hosted on|is hosted at|is written in|is planned for|is scheduled for|is booked by|"
            "is owned by|is led by|live in|lives in|sit in|sits in|"
            "work at|works at|work for|works for|work at a|works at a|report to|"
            "reports to|play for|plays for|drive a|drives a|drives an|belongs to|ends in|ends on|ends at|leaves at|"
            "opens at|closes at|starts at|starts on|begins at|runs at|weigh|weighs|cost|costs|has|have|takes|lasts|"
            "prefer|prefers|want|wants|uses|uses the|use the|prefers the"
        ).split("|")
    ),
    key=len,
    reverse=True,
)
"""What stands between a subject and a value that it has one of. Longer ones first."""
_OPEN = frozenset({("has",), ("have",), ("prefer",), ("prefers",), ("want",), ("wants",), ("uses",), ("takes",)})
"""Frames that many values can have: only an amount or a choice between opposites replaces another there."""
_COPULAS = frozenset({("is",), ("are",), ("am",)})
_DEFINITE = frozenset("the my our your his her their its".split())
_BROAD = frozenset(
    """europe asia africa america germany france spain italy austria switzerland portugal england scotland ireland
    britain poland norway sweden denmark finland greece turkey russia ukraine india china japan canada mexico brazil
    argentina australia usa uk netherlands belgium hungary romania bavaria texas california""".split()
)
"""Places that others lie in: living in Berlin and in Germany is no contradiction."""
_SORTS = {
    "weekday": "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays",
    "month": "january february march april may june july august september october november december",
    "colour": "red green blue yellow orange black white grey gray brown purple pink violet",
    "ordinal": "first second third fourth fifth sixth seventh eighth ninth tenth",
    "frequency": "hourly daily weekly monthly quarterly yearly",
}
_OPPOSITES = """on/off open/closed enabled/disabled allowed/forbidden active/inactive available/unavailable
public/private true/false like/dislike likes/dislikes love/hate loves/hates dark/light tabs/spaces online/offline
locked/unlocked paid/unpaid required/optional visible/hidden valid/invalid"""
_SORT_OF = {word: sort for sort, words in _SORTS.items() for word in words.split()}
_PAIRS = [(one, other) for one, _, other in (pair.partition("/") for pair in _OPPOSITES.split())]
_OPPOSITE_OF = dict(_PAIRS) | {other: one for one, other in _PAIRS}
_NUMBER = re.compile(r"[#€$£]?\d[\d.,:/x-]*[%€$]?", re.IGNORECASE)
_WORD_END = ".,!:\"'()"
_AUXILIARIES = frozenset("do does".split())
_NEVER = frozenset("not never no longer".split())


class _Said(NamedTuple):
    words: tuple[str, ...]
    """As they are written."""
    lower: tuple[str, ...]
    frame: tuple[str, ...]
    subject: tuple[str, ...]
    value: tuple[str, ...]


def contradicts(old: str, new: str) -> bool:
    """Whether what the newer text says cannot be so while the older is."""
    a, b = _read(old), _read(new)
    if a is None or b is None or a.lower == b.lower:
        return False
    return _denies(a, b) or _opposite(a, b) or _another_value(a, b)


def plan(records: Sequence[Record]) -> Plan:
    """What newer memories of the same address, tier and kind supersede. Turns of a conversation are left alone."""
    groups: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for record in records:
        if record.role is None and (said := _read(record.text)) is not None:
            for key in _keys(said):
                groups[record.address, record.tier, record.kind, key].append(record)
    gone: dict[str, Step] = {}
    for members in groups.values():
        if not 1 < len(members) <= _CROWDED:
            continue
        members.sort(key=lambda record: (record.created_at, storing_order(record.id)), reverse=True)
        for at, new in enumerate(members):
            for old in members[at + 1 :]:
                if new.id in gone or old.id in gone or old.created_at >= new.created_at:
                    continue
                if contradicts(old.text, new.text):
                    gone[old.id] = Step(old.id, "supersede", "a newer memory says otherwise of the same", new.id)
    stays = gone.keys()
    return Plan(tuple([step for step in gone.values() if step.by not in stays]))


def _keys(said: _Said) -> Iterator[tuple[str, ...]]:
    """What two that contradict have in common: the subject with its frame, or all but the denial."""
    if said.frame:
        yield (*said.subject, *said.frame)
    yield _bare(said)
    for at, word in enumerate(said.lower):
        if word in _OPPOSITE_OF:
            yield (*said.lower[:at], "*", *said.lower[at + 1 :])


def _read(text: str) -> _Said | None:
    """A plain statement; None for what is none."""
    text = text.strip()
    if len(text) > 200 or _ADDS.search(text) or ". " in text:
        return None
    words = tuple(word for word in (word.strip(_WORD_END) for word in text.split()) if word)
    lower = tuple(word.lower().replace("’", "'") for word in words)
    if not 2 <= len(words) <= _LONGEST or any(word in _UNSURE for word in lower):
        return None
    for at in range(1, len(lower)):
        for frame in _FRAMES:
            if lower[at : at + len(frame)] == frame:
                return _Said(words, lower, frame, lower[:at], words[at + len(frame) :])
    return _Said(words, lower, (), lower, ())


def _denies(a: _Said, b: _Said) -> bool:
    """Whether they are the same but for one negation."""
    text_a, text_b = " ".join(a.words), " ".join(b.words)
    return len(NEGATION.findall(text_a)) + len(NEGATION.findall(text_b)) == 1 and _bare(a) == _bare(b)


def _bare(said: _Said) -> tuple[str, ...]:
    plain = (word.removesuffix("n't") for word in said.lower)
    return tuple(stem(word) for word in plain if word not in _NEVER and word not in _AUXILIARIES)


def _opposite(a: _Said, b: _Said) -> bool:
    """Whether they differ in one word and its reverse."""
    if len(a.lower) != len(b.lower):
        return False
    differ = [(one, other) for one, other in zip(a.lower, b.lower, strict=True) if one != other]
    return len(differ) == 1 and _OPPOSITE_OF.get(differ[0][0]) == differ[0][1]


def _another_value(a: _Said, b: _Said) -> bool:
    if not a.frame or (a.subject, a.frame) != (b.subject, b.frame) or not (a.value and b.value):
        return False
    one, other, rest = _differing(a.value, b.value)
    if not one or not other or max(len(one), len(other)) > _MOST_VALUE:
        return False
    sort, shared = _sort(one), len(a.value) - len(one) - len(rest)
    if not sort or sort != _sort(other) or (a.frame in _COPULAS and shared > (sort == "number")):
        return False  # "is sold in Paris" and "is sold in Lyon" are both true
    if sort == "number":
        return True
    if a.frame in _OPEN:
        return sort == "frequency" and bool(rest)
    if sort in ("name", "noun"):
        return _single(a, sort, one, other, rest)
    return True


def _single(said: _Said, sort: str, one: Sequence[str], other: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether there can be one only of what is told by names or plain nouns."""
    if {word.lower() for word in (*one, *other)} & _BROAD:
        return False
    if said.frame in (("uses", "the"), ("use", "the"), ("prefers", "the")):
        return len(one) == len(other) == len(rest) == 1
    if sort == "noun":
        return said.frame in (("work", "at", "a"), ("works", "at", "a")) and not rest
    definite = said.subject[0] in _DEFINITE or any(word.endswith("'s") for word in said.subject)
    return definite or said.frame not in _COPULAS | {("is", "on"), ("is", "on", "the")}


def _differing(a: Sequence[str], b: Sequence[str]) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """The part of each that the other has not, and the words behind it that both have."""
    start, end = 0, 0
    while start < min(len(a), len(b)) and a[start].lower() == b[start].lower():
        start += 1
    while end < min(len(a), len(b)) - start and a[-1 - end].lower() == b[-1 - end].lower():
        end += 1
    return a[start : len(a) - end], b[start : len(b) - end], a[len(a) - end :]


def _sort(value: Sequence[str]) -> str:
    """What sort of value it is; empty where it is mixed or a word like any other."""
    sorts = {_sort_of(word) for word in value}
    if sorts == {"number", "month"}:
        return "date"
    if sorts == {"colour", "name"}:
        return "name"
    if len(sorts) > 1 and not sorts <= {"name", "number"}:
        return ""
    return "name" if len(sorts) > 1 else sorts.pop()


def _sort_of(word: str) -> str:
    if _NUMBER.fullmatch(word):
        return "number"
    if found := _SORT_OF.get(word.lower()):
        return found
    named = word[:1].isupper() or "@" in word or any(letter.isdigit() for letter in word)
    return "name" if named else "noun"
