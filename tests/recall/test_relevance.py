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
from recollect.recall.relevance import Sign, answered, asking, relevance
from recollect.text.mentions import names_in

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
            assert not memory.context([{"role": "user", "content": question}], profile=False).memories
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
        told = f"nothing relevant: the best ({hits[0].memory.id}) has a relevance of {best:.3f}, below 1"
        assert (nothing, nothing.report) == ([], told)
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


SIGN = Sign(0.3, None, 0.0, 1.0, other_speaker=False, time=0.0, asking=0.0, alone=True)


@pytest.mark.parametrize("memories", [1, 10, 600, 100_000])
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("meaning", [None, -2.0, 3.0])
def test_each_sign_moves_the_relevance_the_way_it_should(memories: int, alone: bool, meaning: float | None) -> None:
    sign = SIGN._replace(alone=alone, meaning=meaning)
    base = relevance(sign, 2, memories)
    assert 0.0 < base < 1.0
    assert relevance(sign._replace(coverage=0.6), 2, memories) > base
    assert relevance(sign._replace(behind=3.0), 2, memories) < base
    assert relevance(sign._replace(asking=1.0), 2, memories) < base
    assert relevance(sign, 2, 1) >= base
    if meaning is not None:
        assert relevance(sign._replace(meaning=meaning + 1.0), 2, memories) > base
        assert relevance(sign._replace(deviation=2.0), 2, memories) > base
    if not alone:
        assert relevance(sign._replace(other_speaker=True), 2, memories) < base
        assert relevance(sign._replace(time=1.0), 2, memories) > base
        assert relevance(sign, 3, memories) < base


@pytest.mark.parametrize("memories", [1, 10, 600, 100_000])
@pytest.mark.parametrize("meaning", [None, -2.0, 3.0])
def test_each_sign_moves_the_likelihood_of_an_answer(memories: int, meaning: float | None) -> None:
    sign = SIGN._replace(meaning=meaning)
    base = answered([sign, sign], memories, 0.5)
    assert 0.0 < base < 1.0
    assert answered([sign], memories, 0.5) == base
    assert answered([sign._replace(coverage=0.5), sign], memories, 0.5) > base
    assert answered([sign, sign._replace(time=1.0)], memories, 0.5) > base
    assert answered([sign, sign], memories, 1.0) < base
    assert answered([sign, sign], memories, 0.5, nobody=True) < base
    # What only tells which hit is best here says nothing of whether any is right.
    assert answered([sign._replace(behind=5.0), sign._replace(behind=5.0)], memories, 0.5) == base
    # Neither does what comes after the first ten.
    assert answered([*[sign] * 10, sign._replace(coverage=1.0)], memories, 0.5) == base
    assert answered([], memories, 0.0) == 0.0


def test_what_share_of_a_text_asks() -> None:
    assert asking("Alice lives in Oslo.") == 0.0
    assert asking("Where does she live?") == 1.0
    assert 0.4 < asking("I saw her. Did you, too?") < 0.7


def test_of_what_stands_by_itself_only_what_is_nearly_as_relevant_comes(url: str) -> None:
    """A turn comes however it compares: it is read in its talk."""
    with Memory(url, embedder="none") as memory:
        older = memory.remember("the key is on the shelf", created_at="2026-01-01T00:00:00+00:00")
        best = memory.remember("the key of the cellar door is in the blue box", created_at="2026-02-01T00:00:00+00:00")
        newer = memory.remember("the cellar was painted", created_at="2026-03-01T00:00:00+00:00")
        asked = "where is the key of the cellar door?"
        everything = {hit.memory.id: hit.relevance or 0.0 for hit in memory.recall(asked, min_relevance=0.0)}
        assert set(everything) == {older.id, best.id, newer.id}
        shares = {ident: value / everything[best.id] for ident, value in everything.items()}
        rules = load("recollect").recall
        wanted = {best.id}
        wanted |= {older.id} if shares[older.id] >= rules.share_of_best else set()
        wanted |= {newer.id} if shares[newer.id] >= rules.share_of_best_if_newer else set()
        assert {hit.memory.id for hit in memory.recall(asked)} == wanted == {best.id}
        said = memory.remember("the cellar was cold", conversation="c1")
        assert {hit.memory.id for hit in memory.recall(asked)} == {best.id, said.id}


@pytest.mark.parametrize(("older", "newer", "number"), [(0.0, 0.0, 3), (0.0, 1.0, 2), (1.0, 0.0, 2), (1.0, 1.0, 1)])
def test_a_preset_says_what_is_left_out_beside_the_best(url: str, older: float, newer: float, number: int) -> None:
    rules = load("recollect")
    shares = replace(rules.recall, share_of_best=older, share_of_best_if_newer=newer)
    with Memory(url, preset=replace(rules, recall=shares), embedder="none") as memory:
        memory.remember("the key is on the shelf", created_at="2026-01-01T00:00:00+00:00")
        memory.remember("the key of the cellar door is in the blue box", created_at="2026-02-01T00:00:00+00:00")
        memory.remember("the cellar was painted", created_at="2026-03-01T00:00:00+00:00")
        assert len(memory.recall("where is the key of the cellar door?")) == number


def test_a_paraphrased_question_finds_its_fact_in_a_young_memory(tmp_path: Path, embedder: LocalEmbedder) -> None:
    """Two of three were held back when the best hit's relevance decided."""
    asked = {
        "Which foods must I avoid?": "I am allergic to peanuts",
        "What can't I eat?": "I am allergic to peanuts",
        "In which city is Alice at home?": "Alice lives in Oslo, near the harbour",
        "What time do we meet each morning?": "The daily standup is at 9:15",
        "How do I get into the building?": "The door code of the office is 4711",
        "What does my flat cost?": "Rent is 1,250 euros a month",
    }
    with Memory(tmp_path, embedder=embedder) as memory:
        memory.remember_many(list(TOLD.values()))
        memory.embed()
        assert {question: texts(memory.recall(question))[:1] for question in asked} == {
            question: [answer] for question, answer in asked.items()
        }


def test_somebody_whom_no_memory_names_is_not_answered_about(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many([*TOLD.values(), *[f"filler number {n} of the store" for n in range(60)]])
        bob = memory.remember("Bob uses vim as his editor, at work and at home")
        hits = memory.recall("Which editor did Zorba recommend to the new colleagues?")
        assert hits == []
        assert "no memory has Zorba" in hits.report
        assert hits.answered is not None
        assert hits.answered < load("recollect").recall.min_relevance
        known = memory.recall("Which editor did Bob recommend to the new colleagues?")
        assert texts(known)[:1] == [bob.text]
        assert known.answered is not None
        assert known.answered > 5 * hits.answered
        samuel = memory.remember("Samuel recommended emacs as the editor")
        assert texts(memory.recall("Which editor did Sam recommend to the new colleagues?"))[:1] == [samuel.text]


def test_a_name_of_the_question_is_a_capital_inside_an_english_sentence() -> None:
    assert names_in("Where does Zorba live?") == {"zorba": "Zorba"}
    assert names_in("I met her. Zorba is who?") == {}
    assert names_in("What happened on Friday?") == {}
    assert names_in("Wo steht das Haus?") == {}
    assert names_in("WHERE IS ANNA") == {}
    assert list(names_in("what did Anna's brother say to Zorba and Anna")) == ["anna", "zorba"]


def test_a_query_gives_all_that_meets_it_however_little_it_says(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many([f"filler number {n}" for n in range(700)])
        greeting, door = memory.remember("Good morning, everyone"), memory.remember("the door is open")
        assert [hit.memory.id for hit in memory.query({"text": "Good morning"})] == [greeting.id]
        long = "which door was it that Otto painted in May with Hilde and Ute?"
        assert memory.recall(long) == []
        assert [hit.memory.id for hit in memory.query({"text": long})] == [door.id]
