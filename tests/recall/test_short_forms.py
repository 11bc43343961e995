"""A name in short and the initials of words are read in full, where no memory has them as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.concepts import texts
from support.stores import STORES, located

from recollect import Memory
from recollect.text.short_forms import full_names, longer_name, may_be_initials, name_beginning, stands_for


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


def test_who_is_called_by_a_short_name_is_found(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        robert = memory.remember("Robert takes ramipril for high blood pressure")
        deborah = memory.remember("Our contact at Timberline is Deborah Quill, phone 01 555 0142")
        marcus = memory.remember("The app is the job of Marcus Feldmann")
        for question, answer, note in (
            ("What does Bob take for his blood pressure?", robert, 'read "bob" as "robert"'),
            ("what does bob take for his blood pressure?", robert, 'read "bob" as "robert"'),
            ("What is Debbie's phone number?", deborah, 'read "debbie" as "deborah"'),
            ("What is the job of Feldi?", marcus, 'read "feldi" as "Feldmann"'),
        ):
            hits = memory.recall(question)
            assert (texts(hits)[:1], hits.report) == ([answer.text], note), question
        memory.remember("Bob likes tea")
        assert texts(memory.recall("what does Bob like?")) == ["Bob likes tea"]
        assert memory.recall("what does Bob like?").report == ""


def test_initials_are_read_in_full(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember("The public liability insurance is with Zurich and is renewed on 1 September")
        memory.remember("Our Kubernetes cluster is renewed in May")
        hits = memory.recall("When is the PLI renewed?")
        assert texts(hits)[:1] == ["The public liability insurance is with Zurich and is renewed on 1 September"]
        assert hits.report == 'read "pli" as "public liability insurance"'
        assert texts(memory.recall("when is k8s renewed?"))[:1] == ["Our Kubernetes cluster is renewed in May"]
        assert "read" not in memory.recall("when is the pli renewed?").report


def test_a_name_is_not_found_in_a_word_that_begins_as_it_does(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many(["The market opens at 8 in the summer", "Market day is Friday"])
        hits = memory.recall("When does Mark come back from the summer school?")
        assert "read" not in hits.report
        assert hits == []
        assert "no memory has Mark" in hits.report


def test_nobody_is_found_whom_the_view_cannot_see(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.at(workspace="hers").remember("Robert takes ramipril, and Marcus Feldmann the bus")
        mine = memory.at(workspace="mine")
        mine.remember("The bus takes an hour, and ramipril is a medicine")
        for question in ("what does Bob take?", "what bus does Feldi take?"):
            assert "read" not in mine.recall(question, min_relevance=0.0).report


def test_what_a_short_form_stands_for() -> None:
    assert full_names("Bob") == ["robert"]
    assert full_names("Zorba") == []
    assert [name_beginning(name) for name in ("Debbie", "Tommy", "Kathi", "Sam", "Al", "Jo", "Kay")] == [
        "deb",
        "tom",
        "kath",
        "sam",
        None,
        None,
        "kay",
    ]
    assert longer_name("Sam", ["Samuel likes it", "we met Samantha", "I saw Samantha"]) == "Samantha"
    assert longer_name("Mark", ["The market is open", "Market day is Friday"]) is None
    assert longer_name("Anna", ["we met Anna"]) is None
    assert stands_for("OSM", "a poster at the Ocean Sciences Meeting in Glasgow") == "Ocean Sciences Meeting"
    assert stands_for("BE", "the Bank of England met") == "Bank of England"
    assert stands_for("k8s", "our Kubernetes cluster") == "Kubernetes"
    assert stands_for("GQL", "the API is GraphQL") == "GraphQL"
    assert stands_for("osm", "a poster at the Ocean Sciences Meeting") is None
    assert stands_for("PLI", "nothing of the kind") is None
    assert [word for word in ("PLI", "k8s", "GQL", "pli", "I", "ABCDEFG", "v2", "Bob") if may_be_initials(word)] == [
        "PLI",
        "k8s",
        "GQL",
    ]


def test_initials_in_an_empty_memory_and_in_hostile_texts(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        hits = memory.recall("when is PLI due, and k8s?")
        assert (hits, hits.answered) == ([], 0.0)
        memory.remember("the boiler: " + "of " * 5000)
        memory.remember("pub" + "x" * 30_000 + "\n\nl" + "y" * 30_000 + " i" + "z" * 30_000 + " boiler")
        for question in ("what is OOOOOX of the boiler?", "what is PLI of the boiler?", "what is OX of the boiler?"):
            assert len(memory.recall(question).report) < 300
        assert memory.recall("is the API up?", kind="nothing") == []


def test_a_sentence_has_no_initials() -> None:
    for sentence in ("Paul lives in Oslo", "Peter likes ice cream", "pay\n\n\nlies\r\ninsurance", "my cat is ill"):
        assert stands_for("PLI", sentence) is None
        assert stands_for("MCI", sentence) is None
    assert stands_for("LH", "Flight LH440 leaves") is None
    for long in ("public " + "l" * 80 + " insurance", "Public" + "l" * 80 + "LI"):
        assert stands_for("PLI", long) is None


def test_nothing_is_read_otherwise_in_the_past(url: str) -> None:
    """What is written now was not known then."""
    with Memory(url, embedder="none") as memory:
        memory.remember("the chrysanthemum of Robert is dead")
        for then in ("2020-01-01", "2099-01-01"):
            for question in ("where is the chrysantemum?", "what does Bob have?"):
                assert "read" not in memory.recall(question, as_of=then).report


def test_a_category_that_an_agent_may_not_search_gives_no_word(tmp_path: Path) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        memory.knowledge.add(
            "# Garden\nThe contract of the garden is with Samuel.", category="public", status="published"
        )
        memory.knowledge.allow("bob", ["public"])
        bob = memory.at(agent="bob").knowledge
        before = [hit.text for hit in bob.search("which conract?")]
        memory.knowledge.add("# Dull\nconract", category="secret", status="published")
        assert [hit.text for hit in bob.search("which conract?")] == before != []
