"""Claims about text search: in which words a memory is found again."""

from __future__ import annotations

import pytest

from recollect.conformance.samples import PLACE, keep, sample, where
from recollect.record import Record, pack
from recollect.stores.port import JournaledStore
from recollect.text.query import TextQuery


def words(*words: str) -> TextQuery:
    return TextQuery(words=words)


def loosely(*words: str) -> TextQuery:
    return TextQuery(words=words, loose=True)


def phrase(*phrases: str) -> TextQuery:
    return TextQuery(phrases=phrases)


def pattern(*patterns: str) -> TextQuery:
    return TextQuery(patterns=patterns)


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
    """What is found, in which order, and that no question is too strange to be asked."""

    @pytest.mark.parametrize(("query", "texts", "others"), FINDS.values(), ids=FINDS)
    def test_search_finds(self, store: JournaledStore, query: TextQuery, texts: list[str], others: list[str]) -> None:
        keep(store, *map(sample, texts + others))
        assert _texts(store, query) == sorted(texts)

    @pytest.mark.parametrize("text", OPERATORS)
    def test_nothing_in_a_query_is_an_operator(self, store: JournaledStore, text: str) -> None:
        keep(store, sample("a heron and a fox"))
        for loose in (False, True):
            store.search_text(TextQuery((text,), loose=loose), where(), 10)
            store.search_text(TextQuery((text,), (text,), (text,), loose), where(), 10)
            store.search_text(TextQuery(phrases=(text, text)), where(), 10)
            store.search_text(TextQuery(patterns=(text,)), where(), 10)

    def test_a_pattern_of_many_stars_is_answered(self, store: JournaledStore) -> None:
        keep(store, sample("a" * 2000))
        assert _texts(store, pattern("*a" * 20 + "*b")) == []
        assert _texts(store, pattern("*a" * 20 + "*")) == ["a" * 2000]

    def test_a_question_of_a_thousand_words_is_answered(self, store: JournaledStore) -> None:
        keep(store, sample("the heron flew"))
        assert _texts(store, words("heron", *(f"word{n}" for n in range(1000)))) == ["the heron flew"]

    def test_asking_for_nothing_finds_nothing(self, store: JournaledStore) -> None:
        keep(store, sample("a heron"))
        assert store.search_text(TextQuery(), where(), 10) == []
        assert store.search_text(words("heron"), where(), 0) == []

    def test_loose_finds_all_that_the_exact_search_finds(self, store: JournaledStore) -> None:
        keep(store, *map(sample, ["we deployed it", "deployments", "der Einsatz", "北京", "the café"]))
        for word in ("deploy", "deployed", "deployment", "einsatz", "北京", "cafe", "a"):
            assert set(_texts(store, loosely(word))) >= set(_texts(store, words(word)))

    def test_more_of_the_words_match_better(self, store: JournaledStore) -> None:
        keep(store, sample("only the heron"), sample("a heron and a fox"), sample("a fox"), *_padding())
        best = store.search_text(words("heron", "fox"), where(), 10)[0]
        assert best.record.content == "a heron and a fox"

    def test_the_best_come_first_and_within_the_limit(self, store: JournaledStore) -> None:
        keep(store, *(sample(f"{'heron ' * n} and so on and on") for n in range(1, 9)), *_padding())
        every = store.search_text(words("heron"), where(), 100)
        scores = [match.score for match in every]
        assert len(every) == 8
        assert scores == sorted(scores, reverse=True)
        top = store.search_text(words("heron"), where(), 3)
        assert [match.score for match in top] == scores[:3]

    def test_matches_come_without_embeddings(self, store: JournaledStore) -> None:
        keep(store, sample("a heron", embedding=pack([1.0, 2.0]), embedding_model="test"))
        (match,) = store.search_text(words("heron"), where(), 10)
        assert match.record.embedding is None

    def test_json_is_found_by_its_keys_and_values(self, store: JournaledStore) -> None:
        (kept,) = keep(store, sample({"animal": {"name": "heron", "legs": [2, "grey"]}}))
        for word in ("animal", "name", "heron", "legs", "grey"):
            assert [match.record for match in store.search_text(words(word), where(), 10)] == [kept]

    def test_workspace_and_account_are_searched_together(self, store: JournaledStore) -> None:
        keep(store, sample("a heron here"), sample("a heron for all", tier="account"))
        assert _texts(store, words("heron")) == ["a heron for all", "a heron here"]

    def test_a_search_inside_a_transaction_sees_its_writes(self, store: JournaledStore) -> None:
        (old,) = keep(store, sample("an old heron"))
        with store.transaction(PLACE):
            keep(store, sample("a new heron"))
            store.delete([old])
            assert _texts(store, words("heron")) == ["a new heron"]


def _texts(store: JournaledStore, query: TextQuery) -> list[str]:
    return sorted(match.record.content for match in store.search_text(query, where(), 100))


def _padding() -> list[Record]:
    """What every other memory is about: without it, no word is rare."""
    return [sample(f"nothing of the kind, number {n}") for n in range(20)]
