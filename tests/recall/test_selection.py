"""What comes beside the best: a correction, each part of a question, a quoted phrase, all of a topic; and no more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.concepts import Concepts, texts
from support.stores import STORES, located

from recollect import InputError, Memory, ModelError
from recollect.models.embedders.local import LocalEmbedder
from recollect.recall import judging
from recollect.recall.question import LOOKED_AT
from recollect.text.identifiers import identifiers, of_another
from recollect.text.mentions import has_another_name
from recollect.text.questions import is_name, parts, topic

pytest_plugins = ["support.model_files"]

BORN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


def remembered(memory: Memory, *facts: str) -> None:
    for day, fact in enumerate(facts):
        memory.remember(fact, created_at=BORN + timedelta(days=day))


def test_a_correction_that_comes_first_is_not_left_out(url: str) -> None:
    """It may have less of the question than what it corrects."""
    with Memory(url, embedder="none") as memory:
        remembered(
            memory,
            "Alice lives in Lisbon, near the river and the old tram",
            "Alice moved to Porto",
            "the river is wide",
        )
        asked = "where near the river does Alice live?"
        hits = memory.recall(asked)
        assert texts(hits) == ["Alice moved to Porto", "Alice lives in Lisbon, near the river and the old tram"]
        assert any(part.name.startswith("newer than") for part in hits[0].scored.parts)
        assert texts(memory.recall(asked, min_relevance=hits[1].relevance)) == texts(hits)


def test_each_part_of_a_question_is_answered(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        remembered(
            memory,
            "Ilse Brandt works from Bremen as an accountant",
            "the boiler is serviced every September",
            "Tom drives a grey Toyota",
            "Tom is a surveyor by trade",
            "the harbour is closed on Sundays",
        )
        assert set(texts(memory.recall("Where does Ilse Brandt work, and when is the boiler serviced?"))) == {
            "Ilse Brandt works from Bremen as an accountant",
            "the boiler is serviced every September",
        }
        assert set(texts(memory.recall("When is the boiler serviced? Is the harbour closed on Sundays?"))) == {
            "the boiler is serviced every September",
            "the harbour is closed on Sundays",
        }
        hits = memory.recall("What is Tom by trade and what does he drive?")
        assert set(texts(hits)) == {"Tom is a surveyor by trade", "Tom drives a grey Toyota"}
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert len(memory.recall("What is Tom by trade and what does he drive?", limit=1)) == 1
        report = memory.recall("When is the boiler servced? Is the harbour closd on Sundays?").report
        assert report == 'read "servced" as "serviced"; read "closd" as "closed"'


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where does Tom live and what does he drive?", ["Where does Tom live", "what does Tom drive"]),
        ("Where does Tom live, and who is his doctor?", ["Where does Tom live", "who is Tom's doctor"]),
        ("Who has the key? When is the meeting?", ["Who has the key", "When is the meeting"]),
        ("Who met Ann and Tom?", []),
        ("Where does Tom live and work?", []),
        ("I was tired, and when I came home, where was the key?", []),
        ("Where is it?", []),
        ("", []),
        ("What is a, what is b, what is c, what is d, what is e?", []),
        ("Where does Tom live and what does Ann say of him?", ["Where does Tom live", "what does Ann say of him"]),
        ("Where? " * 100, []),
    ],
)
def test_a_question_is_split_where_another_begins(question: str, expected: list[str]) -> None:
    assert parts(question) == expected


def test_a_quoted_phrase_is_never_left_out_and_hides_little(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        remembered(
            memory,
            "she said: never on a Sunday, and left",
            "the mooring fee of the harbour master is 40 euros a month",
            "the mooring is deep",
        )
        hits = memory.recall('what is the mooring fee of the harbour master, "never on a Sunday"?')
        assert texts(hits)[:2] == [
            "she said: never on a Sunday, and left",
            "the mooring fee of the harbour master is 40 euros a month",
        ]


def test_of_several_phrases_each_counts(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        remembered(memory, "the red barn is old", "the blue silo is new", "the barn is not the silo")
        hits = memory.recall('where are the "red barn" and the "blue silo"?')
        assert set(texts(hits)[:2]) == {"the red barn is old", "the blue silo is new"}
        assert "as it is written" not in hits.report
        assert texts(memory.recall('"red barn" "blue silo" together')) != []
        assert "as it is written" in memory.recall('where is the "green barn"?').report


def test_what_a_reranker_puts_first_is_not_left_out(url: str) -> None:
    def last_first(query: str, candidates: Sequence[str]) -> list[float]:
        return [100.0 * ("attic" in text) for text in candidates]

    with Memory(url, embedder="none") as memory:
        remembered(memory, "a key is in the attic", "the key of the cellar door is in the blue box", "a key is lost")
        asked = "where is the key of the cellar door?"
        assert texts(memory.recall(asked)) == ["the key of the cellar door is in the blue box"]
        hits = memory.recall(asked, rerank=last_first)
        assert texts(hits) == ["a key is in the attic", "the key of the cellar door is in the blue box"]


def test_of_what_has_another_number_nothing_comes(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        remembered(
            memory,
            "invoice INV-2024-0117 of Corvid Paper is paid",
            "invoice INV-2024-0119 of Halden Museum is disputed",
            "max_batch_size is 400",
            "max_batch_wait is 90 seconds",
            "release v2.14.8 broke the login",
        )
        assert texts(memory.recall("is invoice INV-2024-0117 paid?")) == [
            "invoice INV-2024-0117 of Corvid Paper is paid"
        ]
        assert texts(memory.recall("what is max_batch_wait?")) == ["max_batch_wait is 90 seconds"]
        for question, unknown in (
            ("is invoice INV-2024-0118 paid?", "inv-2024-0118"),
            ("what broke in release v2.14.9?", "v2.14.9"),
        ):
            hits = memory.recall(question)
            assert hits == [], question
            assert f"no memory has {unknown}" in hits.report
        assert memory.recall("what is max_batch_age?") == []


def test_what_names_one_thing_exactly() -> None:
    assert identifiers(
        "Ticket OPS-1187, v2.14.9, LH1234, K5520713 and fitGrowthCurve in max_batch_size on port 5433"
    ) == {
        "ops-1187",
        "v2.14.9",
        "lh1234",
        "k5520713",
        "fitgrowthcurve",
        "max_batch_size",
        "5433",
    }
    for plain in (
        "at 9:15 on 2024-05-01, 1,250 euros or 1.5 km, 3-day, 24/7, in 2024, 20th, 7pm, 12, 1.250.000",
        "the rent is 1250",
        "YouTube and McDonald on an iPhone, covid-1",
        "01.05.2024 and 5/6/2024, in 2024-25, 1990s",
    ):
        assert identifiers(plain) == set(), plain
    assert of_another("ticket OPS-1178", {"ops-1187"})
    assert not of_another("ticket OPS-1178 after OPS-1187", {"ops-1187"})
    assert not of_another("the printer is offline", {"ops-1187"})
    assert not of_another("on port 5433", {"ops-1187"})


def test_a_bare_name_or_a_topic_gives_all_that_has_it(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        about = ["Karen's cat is called Miso", "for years Karen has taught the piano in a small school", "I met Karen"]
        remembered(memory, *about, "the harbour is closed")
        for question in (
            "Karen",
            "tell me everything about Karen",
            "What do you know about Karen?",
            "all about Karen.",
        ):
            assert sorted(texts(memory.recall(question))) == sorted(about), question
        remembered(memory, "Ruth Mbeki signs the contracts", "Ruth has the key", "Otto Mbeki is her son")
        assert "Ruth has the key" in texts(memory.recall("Ruth Mbeki"))


def test_what_only_names_something_is_a_topic() -> None:
    assert topic("Karen") == topic("tell me all about Karen") == topic("everything you know about Karen?") == "Karen"
    assert topic("please tell me about the boiler!") == "the boiler"
    for question in ("Where is Karen?", "Karen?", "who is Karen", "I met Karen in town", ""):
        assert topic(question) is None, question
    assert topic("tell me about the boiler" + "!" * 10_000) is None
    assert is_name("Ruth Mbeki")
    assert not is_name("the boiler")
    assert not is_name("14 Quarry Street")


def test_why_not_says_what_the_cut_was(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        older = memory.remember("the key is on the shelf", created_at=BORN)
        best = memory.remember("the key of the cellar door is in the blue box", created_at=BORN + timedelta(days=1))
        hits = memory.recall("where is the key of the cellar door?", why_not=older.id)
        assert hits.absence is not None
        assert f"is less than 0.5 of the {hits[0].relevance:.3f} that {best.id} has" in hits.absence.reason
        limited = memory.recall("where is the key of the cellar door?", why_not=older.id, limit=1, min_relevance=0.0)
        assert limited.absence is not None
        assert "the last that was recalled has" in limited.absence.reason
        asked = memory.recall("where is the key of the cellar door?", why_not=older.id, min_relevance=hits[0].relevance)
        assert asked.absence is not None
        assert "is below" in asked.absence.reason


_facts = st.lists(
    st.tuples(
        st.sampled_from(["Alice", "Bob", "the team", "my sister"]),
        st.sampled_from(["lives in", "moved to", "sits in", "left"]),
        st.sampled_from(["Oslo", "Porto", "Graz", "Lyon"]),
    ).map(" ".join),
    min_size=2,
    max_size=12,
    unique=True,
)


@given(_facts, st.sampled_from(["Where does Alice live?", "where does my sister sit now, and who left Graz?", "Alice"]))
def test_the_order_is_that_of_the_scores(facts: list[str], question: str) -> None:
    with TemporaryDirectory() as folder, Memory(folder, embedder="none") as memory:
        remembered(memory, *facts)
        for asked in (None, 0.0):
            scores = [hit.score for hit in memory.recall(question, min_relevance=asked)]
            assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("question", "right", "other"),
    [
        (
            "When is the dentist appointment?",
            "The dentist appointment is on 4 May",
            "The vet appointment was moved to 9 May",
        ),
        (
            "Where is the staging server hosted?",
            "The staging server is hosted at Hetzner",
            "The mail server moved to AWS",
        ),
        (
            "What is the status of the laptop order?",
            "The laptop order is in production",
            "The desk order was delivered",
        ),
        ("Who works on bug 88?", "Otto works on bug 88", "Bug 91 was fixed by Nina"),
        ("When was INV-2024-0117 paid?", "INV-2024-0117 was paid on 2 March", "INV-2024-0118 was paid on 9 March"),
        ("What is the dose of drug A?", "Dose of drug A is 5 mg", "Dose of drug B is 50 mg"),
    ],
)
def test_what_changed_of_another_thing_is_no_correction(url: str, question: str, right: str, other: str) -> None:
    with Memory(url, embedder="none") as memory:
        remembered(memory, right, other, "Nina is a vet", "the harbour is closed")
        assert texts(memory.recall(question))[0] == right


def test_what_was_asked_for_by_number_is_not_passed_by_its_neighbours(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        state = ("open", "closed")
        remembered(memory, *(f"Ticket ABC-{100 + n} is {state[n % 2]}, assigned to Nina" for n in range(30)))
        for question in ("ABC-104", "Who is assigned to ABC-104?", "is ticket ABC-104 closed?"):
            assert texts(memory.recall(question)) == ["Ticket ABC-104 is open, assigned to Nina"], question


def test_a_name_is_compared_as_it_is_written(url: str) -> None:
    """An index takes Simone for Simon."""
    with Memory(url, embedder="none") as memory:
        remembered(memory, "Simone is allergic to bees", "Hans Meyer likes tea", "the harbour is closed")
        hits = memory.recall("What is Simon allergic to?")
        assert hits == []
        assert "no memory has Simon" in hits.report
        remembered(memory, "Simon is allergic to nuts, and to bees, too")
        assert texts(memory.recall("What is Simon allergic to?")) == ["Simon is allergic to nuts, and to bees, too"]
        assert texts(memory.recall("What is Simone allergic to?")) == ["Simone is allergic to bees"]
        assert texts(memory.recall("What does Hans like?")) == ["Hans Meyer likes tea"]


def test_only_what_an_index_takes_for_a_name_is_another_name() -> None:
    assert has_another_name("Simone is here", "Simon")
    assert has_another_name("we met Marie", "Mary")
    assert not has_another_name("Simone and Simon are here", "Simon")
    for other in ("Mary told him", "Marta is here", "a Market is open", "Simon's is here"):
        assert not has_another_name(other, "Mark"), other
    assert not has_another_name("Simon's key", "Simon")


def test_a_model_that_fails_is_waited_for_once_however_many_things_are_asked(tmp_path: Path) -> None:
    asked: list[str] = []

    class Broken(Concepts):
        def embed_query(self, text: str) -> Any:
            asked.append(text)
            raise ModelError("no answer")

    with Memory(tmp_path, embedder=Broken()) as memory:
        remembered(memory, "Tom drives a grey Toyota", "the boiler is serviced every September", "Tom is a surveyor")
        hits = memory.recall("What does Tom drive, and when is the boiler serviced? Who is a surveyor?")
        assert {"Tom drives a grey Toyota", "the boiler is serviced every September"} <= set(texts(hits))
        assert len(asked) == 1
        assert hits.report == "by words alone: concepts: no answer"


def test_of_two_memories_the_second_is_not_far_from_all(tmp_path: Path, embedder: LocalEmbedder) -> None:
    with Memory(tmp_path, embedder=embedder) as memory:
        remembered(memory, "I live in Berlin", "I moved to Munich last week")
        memory.embed()
        assert texts(memory.recall("Where do I live?")) == ["I moved to Munich last week", "I live in Berlin"]


@pytest.mark.parametrize(
    "wrong",
    [lambda q, t: [0], lambda q, t: None, lambda q, t: ["x"] * len(t), lambda q, t: [float("nan")] * len(t), "x"],
)
def test_a_reranker_that_gives_no_numbers_is_refused(tmp_path: Path, wrong: Any) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        remembered(memory, "the key is here", "the key is there")
        with pytest.raises(InputError, match="rerank"):
            memory.recall("where is the key?", rerank=wrong)
        assert len(memory.recall("where is the key?")) > 0


def test_a_recall_looks_a_word_up_once_however_often_it_asks(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(url, embedder="none") as memory:
        remembered(memory, *(f"w{n} stands in line {n}" for n in range(40)))
        store, searches = memory._view.store, list[Any]()  # pyright: ignore[reportPrivateUsage]
        search = store.search
        monkeypatch.setattr(store, "search", lambda ask: searches.append(ask) or search(ask))
        unknown = "abcdefghijklmnop qrstuvwxyzabcdef ghijklmnopqrstuv wxyzabcdefghijkl mnopqrstuvwxyzab"
        for question in (
            f"{unknown} {unknown[::-1]}",
            " ".join(f'"w{n}"' for n in range(16)) + f" {unknown}",
            f"where is {unknown}, and who is {unknown}, and what is {unknown}?",
            " ".join(f"INV-2024-{n}" for n in range(1000)),
        ):
            searches.clear()
            memory.recall(question)
            assert len(searches) <= 90, question[:60]


def test_of_a_question_as_long_as_a_book_only_the_beginning_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may send half a megabyte as a question. What reads it word by word reads a bounded part, and seldom."""
    read = list[int]()
    identifiers = judging.identifiers
    monkeypatch.setattr(judging, "identifiers", lambda text: read.append(len(text)) or identifiers(text))
    with Memory(tmp_path, embedder="none") as memory:
        remembered(memory, "the key is in the attic", "a lamp")
        for question in (
            " ".join(f'"w{number}"' for number in range(50_000)),
            " ".join(f'"key {number}"' for number in range(50_000)) + " attic",
            "where is the key? " * 30_000,
        ):
            read.clear()
            memory.recall(question)
            assert 0 < len(read) <= 4
            assert max(read) <= LOOKED_AT
