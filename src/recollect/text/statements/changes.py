"""What a newer statement does to an older one: replaces it, ends it, perhaps changes it, or nothing."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from recollect.text.statements.claims import Read, english, read, spelled, value_of
from recollect.text.statements.contradicting import contradicts, names
from recollect.text.words import WORD, stem

Effect = Literal["replaces", "ends", "possible"]


class Change(NamedTuple):
    effect: Effect
    why: str


def change(old: str, new: str) -> Change | None:
    """What the newer text does to the older. Where nothing is sure, nothing, or `possible`."""
    a, b = read(old), read(new)
    if b.unsure or _asks(old) or _same_words(old, new):
        return None
    found = _by_claims(a, b) or _by_words(a, b) or _by_event(a, b)
    if found is None and contradicts(old, new):
        found = Change("replaces", "another value of the same")
    if found is not None and b.temporary and not _EVENT_WORDS(old):
        return None
    return found


def _asks(text: str) -> bool:
    return text.rstrip().endswith("?")


def _same_words(old: str, new: str) -> bool:
    return [word.lower() for word in WORD.findall(old)] == [word.lower() for word in WORD.findall(new)]


# The same slot of the same owner


def _by_claims(old: Read, new: Read) -> Change | None:
    for later in new.claims:
        for earlier in old.claims:
            if earlier.slot != later.slot or earlier.owner != later.owner or earlier.denied or earlier.ended:
                continue
            if later.ended:
                return Change("ends", f"no {later.slot} any more")
            shared = earlier.value & later.value
            if later.denied:
                if shared:
                    return Change("ends", f"the {later.slot} is denied")
                continue
            if not earlier.single or not earlier.value or not later.value:
                continue
            if earlier.value <= later.value or later.value <= earlier.value:
                continue
            return Change("replaces", f"another {later.slot}")
    return None


# Words that name the old value


def _by_words(old: Read, new: Read) -> Change | None:
    """The newer says that something is over, or gives way to something else, and the older is about that."""
    sentence = spelled(new.text)
    if not _same_person(old.text, new.text):
        return None
    changes = english().changes
    for pattern in _compiled(changes.from_to):
        if (match := pattern.search(sentence)) and _is_about(old.text, match["old"]):
            return Change("replaces", "the newer names the older value")
    for pattern in _compiled(changes.ended):
        if (match := pattern.search(sentence)) and _is_about(old.text, match["old"]):
            return Change("ends", "the newer says that it is over")
    return None


def _is_about(old: str, words: str) -> bool:
    """Whether all that is named is in the older statement."""
    named = value_of(words) - _VAGUE
    return bool(named) and named <= {stem(word) for word in WORD.findall(old.lower())}


_VAGUE = frozenset(
    map(stem, "it that this them one thing things stuff time day week year work job way bit lot".split())
)


def _same_person(old: str, new: str) -> bool:
    """Whether the same people are named in both, or none in one: "my sister" is not "I"."""
    return _people(new) <= _people(old)


_PEOPLE = re.compile(
    r"\b(?:my|his|her|their|our) (?:[\w-]+ )??(wife|husband|partner|son|daughter|sister|brother|mother|father|mum|mom|dad|"
    r"boss|manager|friend|colleague|coworker|cousin|aunt|uncle|girlfriend|boyfriend|neighbou?r|roommate|flatmate|parents|"
    r"kids?|children|grandmother|grandfather|grandma|grandpa|niece|nephew|team ?mate|ex)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def _people(text: str) -> frozenset[str]:
    return frozenset(match[1].lower() for match in _PEOPLE.finditer(text))


# Events

_TIME = re.compile(
    r"\b(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b"
    r"|\b(?P<month>january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b(?P<clock>\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock)|\d{1,2}:\d\d|(?<=\bat )\d{1,2}(?![\d%€$])|noon|midday|midnight)\b"
    r"|\b(?P<date>(?:the )?\d{1,2}(?:st|nd|rd|th)|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2})\b"
    r"|\b(?P<daypart>tomorrow|tonight|today|next week|next month|next year|in the (?:morning|afternoon|evening))\b",
    re.IGNORECASE,
)


@cache
def _event_nouns() -> frozenset[str]:
    return frozenset(stem(word) for word in english().events.noun.split())


def _EVENT_WORDS(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in WORD.findall(text.lower())) & _event_nouns()


def _times(text: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for match in _TIME.finditer(text):
        assert match.lastgroup is not None
        found.setdefault(match.lastgroup, set()).add(match[0].lower().removeprefix("the ").rstrip("s"))
    return {kind: frozenset(values) for kind, values in found.items()}


def _by_event(old: Read, new: Read) -> Change | None:
    """An appointment, release or trip that is called off or put at another time."""
    then, now = _times(spelled(old.text)), _times(spelled(new.text))
    sentence = spelled(new.text)
    if not _same_event(old.text, new.text):
        return None
    if re.search(english().events.called_off, sentence, re.IGNORECASE):
        return Change("ends", "it was called off")
    moved = any(now[kind] != then[kind] for kind in now.keys() & then.keys())
    if not moved and not (then and now and not now.keys() & then.keys()):
        return None
    if re.search(english().changes.cue, sentence, re.IGNORECASE):
        return Change("replaces", "another time of the same")
    return Change("possible", "perhaps another time of the same") if moved else None


def _same_event(old: str, new: str) -> bool:
    before, after = _EVENT_WORDS(old), _EVENT_WORDS(new)
    who = {name.lower() for name in names(old)} - _CALENDAR
    whom = {name.lower() for name in names(new)} - _CALENDAR
    if whom - who and who:
        return False
    if before & after:
        return not (who - whom and whom - who)
    return bool(before and not after and who & whom)


_CALENDAR = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december""".split()
)


@cache
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(rf"\b(?:{pattern})", re.IGNORECASE) for pattern in patterns)
