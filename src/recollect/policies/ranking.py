"""What comes first: five formulas, each of which says what every part contributed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache, lru_cache
from typing import Annotated, Literal, TypeVar

import msgspec

from recollect.policies.decay import Decay, Hours, Share, hours_between
from recollect.values.record import Record

Weight = Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)]
T = TypeVar("T")

_STOPWORDS = """
the and for are but not you all can has her was one our out its use how may who did get had him his let say she too own
way about could from have into just like make many some than that them then this very when what with will would been
each more most much must only also back being come every first here know made need over such take where which while
work project please help want using thing file should
"""
STOPWORDS = frozenset(_STOPWORDS.split())
"""The Aegis document's list, word for word."""


class Evidence(msgspec.Struct):
    """A candidate and why it is one."""

    record: Record
    query: str
    text: float | None = None
    """The share of what was asked that the text has, 0 to 1; rare words count more."""
    text_rank: int | None = None
    """Place in the text search's list; 1 is best, and equals share it."""
    vector: float | None = None
    """How similar the meaning is, 1 at most."""
    vector_rank: int | None = None
    source: str = "memory"


class Part(msgspec.Struct, frozen=True, gc=False):
    name: str
    value: float
    weight: float
    share: float
    """What it contributes: weight times value in a sum, the factor itself in a product."""


class Score(msgspec.Struct, frozen=True):
    """The shares of the parts add up, or multiply, to the value."""

    value: float
    how: Literal["sum", "product"]
    parts: tuple[Part, ...]


def recency(hours: float, half_life_hours: float) -> float:
    """1.0 now, half after each half-life."""
    return 0.5 ** (max(hours, 0.0) / half_life_hours)


def rrf(ranks: Iterable[int | None], k: int = 60) -> float:
    """Reciprocal rank fusion over the lists that something is in; None stands for a list it is not in."""
    return sum(1.0 / (k + rank) for rank in ranks if rank is not None)


def content_hash(text: str) -> str:
    """Equal for texts that differ only in white space and case."""
    return hashlib.sha256(" ".join(text.split()).casefold().encode("utf-8", "surrogatepass")).hexdigest()


def dedupe(items: Iterable[T], text: Callable[[T], str], score: Callable[[T], float]) -> list[T]:
    """Of items with the same content only the best one, the first of equals, in the order in which they came."""
    best: dict[str, tuple[float, int, T]] = {}
    for place, item in enumerate(items):
        key, value = content_hash(text(item)), score(item)
        if key not in best or value > best[key][0]:
            best[key] = (value, place, item)
    return [item for _, _, item in sorted(best.values(), key=lambda group: group[1])]


def words(text: str) -> frozenset[str]:
    """Alphanumeric runs of three characters or more in lower case, without the stopwords."""
    return frozenset(word for word in _alphanumerics()(text.lower()) if len(word) > 2) - STOPWORDS


_query_words = lru_cache(maxsize=16)(words)  # one query is scored against many memories


@cache
def _alphanumerics() -> Callable[[str], list[str]]:
    return re.compile(r"[^\W_]+").findall


def _similarity(e: Evidence) -> float | None:
    score = e.vector if e.vector is not None else e.text
    return score if score is None else min(max(score, 0.0), 1.0)


class WeightedSum(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="formula", tag="weighted_sum"):
    similarity: Weight = 0.5
    recency: Weight = 0.2
    importance: Weight = 0.2
    source: Weight = 0.1
    source_priority: dict[str, Share] = msgspec.field(
        default_factory=lambda: {"memory": 1.0, "audit": 0.8, "workflow": 0.6, "knowledge": 0.5}
    )
    recency_half_life_hours: Hours = 168.0
    decay_importance: bool = False
    """Whether the importance counts as it was stored or as it has become."""

    def score(self, e: Evidence, decay: Decay, now: datetime) -> Score:
        record = e.record
        similarity = _similarity(e) or 0.0
        recent = 0.5 ** (hours_between(record.created_at, now) / self.recency_half_life_hours)
        importance = record.importance
        if self.decay_importance:
            importance *= decay.factor(record, now)
        priority = self.source_priority.get(e.source, 0.0)
        a, b = self.similarity * similarity, self.recency * recent
        c, d = self.importance * importance, self.source * priority
        parts = (
            Part("similarity", similarity, self.similarity, a),
            Part("recency", recent, self.recency, b),
            Part("importance", importance, self.importance, c),
            Part("source", priority, self.source, d),
        )
        return Score(a + b + c + d, "sum", parts)


def recent_bonus(created_at: datetime, now: datetime) -> float:
    """The Aegis document's: a whole word for the first six minutes, less and less after."""
    return min(1.0, 0.1 / max(hours_between(created_at, now), 0.1))


class Overlap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="formula", tag="overlap"):
    """Words in common with the query, and a bonus of at most one word for being recent."""

    def score(self, e: Evidence, decay: Decay, now: datetime) -> Score:
        shared = float(len(words(e.record.text) & _query_words(e.query)))
        bonus = recent_bonus(e.record.created_at, now)
        return Score(shared + bonus, "sum", (Part("words", shared, 1.0, shared), Part("recency", bonus, 1.0, bonus)))


class Fusion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="formula", tag="fusion"):
    """Reciprocal ranks, multiplied by the memory's strength: importance and decay count once, whatever the tier."""

    k: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 60
    text: Weight = 1.0
    vector: Weight = 1.0

    def score(self, e: Evidence, decay: Decay, now: datetime) -> Score:
        by_text = self.text * rrf((e.text_rank,), self.k)
        by_vector = self.vector * rrf((e.vector_rank,), self.k)
        ranks = by_text + by_vector
        return _product(("ranks", ranks), ("importance", e.record.importance), ("decay", decay.factor(e.record, now)))


class Product(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="formula", tag="product"):
    boost: Annotated[float, msgspec.Meta(ge=1.0, le=1.5)] = 1.5
    boost_hours: Hours = 24.0
    """A memory recalled or made less than this long ago is boosted."""

    def score(self, e: Evidence, decay: Decay, now: datetime) -> Score:
        record, quality = e.record, _similarity(e)
        importance, decayed = record.importance, decay.factor(record, now)
        boost = self.boost if hours_between(record.accessed_at, now) < self.boost_hours else 1.0
        # Found by tag, kind or time alone: there was nothing to match badly.
        match = 1.0 if quality is None else quality
        parts = (  # without a loop: a query of thousands of memories scores each
            Part("importance", importance, 1.0, importance),
            Part("decay", decayed, 1.0, decayed),
            Part("recency_boost", boost, 1.0, boost),
            Part("match_quality", match, 1.0, match),
        )
        return Score(importance * decayed * boost * match, "product", parts)


class Oldest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="formula", tag="oldest"):
    """The older, the higher: as a diary is read."""

    def score(self, e: Evidence, decay: Decay, now: datetime) -> Score:
        # Not clamped, so that times in the future keep their order too.
        days = (now - e.record.created_at).total_seconds() / 86_400.0
        return Score(days, "sum", (Part("age_days", days, 1.0, days),))


class Calibrated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="formula", tag="calibrated"):
    """Each part in a unit that means the same in every memory, so that they can be added. Weights as measured.

    Text counts in shares of the best match, meaning in standard deviations of the cosine. Neighbours in the
    conversation lend a share of their own score, and its best memory recommends the others.
    """

    text: Weight = 4.0
    meaning: Weight = 1.0
    neighbour: Weight = 0.3
    second_neighbour: Weight = 0.15
    speaker: Weight = 4.0
    """Weight of memories of the speaker that the question names."""
    time: Weight = 3.0
    """Weight of memories near the time that the question names."""
    company: Weight = 0.2
    short: Annotated[float, msgspec.Meta(ge=1.0, le=1e6)] = 300.0
    """Characters. Longer turns speak for themselves: they lend and borrow less, and gain no more by their length."""
    asking: Weight = 1.0
    """What a memory loses that does nothing but ask."""
    length: Weight = 0.5
    """What a turn of a conversation gains for being e times as long."""
    when: Weight = 1.0
    """What a turn gains that names a time, where the question asks for one."""
    again: Weight = 0.2
    """What a turn loses for each better one of its conversation, where the question asks for several things."""
    fresh: bool = True
    """Whether a newer fact goes before an older one that it replaces."""

    def score(self, e: Evidence, decay: Decay, now: datetime) -> Score:
        """Without a question: the importance as it has become, and how recent it is."""
        worth = e.record.importance * decay.factor(e.record, now)
        recent = recency(hours_between(e.record.created_at, now), 168.0)
        return Score(
            worth + recent, "sum", (Part("importance", worth, 1.0, worth), Part("recency", recent, 1.0, recent))
        )


Ranking = WeightedSum | Overlap | Fusion | Product | Oldest | Calibrated


def _product(*factors: tuple[str, float]) -> Score:
    value = 1.0
    for _, factor in factors:
        value *= factor
    return Score(value, "product", tuple([Part(name, factor, 1.0, factor) for name, factor in factors]))
