"""What a newer statement does to an older one: replaces it, ends it, perhaps changes it, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from recollect.text.languages.detection import UNKNOWN, language_of
from recollect.text.late_pattern import LatePattern
from recollect.text.statements.alike import has_frame, other_value
from recollect.text.statements.claims import NOT_NAMES, ReadStatement, english, read, spelled, value_of
from recollect.text.statements.contradicting import BROAD, EMPTY, contradicts, names
from recollect.text.words import WORD, stem

Effect = Literal["replaces", "ends", "possible"]


class StatementChange(NamedTuple):
    effect: Effect
    why: str


def change(old: str, new: str) -> StatementChange | None:
    """What the newer text does to the older. Where nothing is sure, nothing, or `possible`."""
    if not _comparable(old, new):
        return None
    why = other_value(old, new) or ("another value of the same" if contradicts(old, new) else "")
    return _whole(StatementChange("replaces", why), old, new) if why else in_other_words(old, new)


@lru_cache(maxsize=8192)
def in_other_words(old: str, new: str) -> StatementChange | None:
    """The same, for statements that are not of the same form."""
    if not _comparable(old, new):
        return None
    a, b = read(old), read(new)
    change_read = _by_claims(a, b) or _by_words(a, b) or _by_event(a, b) or _possible(a, b)
    return _whole(change_read, old, new) if change_read is not None else None


def _comparable(old: str, new: str) -> bool:
    if read(old).unsure or read(new).unsure or _ADDS.search(new) or old.rstrip().endswith("?"):
        return False
    return _words(old) != _words(new)


def _whole(change_read: StatementChange, old: str, new: str) -> StatementChange | None:
    """The change, where all of the older statement is over with it, and for good."""
    a, b = read(old), read(new)
    if b.temporary and not _event_words(old):
        return None
    if change_read.effect != "possible" and (_says_more(a, b) or _is_foreign(new)):
        return StatementChange("possible", f"{change_read.why}, and the older says more than that")
    return change_read


def _words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


@lru_cache(maxsize=8192)
def asks(text: str) -> str:
    """The words by which older statements are found that this one may change; nothing where it can change none."""
    statement = read(text)
    if statement.unsure:
        return ""
    sentence = spelled(text)
    slots = [english().slots[claim.slot.partition(" ")[0]].words for claim in statement.claims]
    changes = english().changes
    tells = any(pattern.search(sentence) for pattern in _compiled((*changes.from_to, *changes.ended)))
    if (
        slots
        or tells
        or has_frame(text)
        or _cue().search(sentence)
        or _event_words(text)
        or any(map(str.isdigit, text))
    ):
        return " ".join(dict.fromkeys(f"{text} {' '.join(slots)}".split()))
    return ""


# The same slot of the same owner


def _by_claims(old: ReadStatement, new: ReadStatement) -> StatementChange | None:
    for later in new.claims:
        for earlier in old.claims:
            if earlier.slot != later.slot or earlier.owner != later.owner or earlier.denied or earlier.ended:
                continue
            if later.ended:
                return StatementChange("ends", f"no {later.slot} any more")
            if later.denied:
                if earlier.value & later.value:
                    return StatementChange("ends", f"the {later.slot} is denied")
                continue
            if not earlier.single or earlier.value <= later.value or later.value <= earlier.value:
                continue
            if (earlier.value | later.value) & _broad():
                return StatementChange("possible", f"perhaps another {later.slot}")
            return StatementChange("replaces", f"another {later.slot}")
    return None


def _says_more(old: ReadStatement, new: ReadStatement) -> bool:
    """Whether the older tells something besides that would be lost with it."""
    if {claim.slot for claim in old.claims} - {claim.slot for claim in new.claims} - _GO_ALONG:
        return True
    shared = {claim.slot for claim in old.claims} & {claim.slot for claim in new.claims}
    values = {word for claim in old.claims for word in claim.value}
    plain = frozenset(map(stem, _words(" ".join(_words_of(shared)))))
    others = {stem(word) for word in _words(old.text) if len(word) > _MORE and word not in EMPTY} - values - plain
    return bool(shared) and len(others) > _MORE


_MORE = 2
"""So many other words, longer than so many letters, may be lost with what is over."""


def _words_of(slots: Iterable[str]) -> list[str]:
    return [
        english().slots[slot.partition(" ")[0]].words for slot in slots if slot.partition(" ")[0] in english().slots
    ]


def _is_foreign(text: str) -> bool:
    """Other languages are read less surely than English."""
    return language_of(text) not in ("en", UNKNOWN)


_GO_ALONG = frozenset({"employer", "occupation", "tool"})
"""Who has another employer has another job."""


@cache
def _broad() -> frozenset[str]:
    return frozenset(map(stem, BROAD))


# Words that name the old value


def _by_words(old: ReadStatement, new: ReadStatement) -> StatementChange | None:
    """The newer says that something is over, or gives way to something else, and the older is about that."""
    sentence = spelled(new.text)
    if not _people(new.text) <= _people(old.text):
        return None
    changes = english().changes
    ways: tuple[tuple[Effect, tuple[str, ...]], ...] = (("replaces", changes.from_to), ("ends", changes.ended))
    for effect, patterns in ways:
        for pattern in _compiled(patterns):
            for match in pattern.finditer(sentence):
                if _is_about(old.text, match["old"], sentence, match.start("old")):
                    return StatementChange(effect, "the newer names what is over")
    return None


def _is_about(old: str, words: str, sentence: str, at: int) -> bool:
    """Whether all that is named is in the older statement, and nobody else does it."""
    named = value_of(words) - _VAGUE
    called = frozenset(map(stem, _called(words)))
    if called and not any(map(str.isdigit, words)):
        named = called
    stems_of_old = {stem(word) for word in WORD.findall(spelled(old).lower())}
    if not named or not named <= stems_of_old:
        return False
    others = _called(sentence[:at])
    return all(stem(name) in stems_of_old for name in others)


_VAGUE = frozenset(
    map(
        stem,
        "it that this them one thing things stuff time day week year work job way bit lot going to no more".split(),
    )
)

_PEOPLE = LatePattern(
    r"\b(?:my|his|her|their|our|a|the) (?:[\w-]+ )??(wife|husband|partner|son|daughter|sister|brother|mother|"
    r"father|mum|mom|dad|"
    r"boss|manager|friend|colleague|coworker|cousin|aunt|uncle|girlfriend|boyfriend|neighbou?r|roommate|flatmate|"
    r"parents|"
    r"kids?|children|grandmother|grandfather|grandma|grandpa|niece|nephew|team ?mate|ex|boy|girl|mate)\b",
    re.IGNORECASE,
)


def _called(text: str) -> frozenset[str]:
    """The names in it. Its first word may be one, too."""
    return frozenset(name.lower() for name in names(f"x {text}")) - _CALENDAR - NOT_NAMES


@lru_cache(maxsize=4096)
def _people(text: str) -> frozenset[str]:
    return frozenset(match[1].lower() for match in _PEOPLE.finditer(text))


# Events

_TIME = LatePattern(
    r"\b(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tue|tues|wed|thu|thurs|fri|sat|sun)s?\b"
    r"|\b(?P<month>january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b(?P<clock>\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock)|\d{1,2}:\d\d|(?<=\bat )\d{1,2}(?![\d%€$])|noon|midday|"
    r"midnight)\b"
    r"|\b(?P<date>(?:the )?\d{1,2}(?:st|nd|rd|th)|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2})\b"
    r"|\b(?P<daypart>tomorrow|tonight|today|next week|next month|next year|in the (?:morning|afternoon|evening))\b",
    re.IGNORECASE,
)
_CALENDAR = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december""".split()
)


@cache
def _event_nouns() -> frozenset[str]:
    return frozenset(stem(word) for word in english().events.noun.split())


def _event_words(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in WORD.findall(text.lower())) & _event_nouns()


def _times(text: str) -> dict[str, frozenset[str]]:
    times: dict[str, set[str]] = {}
    for match in _TIME.finditer(text):
        kind = match.lastgroup or ""
        value = match[0].lower().removeprefix("the ")
        times.setdefault(kind, set()).add(value[:3] if kind == "weekday" else value)
    return {kind: frozenset(values) for kind, values in times.items()}


def _by_event(old: ReadStatement, new: ReadStatement) -> StatementChange | None:
    """An appointment, release or trip that is called off or put at another time."""
    if not _same_event(old.text, new.text) or _people(old.text) != _people(new.text):
        return None
    sentence = spelled(new.text)
    if _called_off().search(sentence):
        return StatementChange("ends", "it was called off")
    then, now = _times(spelled(old.text)), _times(sentence)
    shared = now.keys() & then.keys()
    if not then or not now or any(now[kind] == then[kind] for kind in shared & {"weekday", "date"}):
        return None
    if _puts_off().search(sentence):
        return StatementChange("replaces", "another time of the same")
    if any(now[kind] != then[kind] for kind in shared) and _same_thing(old.text, new.text):
        return StatementChange("possible", "perhaps another time of the same")
    return None


_ADDS = LatePattern(
    r"\b(?:also|as well|another|additionally|besides|a second|plus|too)\b(?! (?:much|many|late|early|big|hot|small))",
    re.I,
)
"""Says that a value joins the others."""


def _same_thing(old: str, new: str) -> bool:
    """Whether one names nothing that the other does not: the dentist's appointment is not the optician's."""
    a, b = (frozenset(map(stem, _words(_TIME.sub(" ", text)))) - EMPTY for text in (old, new))
    return a <= b or b <= a


def _same_event(old: str, new: str) -> bool:
    before, after = _event_words(old), _event_words(new)
    who = _called(old)
    whom = _called(new)
    if before & after:
        return not (who and whom and not who & whom)
    return bool(before and not after and who & whom)


@cache
def _called_off() -> re.Pattern[str]:
    return re.compile(english().events.called_off, re.IGNORECASE)


@cache
def _puts_off() -> re.Pattern[str]:
    return re.compile(english().events.put_off, re.IGNORECASE)


@cache
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(rf"(?<!\w)(?:{pattern})", re.IGNORECASE) for pattern in patterns)


def calls_off(text: str) -> bool:
    """Whether it says that an appointment, a trip or the like is off."""
    return bool(_event_words(text)) and _called_off().search(spelled(text)) is not None


# What may be a change


def _possible(old: ReadStatement, new: ReadStatement) -> StatementChange | None:
    """Both name the same, and the newer says that something is different. What it is nobody knows without more."""
    if not _cue().search(spelled(new.text)) or not _people(new.text) <= _people(old.text):
        return None
    shared = _telling(old.text) & _telling(new.text)
    who = _called(new.text)
    whom = _called(old.text)
    if shared and not (who and whom and not who & whom):
        return StatementChange("possible", "the newer says that something has changed")
    return None


@lru_cache(maxsize=4096)
def _telling(text: str) -> frozenset[str]:
    """Words that tell what it is about: longer ones, and names."""
    called = _called(text)
    words = {word for word in _words(text) if word in called or (len(word) > _SHORT and word not in EMPTY)}
    return frozenset(map(stem, words)) - _VAGUE - _CALENDAR


_SHORT = 4


@cache
def _cue() -> re.Pattern[str]:
    return re.compile(english().changes.cue, re.IGNORECASE)
