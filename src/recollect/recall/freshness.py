"""Newer before older, where they contradict each other.

Two memories contradict if they say the same of the same, with another value: "Lena sits in Graz", "Lena sits in
Porto". It is read off their words, in English; in other languages names and numbers still tell. What is only similar
keeps its place, since a wrong exchange costs as much as a right one gains.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.text.speakers import prefix
from recollect.text.words import NEGATION, WORD, stem, stems

_EMPTY = frozenset(
    """a an the is are was were be been am do does did has have had of in on at to for with by as and or it its this
    that there what which who whom whose where when why how will would can could""".split()
)
"""Words that are no value: "in Graz" and "at the Graz office" differ in nothing but "office"."""

_OPPOSITES = """on/off open/closed enable/disable allowed/forbidden active/inactive start/stop started/stopped
like/dislike love/hate true/false available/unavailable accept/reject yes/no"""
"""Where these are all that differs, the two are one statement and its reverse, even if the question names only one."""

_MORE = re.compile(r"\b(also|too|as well|another|additionally|in addition|besides|second|plus|both)\b", re.IGNORECASE)
"""Says that a value joins the others and replaces none."""

_CHANGE = re.compile(
    r"\b(now|no longer|any ?more|any longer|moved|switch\w*|chang\w*|instead|new|from now on|these days|since|migrated|"
    r"became|raised|lowered)\b",
    re.IGNORECASE,
)
"""Says that something is different from before: then fewer words need to be the same."""

_VERB = re.compile(r" (?:is|are|was|were|has|have|had) ", re.IGNORECASE)
_OWNERS = re.compile(r"^(?:my|your|his|her|our|their)\b", re.IGNORECASE)
"""Begins a sentence about what belongs to somebody, and not about them: "I park here", "my tenant parks there"."""
_POSSESSOR = re.compile(
    r"([^\W\d_]+)(?:['’]s\b|s['’](?=\s))|\bof (?:my|your|his|her|our|their) ([^\W\d_]+)", re.IGNORECASE
)
"""Whose a thing is: "Ann's sister", "my parents' house", "the garden of my parents"."""

_LEFT = """sold gave traded quit left cancelled dropped ditched closed broke died stopped swapped replaced wiped
resigned retired stepped unsubscribed renamed rebranded migrated switched moved outgrew relocated rewrote transferred
changed ended lost beat settled shipped cut reduced turned went"""
"""Tells that something is no longer what it was, where its old value is named as well."""

_FRAMES = {
    "live home address stay": "moved relocated retired settled flat",
    "sit desk seat office": "moved relocated got shifted",
    "work job position company employer": "quit resigned hired promoted joined left went retired became",
    "team play club": "signed joined transferred moved promoted",
    "study school university degree course attend": "transferred switched changed enrolled dropped moved",
    "single boyfriend girlfriend surname partner": "married engaged broke divorced separated",
    "eat meat fish diet smoke drink": "vegan vegetarian quit stopped gave became went",
    "car drive phone laptop own bike pet": "sold bought traded got broke swapped gave switched ditched dropped",
    "price cost rent salary fee limit": "raised increased lowered cut bumped reduced",
    "date release meeting deadline appointment alarm": "pushed slipped postponed moved rescheduled set",
    "state status paid invoice order bug": "shipped fixed settled closed paid resolved delivered",
    "host hosted server conference keys": "moved shifted put relocated",
    "leads lead ceo owner owns mayor tenant manager": "took stepped became retired sold swapped beat moved rents",
    "weigh weight tall": "lost gained reached grew",
    "colour color hair": "painted dyed",
    "doctor see": "referred",
}
"""What a question asks for, and what tells that it has changed, though it says so in words of its own."""

_SENTENCE = re.compile(r"(?<=\w\w\w[.!?])\s+")
"""Not behind "Dr."."""
_CAPITALIZED = re.compile(r"(?<=\s)[^\W\d_]\w+")

_TOP = 20
"""Further down an exchange is not seen."""
_LONGEST = 600
"""Characters. Longer texts say too much to contradict each other in one value."""
_WIDEST, _WIDEST_CHANGED = 3.0, 9.0
"""A memory that scores so much better answers better, however old; what tells of a change has other words."""
_LEAST_COSINE = 0.8
_LEAST_COSINE_CHANGED = 0.6
"""Where the newer tells of a change in words of its own."""
_LEAST_SHARED, _LEAST_SHARED_CHANGED = 0.5, 0.3
"""The share of words that must be the same, and where the newer says that something has changed."""
_MOST_VALUE = 6
"""More words than this are another statement, not another value."""
_MOST_OLD_VALUE, _PLAIN = 4, 100
"""What a change is told of is short: so many words, and characters. In talk, much sounds like a change that is none."""

T_co = TypeVar("T_co", covariant=True)


class ByPosition(Protocol[T_co]):
    """A list, a dictionary or an array: whatever gives a thing for a position."""

    def __getitem__(self, position: int, /) -> T_co: ...


class _Said:
    """The sentence of a memory that speaks of what was asked. What else it says is read when it matters."""

    def __init__(self, words: Set[str], speaker: Set[str], sentence: str, plain: bool) -> None:
        self.words = words
        self.sentence = sentence
        self.plain = plain
        self.speaker = speaker
        self._sentence = sentence
        self._known: dict[re.Pattern[str], bool] = {}
        self._owners: list[tuple[int, str]] | None = None

    @property
    def owners(self) -> list[tuple[int, str]]:
        """Whose things it speaks of, and where."""
        if self._owners is None:
            # Most sentences have none, and a pattern is slow to say so.
            may = "'" in self.sentence or "’" in self.sentence or " of " in self.sentence.lower()
            found = _POSSESSOR.finditer(self.sentence) if may else ()
            self._owners = [(one.start(), stem((one[1] or one[2]).lower())) for one in found]
        return self._owners

    def _has(self, pattern: re.Pattern[str]) -> bool:
        # Not a cached_property: until Python 3.12 that takes a lock, which a forked child may find taken.
        known = self._known.get(pattern)
        if known is None:
            known = self._known[pattern] = pattern.search(self._sentence) is not None
        return known

    @property
    def negated(self) -> bool:
        return self._has(NEGATION)

    @property
    def adds(self) -> bool:
        return self._has(_MORE)

    @property
    def changed(self) -> bool:
        return self._has(_CHANGE)


class _Question(NamedTuple):
    words: Set[str]
    """What was asked for, without empty words."""
    names: Set[str]
    persons: Set[str]
    """Whom it is about: names, "I" and "you"."""
    all: Set[str]
    """Its words with the empty ones."""
    spelled: Sequence[str]
    """What was asked for, as it is written."""
    chooses: bool
    """Whether it names the values itself: "tea or coffee?"."""


def freshen(
    query: str,
    ranked: Sequence[int],
    scores: ByPosition[Any],
    texts: ByPosition[str],
    born: ByPosition[Any],
    vectors: ByPosition[NDArray[np.float32] | None] | None = None,
) -> tuple[list[int], dict[int, int]]:
    """The ranking with newer facts before the older ones that they replace, and who was put before whom.

    `scores` must fit `ranked`, best first. `born` is anything that is greater for what is newer, such as the time and
    the sequence number. `vectors` are of length one, None where there is none; two memories that have them must be
    close. Only the first twenty positions of `ranked` are looked up.
    """
    head, moved = list(ranked[:_TOP]), dict[int, int]()
    short = {row for row in head if len(texts[row]) <= _LONGEST}
    alike = _alike(head, vectors)
    question = _question(query)
    said: dict[int, _Said] = {}
    for new in sorted(short, key=lambda row: born[row]):  # oldest first: of a chain of values the newest ends on top
        for old in head[: head.index(new)]:
            gap = scores[old] - scores[new]
            if old not in short or born[old] >= born[new] or gap >= _WIDEST_CHANGED:
                continue
            likeness = alike.get((old, new), 1.0)
            if likeness < _LEAST_COSINE_CHANGED:
                continue
            for row in (old, new):
                if row not in said:
                    said[row] = _said(texts[row], question)
            a, b = said[old], said[new]
            if _of_another(a, b, question):
                continue
            near = gap < _WIDEST and likeness >= _LEAST_COSINE
            if (near and _replaces(a, b, question)) or _tells_of_a_change(a, b, question):
                head.remove(new)
                head.insert(head.index(old), new)
                moved[new] = old
                break
    return [*head, *ranked[_TOP:]], moved


def _alike(rows: Sequence[int], vectors: ByPosition[NDArray[np.float32] | None] | None) -> dict[tuple[int, int], float]:
    """The cosines of those that have vectors."""
    known = {row: vector for row in rows if vectors is not None and (vector := vectors[row]) is not None}
    if not known:
        return {}
    matrix = np.stack(list(known.values()))
    cosines = (matrix @ matrix.T).tolist()
    order = list(known)
    return {(a, b): cosines[i][j] for i, a in enumerate(order) for j, b in enumerate(order)}


def _of_another(old: _Said, new: _Said, question: _Question) -> bool:
    """Whether the newer says it of somebody else, or of something that belongs to the one asked about."""
    if new.owners:
        verb = _VERB.search(new.sentence)
        end = verb.start() if verb else max((new.sentence.lower().rfind(word) for word in question.spelled), default=-1)
        theirs = {name for _, name in old.owners}
        if any(name not in theirs for at, name in new.owners if at <= max(end, 0)):
            return True
    begins = _OWNERS.match(new.sentence)
    return begins is not None and not _OWNERS.match(old.sentence) and "@me" in old.words and not new.adds


def _tells_of_a_change(old: _Said, new: _Said, question: _Question) -> bool:
    """Whether the newer says, in words of its own, that what the older says is so no longer."""
    if new.adds or not (old.plain and new.plain) or not (question.persons & old.words) <= new.words:
        return False
    topic = question.words - question.persons
    value = old.words - question.words - _EMPTY
    if len(value) > _MOST_OLD_VALUE:
        return False
    if new.words & _left() and new.words & value and new.words & (topic | question.persons | value):
        return True
    told = {verb for asked, verbs in _frames() if question.all & asked for verb in verbs}
    if not new.words & told:
        return False
    return bool(question.persons & new.words or topic & new.words)


def _replaces(old: _Said, new: _Said, question: _Question) -> bool:
    """Whether the newer answers the question anew: the same subject in the same frame, with another value."""
    a, b = old.words, new.words
    shared = 2 * len(a & b) / ((len(a) + len(b)) or 1)
    if shared < min(_LEAST_SHARED, _LEAST_SHARED_CHANGED) or new.adds:
        return False
    if shared < (_LEAST_SHARED_CHANGED if new.changed else _LEAST_SHARED):
        return False
    here, there, opposite = b - a - _EMPTY, a - b - _EMPTY, (a ^ b) in _opposites()
    if max(len(here), len(there)) > _MOST_VALUE:
        return False
    if not (here and there) and not opposite and old.negated == new.negated:
        return False  # one says no more than the other
    if question.chooses and question.words & here:
        return True
    if not (question.words & a & b) - new.speaker:
        return False  # by the same speaker, but nothing else is known to be of the same
    missing = (question.words & a) - b
    if not missing or opposite:
        return True
    # A sentence that tells of a change may leave out the occasion, but not whom or what it is about.
    return new.changed and not missing & question.names and not any(word[0] == "@" for word in missing)


def _question(query: str) -> _Question:
    names = {stem(word.lower()) for word in _CAPITALIZED.findall(query) if word[0].isupper()}
    every = frozenset(stems(query))
    words = every - _EMPTY
    persons = names | {word for word in words if word[0] == "@"}
    telling = words - persons
    spelled = [word for word in WORD.findall(query.lower()) if stem(word) in telling]
    return _Question(words, names, persons, every, [word[:5] for word in spelled], " or " in query)


def _said(text: str, question: _Question) -> _Said:
    found = prefix(text)
    name, start = found or ("", 0)
    sentences = [(frozenset(stems(sentence)), sentence) for sentence in _SENTENCE.split(text[start:])]
    words, sentence = max(sentences, key=lambda pair: len(question.words & pair[0]))
    speaker = frozenset(stems(name))
    return _Said(words | speaker, speaker, sentence, len(sentences) == 1 and len(text) <= _PLAIN and not speaker)


@cache
def _left() -> frozenset[str]:
    return frozenset(map(stem, _LEFT.split()))


@cache
def _frames() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    return tuple(
        (frozenset(map(stem, asked.split())), frozenset(map(stem, told.split()))) for asked, told in _FRAMES.items()
    )


@cache
def _opposites() -> frozenset[frozenset[str]]:
    return frozenset(frozenset(map(stem, pair.split("/"))) for pair in _OPPOSITES.split())
