"""Newer before older, where they contradict each other.

Two memories contradict if they say the same of the same, with another value: "Lena sits in Graz", "Lena sits in
Porto". It is read off their words, in English; in other languages names and numbers still tell. What is only similar
keeps its place, since a wrong exchange costs as much as a right one gains.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.text.speakers import prefix

_EMPTY = frozenset(
    """a an the is are was were be been am do does did has have had of in on at to for with by as and or it its this
    that there what which who whom whose where when why how will would can could""".split()
)
"""Words that are no value: "in Graz" and "at the Graz office" differ in nothing but "office"."""

_PERSONS = {
    "@me": "i me my mine i'm i've",
    "@you": "you your yours",
    "@he": "he him his",
    "@she": "she her hers",
    "@we": "we us our ours",
    "@they": "they them their",
}
"""One word for a person in every case: "my" car and the car "I" drive have the same owner."""

_NOT = re.compile(r"\b(not|no|never|none|without|cannot)\b|n['’]t\b", re.IGNORECASE)
"""A sentence and its negation may have the same words otherwise."""

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

_ENDINGS = ("ing", "ied", "ies", "ed", "es", "s", "e")
"""Taken off, so that "sits" and "sitting" are one word. Longer ones first."""

_WORD = re.compile(r"\d[\d.,:/-]*\d|[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE = re.compile(r"(?<=\w\w\w[.!?])\s+")
"""Not behind "Dr."."""
_CAPITALIZED = re.compile(r"(?<=\s)[^\W\d_]\w+")

_TOP = 20
"""Further down an exchange is not seen."""
_LONGEST = 600
"""Characters. Longer texts say too much to contradict each other in one value."""
_WIDEST = 3.0
"""A memory that scores so much better answers better, however old."""
_LEAST_COSINE = 0.8
_LEAST_SHARED, _LEAST_SHARED_CHANGED = 0.5, 0.3
"""The share of words that must be the same, and where the newer says that something has changed."""
_MOST_VALUE = 6
"""More words than this are another statement, not another value."""

T_co = TypeVar("T_co", covariant=True)


class ByPosition(Protocol[T_co]):
    """A list, a dictionary or an array: whatever gives a thing for a position."""

    def __getitem__(self, position: int, /) -> T_co: ...


class _Said:
    """The sentence of a memory that speaks of what was asked. What else it says is read when it matters."""

    def __init__(self, words: Set[str], speaker: Set[str], sentence: str) -> None:
        self.words = words
        self.speaker = speaker
        self._sentence = sentence
        self._known: dict[re.Pattern[str], bool] = {}

    def _has(self, pattern: re.Pattern[str]) -> bool:
        # Not a cached_property: until Python 3.12 that takes a lock, which a forked child may find taken.
        known = self._known.get(pattern)
        if known is None:
            known = self._known[pattern] = pattern.search(self._sentence) is not None
        return known

    @property
    def negated(self) -> bool:
        return self._has(_NOT)

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
            if old not in short or born[old] >= born[new] or scores[old] - scores[new] >= _WIDEST:
                continue
            if (old, new) not in alike:
                continue
            for row in (old, new):
                if row not in said:
                    said[row] = _said(texts[row], question)
            if _replaces(said[old], said[new], question):
                head.remove(new)
                head.insert(head.index(old), new)
                moved[new] = old
                break
    return [*head, *ranked[_TOP:]], moved


def _alike(rows: Sequence[int], vectors: ByPosition[NDArray[np.float32] | None] | None) -> Set[tuple[int, int]]:
    """The pairs that no vector tells apart."""
    pairs = {(a, b) for a in rows for b in rows}
    known = {row: vector for row in rows if vectors is not None and (vector := vectors[row]) is not None}
    if not known:
        return pairs
    matrix = np.stack(list(known.values()))
    order = list(known)
    apart = np.argwhere(matrix @ matrix.T < _LEAST_COSINE).tolist()
    return pairs - {(order[a], order[b]) for a, b in apart}


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
    names = {_token(word.lower()) for word in _CAPITALIZED.findall(query) if word[0].isupper()}
    return _Question(_tokens(query) - _EMPTY, names, " or " in query)


def _said(text: str, question: _Question) -> _Said:
    found = prefix(text)
    name, start = found or ("", 0)
    sentences = [(_tokens(sentence), sentence) for sentence in _SENTENCE.split(text[start:])]
    words, sentence = max(sentences, key=lambda pair: len(question.words & pair[0]))
    speaker = _tokens(name)
    return _Said(words | speaker, speaker, sentence)


def _tokens(text: str) -> frozenset[str]:
    return frozenset(map(_token, _WORD.findall(text.lower())))


@lru_cache(maxsize=20_000)
def _token(word: str) -> str:
    word = word.replace("’", "'")
    if person := _persons().get(word):
        return person
    word = word.removesuffix("'s")
    for end in _ENDINGS:
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)]
    return word


@cache
def _persons() -> dict[str, str]:
    return {word: person for person, words in _PERSONS.items() for word in words.split()}


@cache
def _opposites() -> frozenset[frozenset[str]]:
    return frozenset(frozenset(map(_token, pair.split("/"))) for pair in _OPPOSITES.split())
