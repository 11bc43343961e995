"""Knowing that nothing is known: what is relevant, what is not, and saying so."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from support.concepts import Concepts, texts
from support.stores import STORES, located

from recollect import InputError, Memory, tools
from recollect.cli.app import cli
from recollect.evaluation.abstaining import GREETINGS, NONSENSE
from recollect.models.embedders.local import LocalEmbedder
from recollect.presets import load
from recollect.recall.relevance import relevance

pytest_plugins = ["support.model_files"]

TOLD = {
    "Where does Alice live?": "Alice lives in Oslo, near the harbour",
    "What am I allergic to?": "I am allergic to peanuts",
    "When is the standup?": "The daily standup is at 9:15",
    "What is the door code?": "The door code of the office is 4711",
    "Which editor does Bob use?": "Bob prefers vim over emacs",
    "How much is the rent?": "Rent is 1,250 euros a month",
}


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


def test_greetings_and_nonsense_bring_nothing_back_by_words(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many([*TOLD.values(), "Good morning, everyone! Thanks for coming", "ok, see you tomorrow"])
        for question in (*GREETINGS, *NONSENSE):
            assert memory.recall(question) == [], question
            assert not memory.context([{"role": "user", "content": question}]).memories
        for question, answer in TOLD.items():
            assert texts(memory.recall(question))[:1] == [answer]
        assert memory.recall("Good morning").report == "nothing relevant: nothing was asked"
        assert texts(memory.recall("Good morning", min_relevance=0.0))[0].startswith("Good morning")


@pytest.mark.parametrize("number", [1, 3, 6])
def test_greetings_and_nonsense_bring_nothing_back_by_meaning(
    tmp_path: Path, embedder: LocalEmbedder, number: int
) -> None:
    told = dict(list(TOLD.items())[:number])
    with Memory(tmp_path, embedder=embedder) as memory:
        memory.remember_many(list(told.values()))
        memory.embed()
        silent = [question for question in (*GREETINGS, *NONSENSE) if not memory.recall(question)]
        assert len(silent) >= 0.98 * len(GREETINGS + NONSENSE)
        hits = memory.recall("zzzqqq")
        assert (hits, hits.report[:17]) == ([], "nothing relevant:")
        assert str(hits) == hits.report
        for question, answer in told.items():
            assert texts(memory.recall(question))[:1] == [answer]


def test_every_hit_has_what_is_asked_of_it(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many([*TOLD.values(), "the door is open", "a door is a door"])
        hits = memory.recall("the door code", min_relevance=0.0)
        assert len(hits) == 3
        values = [hit.relevance or 0.0 for hit in hits]
        assert all(0.0 < value < 1.0 for value in values)
        best = max(values)
        assert len(memory.recall("the door code", min_relevance=best)) == 1
        nothing = memory.recall("the door code", min_relevance=1.0)
        assert (nothing, nothing.report) == ([], f"nothing relevant: the best has a relevance of {best:.3f}, below 1")
        assert str(hits[0].explain()).endswith(f"; relevance {hits[0].relevance:.3f}")
        for wrong in (-0.1, 1.1, "much", float("nan")):
            with pytest.raises(InputError, match="min_relevance"):
                memory.recall("door", min_relevance=wrong)  # pyright: ignore[reportArgumentType]
        absent = memory.recall("zzz qqq door emacs", why_not=hits[-1].memory.id, min_relevance=0.9).absence
        assert absent is not None
        assert "nothing relevant" in absent.reason


def test_a_preset_says_how_relevant_the_best_must_be(url: str) -> None:
    rules = load("recollect")
    for least, number in ((0.0, 1), (0.9, 0)):
        preset = replace(rules, recall=replace(rules.recall, min_relevance=least))
        with Memory(url, preset=preset, embedder="none") as memory:
            if not memory.list():
                memory.remember("the door is open")
            assert len(memory.recall("which door was it that Hilde painted green in May?")) == number


def test_a_model_that_does_not_say_what_its_cosines_mean_holds_nothing_back(url: str) -> None:
    with Memory(url, embedder=Concepts()) as memory:
        memory.remember("Ute sold her automobile")
        (hit,) = memory.recall("car")
        assert hit.relevance is None
        assert "relevance" not in str(hit.explain())


def test_phrases_and_parts_of_words_count_as_the_words(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many([f"filler number {n} of the store" for n in range(700)])
        memory.remember("meine Krankenversicherung ist die Blaue")
        memory.remember("he said: never on a Sunday")
        assert texts(memory.recall("versicherung")) == ["meine Krankenversicherung ist die Blaue"]
        assert texts(memory.recall('"never on a Sunday"')) == ["he said: never on a Sunday"]


def test_tools_and_the_command_say_that_nothing_is_relevant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory(embedder="none") as memory:
        memory.remember("the door is open")
        asked = {"query": "which door was it that Hilde painted green in May with Otto?", "min_relevance": 0.5}
        found = tools.call(memory, "recall", asked)
        assert (found["count"], found["note"][:17]) == (0, "nothing relevant:")
        assert tools.call(memory, "recall", {**asked, "min_relevance": 0})["memories"][0]["relevance"] < 0.5
    said: Any = CliRunner().invoke(cli, ["recall", "Good morning"])
    assert "Nothing relevant: nothing was asked. --min-relevance 0 shows what comes closest." in said.output
    told: Any = CliRunner().invoke(cli, ["recall", "which door?", "--explain"])
    assert "relevance 0." in told.output


@pytest.mark.parametrize("memories", [1, 10, 600, 100_000])
def test_relevance_grows_with_each_of_its_parts(memories: int) -> None:
    for meaning in (None, -2.0, 3.0):
        base = relevance(0.3, meaning, 4.0, memories)
        assert 0.0 < base < 1.0
        assert relevance(0.6, meaning, 4.0, memories) > base
        assert relevance(0.3, meaning, 8.0, memories) > base
        if meaning is not None:
            assert relevance(0.3, meaning + 1.0, 4.0, memories) > base
    assert relevance(0.3, None, 4.0, 1) >= relevance(0.3, None, 4.0, memories)


def test_a_query_gives_all_that_meets_it_however_little_it_says(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many([f"filler number {n}" for n in range(700)])
        greeting, door = memory.remember("Good morning, everyone"), memory.remember("the door is open")
        assert [hit.memory.id for hit in memory.query({"text": "Good morning"})] == [greeting.id]
        long = "which door was it that Otto painted in May with Hilde and Ute?"
        assert memory.recall(long) == []
        assert [hit.memory.id for hit in memory.query({"text": long})] == [door.id]
