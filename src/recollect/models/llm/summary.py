"""A summary without a model: the sentences that say most, in their own words.

A sentence counts for how much it has in common with the rest, for the facts in it and for where it stands, and the less
the more of it has been said. The same turns always give the same summary.
"""

from __future__ import annotations

import logging
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from recollect.policies.importance import Importance, assess
from recollect.text.query import LETTER
from recollect.text.sentences import sentences, spoken
from recollect.values import validation
from recollect.values.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Embed = Callable[[Sequence[str]], NDArray[Any]]

log = logging.getLogger("recollect.llm")

_CENTRAL, _FACTS, _PLACE, _REPEATED = 0.3, 0.55, 0.15, 0.6
_SAME = 0.9
"""From this similarity on, a sentence counts as a repetition."""
_ASIDE = 0.3
"""What is left of the worth of code, seldom what a conversation is remembered for, and of what only leads to a list."""
_LENGTH = 0.3
"""How much a long sentence must be worth more than a short one: 0 is nothing, 1 in proportion to its length."""

_WORD = re.compile(rf"(?:(?!_){LETTER})+")
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]")
_FACT = tuple(
    (re.compile(pattern, flags), weight)
    for pattern, flags, weight in [
        (r"\d", 0, 0.7),
        (
            r"\b(?:\d{4}-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}:\d\d|today|tomorrow|yesterday|tonight|"
            r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|september|"
            r"october|november|december|(?:next|last|this) (?:week|month|year|quarter)|deadline|due)\b|[年月日]",
            re.IGNORECASE,
            0.5,
        ),
        (r"(?<=[\w,;’'\")] )(?!I\b)[A-ZÀ-ÖØ-ÞΑ-ΩА-Я][\w’'-]+|@\w+|https?://|`[^`]+`", 0, 0.6),
        (
            r"\b(?:decid\w+|decision|agreed (?:to|on|that)|chose\w*|must|prefer\w*|always|never|promised?|"
            r"allerg\w+|favou?rites?|important)\b",
            re.IGNORECASE,
            1.8,
        ),
        (
            r"\b(?:will|won['’]t|['’]ll|ha(?:ve|s) to|need(?:s|ed)? to|shall|should|plan(?:s|ned)?|because|instead of|"
            r"moved|lives?|works? (?:at|for|as)|called|named|born|married)\b",
            re.IGNORECASE,
            0.6,
        ),
    ]
)
_ASKING = ("?", "？", "؟")
_IMPORTANCE = Importance(base=0.5)
_FEW_WORDS, _WEAK = 3, 0.4
"""A word or two, as in "Agreed.", state something only behind what went before; so do questions."""


class _Unit(NamedTuple):
    """A candidate for the summary: a sentence, or a block of code."""

    line: str
    """As it is shown, behind who says it."""
    text: str
    code: bool
    turn: int
    at: int
    """Its place in the turn."""


class _Likeness(Protocol):
    central: list[float]
    """How much each has in common with all, from 0 to 1."""

    def to(self, unit: int) -> list[float]:
        """How like each is to one, from 0 to 1."""
        ...


def summarise(turns: Sequence[str], *, budget: int, count: Callable[[str], int], embed: Embed | None = None) -> str:
    """The most telling sentences of the turns, one a line, in at most `budget` tokens as `count` counts them.

    Each stands behind the name that its turn begins with (`Alice: …`). With `embed` sentences are compared by meaning,
    else, or if it fails, by their words. Empty if there is nothing to tell or no room for it.
    """
    budget = validation.count(budget, "budget", low=0, high=1_000_000_000)
    units = _units([str(turn) for turn in validation.sequence(turns, "turns")])
    worth = [_facts(unit) for unit in units]
    # Small talk is left out even where there is room, unless there is nothing else.
    informative = [at for at, value in enumerate(worth) if value >= 0.0] or list(range(len(units)))
    units, worth = [units[at] for at in informative], [max(worth[at], 0.0) for at in informative]
    if not units or not budget:
        return ""
    likeness = _likeness([unit.text for unit in units], embed)
    last = max(units[-1].turn, 1)
    scores = [
        (_CENTRAL * likeness.central[at] + _FACTS * worth[at] + _PLACE * _place(unit, last))
        * (_ASIDE if unit.code or unit.text.endswith((":", "：")) else 1.0)
        for at, unit in enumerate(units)
    ]
    picked = _pick(units, scores, likeness, budget, count)
    if picked:
        return _joined(units, picked)
    return _shortened(units[max(range(len(units)), key=scores.__getitem__)].line, budget, count)


def _units(turns: Sequence[str]) -> list[_Unit]:
    units: list[_Unit] = []
    for number, turn in enumerate(turns):
        name, words = spoken(turn)
        for at, sentence in enumerate(sentences(words)):
            between = ":\n" if sentence.code else ": "
            line = f"{name}{between}{sentence.text}" if name else sentence.text
            units.append(_Unit(line, sentence.text, sentence.code, number, at))
    return units


def _facts(unit: _Unit) -> float:
    """How much a sentence states, from 0 to 1; below 0 for small talk."""
    if unit.code:
        return 0.0
    assessed = assess(unit.text, _IMPORTANCE)
    if not _WORD.search(unit.text) or assessed.score < _IMPORTANCE.base:
        return -1.0
    weight = 3.0 * (assessed.score - _IMPORTANCE.base)
    for pattern, value in _FACT:
        weight += value * min(sum(1 for _ in pattern.finditer(unit.text)), 2)
    asking = unit.text.rstrip("\"'”’)」』 ").endswith(_ASKING)
    return (1.0 - 0.5**weight) * (_WEAK if asking or len(_words(unit.text)) < _FEW_WORDS else 1.0)


def _place(unit: _Unit, last: int) -> float:
    """A turn begins with its point; a conversation begins with its topic and ends with its outcome."""
    middle = abs(2.0 * unit.turn / last - 1.0)
    return 0.6 / (1 + unit.at) + 0.4 * middle


def _pick(
    units: Sequence[_Unit], scores: Sequence[float], likeness: _Likeness, budget: int, count: Callable[[str], int]
) -> list[int]:
    """The best first, each judged by what those before it have left to say."""
    costs = [count(unit.line) for unit in units]
    left, room = list(range(len(units))), budget
    covered = [0.0] * len(units)
    picked: list[int] = []

    def worth(at: int) -> float:
        return (scores[at] - _REPEATED * covered[at]) / max(costs[at], 1) ** _LENGTH

    while left := [at for at in left if costs[at] <= room and covered[at] < _SAME]:
        best = max(left, key=worth)
        left.remove(best)
        used = count(_joined(units, [*picked, best]))
        if used > budget:  # a text may count for more than its lines
            continue
        picked.append(best)
        room = budget - used
        covered = [max(before, like) for before, like in zip(covered, likeness.to(best), strict=True)]
    return picked


def _joined(units: Sequence[_Unit], picked: Sequence[int]) -> str:
    return "\n".join(units[at].line for at in sorted(picked))


def _shortened(line: str, budget: int, count: Callable[[str], int]) -> str:
    """As much of its beginning as there is room for."""
    words = line.split(" ")
    pieces = words if len(words) > 1 else list(line)
    glue = " " if len(words) > 1 else ""
    low, high = 0, len(pieces)
    while low < high:
        middle = (low + high + 1) // 2
        if count(f"{glue.join(pieces[:middle])} …") <= budget:
            low = middle
        else:
            high = middle - 1
    return f"{glue.join(pieces[:low])} …" if low else ""


def _likeness(texts: Sequence[str], embed: Embed | None) -> _Likeness:
    if embed is not None:
        try:
            return _ByMeaning(texts, embed)
        except ModelError as error:
            log.warning("a summary goes by words", extra={"metadata": {"problem": str(error)}})
    return _ByWords(texts)


class _ByWords:
    """Cosines of tf-idf vectors, kept as lists of who has a word: of all pairs, few share one."""

    def __init__(self, texts: Sequence[str]) -> None:
        counted = [Counter(_words(text)) for text in texts]
        having = Counter(word for words in counted for word in words)
        self._vectors = [_unit_length({word: (1 + math.log(n)) * math.log(1 + len(texts) / having[word])
                                       for word, n in words.items()}) for words in counted]  # fmt: skip
        self._having: dict[str, list[tuple[int, float]]] = {}
        middle: dict[str, float] = {}
        for at, vector in enumerate(self._vectors):
            for word, weight in vector.items():
                self._having.setdefault(word, []).append((at, weight))
                middle[word] = middle.get(word, 0.0) + weight
        middle = _unit_length(middle)
        self.central = _spread([sum(weight * middle[word] for word, weight in v.items()) for v in self._vectors])

    def to(self, unit: int) -> list[float]:
        like = [0.0] * len(self._vectors)
        for word, weight in self._vectors[unit].items():
            for at, other in self._having[word]:
                like[at] += weight * other
        return like


class _ByMeaning:
    def __init__(self, texts: Sequence[str], embed: Embed) -> None:
        import numpy as np

        rows = np.asarray(embed(texts), np.float64)
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise ModelError(f"the embedder gave {rows.shape} for {len(texts)} texts, or numbers that are none")
        self._rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        middle = self._rows.mean(axis=0)
        self.central = _spread(_rounded(self._rows @ (middle / max(float(np.linalg.norm(middle)), 1e-12))))

    def to(self, unit: int) -> list[float]:
        return _rounded(self._rows @ self._rows[unit])


def _rounded(values: NDArray[Any]) -> list[float]:
    # The last digits depend on the machine's way to add.
    return [round(max(value, 0.0), 6) for value in values.tolist()]


def _spread(values: Sequence[float]) -> list[float]:
    """From 0 for the least to 1 for the most."""
    lowest, highest = min(values), max(values)
    return [(value - lowest) / (highest - lowest) if highest > lowest else 0.0 for value in values]


def _unit_length(vector: dict[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
    return {word: weight / length for word, weight in vector.items()}


def _words(text: str) -> list[str]:
    """Words in one spelling; of scripts without spaces, pairs of letters."""
    words: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _SPACELESS.search(word) and len(word) > 1:
            words += [a + b for a, b in pairwise(word)]
        else:
            words.append(word)
    return words
