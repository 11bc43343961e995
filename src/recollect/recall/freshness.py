"""Newer before older, where they contradict each other.

Two memories contradict if they say the same of the same, with another value: "Lena sits in Graz", "Lena sits in
Porto". text.statements reads and compares them; here the question helps to tell what they are about. What is only
similar keeps its place, since a wrong exchange costs as much as a right one gains.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.text.identifiers import identifiers
from recollect.text.speakers import prefix
from recollect.text.statements import EMPTY, SENTENCE_END, Assertion, are_opposite, names, shared_words
from recollect.text.statements.changes import asks, in_other_words
from recollect.text.words import WORD, stem, stems

_VERB = re.compile(r" (?:is|are|was|were|has|have|had) ", re.IGNORECASE)
_OWNERS = re.compile(r"^(?:my|your|his|her|our|their)\b", re.IGNORECASE)
"""Begins a sentence about what belongs to somebody, and not about them: "I park here", "my tenant parks there"."""
_LEFT = """sold gave traded quit left cancelled dropped ditched closed broke died stopped swapped replaced wiped
resigned retired stepped unsubscribed renamed rebranded migrated switched moved outgrew relocated rewrote transferred
changed ended lost beat settled shipped cut reduced turned went"""
"""Words that mark a change, in a sentence that also names the old value."""

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

_TELLS = re.compile(
    r"\b(?:now|no (?:longer|more)|any ?more|mov(?:ed?|ing)|switch\w*|chang\w*|instead|from now on|these days|"
    r"since|migrat\w+|"
    r"became|become|quit|left|sold|joined|start\w*|stop\w*|gave|given|cancel\w*|call\w* off|again|finally|"
    r"actually|turn(?:ed|s)|"
    r"drop(?:ped)?|closed?|reject\w*|postponed|pushed|shifted|died|passed|over|done|gone|lost|got|bought|went|put|"
    r"off)\b",
    re.IGNORECASE,
)
"""Only what has one of these is read further: the first reading in a process takes a while."""
_STATEMENT = 200
"""Characters. Longer ones tell more than one thing."""
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


class _BestSentence(NamedTuple):
    """The sentence of a memory that is about the query."""

    statement: Assertion
    plain: bool
    """Whether it is short and all that the memory says, and nobody is named as its speaker."""
    stated: bool
    """Whether it is no turn of talk, `Name: …`, or a short one that asks nothing. In talk much sounds like a change."""


class _Question(NamedTuple):
    words: Set[str]
    """The stems of the query without stop words."""
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
    question, numbers = _question(query), identifiers(query)
    answers: dict[int, _BestSentence] = {}
    for new in sorted(short, key=lambda row: born[row]):  # oldest first: of a chain of values the newest ends on top
        for old in head[: head.index(new)]:
            if old not in short or born[old] >= born[new]:
                continue
            gap, likeness = scores[old] - scores[new], alike.get((old, new), 1.0)
            if gap >= _WIDEST_CHANGED:
                continue
            if not _changed(texts[old], texts[new]):
                if likeness < _LEAST_COSINE_CHANGED:
                    continue
                for row in (old, new):
                    if row not in answers:
                        answers[row] = _answer(texts[row], question)
                a, b = answers[old], answers[new]
                if not (a.stated and b.stated) or _of_another(a.statement, b.statement, question):
                    continue
                if numbers and numbers & identifiers(texts[old]) and not numbers & identifiers(texts[new]):
                    continue
                near = gap < _WIDEST and likeness >= _LEAST_COSINE
                same = near and _replaces(a.statement, b.statement, question)
                if not same and not _tells_of_a_change(a, b, question):
                    continue
            head.remove(new)
            head.insert(head.index(old), new)
            moved[new] = old
            break
    return [*head, *ranked[_TOP:]], moved


def _changed(old: str, new: str) -> bool:
    """Whether the newer statement may change what the older says. In talk, much sounds so that is not."""
    if max(len(old), len(new)) > _STATEMENT or not _TELLS.search(new) or prefix(old) or prefix(new):
        return False
    return bool(asks(new)) and in_other_words(old, new) is not None


def _alike(rows: Sequence[int], vectors: ByPosition[NDArray[np.float32] | None] | None) -> dict[tuple[int, int], float]:
    """The cosines of those that have vectors."""
    own = {row: vector for row in rows if vectors is not None and (vector := vectors[row]) is not None}
    if not own:
        return {}
    matrix = np.stack(list(own.values()))
    cosines = (matrix @ matrix.T).tolist()
    order = list(own)
    return {(a, b): cosines[i][j] for i, a in enumerate(order) for j, b in enumerate(order)}


def _of_another(old: Assertion, new: Assertion, question: _Question) -> bool:
    """Whether the newer says it of somebody else, or of something that belongs to the one asked about."""
    if new.owners:
        verb = _VERB.search(new.sentence)
        end = verb.start() if verb else max((new.sentence.lower().rfind(word) for word in question.spelled), default=-1)
        theirs = {name for _, name in old.owners}
        if any(name not in theirs for at, name in new.owners if at <= max(end, 0)):
            return True
    begins = _OWNERS.match(new.sentence)
    return begins is not None and not _OWNERS.match(old.sentence) and "@me" in old.stems and not new.adds


def _of_another_thing(old: Assertion, new: Assertion, question: _Question) -> bool:
    """Whether the older has a word of the question that the newer has another for: the vet's appointment and not the
    dentist's. What is said in words that tell of a change need not be said again: who moved lives elsewhere."""
    telling = {word for asked, verbs in _frames() if new.stems & verbs for word in asked}
    asked = question.words - question.persons - telling
    return bool((asked & old.stems) - new.stems) and _has_another_subject(old, new, question)


def _has_another_subject(old: Assertion, new: Assertion, question: _Question) -> bool:
    return bool(_subject(new) - old.stems - question.words - EMPTY)


def _subject(statement: Assertion) -> Set[str]:
    """The words before the verb, as far as it is known."""
    verb = _VERB.search(statement.sentence)
    words = stems(statement.sentence if verb is None else statement.sentence[: verb.start()])
    changes = _changes()
    end = next((at for at, word in enumerate(words) if word in changes), len(words) if verb else 0)
    return frozenset(words[:end])


def _tells_of_a_change(old: _BestSentence, new: _BestSentence, question: _Question) -> bool:
    """Whether the newer says, in words of its own, that what the older says is so no longer."""
    before, after = old.statement.stems, new.statement.stems
    if new.statement.adds or not (old.plain and new.plain) or not (question.persons & before) <= after:
        return False
    topic = question.words - question.persons
    if _of_another_thing(old.statement, new.statement, question):
        return False
    value = before - question.words - EMPTY
    if len(value) > _MOST_OLD_VALUE:
        return False
    if after & _left() and after & value and after & (topic | question.persons | value):
        return True
    verbs = {verb for asked, verbs in _frames() if question.all & asked for verb in verbs}
    if not after & verbs:
        return False
    return bool(question.persons & after or topic & after)


def _replaces(old: Assertion, new: Assertion, question: _Question) -> bool:
    """Whether the newer answers the question anew: the same subject in the same frame, with another value."""
    # First what is cheap to know: most pairs have too few words in common.
    shared = shared_words(old, new)
    if shared < _LEAST_SHARED_CHANGED or (shared < _LEAST_SHARED and not new.tells_change) or new.adds:
        return False
    old_value, new_value = old.stems - new.stems - EMPTY, new.stems - old.stems - EMPTY
    if max(len(new_value), len(old_value)) > _MOST_VALUE:
        return False
    if not (new_value and old_value) and old.negated == new.negated and not are_opposite(old, new):
        return False  # one says no more than the other
    if question.chooses and question.words & new_value:
        return True
    if not (question.words & old.stems & new.stems) - new.speaker:
        return False  # by the same speaker, but nothing else is known to be of the same
    missing = (question.words & old.stems) - new.stems
    if not missing or are_opposite(old, new):
        return True
    # A sentence that tells of a change may leave out the occasion, but not whom or what it is about.
    return (
        new.tells_change
        and not _has_another_subject(old, new, question)
        and not missing & question.names
        and not any(word[0] == "@" for word in missing)
    )


def _question(query: str) -> _Question:
    named = {stem(word.lower()) for word in names(query) if len(word) > 1}
    every = frozenset(stems(query))
    words = every - EMPTY
    persons = named | {word for word in words if word[0] == "@"}
    telling = words - persons
    spelled = [word for word in WORD.findall(query.lower()) if stem(word) in telling]
    return _Question(words, named, persons, every, [word[:5] for word in spelled], " or " in query)


def _answer(text: str, question: _Question) -> _BestSentence:
    name, start = prefix(text) or ("", 0)
    sentences = [(frozenset(stems(sentence)), sentence) for sentence in SENTENCE_END.split(text[start:])]
    words, sentence = max(sentences, key=lambda pair: len(question.words & pair[0]))
    statement = Assertion(sentence, name, words)
    short = len(text) <= _PLAIN
    plain = len(sentences) == 1 and short and not statement.speaker
    return _BestSentence(statement, plain, not name or (short and "?" not in text))


@cache
def _changes() -> frozenset[str]:
    return _left().union(*(verbs for _, verbs in _frames()))


@cache
def _left() -> frozenset[str]:
    return frozenset(map(stem, _LEFT.split()))


@cache
def _frames() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    return tuple(
        (frozenset(map(stem, asked.split())), frozenset(map(stem, verbs.split()))) for asked, verbs in _FRAMES.items()
    )
