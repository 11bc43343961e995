"""Statements: what a sentence says of what, whether it denies it, and how two of them differ.

Everything that has to know whether two memories contradict each other asks here: recall, which ranks newer facts first,
and maintenance, which supersedes and merges. They differ in how sure they must be, and not in how they read.

It is read off the words. Values, opposites and changes are known in English; negations, names and numbers in more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from functools import cache
from typing import NamedTuple

from recollect.text.words import WORD, stem, stems

# Vocabulary

NEGATION = re.compile(
    r"\bno longer\b|\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|"
    r"nicht|kein\w*|nie|niemals|ohne|niemand|nichts|weder|"
    r"nunca|sin|jamás|nadie|nada|tampoco|ni|"
    r"ne|pas|jamais|sans|aucune?|personne|rien)\b|n['’]t\b|\bn['’](?=\w)",
    re.IGNORECASE,
)
"""English, German, Spanish and French. A sentence and its negation may have the same words otherwise."""

_ADDITION = re.compile(
    r"\b(?:also|too|as well|another|additionally|in addition|besides|a second|plus|both)\b", re.IGNORECASE
)
"""Says that a value joins the others and replaces none. "The second floor" is a value like any other."""

_CHANGE = re.compile(
    r"\b(now|no longer|any ?more|any longer|moved|switch\w*|chang\w*|instead|new|from now on|these days|since|migrated|"
    r"became|raised|lowered)\b",
    re.IGNORECASE,
)
"""Says that something is different from before."""

_OPPOSITES = """on/off open/closed enable/disable allowed/forbidden active/inactive available/unavailable public/private
true/false like/dislike love/hate accept/reject dark/light tabs/spaces online/offline locked/unlocked paid/unpaid
required/optional visible/hidden valid/invalid yes/no"""
"""States that exclude each other. The second of each pair is the rarer word."""
_EVENTS = "start/stop started/stopped"
"""Opposites of which both happened: the newer tells how things are now, and the older is true all the same."""

_SORTS = {
    "weekday": "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays "
    "saturdays sundays",
    "month": "january february march april may june july august september october november december",
    "colour": "red green blue yellow orange black white grey gray brown purple pink violet",
    "ordinal": "first second third fourth fifth sixth seventh eighth ninth tenth",
    "frequency": "hourly daily weekly monthly quarterly yearly",
    "number": "zero one two three four five six seven eight nine ten eleven twelve hundred thousand million",
}
_SORT_OF = {word: sort for sort, words in _SORTS.items() for word in words.split()}
_NUMBER = re.compile(r"[#€$£]?\d[\d.,:/x-]*[%€$]?", re.IGNORECASE)
_SIGNS = re.compile(r"[?#%&@*\\+=<>€$£¥°²³-]")
"""Signs that tell C from C#, 5 from 5 % and a question from a statement."""

EMPTY = frozenset(
    """a an the is are was were be been am do does did has have had of in on at to for with by as and or it its this
    that there what which who whom whose where when why how will would can could""".split()
)
"""Words that are no value: "in Graz" and "at the Graz office" differ in nothing but "office"."""

_UNSURE = frozenset(
    """if unless maybe perhaps might could would should suppose supposing whether said says think thinks thought believe
    believes asked asks guess probably possibly was were had did used been will other others and or but sometimes often
    usually once yesterday tomorrow today ago last next""".split()
)
"""Words by which a statement is no plain one about now."""
_UNPLAIN = re.compile(r"\?|\bmay be\b|;|\n|\. ", re.IGNORECASE)
"""Signs of a question, a supposition, or more than one statement."""

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
BROAD = frozenset(
    """europe asia africa america germany france spain italy austria switzerland portugal england scotland ireland
    britain poland norway sweden denmark finland greece turkey russia ukraine india china japan canada mexico brazil
    argentina australia usa uk netherlands belgium hungary romania bavaria texas california""".split()
)
"""Places that others lie in: living in Berlin and in Germany is no contradiction."""

_AFFIRMED = {"can't": "can", "cannot": "can", "won't": "will", "shan't": "shall", "without": "with"}
_FILLERS = frozenset("do does a an".split())
"""Words that come and go with a negation: "has no balcony", "has a balcony"."""
_WITH_NEGATION = re.compile(r"\b(?:any ?more|any longer|any)\b")
_POSSESSOR = re.compile(
    r"([^\W\d_]+)(?:['’]s\b|s['’](?=\s))|\bof (?:my|your|his|her|our|their) ([^\W\d_]+)", re.IGNORECASE
)
"""Whose a thing is: "Ann's sister", "my parents' house", "the garden of my parents"."""

SENTENCE_END = re.compile(r"(?<=\w\w\w[.!?])\s+")
"""Not behind "Dr."."""
_SENTENCE_START = re.compile(rf"(?:^|{SENTENCE_END.pattern}|:\s+)\W*\w[\w'’]*")
_EDGES = ".,!:\"'()"
_LONGEST, _MOST_WORDS = 200, 16
"""Characters and words of a plain statement. Longer ones say more than one thing."""
_MOST_VALUE = 3


class Assertion:
    """One sentence. What it says is read when it is asked for: most are compared in their words only."""

    __slots__ = ("_cache", "_owners", "_parts", "_words", "sentence", "speaker", "stems")

    def __init__(self, sentence: str, speaker: str = "", words: Set[str] | None = None) -> None:
        self.sentence = sentence
        self.speaker: frozenset[str] = frozenset(stems(speaker)) if speaker else frozenset()
        self.stems: Set[str] = (frozenset(stems(sentence)) if words is None else words) | self.speaker
        """Its words in their one form, and who says it."""
        self._cache: dict[re.Pattern[str], bool] = {}
        self._words: tuple[str, ...] | None = None
        self._owners: list[tuple[int, str]] | None = None
        self._parts: _Parts | None = None

    def _has(self, pattern: re.Pattern[str]) -> bool:
        # Not a cached_property: until Python 3.12 that takes a lock, which a forked child may find taken.
        has = self._cache.get(pattern)
        if has is None:
            has = self._cache[pattern] = pattern.search(self.sentence) is not None
        return has

    @property
    def negated(self) -> bool:
        return self._has(NEGATION)

    @property
    def adds(self) -> bool:
        """Whether it says that a value joins others."""
        return self._has(_ADDITION)

    @property
    def tells_change(self) -> bool:
        """Whether it says that something is different from before."""
        return self._has(_CHANGE)

    @property
    def words(self) -> tuple[str, ...]:
        """As they are written, without the marks around them."""
        if self._words is None:
            stripped = (word.strip(_EDGES) for word in self.sentence.split())
            self._words = tuple(word for word in stripped if word)
        return self._words

    @property
    def owners(self) -> list[tuple[int, str]]:
        """Whose things it speaks of, and where."""
        if self._owners is None:
            # Most sentences have none, and a pattern is slow to say so.
            may = "'" in self.sentence or "’" in self.sentence or " of " in self.sentence.lower()
            matches = _POSSESSOR.finditer(self.sentence) if may else ()
            self._owners = [(match.start(), stem((match[1] or match[2]).lower())) for match in matches]
        return self._owners

    @property
    def parts(self) -> _Parts:
        if self._parts is None:
            self._parts = _parts(self.words)
        return self._parts


class _Parts(NamedTuple):
    """A sentence as a subject, a frame such as "is hosted on", and a value. Without a frame all is subject."""

    subject: tuple[str, ...]
    frame: tuple[str, ...]
    value: tuple[str, ...]
    lower: tuple[str, ...]


# Comparing


def shared_words(old: Assertion, new: Assertion) -> float:
    """The share of words that both have, from 0 to 1."""
    a, b = old.stems, new.stems
    return 2 * len(a & b) / ((len(a) + len(b)) or 1)


def are_opposite(old: Assertion, new: Assertion) -> bool:
    """Whether they differ in one word only, and that is the opposite of the other's."""
    return old.speaker == new.speaker and _reversed_word(old, new) is not None


def contradicts(old: str, new: str) -> bool:
    """Whether what the newer text says cannot be so while the older is. Where it is not sure, it says no.

    Two plain statements contradict if they say the same of the same subject in the same words, but with another value
    of the same sort, and if there can be one value only; or if one denies the other. What may be an addition, a
    question, a supposition, hearsay or of another time never counts.
    """
    a, b = plain(old), plain(new)
    if a is None or b is None or a.parts.lower == b.parts.lower:
        return False
    if a.negated != b.negated and _affirmed(a) == _affirmed(b):
        return True
    return _reversed_word(a, b) == "state" or _another_value(a.parts, b.parts)


def plain(text: str) -> Assertion | None:
    """The one plain statement about now that a text is; None for anything else."""
    text = text.strip()
    if len(text) > _LONGEST or _UNPLAIN.search(text):
        return None
    statement = Assertion(text)
    if not 2 <= len(statement.words) <= _MOST_WORDS or statement.adds:
        return None
    return None if any(word in _UNSURE for word in statement.parts.lower) else statement


def keys(statement: Assertion) -> Iterator[tuple[str, ...]]:
    """Two statements that contradict each other have one of these in common."""
    parts = statement.parts
    if parts.frame:
        yield (*parts.subject, *parts.frame)
    yield _affirmed(statement)
    words = tuple(map(stem, parts.lower))
    for at, word in enumerate(words):
        if word in _opposites():
            yield (*words[:at], "*", *words[at + 1 :])


def fingerprint(text: str) -> tuple[object, ...]:
    """Numbers, names, negations, opposites and signs. Texts that differ in it say different things.

    A model finds "the limit is 5" and "the limit is 50" almost equal, and a statement and its denial too. Texts of the
    same fingerprint may be compared by their vectors.
    """
    words = [word.casefold() for word in WORD.findall(text)]
    exact = sorted(word for word in words if any(map(str.isdigit, word)) or (word in _SORT_OF and word != "may"))
    reverses = sorted(stem(word) for word in words if stem(word) in _rarer())
    signs = "".join(sorted(_SIGNS.findall(text)))
    denials = len(NEGATION.findall(text))
    return tuple(exact), frozenset(map(str.casefold, names(text))), denials, tuple(reverses), signs


def names(text: str) -> list[str]:
    """Words with a capital that do not begin a sentence, and those that do but have a capital inside as well."""
    rest = _SENTENCE_START.sub(lambda start: start[0] if _capital_inside(start[0]) else " ", text)
    return [word for word in WORD.findall(rest) if word[0].isalpha() and not word.islower()]


def _capital_inside(start: str) -> bool:
    word = start.strip(".!?: \"'(")
    return any(map(str.isupper, word[1:]))


def _reversed_word(old: Assertion, new: Assertion) -> str | None:
    """Of what sort the opposites are that are all the two differ in; None if they differ in more, or not at all."""
    if len(old.words) != len(new.words):
        return None
    written = [pair for pair in zip(old.words, new.words, strict=True) if pair[0] != pair[1]]
    stems = ((_stem_of(first), _stem_of(second)) for first, second in written)
    differ = [(first, second) for first, second in stems if first != second]
    return _opposites().get(differ[0][0], {}).get(differ[0][1]) if len(differ) == 1 else None


def _stem_of(word: str) -> str:
    return stem(word.lower())


def _affirmed(statement: Assertion) -> tuple[str, ...]:
    """The stems of a statement without its negation."""
    text = " ".join(_AFFIRMED.get(word, word.removesuffix("n't")) for word in statement.parts.lower)
    if statement.negated:
        text = _WITH_NEGATION.sub(" ", NEGATION.sub(" ", text))
    return tuple(stem(word) for word in text.split() if word not in _FILLERS)


# Values


def _parts(words: tuple[str, ...]) -> _Parts:
    lower = tuple(word.lower().replace("’", "'") for word in words)
    for at in range(1, len(lower)):
        for frame in _FRAMES:
            if lower[at : at + len(frame)] == frame:
                return _Parts(lower[:at], frame, words[at + len(frame) :], lower)
    return _Parts(lower, (), (), lower)


def _another_value(a: _Parts, b: _Parts) -> bool:
    if not a.frame or (a.subject, a.frame) != (b.subject, b.frame) or not (a.value and b.value):
        return False
    old, new, rest = _differing(a.value, b.value)
    if not old or not new or max(len(old), len(new)) > _MOST_VALUE:
        return False
    sort, shared = _sort(old), len(a.value) - len(old) - len(rest)
    if not sort or sort != _sort(new) or (a.frame in _COPULAS and shared > (sort == "number")):
        return False  # "is sold in Paris" and "is sold in Lyon" are both true
    if sort == "number":
        return True
    if a.frame in _OPEN:
        return sort == "frequency" and bool(rest)
    if sort in ("name", "noun"):
        return _single(a, sort, old, new, rest)
    return True


def _single(parts: _Parts, sort: str, old: Sequence[str], new: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether there can be one only of what is told by names or plain nouns."""
    if {word.lower() for word in (*old, *new)} & BROAD:
        return False
    if parts.frame in (("uses", "the"), ("use", "the"), ("prefers", "the")):
        return len(old) == len(new) == len(rest) == 1
    if sort == "noun":
        return parts.frame in (("work", "at", "a"), ("works", "at", "a")) and not rest
    definite = parts.subject[0] in _DEFINITE or any(word.endswith("'s") for word in parts.subject)
    return definite or parts.frame not in _COPULAS | {("is", "on"), ("is", "on", "the")}


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
    if sort := _SORT_OF.get(word.lower()):
        return sort
    named = word[:1].isupper() or "@" in word or any(letter.isdigit() for letter in word)
    return "name" if named else "noun"


@cache
def _opposites() -> dict[str, dict[str, str]]:
    """By the stem of one word the stems of its opposites, and whether they are states or events."""
    opposites: dict[str, dict[str, str]] = {}
    for sort, pairs in (("state", _OPPOSITES), ("event", _EVENTS)):
        for pair in pairs.split():
            first, second = map(stem, pair.split("/"))
            opposites.setdefault(first, {})[second] = sort
            opposites.setdefault(second, {})[first] = sort
    return opposites


@cache
def _rarer() -> frozenset[str]:
    """Without "no", which is counted as a negation."""
    return frozenset(stem(pair.partition("/")[2]) for pair in f"{_OPPOSITES} {_EVENTS}".split()) - {"no"}
