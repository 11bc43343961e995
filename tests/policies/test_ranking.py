import hashlib
import math
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.policies.decay import Decay, HalfLife, NoDecay, PerTier, Weekly
from recollect.policies.ranking import (
    STOPWORDS,
    Evidence,
    Fusion,
    Oldest,
    Overlap,
    Product,
    Ranking,
    Score,
    WeightedSum,
    content_hash,
    dedupe,
    recency,
    rrf,
    words,
)
from recollect.values.record import Address, Record

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(
    content: object = "text",
    *,
    importance: float = 0.5,
    hours: float = 0,
    unused: float | None = None,
    kind: str = "fact",
) -> Record:
    return Record(
        id="1",
        address=Address(),
        tier="workspace",
        kind=kind,
        content=content,
        importance=importance,
        created_at=NOW - timedelta(hours=hours),
        accessed_at=NOW - timedelta(hours=hours if unused is None else unused),
    )


def shares(score: Score) -> dict[str, float]:
    return {part.name: part.share for part in score.parts}


@pytest.mark.clause("ATL-10")
@pytest.mark.parametrize(
    ("similarity", "hours", "importance", "source", "value"),
    [
        (1.0, 0, 1.0, "memory", 1.0),
        (0.0, 0, 0.0, "memory", 0.3),
        (0.8, 168, 0.5, "memory", 0.7),  # 0.4 + 0.1 + 0.1 + 0.1
        (0.8, 168, 0.5, "audit", 0.68),
        (0.8, 168, 0.5, "workflow", 0.66),
        (0.8, 168, 0.5, "knowledge", 0.65),
        (0.8, 336, 0.5, "memory", 0.65),
        (0.8, -50, 0.5, "memory", 0.8),  # from the future: as new as can be
        (-0.4, 168, 0.5, "memory", 0.3),  # the opposite is no better than nothing in common
        (0.8, 168, 0.5, "unheard of", 0.6),
    ],
)
def test_weighted_sum(similarity: float, hours: float, importance: float, source: str, value: float) -> None:
    evidence = Evidence(record(importance=importance, hours=hours), "q", vector=similarity, source=source)
    assert WeightedSum().score(evidence, NoDecay(), NOW).value == pytest.approx(value)


@pytest.mark.clause("ATL-10")
def test_weighted_sum_says_what_each_part_contributed() -> None:
    score = WeightedSum().score(Evidence(record(hours=168), "q", vector=0.8, source="audit"), NoDecay(), NOW)
    assert score.how == "sum"
    assert shares(score) == pytest.approx({"similarity": 0.4, "recency": 0.1, "importance": 0.1, "source": 0.08})


def test_similarity_is_the_vectors_and_without_one_the_texts() -> None:
    formula = WeightedSum(similarity=1, recency=0, importance=0, source=0)
    both, text, neither = (
        Evidence(record(), "q", text=0.9, vector=0.2),
        Evidence(record(), "q", text=0.9),
        Evidence(record(), "q"),
    )
    assert [formula.score(e, NoDecay(), NOW).value for e in (both, text, neither)] == [0.2, 0.9, 0.0]


def test_importance_decays_only_if_asked() -> None:
    evidence = Evidence(record(importance=0.8, hours=4 * 168), "q")
    weights = {"similarity": 0, "recency": 0, "importance": 1, "source": 0}
    assert WeightedSum(**weights).score(evidence, Weekly(), NOW).value == 0.8
    assert WeightedSum(**weights, decay_importance=True).score(evidence, Weekly(), NOW).value == pytest.approx(0.651605)


@pytest.mark.clause("AEG-10")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Project uses PostgreSQL 16 on port 5432", {"uses", "postgresql", "port", "5432"}),
        ("The the THE and an it", set()),
        ("snake_case, kebab-case; CamelCase!", {"snake", "case", "kebab", "camelcase"}),
        ("Grüße aus Köln", {"grüße", "aus", "köln"}),
        ("", set()),
    ],
)
def test_words(text: str, found: set[str]) -> None:
    assert words(text) == found


@pytest.mark.clause("AEG-10")
def test_the_stopwords_are_the_documents() -> None:
    assert len(STOPWORDS) == 84
    digest = hashlib.sha256(" ".join(sorted(STOPWORDS)).encode()).hexdigest()
    assert digest == "c1c3a44d81021b41c2d33831855a7cc149c921b8dd857cf89d68cb2f33bf60f9"


@pytest.mark.clause("AEG-10")
@pytest.mark.parametrize(
    ("memory", "message", "hours", "score"),
    [
        ("User prefers Python over JavaScript", "which language: python or javascript?", 10, 2.01),
        ("python python PYTHON", "Python, python", 10, 1.01),  # unique words
        ("the project and the file", "the project and the file", 10, 0.01),  # only stopwords
        ("Deploy target is AWS us-east-1", "where do we deploy?", 1, 1.1),
        ("Deploy target is AWS us-east-1", "where do we deploy?", 0.1, 2.0),
        ("Deploy target is AWS us-east-1", "where do we deploy?", 0, 2.0),
        ("Deploy target is AWS us-east-1", "where do we deploy?", -3, 2.0),
        ("Deploy target", "hello", 1000, 0.0001),
        ("deploys", "deploy", 10, 0.01),  # whole words
    ],
)
def test_overlap(memory: str, message: str, hours: float, score: float) -> None:
    evidence = Evidence(record(memory, hours=hours), message)
    assert Overlap().score(evidence, NoDecay(), NOW).value == pytest.approx(score)


@pytest.mark.clause("INK-13")
@pytest.mark.parametrize(
    ("ranks", "value"),
    [((1, 1), 2 / 61), ((1, None), 1 / 61), ((None, 3), 1 / 63), ((2, 5), 1 / 62 + 1 / 65), ((None, None), 0.0)],
)
def test_reciprocal_rank_fusion(ranks: tuple[int | None, ...], value: float) -> None:
    assert rrf(ranks) == pytest.approx(value)
    evidence = Evidence(record(importance=1.0), "q", text_rank=ranks[0], vector_rank=ranks[1])
    assert Fusion().score(evidence, NoDecay(), NOW).value == pytest.approx(value)


@pytest.mark.clause("INK-13")
def test_fusion_discounts_for_decay_once() -> None:
    old = record(importance=0.5, hours=168)
    score = Fusion().score(Evidence(old, "q", text_rank=1, vector_rank=2), PerTier(), NOW)
    assert score.value == pytest.approx((1 / 61 + 1 / 62) * 0.357191, rel=1e-5)
    assert [part.name for part in score.parts] == ["ranks", "importance", "decay"]


def test_fusion_can_trust_one_list_more() -> None:
    score = Fusion(k=10, text=2.0, vector=0.5).score(
        Evidence(record(importance=1.0), "q", text_rank=1, vector_rank=1), NoDecay(), NOW
    )
    assert score.value == pytest.approx(2.5 / 11)


@pytest.mark.clause("LED-08")
@pytest.mark.parametrize(
    ("importance", "hours", "unused", "quality", "value"),
    [
        (0.8, 0, 0, 1.0, 1.2),  # 0.8 × 1 × 1.5 × 1
        (0.8, 168, 168, 1.0, 0.4),  # 0.8 × 0.5 × 1 × 1
        (0.8, 168, 23.9, 1.0, 0.6),  # used today
        (0.8, 168, 24, 1.0, 0.4),  # exactly a day ago is no longer recent
        (0.8, 168, 168, 0.25, 0.1),
        (0.8, 168, 168, 0.0, 0.0),
        (0.8, 168, 168, None, 0.4),  # found by tag, not by words
        (0.8, 10_000, 10_000, 1.0, 0.08),  # at the floor
        (0.8, -9, -9, 1.0, 1.2),
    ],
)
def test_product(importance: float, hours: float, unused: float, quality: float | None, value: float) -> None:
    evidence = Evidence(record(importance=importance, hours=hours, unused=unused), "q", text=quality)
    score = Product().score(evidence, HalfLife(), NOW)
    assert score.value == pytest.approx(value)
    assert score.how == "product"
    assert [part.name for part in score.parts] == ["importance", "decay", "recency_boost", "match_quality"]


def test_oldest_first() -> None:
    ages = [3.0, -1.0, 400.0, 0.5, -2.0]
    scores = {age: Oldest().score(Evidence(record(hours=age * 24), "q"), NoDecay(), NOW).value for age in ages}
    assert sorted(ages, key=lambda age: -scores[age]) == [400.0, 3.0, 0.5, -1.0, -2.0]
    assert scores[3.0] == 3.0


@pytest.mark.parametrize(
    ("hours", "half_life", "value"), [(0, 10, 1.0), (10, 10, 0.5), (20, 10, 0.25), (5, 10, 0.707107), (-5, 10, 1.0)]
)
def test_recency(hours: float, half_life: float, value: float) -> None:
    assert recency(hours, half_life) == pytest.approx(value, abs=1e-6)


units = st.floats(0, 1)
ranks = st.none() | st.integers(1, 1000)
hours = st.floats(-1e5, 1e6)
formulas = st.sampled_from(
    [WeightedSum(), WeightedSum(decay_importance=True), Overlap(), Fusion(), Product(), Oldest()]
)
curves = st.sampled_from([NoDecay(), Weekly(), PerTier(), HalfLife()])


@given(formulas, curves, units, hours, hours, st.none() | units, st.none() | st.floats(-1, 1), ranks, ranks)
def test_the_parts_make_up_the_score(
    formula: Ranking,
    decay: Decay,
    importance: float,
    age: float,
    unused: float,
    text: float | None,
    vector: float | None,
    text_rank: int | None,
    vector_rank: int | None,
) -> None:
    memory = record("Alice prefers tabs", importance=importance, hours=age, unused=unused)
    evidence = Evidence(memory, "what does Alice want", text, text_rank, vector, vector_rank)
    score = formula.score(evidence, decay, NOW)
    each = [part.share for part in score.parts]
    made = math.fsum(each) if score.how == "sum" else math.prod(each)
    assert score.value == pytest.approx(made, rel=1e-12, abs=1e-12)
    if score.how == "sum":
        assert each == [pytest.approx(part.weight * part.value) for part in score.parts]
    assert math.isfinite(score.value)


@pytest.mark.clause("ATL-10")
def test_texts_that_differ_in_space_and_case_have_the_same_hash() -> None:
    assert content_hash(" Alice  prefers\n tabs ") == content_hash("alice prefers TABS")
    assert content_hash("Straße") == content_hash("STRASSE")
    assert content_hash("alice prefers tabs") != content_hash("alice prefers tab s")
    assert content_hash("a") == hashlib.sha256(b"a").hexdigest()


@pytest.mark.clause("ATL-10")
def test_of_doubles_the_best_is_kept() -> None:
    items = [("Tabs", 0.2), ("other", 0.5), ("tabs ", 0.9), ("tabs", 0.9), ("OTHER", 0.1)]
    assert dedupe(items, lambda item: item[0], lambda item: item[1]) == [("other", 0.5), ("tabs ", 0.9)]


@pytest.mark.parametrize(
    ("table", "formula"),
    [
        ({"formula": "weighted_sum", "recency": 1}, WeightedSum(recency=1.0)),
        ({"formula": "overlap"}, Overlap()),
        ({"formula": "fusion", "k": 10}, Fusion(k=10)),
        ({"formula": "product"}, Product()),
        ({"formula": "oldest"}, Oldest()),
    ],
)
def test_a_formula_is_chosen_by_name(table: dict[str, object], formula: Ranking) -> None:
    assert msgspec.convert(table, Ranking) == formula  # type: ignore[arg-type]
