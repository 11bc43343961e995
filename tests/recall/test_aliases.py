"""Other names for the same thing: saved as aliases, or said by a memory. A question with the one finds the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.concepts import texts
from support.served import served
from support.stores import STORES, located

from recollect import AccessError, InputError, Memory, SecretError
from recollect.recall.aliases import other_readings
from recollect.text.also_called import also_called

DUMP, UPGRADE, LUNCH = "The pg dump runs at night", "We upgraded PostgreSQL to version 16 in March", "Lunch is at noon"
ASKED = "which version of pg do we run?"


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


def test_a_question_with_one_name_finds_what_has_the_other(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many([DUMP, UPGRADE, LUNCH])
        assert UPGRADE not in texts(memory.recall(ASKED))
        saved = memory.aliases.save("PostgreSQL", "pg")
        assert (saved.name, saved.also) == ("PostgreSQL", "pg")
        hits = memory.recall(ASKED)
        assert UPGRADE in texts(hits)
        assert LUNCH not in texts(hits)
        assert hits.report == 'read "pg" also as "PostgreSQL"'
        back = memory.recall("when does the PostgreSQL dump run?")
        assert texts(back)[0] == DUMP  # and the other way round
        with Memory(url, embedder="none") as other:  # whoever else has the store opened
            assert UPGRADE in texts(other.recall(ASKED))
            other.aliases.remove("PG")
        assert memory.aliases.list() == []
        assert UPGRADE not in texts(memory.recall(ASKED))
        memory.undo()
        assert UPGRADE in texts(memory.recall(ASKED))


def test_context_and_quoted_names_know_it_too_and_an_exact_query_does_not(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many([DUMP, UPGRADE])
        memory.aliases.save("pg", "PostgreSQL")
        block = memory.context([{"role": "user", "content": ASKED}])
        assert UPGRADE in str(block.messages)
        assert UPGRADE in texts(memory.recall('which version of "pg" is it?'))
        assert texts(memory.query({"text": '"pg"'})) == [DUMP]


def test_a_memory_may_say_it(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many(
            ["Bertha, also known as the big printer, came in May", "The big printer has no paper", LUNCH]
        )
        hits = memory.recall("what is wrong with Bertha?")
        assert "The big printer has no paper" in texts(hits)
        assert 'read "Bertha" also as "big printer"' in hits.report
        memory.forget(hits[[*texts(hits)].index("Bertha, also known as the big printer, came in May")].memory.id)
        assert "The big printer has no paper" not in texts(memory.recall("what is wrong with Bertha?"))


def test_nobody_reads_by_an_alias_that_they_may_not_see(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many([DUMP, UPGRADE])
        owners: list[dict[str, Any]] = [{"agent": "a"}, {"account": "u"}, {"channel": "ops"}]
        for owner in owners:
            memory.at(**owner).aliases.save("pg", "PostgreSQL")
            for other in ({"agent": "b"}, {"account": "v"}, {"channel": "dev"}):
                if other.keys() == owner.keys():
                    assert memory.at(**other).aliases.list() == []
                    assert "read" not in memory.at(**other).recall(ASKED).report
                    assert memory.at(**other).aliases.remove("pg") == 0
            assert "read" in memory.at(**owner).recall(ASKED).report
            memory.undo()
        assert memory.aliases.list() == []
        if not url.startswith("notebook"):
            memory.at(workspace="shop").aliases.save("pg", "PostgreSQL")
            assert memory.aliases.list() == []
            assert "read" not in memory.recall(ASKED).report


@pytest.mark.parametrize(
    ("name", "also", "field"),
    [("", "pg", "name"), ("pg", " ", "also"), ("x" * 81, "pg", "name"), ("pg", "PG", "also"), ("…", "pg", "name"),
     ("pg", 7, "also"), (None, "pg", "name"), ("a\nb", "pg", "name")],
)  # fmt: skip
def test_what_is_no_name_is_refused_and_changes_nothing(tmp_path: Path, name: Any, also: Any, field: str) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        with pytest.raises(InputError, match=f"^{field}: "):
            memory.aliases.save(name, also)
        assert memory.aliases.list() == []


def test_secrets_are_screened_and_the_number_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.facets.aliases.MOST_ALIASES", 3)
    with Memory(tmp_path, embedder="none") as memory:
        with pytest.raises(SecretError):
            memory.aliases.save("the deploy key", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH")
        for number in range(3):
            memory.aliases.save("thing", f"name {number}")
        with pytest.raises(InputError, match="at most 3 aliases"):
            memory.aliases.save("thing", "name 3")
        memory.aliases.save("THING", "Name 1")  # in place of the same pair
        assert [alias.also for alias in memory.aliases.list()] == ["name 0", "Name 1", "name 2"]


def test_a_reader_cannot_save_one_over_http(tmp_path: Path) -> None:
    with Memory(tmp_path, embedder="none") as memory, served(memory) as server:
        memory.remember_many([DUMP, UPGRADE])
        with server.memory("reader") as reader:
            with pytest.raises(AccessError):
                reader.aliases.save("pg", "PostgreSQL")
            assert reader.aliases.list() == []
        with server.memory("member") as member:
            member.aliases.save("pg", "PostgreSQL")
            assert UPGRADE in texts(member.recall(ASKED))
            assert set(texts(member.about("pg"))) == {DUMP, UPGRADE}


def test_a_question_is_asked_at_most_three_more_times() -> None:
    pairs = [("owl", f"name{number}") for number in range(100)] + [("fox", "vulpes")]

    readings = other_readings("does the Owl hunt the fox?", pairs)

    assert [reading.text for reading in readings] == [
        "does the name0 hunt the vulpes?",
        "does the name0 hunt the fox?",
        "does the name1 hunt the fox?",
    ]
    assert other_readings("does the bowl break?", pairs) == []
    assert other_readings("is an owl a name0?", [("owl", "name0")]) == []
    assert other_readings("什么是数据库?", [("数据库", "db")])[0].text == "什么是db?"


def test_what_texts_say_of_names() -> None:
    said = {
        "Robert, also called Bob, lives in Rome": [("Robert", "Bob")],
        "my dog Tommy (aka Tom-Tom) is ill": [("Tommy", "Tom-Tom")],
        "PostgreSQL is also known as Postgres.": [("PostgreSQL", "Postgres")],
        "pg is short for PostgreSQL": [("pg", "PostgreSQL")],
        'Our project Zephyr goes by the name of "Blue Wind" in mails': [("Zephyr", "Blue Wind")],
        "The New York office, a.k.a. the Hive, closes": [("New York office", "Hive")],
        "the Hive, also called the New York office": [("Hive", "New York office")],
        "The meeting was also called by Tom": [],
        "the form is also called off": [],
        "He is also called Tom": [],
        "Dr. Meier, known as a tyrant": [],
        "she is known for cakes": [],
    }

    assert {text: also_called(text) for text in said} == said


@pytest.mark.parametrize("text", ["My " + "a " * 10_000, "A1 " * 7_000, "the the " * 3_000, "a-b+" * 5_000])
def test_a_text_of_nothing_but_beginnings_is_read_at_once(text: str) -> None:
    assert also_called(f"{text} also called") == []  # a pattern that looks back would take minutes


def test_about_lists_what_has_a_name_and_no_other(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        first = memory.remember("Alice Springs is hot", kind="fact")
        memory.remember_many(["Malice is bad", "Bob met alice in May", LUNCH, "Lissy, also called Alice, sings"])
        memory.remember("Lissy likes jazz", kind="preference")
        memory.aliases.save("Alice", "the boss")
        memory.remember("The boss is away on Friday")
        hits = memory.about("Alice")
        assert set(texts(hits)) == {
            "Alice Springs is hot",
            "Bob met alice in May",
            "Lissy, also called Alice, sings",
            "Lissy likes jazz",
            "The boss is away on Friday",
        }
        assert 'read "Alice" also as' in hits.report
        assert texts(memory.about("alice springs")) == ["Alice Springs is hot"]
        assert texts(memory.about("Lissy", kind="preference")) == ["Lissy likes jazz"]
        assert len(memory.about("Alice", limit=2)) == 2
        assert memory.about("Zed") == []
        assert memory.get(first.id).access_count == 3
        for wrong in ("", '"', "x" * 201, None):
            with pytest.raises(InputError, match=r"^name: "):
                memory.about(wrong)  # type: ignore[arg-type]


def test_about_goes_by_every_name_and_by_the_names_of_names(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        names = ["PostgreSQL", "pg", "Postgres", "PGSQL", "psql", "elephant", "PG"]
        memory.remember_many([f"{name} is mentioned in line {number}" for number, name in enumerate(names[:6])])
        memory.remember("a lamp")
        for name in names[1:5]:
            memory.aliases.save("PostgreSQL", name)
        memory.aliases.save("psql", "elephant")
        for name in ("PostgreSQL", "pg", "Elephant"):
            assert len(memory.about(name)) == 6
        memory.aliases.remove("psql")
        assert len(memory.about("elephant")) == 1
