"""Whether what a model says of a turn stands in it: which of the user's own words it means, or why it is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from recollect.policies.phrases import IDLE, PASSING, TODAY
from recollect.policies.secrets import Screen
from recollect.policies.secrets import find as find_secret
from recollect.policies.sentence_rules import apostrophes, has, judge
from recollect.policies.sentence_rules import ruled_out as _ruled_out
from recollect.text.sentences import sentences
from recollect.text.statements.certainty import secret, stated
from recollect.text.statements.claims import ME, read, spelled
from recollect.text.words import WORD, stem

LONGEST = 600
"""Characters of a statement, as for the rules."""
_MOST_SENTENCES = 3
"""Sentences in a row that one statement may be taken from."""
_MOST_CLAUSES = 40
"""Clauses of a turn that are searched. What has more is no turn that anybody spoke."""
_FEWEST = 3
"""Words of a clause that is stored without the rest of its sentence."""
_GRAMMAR = frozenset("a an the is are am be been of in at to for has have that and user user's".split())
"""Words that a model may add or leave out: they tell nothing, and the user's own sentence is what is stored."""
_NEGATIONS = frozenset(
    """not no never none nothing nobody nowhere neither nor without cannot hardly
    nicht nichts kein keine keinen keiner nie niemals ohne ne pas jamais sans rien aucun aucune ni nunca sin nada non
    mai senza niente não nem sem niet geen nooit zonder""".split()
)
_CLAUSE = re.compile(
    r"[,;:—–]\s|\s(?=(?:but|because|although|though|while|and (?:i|we|my|our|he|she|they|it))\b)", re.I
)
_ORDERS = (
    r"\b(?:ignore|disregard|override|bypass|forget|follow|obey)\b.{0,40}\b(?:instruction|prompt|rule|guideline)s?\b"
    r"|\b(?:system prompt|as an ai|you are now|new instructions?)\b"
)
"""Words to a model about what it is to do."""


class Grounded(NamedTuple):
    """The user's own words that a model's item means."""

    text: str
    source: tuple[str, ...]
    """The whole sentences that the words are from."""
    stems: frozenset[str]
    """Of the item's words, without grammar."""


class ItemRefusal(NamedTuple):
    why: str


class _Clause(NamedTuple):
    sentence: int
    words: frozenset[str]
    """In small letters, as they are written."""
    stems: frozenset[str]
    negations: int


def without_secrets(own: str) -> str:
    """The user's words without the sentences that tell a password or a key, which no model is to see."""
    if not secret(own) and find_secret(own, Screen()) is None:
        return own
    harmless = [s.text for s in sentences(own) if not secret(s.text) and find_secret(s.text, Screen()) is None]
    # A secret may stand on the line below its name, so that no sentence has both.
    rest = "\n".join(harmless)
    return "" if secret(rest) or find_secret(rest, Screen()) else rest


def ground(text: str, own: str) -> Grounded | ItemRefusal:
    """Find the fewest clauses of a turn with all words of an item. Names, numbers and negations must be the same."""
    if not text or len(text) > LONGEST:
        return ItemRefusal("empty or too long")
    if set(re.findall(r"⟦[^⟧]*⟧", text)) - set(re.findall(r"⟦[^⟧]*⟧", own)) or find_secret(text, Screen()):
        return ItemRefusal("personal or secret")
    if has(_ORDERS, text):
        return ItemRefusal("an order")
    plain = spelled(apostrophes(text))
    words = [word for word in WORD.findall(plain) if word.lower() not in _GRAMMAR]
    exact = {word.lower() for at, word in enumerate(words) if not word.islower() and (at or not word.istitle())}
    item_stems = frozenset(_stem(word) for word in words)
    if not item_stems - {"@me"}:
        return ItemRefusal("says nothing")
    spoken = [sentence.text.strip() for sentence in sentences(own) if not sentence.code]
    run = _shortest(list(_clauses(spoken)), item_stems, exact)
    if run is None:
        return ItemRefusal("words that were not said")
    if sum(clause.negations for clause in run) != _negations(plain):
        return ItemRefusal("a negation that was not said, or one left out")
    source = spoken[run[0].sentence : run[-1].sentence + 1]
    if not _claims_agree(text, " ".join(source)):
        return ItemRefusal("another value than was said")
    if len(source) > 1 and _bare(text) not in " ".join(source).lower():
        return ItemRefusal("put together from several sentences")
    taken = _verbatim(text, source)
    return Grounded(taken, tuple(source), item_stems) if len(taken) <= LONGEST else ItemRefusal("empty or too long")


def ruled_out(grounded: Grounded) -> str:
    """Why words of the user can be no fact that lasts, although they were said; nothing if they can be one."""
    for sentence in grounded.source:
        parts = [part for part in stated(sentence) if part in grounded.text or grounded.text in part]
        if not parts:
            return "asked"
        for part in parts:
            if judge(part, "user") is not None:
                continue
            if reason := _ruled_out(apostrophes(part)):
                return reason
            if has(IDLE, part) or has(PASSING, part) or has(TODAY, part):
                return "of the moment"
    return ""


def _clauses(spoken: list[str]) -> Iterator[_Clause]:
    for number, sentence in enumerate(spoken):
        plain = spelled(apostrophes(sentence))
        for start, end in pairwise(_cuts(plain)):
            words = WORD.findall(plain[start:end])
            if words:
                low = frozenset(word.lower() for word in words)
                yield _Clause(number, low, frozenset(map(_stem, words)), _negations(plain[start:end]))


def _cuts(sentence: str) -> list[int]:
    """Where the clauses of a sentence begin, and its end."""
    return [0, *(cut.end() for cut in _CLAUSE.finditer(sentence)), len(sentence)]


def _shortest(clauses: list[_Clause], item_stems: frozenset[str], exact: set[str]) -> list[_Clause] | None:
    clauses = clauses[:_MOST_CLAUSES]
    for length in range(1, len(clauses) + 1):
        for start in range(len(clauses) - length + 1):
            run = clauses[start : start + length]
            if (
                run[-1].sentence - run[0].sentence < _MOST_SENTENCES
                and item_stems <= frozenset[str]().union(*(clause.stems for clause in run))
                and exact <= frozenset[str]().union(*(clause.words for clause in run))
            ):
                return run
    return None


def _stem(word: str) -> str:
    """Numbers and what has digits in it stay as they are."""
    return word if any(letter.isdigit() for letter in word) else stem(word.lower())


def _negations(plain: str) -> int:
    return sum(word in _NEGATIONS for word in WORD.findall(plain.lower()))


def _claims_agree(text: str, source: str) -> bool:
    """Whether the item tells of nobody another value of a slot than the words it was taken from."""
    source_claims = read(source).claims
    for claim in read(text).claims:
        slots = [other for other in source_claims if other.slot == claim.slot]
        if slots and not any(claim.value <= other.value and _may_be_same(claim.owner, other.owner) for other in slots):
            return False
    return True


def _may_be_same(owner: str, other_owner: str) -> bool:
    """A pronoun may stand for anybody but the speaker."""
    return owner == other_owner or any(name != ME and name.startswith("@") for name in (owner, other_owner))


def _verbatim(text: str, source: list[str]) -> str:
    """The words of the turn: the clauses in which the item is written, else the whole sentences.

    A model's own wording is never stored, and no part of a clause, so that it cannot change what was said.
    """
    whole = " ".join(source)
    words = _bare(text)
    at = whole.lower().find(words)
    if at < 0 or len(whole.lower()) != len(whole):  # some capitals are longer in small letters
        return whole
    cuts = _cuts(whole)
    start = max(cut for cut in cuts if cut <= at)
    end = min(cut for cut in cuts if cut >= at + len(words))
    return whole if len(whole[start:end].split()) < _FEWEST else whole[start:end].rstrip(" ,;:—–")


def _bare(text: str) -> str:
    return " ".join(text.split()).rstrip(" .!").lower()
