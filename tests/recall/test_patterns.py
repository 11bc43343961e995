"""Phrases and wildcards together with words."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.concepts import texts
from support.stores import STORES, located

from recollect import Memory
from recollect.policies.ranking import Calibrated
from recollect.presets import load

AS_WORDS_SAY = replace(load("recollect"), ranking=Calibrated(fresh=False))
"""Without the rule that a newer fact comes before an older one like it."""
EACH = pytest.mark.parametrize("kind", STORES)


@EACH
@pytest.mark.parametrize("preset", [None, "ledger"])
def test_a_word_beside_a_phrase_or_pattern_raises_what_has_it(tmp_path: Path, kind: str, preset: str | None) -> None:
    with Memory(located(kind, tmp_path / "memory"), preset=preset, embedder="none") as memory:
        memory.remember_many(["a brown fox sleeps", "the brown fox is quick"])
        for query in ('"brown fox" quick', "bro* quick", '"brown fox" f?x quick'):
            first, second = memory.recall(query)
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
