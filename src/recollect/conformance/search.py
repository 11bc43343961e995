"""Claims about search: in which words a memory is found again, and what a shortlist tells of it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from recollect.conformance.samples import (
    NOW,
    PLACE,
    SECOND,
    SHARED,
    ask,
    contents,
    delete,
    ids,
    keep,
    sample,
    search,
    seen_ids,
    update,
    where,
    words,
)
from recollect.stores.port import Store
from recollect.stores.shelves import ShelfItem
from recollect.stores.shortlist import Shortlist
from recollect.text.query import TextQuery
from recollect.values.record import pack, to_micros


def loosely(*words: str) -> TextQuery:
    return TextQuery(words=words, loose=True)


def phrase(*phrases: str) -> TextQuery:
    return TextQuery(phrases=phrases)


def pattern(*patterns: str) -> TextQuery:
    return TextQuery(patterns=patterns)


def besides(store: Store, query: TextQuery, shelf: str | None) -> list[ShelfItem]:
    """The documents of a shelf that come with the answer."""
    return [item for answer in store.search(ask(query, beside=shelf)) for item in answer.beside]


FINDS: dict[str, tuple[TextQuery, list[str], list[str]]] = {
    "whatever the case": (words("alice"), ["ALICE prefers tabs", "Alice"], ["Alicia prefers tabs"]),
    "whatever the case of the question": (words("ALICE"), ["alice prefers tabs"], ["bob"]),
    "whatever the case in other scripts": (words("ёлка"), ["ЁЛКА стоит"], ["палка"]),
    "other forms of a word": (words("deploy"), ["we deployed it", "deploying now", "it deploys"], ["we employed her"]),
    "the plain form of a word": (words("deployed"), ["deploy on Friday"], ["destroy on Friday"]),
    "any of the words": (words("tabs", "spaces"), ["she likes tabs", "he likes spaces"], ["they like neither"]),
    "words beside punctuation": (words("tabs"), ["(tabs)", "tabs, not spaces", "'tabs'", "tabs/spaces"], ["tablets"]),
    "the parts of a name": (words("memory"), ["see stores/memory.db", "my_memory_limit", "memory-limit"], ["memo"]),
    "numbers": (words("8080"), ["it listens on port 8080"], ["it listens on port 80"]),
    "a phrase": (phrase("blue heron"), ["the Blue Heron flew"], ["heron, blue", "the blue and grey heron"]),
    "every phrase": (phrase("blue heron", "red fox"), ["red fox, blue heron"], ["the blue heron", "the red fox"]),
    "a phrase across lines": (phrase("blue heron"), ["blue\nheron"], ["blueheron"]),
    "a phrase, with or without the words": (
        TextQuery(words=("flew",), phrases=("blue heron",)),
        ["the blue heron flew", "the blue heron sat"],
        ["the plane flew"],
    ),
    "a beginning": (pattern("auth*"), ["authentication failed", "the author", "auth"], ["unauthorised"]),
    "a beginning that a stem lacks": (pattern("organi*"), ["the organization"], ["the organ"]),
    "a beginning that ends in y": (pattern("copy*"), ["a copyright notice", "copy"], ["a copper pot"]),
    "any one letter": (pattern("colo?r"), ["British colour"], ["the color red", "colouur"]),
    "any letters in the middle": (pattern("colo*r"), ["the color red", "British colour"], ["a colony"]),
    "any ending": (pattern("*ployment"), ["the deployment", "her employment"], ["deployments went well"]),
    "any middle": (pattern("*ploy*"), ["the deployment", "ploy"], ["the plot"]),
    "patterns whatever the case": (pattern("COLO*r", "*PLOY"), ["Colour the ploy"], ["Colour"]),
    "patterns and phrases together": (
        TextQuery(phrases=("blue heron",), patterns=("fl?w",)),
        ["the blue heron flew"],
        ["the blue heron sat", "the heron flew blue"],
    ),
    "patterns, with or without the words": (
        TextQuery(words=("red",), patterns=("h?ron",)),
        ["a red heron", "a blue heron"],
        ["a red fox"],
    ),
    "letters without their marks": (words("cafe"), ["the café by the sea", "cafe\u0301 noir"], ["the cave"]),
    "letters with their marks": (words("café"), ["the cafe by the sea"], ["the cave"]),
    "patterns with or without marks": (pattern("caf?"), ["the café by the sea"], ["the cafeteria"]),
    "a beginning without its marks": (pattern("creme*"), ["crème brûlée"], ["cream"]),
    "Chinese": (words("北京"), ["我明天去北京出差"], ["我明天去上海出差", "北方的东京"]),
    "a long run of Chinese": (phrase("人工智能"), ["她在研究人工智能的记忆"], ["智能的人工"]),
    "one Chinese letter": (words("京"), ["我明天去北京", "京剧"], ["上海"]),
    "Japanese": (words("東京"), ["東京タワーに登った"], ["京都に行った"]),
    "Japanese kana": (words("タワー"), ["東京タワーに登った"], ["東京に行った"]),
    "Korean": (words("메모리"), ["에이전트의 메모리를 지웠다"], ["에이전트를 지웠다"]),
    "Thai": (words("ภาษาไทย"), ["ฉันพูดภาษาไทยได้"], ["ฉันพูดได้"]),
    "Hindi": (words("हिन्दी"), ["मैं हिन्दी बोलता हूँ"], ["मैं जापानी बोलता हूँ"]),
    "Arabic": (words("الذاكرة"), ["هذه الذاكرة طويلة"], ["هذه القصة طويلة"]),
    "Greek, whatever the sigma": (words("ΛΌΓΟΣ"), ["ο λόγος του"], ["η μηχανή του"]),
    "Chinese beside Latin letters": (words("api"), ["这个API很慢"], ["这个库很慢"]),
    "full-width letters": (words("memory"), ["ｍｅｍｏｒｙ ａｇｅｎｔ"], ["ｍｅｍｏ"]),
    "a question in full-width letters": (words("ｍｅｍｏｒｙ"), ["memory"], ["memo"]),
    "ss for ß": (words("strasse"), ["die Straße"], ["der Strauß"]),
    "ß for ss": (words("straße"), ["die Strasse"], ["der Strauss"]),
    "a beginning with ß": (pattern("straß*"), ["die Strassenbahn", "die Straßenbahn"], ["der Strauss"]),
    "loosely, a word inside a compound": (
        loosely("Versicherung"),
        ["die Krankenversicherungskarte", "die Krankenversicherung", "die Versicherungen"],
        ["die Karte"],
    ),
    "loosely, a compound by its parts": (
        loosely("Krankenversicherung"),
        ["eine Versicherung", "eine Krankenversicherungskarte"],
        ["eine Karte"],
    ),
}
"""Name → the query, texts that it finds, and texts that it does not."""

OPERATORS = (
    'AND OR NOT NEAR( " * ^ : - { }',
    "AND",
    "NOT x",
    "NEAR(a b, 2)",
    '"',
    '""',
    '"unclosed',
    "*",
    "?",
    "**?*",
    "^heron",
    "text:heron",
    "{text}:heron",
    "-heron",
    "+heron",
    "(heron",
    "heron)",
    "[a-",
    "a\\",
    "\x00",
    "heron\x00",
    "'; DROP TABLE memories; --",
    "%_",
    "🦩",
    "\u200d",
    "\u0301",
    " ",
    "",
    "_",
    "x" * 5000,
    "北" * 500,
)


class SearchClaims:
    """What is found, and that no question is too strange to be asked."""

    def test_what_is_stored_again_after_everything_was_deleted_is_found(self, store: Store) -> None:
        """Whoever keeps a copy in memory must not take the numbers of new memories for those of old ones."""
        first, second, third = keep(store, *(sample(f"heron {n}") for n in range(3)))
        delete(store, first)
        assert {record.id for record in search(store, words("heron"))} == {second.id, third.id}
        delete(store, second, third)
        # Counted from one again, the second would have its old number, and the third one that was passed long ago.
        store.put(PLACE, [third, second])
        assert {record.id for record in search(store, words("heron"))} == {second.id, third.id}

    @pytest.mark.parametrize(("query", "texts", "others"), FINDS.values(), ids=FINDS)
    def test_search_finds(self, store: Store, query: TextQuery, texts: list[str], others: list[str]) -> None:
        keep(store, *map(sample, texts + others))
        assert contents(search(store, query)) == sorted(texts)

    @pytest.mark.parametrize("text", OPERATORS)
    def test_nothing_in_a_query_is_an_operator(self, store: Store, text: str) -> None:
        keep(store, sample("a heron and a fox"))
        for loose in (False, True):
            search(store, TextQuery((text,), loose=loose))
            search(store, TextQuery((text,), (text,), (text,), loose))
        search(store, TextQuery(phrases=(text, text)))
        search(store, TextQuery(patterns=(text,)))

    def test_a_pattern_of_many_stars_is_answered(self, store: Store) -> None:
        keep(store, sample("a" * 2000))
        assert search(store, pattern("*a" * 20 + "*b")) == []
        assert contents(search(store, pattern("*a" * 20 + "*"))) == ["a" * 2000]

    def test_a_question_of_a_thousand_words_is_answered(self, store: Store) -> None:
        keep(store, sample("the heron flew"))
        assert contents(search(store, words("heron", *(f"word{n}" for n in range(1000))))) == ["the heron flew"]

    def test_a_question_without_words_sees_all_and_finds_no_words(self, store: Store) -> None:
        records = keep(store, sample("a heron"), sample("a fox"))
        (shortlist,) = store.search(ask())
        assert sorted(seen_ids(shortlist)) == sorted(ids(records))
        assert (dict(shortlist.words), dict(shortlist.loose), shortlist.cosine) == ({}, {}, None)

    def test_loose_finds_all_that_the_exact_search_finds(self, store: Store) -> None:
        keep(store, *map(sample, ["we deployed it", "deployments", "der Einsatz", "北京", "the café"]))
        for word in ("deploy", "deployed", "deployment", "einsatz", "北京", "cafe", "a"):
            assert set(contents(search(store, loosely(word)))) >= set(contents(search(store, words(word))))

    def test_longer_words_are_looked_into_only_where_the_words_do_not_find_enough(self, store: Store) -> None:
        keep(store, sample("eine Versicherung"), sample("die Krankenversicherungskarte"))
        (shortlist,) = store.search(ask(words("Versicherung"), enough=1))
        assert _having(shortlist, shortlist.words) == {"eine Versicherung"}
        assert dict(shortlist.loose) == {}
        (shortlist,) = store.search(ask(words("Versicherung"), enough=2))
        assert _having(shortlist, shortlist.words) == {"eine Versicherung"}
        assert _having(shortlist, shortlist.loose) == {"eine Versicherung", "die Krankenversicherungskarte"}

    def test_json_is_found_by_its_keys_and_values(self, store: Store) -> None:
        (record,) = keep(store, sample({"animal": {"name": "heron", "legs": [2, "grey"]}}))
        for word in ("animal", "name", "heron", "legs", "grey"):
            assert search(store, words(word)) == [record]

    def test_workspace_and_account_are_searched_together(self, store: Store) -> None:
        keep(store, sample("a heron here"), sample("a heron for all", tier="account"))
        assert contents(search(store, words("heron"))) == ["a heron for all", "a heron here"]
        assert {shortlist.place for shortlist in store.search(ask(words("heron")))} == {PLACE, SHARED}

    def test_the_documents_of_a_shelf_come_with_the_answer_where_they_are_asked_for(self, store: Store) -> None:
        keep(store, sample("an owl"))
        items = [ShelfItem("names", key, {"name": key}, account=owner) for key, owner in (("b", None), ("a", "u1"))]
        with store.transaction(PLACE):
            stored = [store.keep(PLACE, item) for item in items]
            store.keep(PLACE, ShelfItem("others", "c", {}))
        for query in (words("owl"), words("fox"), TextQuery(words=("owl",), phrases=("an owl",))):
            assert besides(store, query, "names") == stored
        assert besides(store, words("owl"), None) == besides(store, words("owl"), "nothing") == []
        with store.transaction(PLACE):
            store.remove(PLACE, "names", ["b"])
            assert besides(store, words("owl"), "names") == stored[1:]
        assert besides(store, words("owl"), "names") == stored[1:]

    def test_each_word_tells_who_has_it(self, store: Store) -> None:
        both, heron, _ = keep(store, sample("a heron and a fox"), sample("only the heron"), sample("a lynx"))
        (shortlist,) = store.search(ask(words("heron", "fox", "wolf")))
        rows = {word: {shortlist.block.ids[at] for at in row.tolist()} for word, row in shortlist.words.items()}
        assert rows == {"heron": {both.id, heron.id}, "fox": {both.id}}
        assert dict(shortlist.whole.frequency) == {"heron": 2, "fox": 1}

    def test_a_shortlist_tells_of_each_memory(self, store: Store) -> None:
        records = keep(
            store,
            sample("Ann: a heron", conversation="c-1", role="user", metadata={"speaker": "Ann"}),
            sample("elsewhere", conversation="c-2", created_at=NOW + SECOND),
            sample("a fox", conversation="c-1", role="assistant", created_at=NOW + 2 * SECOND),
        )
        (shortlist,) = store.search(ask(words("heron", "elsewhere", "fox")))
        block = shortlist.block
        at = {block.ids[position]: position for position in shortlist.seen.mask.nonzero()[0].tolist()}
        first, apart, second = (at[record.id] for record in records)
        assert [int(block.created[at[r.id]]) for r in records] == [to_micros(r.created_at) for r in records]
        assert [int(block.length[at[r.id]]) for r in records] == [len(r.text) for r in records]
        assert block.conversation[first] == block.conversation[second] != block.conversation[apart]
        assert (int(block.after[first]), int(block.before[second])) == (second, first)
        assert (int(block.before[first]), int(block.after[second])) == (-1, -1)
        assert [block.speakers[int(block.speaker[position])] for position in (first, apart, second)] == [
            "ann",
            "",
            "assistant",
        ]
        assert shortlist.seen.speakers() == {"ann": 1, "": 1, "assistant": 1}

    def test_the_whole_is_what_the_filter_sees(self, store: Store) -> None:
        keep(store, sample("heron"), sample("a heron and a fox", kind="task"), sample("not seen", kind="error"))
        (shortlist,) = store.search(ask(words("heron"), where(kinds=("fact", "task"))))
        assert shortlist.whole.memories == 2
        assert shortlist.whole.length == pytest.approx((len("heron") + len("a heron and a fox")) / 2)
        assert dict(shortlist.whole.frequency) == {"heron": 2}

    def test_the_whole_names_its_speakers_whatever_phrases_are_looked_for(self, store: Store) -> None:
        keep(
            store,
            sample("a heron", conversation="c-1", role="user", metadata={"speaker": "Ann"}),
            sample("a fox", conversation="c-1", role="assistant"),
            sample("a heron, unseen", kind="error", role="user", metadata={"speaker": "Bob"}),
        )
        seen = where(kinds=("fact",))
        speakers = {name for (name,) in store.count(seen, ("speaker",))}
        assert speakers == {"ann", "assistant"}
        for query in (words("heron"), phrase("a fox"), pattern("fo*")):
            (shortlist,) = store.search(ask(query, seen))
            assert set(shortlist.whole.speakers) == speakers

    def test_the_whole_counts_memories_without_a_vector_as_far_as_it_is_asked(self, store: Store) -> None:
        vector: dict[str, Any] = {"embedding": pack([2.0, 0.0]), "embedding_model": "test"}
        keep(store, sample("has one", **vector), *(sample(f"has none {n}") for n in range(3)))
        question = ask(words("has"), vector=pack([1.0, 0.0]), model="test")
        for most, lacking in ((0, 0), (2, 2), (9, 3)):
            (shortlist,) = store.search(replace(question, lacking=most))
            assert shortlist.whole.lacking == lacking
        assert len(store.lacking(PLACE, "test", 2, 9)) == 3

    def test_vectors_of_the_same_model_and_size_are_compared(self, store: Store) -> None:
        vectors: list[dict[str, Any]] = [
            {"embedding": pack([2.0, 0.0]), "embedding_model": "test"},
            {"embedding": pack([3.0, 3.0]), "embedding_model": "test"},
            {"embedding": pack([1.0, 0.0]), "embedding_model": "other"},
            {"embedding": pack([1.0, 0.0, 0.0]), "embedding_model": "test"},
            {},
        ]
        records = keep(store, *(sample(f"number {n}", **vector) for n, vector in enumerate(vectors)))
        cosines = _cosines(store, [1.0, 0.0], "test")
        half = math.sqrt(0.5)
        # A store may compare in half precision.
        assert cosines == {records[0].id: pytest.approx(1.0), records[1].id: pytest.approx(half, abs=1e-3)}
        (shortlist,) = store.search(ask(vector=pack([1.0, 0.0]), model="test"))
        assert shortlist.whole.compared == 2
        assert shortlist.whole.cosine == pytest.approx((1.0 + half) / 2, abs=1e-3)
        assert shortlist.whole.spread == pytest.approx((1.0 - half) / 2, abs=1e-3)
        assert _cosines(store, [1.0, 0.0], "other").keys() == {records[2].id}
        assert _cosines(store, [0.0, 1.0, 0.0], "test") == {records[3].id: pytest.approx(0.0)}
        assert _cosines(store, [1.0, 0.0], "nobody's") == {}

    def test_vectors_that_come_and_go_are_compared_as_they_are_now(self, store: Store) -> None:
        first, second = keep(store, sample("one"), sample("two"))
        assert _cosines(store, [1.0, 0.0], "test") == {}
        store.embed(PLACE, "test", {first.id: pack([1.0, 0.0])})
        assert _cosines(store, [1.0, 0.0], "test") == {first.id: pytest.approx(1.0)}
        store.embed(PLACE, "test", {first.id: pack([0.0, 1.0]), second.id: pack([1.0, 0.0])})
        assert _cosines(store, [1.0, 0.0], "test") == {first.id: pytest.approx(0.0), second.id: pytest.approx(1.0)}
        delete(store, first)
        assert _cosines(store, [1.0, 0.0], "test") == {second.id: pytest.approx(1.0)}

    def test_a_search_inside_a_transaction_sees_its_writes(self, store: Store) -> None:
        old, changed = keep(store, sample("an old heron"), sample("a heron of the past"))
        search(store, words("heron"))
        with store.transaction(PLACE):
            (new,) = keep(store, sample("a new heron", embedding=pack([1.0, 0.0]), embedding_model="test"))
            delete(store, old)
            update(store, replace(changed, archived_at=NOW))
            assert contents(search(store, words("heron"), where(state="live"))) == ["a new heron"]
            assert _cosines(store, [1.0, 0.0], "test") == {new.id: pytest.approx(1.0)}
        assert contents(search(store, words("heron"))) == ["a heron of the past", "a new heron"]

    def test_a_shortlist_stays_as_it_was(self, store: Store) -> None:
        records = keep(store, *(sample(f"heron number {n}", conversation="c", **_vector(n)) for n in range(20)))
        question = ask(words("heron", "number"), vector=pack([1.0, 2.0]), model="test")
        (shortlist,) = store.search(question)
        before = _shown(shortlist)
        for n in range(100):
            if n < len(records):
                delete(store, records[-1 - n])
            (new,) = keep(store, sample(f"another heron {n}", conversation="c", **_vector(n)))
            update(store, replace(new, superseded_by="f" * 32))
            store.embed(PLACE, "test", {new.id: pack([3.0, 4.0])})
            if n % 10 == 0:
                store.search(question)
        assert _shown(shortlist) == before
        assert before["seen"] == ids(records)


def _having(shortlist: Shortlist, rows: Any) -> set[str]:
    """The contents of the memories that have one of the words; each is told apart by its length."""
    texts = {len(text): text for text in ("eine Versicherung", "die Krankenversicherungskarte")}
    return {texts[int(shortlist.block.length[at])] for row in rows.values() for at in row.tolist()}


def _cosines(store: Store, vector: list[float], model: str) -> dict[str, float]:
    """By id, of the memories that have a vector."""
    length = math.hypot(*vector)
    question = ask(vector=pack([value / length for value in vector]), model=model)
    return {
        shortlist.block.ids[at]: float(shortlist.cosine[at])
        for shortlist in store.search(question)
        if shortlist.cosine is not None
        for at in shortlist.seen.mask.nonzero()[0].tolist()
        if not math.isnan(shortlist.cosine[at])
    }


def _vector(number: int) -> dict[str, Any]:
    return {"embedding": pack([1.0, float(number)]), "embedding_model": "test"}


def _shown(shortlist: Shortlist) -> dict[str, Any]:
    """All that a shortlist tells, as plain values."""
    block = shortlist.block
    columns = ("created", "length", "conversation", "before", "after", "speaker")
    return {
        "seen": seen_ids(shortlist),
        "ids": list(block.ids[: block.size]),
        "columns": {name: getattr(block, name).tolist() for name in columns},
        "words": {word: row.tolist() for word, row in shortlist.words.items()},
        "cosine": None if shortlist.cosine is None else shortlist.cosine.tolist(),
        "speakers": shortlist.seen.speakers(),
        "whole": shortlist.whole,
    }
