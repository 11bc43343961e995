"""Phrases and wildcards together with words."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.common import Clock
from support.concepts import texts
from support.stores import DATABASES, STORES, located

from recollect import Memory
from recollect.policies.ranking import Calibrated
from recollect.presets import Preset, load
from recollect.values.record import TIERS

AS_WORDS_SAY = replace(load("recollect"), ranking=Calibrated(fresh=False))
"""Without the rule that a newer fact comes before an older one like it."""
EACH = pytest.mark.parametrize("kind", STORES)


@EACH
@pytest.mark.parametrize("preset", [None, "ledger"])
def test_a_word_beside_a_phrase_or_pattern_raises_what_has_it(tmp_path: Path, kind: str, preset: str | None) -> None:
    with Memory(located(kind, tmp_path / "memory"), preset=preset, embedder="none") as memory:
        memory.remember_many(["a brown fox sleeps", "the brown fox is quick"])
        for query in ('"brown fox" quick', "bro* quick", '"brown fox" f?x quick'):
            first, second = memory.recall(query, min_relevance=0.0)
            assert first.memory.text == "the brown fox is quick", query
            assert first.score > second.score > 0.1 * first.score, query


@EACH
def test_a_matching_word_in_place_of_another_never_lowers_a_memory(tmp_path: Path, kind: str) -> None:
    draw = random.Random(7)
    asked, filler = ["heron", "lynxe", "otter"], ["wwwww", "vvvvv", "zzzzz"]
    for number in range(8):
        with Memory(located(kind, tmp_path / f"m{number}"), preset=AS_WORDS_SAY, embedder="none") as memory:
            rows = [[draw.choice(asked + filler) for _ in range(3)] for _ in range(draw.randint(1, 4))]
            for row in [*rows]:  # beside each, the same with a word of the question in place of one that is none
                rows += [[*row[:at], word, *row[at + 1 :]] for at in range(3) for word in asked if row[at] in filler]
            memory.remember_many([f"{n:03} brown fox {' '.join(row)}" for n, row in enumerate(rows)])
            for query in ('"brown fox" heron', "bro* heron otter", "f?x heron lynxe otter", "heron otter"):
                wanted = set(query.split()) & set(asked)
                scores = {hit.memory.text: hit.score for hit in memory.recall(query, limit=100, min_relevance=0.0)}
                named = {tuple(text.split()[3:]): score for text, score in scores.items()}
                for row, score in named.items():
                    for other, lower in named.items():
                        if set(other) & wanted < set(row) & wanted:
                            assert score > lower, (query, row, other)


@EACH
def test_what_words_are_asked_beside_a_phrase_counts_in_the_relevance(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), embedder="none") as memory:
        memory.remember_many(["a brown fox sleeps", "the brown fox is quick"])
        quick, other = memory.recall('"brown fox" quick', min_relevance=0.0)
        assert texts([quick]) == ["the brown fox is quick"]
        assert (quick.relevance or 0) > (other.relevance or 0)


@EACH
@pytest.mark.parametrize("preset", [None, "ledger", "inklings"])
def test_an_emoji_alone_is_found(tmp_path: Path, kind: str, preset: str | None) -> None:
    with Memory(located(kind, tmp_path / "memory"), preset=preset, embedder="none") as memory:
        memory.remember_many(["the party was great🎉", "well done 👍🏽", "I ❤️ tea", "nothing of the kind"])
        for query, text in {
            "🎉": "the party was great🎉",
            "👍": "well done 👍🏽",
            "👍🏿": "well done 👍🏽",
            "❤": "I ❤️ tea",
            "what is ❤️?": "I ❤️ tea",
        }.items():
            assert texts(memory.recall(query)) == [text], query
        assert memory.recall("🎊") == []
        assert texts(memory.recall("tea 🎉")) == ["I ❤️ tea"]


@EACH
def test_a_phrase_of_symbols_is_looked_for_in_the_texts(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), embedder="none") as memory:
        memory.remember_many(["sushi 🍣 often in the office", "the office of Porto", "rice 🍣 at home"])
        assert texts(memory.recall('of* "🍣"', min_relevance=0.0)) == ["sushi 🍣 often in the office"]
        assert sorted(texts(memory.recall('"🍣"', min_relevance=0.0))) == [
            "rice 🍣 at home",
            "sushi 🍣 often in the office",
        ]
        assert texts(memory.recall('rice "!!"')) == ["rice 🍣 at home"]


@pytest.mark.clause("AEG-15")
@EACH
@pytest.mark.parametrize("preset", ["aegis", "ledger"])
def test_equal_hits_are_in_the_order_of_storing(tmp_path: Path, kind: str, preset: str) -> None:
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    with Memory(located(kind, tmp_path / "m"), preset=preset, embedder="none", clock=clock) as memory:
        stored = [memory.remember(f"saffron n{number}x", again=True).content for number in range(12)]
        assert texts(memory.recall("saffron", limit=20, min_relevance=0.0)) == stored
        for asked in ({"text": "saffron"}, {"text": "saffron", "sort_by": "importance"}, {}):
            assert texts(memory.query(asked)) == stored


@EACH
def test_why_not_counts_what_would_be_recalled(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), embedder="none") as memory:
        for _ in range(5):
            memory.remember("saffron rice and saffron", again=True)
        last = memory.remember("saffron in the long cupboard of the kitchen behind the window")
        absence = memory.recall("saffron rice", limit=1, why_not=last.id).absence
        everything = [hit.memory.id for hit in memory.recall("saffron rice", limit=50, min_relevance=0.0)]
        assert absence is not None
        assert absence.rank == everything.index(last.id) + 1 == 2


@EACH
def test_why_not_names_the_candidates_where_a_preset_ranks_some_only(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), preset="atlas", embedder="none") as memory:
        for number in range(12):
            memory.remember(f"saffron n{number}", importance=0.1, again=True)
        longer = memory.remember("saffron with many other words in a long sentence here", importance=1.0)
        hits = memory.recall("saffron", limit=3, why_not=longer.id)
        assert longer.id not in {hit.memory.id for hit in hits}
        assert hits.absence is not None
        assert hits.absence.reason == "it is not among the 10 best by words or by meaning, which are ranked"


@EACH
def test_a_quoted_phrase_comes_first_and_hides_nothing_else(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), embedder="none") as memory:
        title = memory.remember("Caroline has read Becoming Nicole", conversation="c1")
        lesson = memory.remember("Caroline: the book taught me to take courage away from it", conversation="c2")
        asked = 'What did Caroline take away from the book "Becoming Nicole"?'
        hits = memory.recall(asked)
        assert [hit.memory.id for hit in hits] == [title.id, lesson.id]
        assert "phrase" in [part.name for part in hits[0].explain().parts]
        assert sum(part.share for part in hits[0].explain().parts) == pytest.approx(hits[0].score)
        # A title that is quoted a little wrong hides nothing either.
        wrong = memory.recall(asked.replace("Becoming", "To become"))
        assert {hit.memory.id for hit in wrong} == {title.id, lesson.id}
        assert 'no memory has "To become Nicole" as it is written' in wrong.report
        # A question that is nothing but the phrase asks for just that, as long as it is there.
        assert [hit.memory.id for hit in memory.recall('"Becoming Nicole"')] == [title.id]
        assert [hit.memory.id for hit in memory.recall('"Nicole Becoming"')] == [title.id]
        # A query is exact.
        assert [hit.memory.id for hit in memory.query({"text": f"{asked[:-1]}"})] == [title.id]
        assert memory.query({"text": '"Nicole Becoming"'}) == []


@EACH
def test_why_not_ranks_as_the_recall_that_it_explains(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), embedder="none") as memory:
        memory.remember("eine Versicherung")
        longer = memory.remember("die Krankenversicherungskarte")
        (hit,) = (hits := memory.recall("Versicherung", limit=1, why_not=longer.id))
        assert hit.memory.text == "eine Versicherung"
        assert hits.absence is not None
        assert hits.absence.reason.startswith("it has no word of the question")
        assert len(memory.recall("Versicherung", limit=2, min_relevance=0.0)) == 2


@pytest.mark.clause("INK-12")
@pytest.mark.parametrize("kind", DATABASES)
@pytest.mark.parametrize("preset", [load("inklings"), load("atlas")], ids=lambda preset: preset.name)
def test_of_equal_hits_the_narrower_tier_comes_first(tmp_path: Path, kind: str, preset: Preset) -> None:
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    for order in (TIERS, TIERS[::-1]):
        location = located(kind, tmp_path / order[0])
        with Memory(location, preset=preset, embedder="none", clock=clock) as memory:
            here = memory.at(workspace="w", channel="c", conversation="t")
            for number, tier in enumerate(order):
                here.remember(f"lynx {number}", tier=tier, importance=0.5, kind="preference")
            hits = here.recall("lynx", touch=False, min_relevance=0.0)
            alike = [hit.memory.tier for hit in hits if hit.score == hits[0].score]
            assert len(alike) > 1
            assert alike == sorted(alike, key=TIERS.index, reverse=True)
