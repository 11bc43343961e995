from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from recollect.policies.decay import (
    INK_BUILTIN,
    INK_TABLE,
    Decay,
    HalfLife,
    NoDecay,
    PerTier,
    Weekly,
    half_life,
    hourly,
    strength,
    weekly,
    window,
)
from recollect.values.record import Address, Record, Tier

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEEK = timedelta(weeks=1)


def record(
    *,
    kind: str = "fact",
    tier: Tier = "workspace",
    importance: float = 0.8,
    age: timedelta = timedelta(0),
    unused: timedelta | None = None,
    access_count: int = 0,
) -> Record:
    return Record(
        id="1",
        address=Address(),
        tier=tier,
        kind=kind,
        content="text",
        importance=importance,
        created_at=NOW - age,
        accessed_at=NOW - (age if unused is None else unused),
        access_count=access_count,
    )


@pytest.mark.clause("ATL-12")
@pytest.mark.parametrize(
    ("importance", "weeks", "left"),
    [
        (0.8, 0, 0.8),
        (0.8, 1, 0.76),
        (0.8, 4, 0.651605),
        (1.0, 0.5, 0.974679),
        (1.0, 44, 0.104674),
        (1.0, 45, 0.099440),  # the first week in which a memory of full importance falls under 0.1
        (0.8, -3, 0.8),
    ],
)
def test_weekly_decay(importance: float, weeks: float, left: float) -> None:
    assert weekly(importance, weeks) == pytest.approx(left, abs=1e-6)


@pytest.mark.clause("INK-05")
@pytest.mark.parametrize(
    ("importance", "rate", "hours", "accesses", "relevance"),
    [
        (0.5, 0.998, 0, 0, 0.5),
        (0.5, 0.998, 168, 0, 0.357191),
        (0.5, 0.998, 168, 3, 0.852364),  # times 1 + ln 4
        (1.0, 0.99, 1, 0, 0.99),
        (1.0, 0.99, 0, 1, 1.693147),  # 1 + ln 2
        (1.0, 0.99, -5, 0, 1.0),
    ],
)
def test_hourly_decay(importance: float, rate: float, hours: float, accesses: int, relevance: float) -> None:
    assert hourly(importance, rate, hours, accesses) == pytest.approx(relevance, abs=1e-6)


@pytest.mark.clause("LED-09")
@pytest.mark.parametrize(
    ("hours", "half", "floor", "factor"),
    [
        (0, 168, 0.1, 1.0),
        (168, 168, 0.1, 0.5),
        (84, 168, 0.1, 0.707107),
        (336, 168, 0.1, 0.25),
        (720, 720, 0.1, 0.5),
        (558, 168, 0.1, 0.100035),
        (559, 168, 0.1, 0.1),  # from here on the floor
        (10**9, 168, 0.1, 0.1),
        (10**9, 168, 0.2, 0.2),
        (10**9, 168, 0.0, 0.0),
        (10**9, None, 0.1, 1.0),
        (-5, 168, 0.1, 1.0),
    ],
)
def test_half_life_decay(hours: float, half: float | None, floor: float, factor: float) -> None:
    assert half_life(hours, half, floor) == pytest.approx(factor, abs=1e-6)


def test_the_floor_is_a_tenth_by_default() -> None:
    assert half_life(10**6, 168) == 0.1


@pytest.mark.clause("JRN-01")
@pytest.mark.parametrize(
    ("age", "inside"),
    [
        (timedelta(0), True),
        (WEEK - timedelta(microseconds=1), True),
        (WEEK, True),
        (WEEK + timedelta(microseconds=1), False),
        (-WEEK * 9, True),
    ],
)
def test_window(age: timedelta, inside: bool) -> None:
    assert window(age, WEEK) is inside


@pytest.mark.clause("INK-04")
@pytest.mark.parametrize(
    ("rates", "tier", "percent"),
    [
        (INK_TABLE, "account", 71),
        (INK_TABLE, "workspace", 43),
        (INK_TABLE, "conversation", 100),
        (INK_BUILTIN, "account", 85),
        (INK_BUILTIN, "workspace", 71),
        (INK_BUILTIN, "channel", 43),
        (INK_BUILTIN, "conversation", 18),
    ],
)
def test_share_left_after_seven_days(rates: dict[Tier, float], tier: Tier, percent: int) -> None:
    assert round(100 * rates[tier] ** 168) == percent


@pytest.mark.clause("INK-04")
def test_the_tables_channel_keeps_about_17_percent() -> None:
    # The document rounds 0.99**168 = 0.1848 to 17; half a percentage point more is still "about".
    assert 100 * INK_TABLE["channel"] ** 168 == pytest.approx(17, abs=1.5)


@pytest.mark.clause("INK-04")
@pytest.mark.parametrize(
    ("decay", "tier", "factor"),
    [
        (PerTier(), "account", 0.999**10),
        (PerTier(), "workspace", 0.998**10),
        (PerTier(), "channel", 0.995**10),
        (PerTier(), "conversation", 0.99**10),
        (PerTier(rates="table"), "account", 0.998**10),
        (PerTier(rates="table"), "conversation", 1.0),
        (PerTier(rates={"account": 0.5}), "account", 0.5**10),
        (PerTier(rates={"account": 0.5}), "channel", 0.995**10),  # not named: built-in
    ],
)
def test_each_tier_has_its_rate(decay: PerTier, tier: Tier, factor: float) -> None:
    assert decay.factor(record(tier=tier, age=timedelta(hours=10)), NOW) == pytest.approx(factor)


@pytest.mark.clause("INK-05")
def test_tiers_fade_from_the_last_access_and_resist_when_used_often() -> None:
    used = record(age=timedelta(days=300), unused=timedelta(hours=1), access_count=3, importance=0.5)
    assert strength(used, PerTier(), NOW) == pytest.approx(0.5 * 0.998 * (1 + 1.3862943611))


@pytest.mark.clause("ATL-12")
def test_weekly_fades_from_the_last_retrieval() -> None:
    unused = record(age=timedelta(weeks=50), unused=timedelta(weeks=4))
    assert strength(unused, Weekly(), NOW) == pytest.approx(0.651605)
    assert strength(unused, Weekly(rate=0.5), NOW) == pytest.approx(0.05)


@pytest.mark.clause("LED-09")
@pytest.mark.parametrize(
    ("kind", "factor"),
    [("conversation", 0.5), ("decision", 0.850667), ("finding", 0.707107), ("preference", 1.0), ("other", 0.25)],
)
def test_half_life_by_kind_since_creation(kind: str, factor: float) -> None:
    decay = HalfLife(hours={"conversation": 168, "decision": 720, "finding": 336}, default=84, never=("preference",))
    old_but_just_used = record(kind=kind, age=timedelta(hours=168), unused=timedelta(0))
    assert decay.factor(old_but_just_used, NOW) == pytest.approx(factor, abs=1e-6)


def test_no_decay_keeps_the_importance() -> None:
    assert strength(record(age=timedelta(days=9999)), NoDecay(), NOW) == 0.8


@pytest.mark.parametrize("decay", [NoDecay(), Weekly(), PerTier(), HalfLife()])
def test_a_time_in_the_future_counts_as_now(decay: Decay) -> None:
    assert decay.factor(record(age=timedelta(days=-400)), NOW) == 1.0


@pytest.mark.parametrize(
    ("table", "decay"),
    [
        ({"curve": "none"}, NoDecay()),
        ({"curve": "weekly", "rate": 0.9}, Weekly(rate=0.9)),
        ({"curve": "per_tier", "rates": "table"}, PerTier(rates="table")),
        ({"curve": "per_tier", "rates": {"channel": 0.5}}, PerTier(rates={"channel": 0.5})),
        ({"curve": "half_life", "never": ["core"]}, HalfLife(never=("core",))),
    ],
)
def test_a_curve_is_chosen_by_name(table: dict[str, object], decay: Decay) -> None:
    assert msgspec.convert(table, Decay) == decay  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "table",
    [
        {"curve": "weekly", "rate": 0},
        {"curve": "weekly", "rate": 1.01},
        {"curve": "weekly", "rates": 0.9},
        {"curve": "per_tier", "rates": {"galaxy": 0.9}},
        {"curve": "half_life", "default": 0},
        {"curve": "half_life", "floor": 2},
        {"curve": "monthly"},
    ],
)
def test_a_curve_that_makes_no_sense_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(table, Decay)  # type: ignore[arg-type]
