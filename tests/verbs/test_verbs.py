"""Remember, get, list, recall, revise: what they promise, on real files."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock

from recollect import ConflictError, Hits, InputError, Memory, NotFoundError, Record

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def texts(found: Hits | list[Record]) -> list[str]:
    return [one.memory.text if hasattr(one, "memory") else one.text for one in found]


# Remember and get


def test_a_memory_is_there_for_the_next_process(tmp_path: Path, memory: Memory) -> None:
    stored = memory.remember("Alice prefers tabs", kind="preference", tags=["style"], metadata={"line": 3})
    with Memory(tmp_path / "memory") as other:
        assert other.get(stored.id) == stored
    assert (stored.content, stored.kind, stored.tags, stored.metadata) == (
        "Alice prefers tabs",
        "preference",
        ("style",),
        {"line": 3},
    )
    assert stored.checksum == stored.digest()


def test_what_is_not_given_comes_from_the_preset(memory: Memory) -> None:
    stored = memory.remember("Alice prefers tabs")
    assert (stored.kind, stored.tier, stored.lifetime, stored.importance) == ("fact", "workspace", "long_term", 0.5)
    assert (stored.role, stored.source, stored.expires_at, stored.embedding) == (None, None, None, None)
    assert stored.created_at == stored.accessed_at == NOW
    assert stored.access_count == 0


def test_none_is_the_same_as_not_given(memory: Memory) -> None:
    given = {"kind": None, "importance": None, "tags": None, "expires_at": None, "metadata": None, "tier": None}
    assert memory.remember("a lynx", **given).kind == "fact"


def test_a_memory_lives_where_its_view_is(memory: Memory) -> None:
    me = memory.at(tenant="acme", account="ada", workspace="shop", agent="atlas")
    address = me.remember("a lynx", conversation="c1").address
    assert (address.tenant, address.account, address.workspace, address.agent) == ("acme", "ada", "shop", "atlas")
    assert (address.channel, address.conversation) == (None, "c1")


@pytest.mark.parametrize(
    ("given", "tier"),
    [
        ({}, "workspace"),
        ({"channel": "ops"}, "channel"),
        ({"conversation": "c1"}, "workspace"),
        ({"conversation": "c1", "tier": "conversation"}, "conversation"),
        ({"channel": "ops", "tier": "workspace"}, "workspace"),
        ({"tier": "account"}, "account"),
    ],
)
def test_the_tier_is_the_channel_if_there_is_one_else_the_workspace(
    memory: Memory, given: dict[str, Any], tier: str
) -> None:
    stored = memory.remember("a lynx", **given)
    assert stored.tier == tier
    assert (stored.address.workspace is None) is (tier == "account")
    if tier == "conversation":
        assert stored.lifetime == "conversation"


def test_many_come_back_in_the_order_they_were_given(memory: Memory) -> None:
    items: list[Any] = ["first", {"content": "second", "tier": "account"}, {"content": ["third"]}, "fourth"]
    stored = memory.remember_many(items)
    assert [one.content for one in stored] == ["first", "second", ["third"], "fourth"]
    assert [memory.get(one.id) for one in stored] == stored
    assert len({one.id for one in stored}) == 4
    assert memory.remember_many(text for text in ("a", "b"))[1].content == "b"
    assert memory.remember_many([]) == []


def test_one_bad_item_and_none_is_stored(memory: Memory) -> None:
    with pytest.raises(InputError):
        memory.remember_many(["first", {"content": "second", "tier": "account"}, {"content": "third", "importance": 2}])
    assert memory.stats().total == 0


def test_getting_does_not_count_as_a_retrieval(memory: Memory, clock: Clock) -> None:
    stored = memory.remember("a lynx")
    clock.now += DAY
    memory.get(stored.id)
    memory.list()
    assert memory.get(stored.id) == stored


def test_what_is_not_there_is_not_found(memory: Memory) -> None:
    for ident in ("missing", "0" * 32):
        with pytest.raises(NotFoundError, match=f"there is no memory {ident}"):
            memory.get(ident)


def test_nothing_is_created_until_something_is_stored(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory") as memory:
        assert memory.list() == []
        assert memory.recall("anything") == []
        assert memory.stats().total == 0
        assert memory.workspaces() == []
        assert memory.audit.search() == []
        assert memory.doctor().findings == ()
    assert not (tmp_path / "memory").exists()


@pytest.mark.clause("LED-20")
def test_folders_and_files_are_for_their_owner_only(tmp_path: Path, memory: Memory) -> None:
    memory.at(tenant="acme", workspace="shop").remember("a lynx")
    memory.at(tenant="acme").remember("a wolf", tier="account")
    memory.export(tmp_path / "export.json")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "memory").rglob("*")}
    assert len(modes) >= 4
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert stat.S_IMODE((tmp_path / "export.json").stat().st_mode) == 0o600


# List


@pytest.fixture
def zoo(memory: Memory, clock: Clock) -> Memory:
    memory.remember("a lynx", kind="finding", tags=["cat.wild"], importance=0.9, source="camera", role="user")
    clock.now += DAY
    memory.remember("a tomcat", kind="fact", tags=["cat", "pet"], importance=0.1, conversation="c1")
    clock.now += DAY
    memory.remember("a category", tags=["category"], importance=0.5, tier="account", role="assistant")
    clock.now += DAY
    memory.remember("an owl", expires_at=clock.now + timedelta(hours=1), tags=["bird"])
    memory.archive(memory.remember("a dodo", tags=["bird"]).id)
    memory.revise(memory.remember("a bird", tags=["bird"]).id, content="a robin")
    clock.now += DAY
    return memory


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, ["a robin", "a category", "a tomcat", "a lynx"]),
        ({"newest_first": False}, ["a lynx", "a tomcat", "a category", "a robin"]),
        ({"limit": 2}, ["a robin", "a category"]),
        ({"limit": 2, "newest_first": False}, ["a lynx", "a tomcat"]),
        ({"state": "expired"}, ["an owl"]),
        ({"state": "archived"}, ["a dodo"]),
        ({"state": "superseded"}, ["a bird"]),
        ({"kind": "finding"}, ["a lynx"]),
        ({"kind": "never"}, []),
        ({"tier": "account"}, ["a category"]),
        ({"tier": "workspace", "kind": "fact"}, ["a robin", "a tomcat"]),
        ({"role": "user"}, ["a lynx"]),
        ({"source": "camera"}, ["a lynx"]),
        ({"tags": ["cat"]}, ["a tomcat", "a lynx"]),
        ({"tags": ["cat.wild"]}, ["a lynx"]),
        ({"tags": ["cat", "pet"]}, ["a tomcat"]),
        ({"tags": ["ca"]}, []),
        ({"min_importance": 0.9}, ["a lynx"]),
        ({"conversation": "c1"}, ["a tomcat"]),
        ({"since": NOW + DAY}, ["a robin", "a category", "a tomcat"]),
        ({"until": NOW + DAY}, ["a lynx"]),
        ({"since": NOW + DAY, "until": NOW + 2 * DAY}, ["a tomcat"]),
        ({"since": "2026-03-02T12:00:00Z", "until": "2026-03-03T14:00:00+02:00"}, ["a tomcat"]),
        ({"state": None, "tags": ["bird"], "newest_first": False}, ["an owl", "a dodo", "a bird", "a robin"]),
    ],
)
def test_a_list_has_what_meets_all_conditions(zoo: Memory, conditions: dict[str, Any], expected: list[str]) -> None:
    assert texts(zoo.list(**conditions)) == expected


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("conditions", [{}, {"state": None}, {"contains": "a"}, {"kind": "fact"}])
def test_a_list_goes_on_behind_the_last_that_was_listed(
    zoo: Memory, newest_first: bool, conditions: dict[str, Any]
) -> None:
    whole = texts(zoo.list(newest_first=newest_first, **conditions))
    seen: list[Any] = []
    while page := zoo.list(newest_first=newest_first, limit=2, after=seen[-1].id if seen else None, **conditions):
        seen += page
    assert texts(seen) == whole


def test_a_list_cannot_go_on_behind_what_is_not_there(zoo: Memory) -> None:
    last = zoo.list(limit=1)[0]
    zoo.forget(last.id)
    with pytest.raises(NotFoundError, match=last.id):
        zoo.list(after=last.id)
    with pytest.raises(InputError, match="after"):
        zoo.list(after="no such id at all")


def test_a_list_does_not_go_on_behind_what_its_view_does_not_see(memory: Memory) -> None:
    hidden = memory.at(agent="atlas").remember("atlas keeps a diary")
    with pytest.raises(NotFoundError):
        memory.at(agent="bora").list(after=hidden.id)


def test_stats_count_every_state_and_kind(zoo: Memory) -> None:
    stats = zoo.stats()
    assert {type(counts) for counts in (stats.states, stats.kinds, stats.tiers, stats.agents)} == {dict}
    assert stats.total == 7
    assert stats.states == {"live": 4, "expired": 1, "archived": 1, "superseded": 1}
    assert stats.kinds == {"finding": 1, "fact": 6}
    assert stats.tiers == {"workspace": 6, "account": 1}
    assert stats.agents == {"": 7}
    assert stats.size_bytes > 0


def test_stats_count_what_was_stored_each_day(memory: Memory, clock: Clock) -> None:
    first = memory.remember("Ada likes tea", created_at="2026-02-27T23:59:59Z")
    memory.remember("Bora likes rain", created_at="2026-02-28T00:00:00Z")
    memory.remember("Chen was here long ago", created_at="2025-01-01T00:00:00Z")
    memory.archive(first.id)
    assert [(f"{day.on}", day.states, day.total) for day in memory.stats(days=3).daily] == [
        ("2026-02-27", {"archived": 1}, 1),
        ("2026-02-28", {"live": 1}, 1),
        ("2026-03-01", {}, 0),
    ]
    assert memory.stats().daily == ()
    with pytest.raises(InputError, match="days"):
        memory.stats(days=-1)


# Recall


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("which indentation does Alice want?", {"Alice wants tabs as indentation"}),
        ("INDENTATION", {"Alice wants tabs as indentation"}),
        ("tab", {"Alice wants tabs as indentation"}),
        ('"wants tabs"', {"Alice wants tabs as indentation"}),
        ('"tabs wants"', {"Alice wants tabs as indentation"}),  # nothing has the phrase: its words are looked for
        ('"tabs as" alice', {"Alice wants tabs as indentation"}),
        ("indent*", {"Alice wants tabs as indentation"}),
        ("*dentation", {"Alice wants tabs as indentation"}),
        ("t?bs", {"Alice wants tabs as indentation"}),
        ("t?as", set()),
        ("zebra", set()),
        ("", set()),
        ("  \n", set()),
        ("?!…", set()),
        ("who are you", {"The Who are playing"}),
        ("会議", {"明日の会議は東京です"}),
        ("東京", {"明日の会議は東京です"}),
        ("京東", set()),
        ("ข้าวผัด", {"ฉันชอบกินข้าวผัด"}),
        ("Versicherung", {"Die Krankenversicherung zahlt"}),
        ("Haftpflichtschaden", {"Ein Schaden am Auto"}),
        ("strasse", {"In der Straße links"}),
        ("STRASSE", {"In der Straße links"}),
        ("cafe", {"Das Café am Platz"}),
        ("café", {"Das Café am Platz"}),
        ("build.status", {"build.status: green"}),
        ("green", {"build.status: green"}),
        ("') OR 1=1 --", set()),
        ('"unbalanced', set()),
        ("NEAR(a b) AND NOT", set()),
    ],
)
def test_recall_finds_what_was_asked_for(memory: Memory, query: str, expected: set[str]) -> None:
    memory.remember_many(
        [
            "Alice wants tabs as indentation",
            "The Who are playing",
            "明日の会議は東京です",
            "ฉันชอบกินข้าวผัด",
            "Die Krankenversicherung zahlt",
            "Ein Schaden am Auto",
            "In der Straße links",
            "Das Café am Platz",
            {"content": {"build": {"status": "green"}}},
        ]
    )
    assert set(texts(memory.recall(query))) == expected


def test_the_better_match_comes_first(memory: Memory) -> None:
    memory.remember_many(["green paint in the shed", "green tea is what Alice drinks", "Bob drinks coffee"])
    hits = memory.recall("does Alice drink green tea")
    assert texts(hits)[0] == "green tea is what Alice drinks"
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_recall_returns_no_more_than_the_limit(memory: Memory) -> None:
    memory.remember_many(f"owl number {number}" for number in range(30))
    assert len(memory.recall("owl")) == memory.preset.recall.limit == 10
    assert len(memory.recall("owl", limit=3)) == 3
    assert len(memory.recall("owl", limit=30)) == 30


def test_the_same_text_is_recalled_once(memory: Memory) -> None:
    memory.remember_many(["an owl", "an owl", {"content": "an owl", "tier": "account"}, "another owl"])
    assert sorted(texts(memory.recall("owl"))) == ["an owl", "another owl"]


def test_only_live_memories_are_recalled(zoo: Memory) -> None:
    assert set(texts(zoo.recall("lynx owl dodo bird robin"))) == {"a lynx", "a robin"}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"kind": "finding"}, ["a lynx"]),
        ({"tags": ["cat"]}, ["a lynx", "a tomcat"]),
        ({"tier": "account"}, ["a category"]),
        ({"role": "assistant"}, ["a category"]),
        ({"source": "camera"}, ["a lynx"]),
        ({"since": NOW + DAY}, ["a category", "a robin", "a tomcat"]),
        ({"until": NOW + DAY}, ["a lynx"]),
        ({"min_importance": 0.6}, ["a lynx"]),
        ({"conversation": "c1"}, ["a tomcat"]),
    ],
)
def test_recall_keeps_to_its_conditions(zoo: Memory, conditions: dict[str, Any], expected: list[str]) -> None:
    assert sorted(texts(zoo.recall("lynx tomcat category robin owl", **conditions))) == expected


@pytest.mark.clause("INK-06", "ATL-12")
def test_a_recall_counts_once_for_each_memory_it_returns(memory: Memory, clock: Clock) -> None:
    owl, fox = memory.remember_many(["an owl in the owl tree", "a fox"])
    clock.now += DAY
    memory.recall("owl tree")
    assert (memory.get(owl.id).access_count, memory.get(owl.id).accessed_at) == (1, NOW + DAY)
    assert memory.get(fox.id) == fox
    clock.now += DAY
    memory.recall("owl", touch=False)
    assert (memory.get(owl.id).access_count, memory.get(owl.id).accessed_at) == (1, NOW + DAY)
    memory.recall("owl")
    assert memory.get(owl.id).access_count == 2


def test_counted_recalls_survive_closing(tmp_path: Path, clock: Clock) -> None:
    with Memory(tmp_path / "memory", clock=clock) as memory:
        owl = memory.remember("an owl")
        clock.now += DAY
        memory.recall("owl")
        memory.recall("owl")
    with Memory(tmp_path / "memory") as memory:
        assert (memory.get(owl.id).access_count, memory.get(owl.id).accessed_at) == (2, NOW + DAY)


@pytest.mark.clause("ATL-19")
def test_the_parts_of_a_score_add_up_to_it(zoo: Memory) -> None:
    hits = zoo.recall("lynx robin category tomcat", min_relevance=0.0)
    assert len(hits) == 4
    for hit in hits:
        told = hit.explain()
        assert told.how == "sum"
        assert sum(part.share for part in told.parts) == pytest.approx(hit.score) == pytest.approx(told.score)
        assert all(part.share == pytest.approx(part.value * part.weight) for part in told.parts)
        by_itself = ["alone"] if hit.memory.address.conversation is None else ["conversation", "length"]
        assert [part.name for part in told.parts] == ["text", *by_itself]
        assert f"{hit.score:.3f}" in str(told)
    assert "a robin" in str(hits)


HOSTILE = {
    "many words": "ab " * 100_000,
    "one long word": "x" * 1_000_000,
    "a long run": "漢" * 300_000,
    "quotes": '"' * 100_000,
    "stars": "*" * 100_000,
    "a pattern that looks back": "*a" * 50 + "b",
    "a long phrase": f'"{"ab " * 300_000}"',
    "many phrases": " ".join(f'"w{number}"' for number in range(50_000)),
    "many patterns": " ".join(f"w{number}* *w{number}" for number in range(50_000)),
}


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_query_is_answered(memory: Memory, query: str) -> None:
    memory.remember("a" * 2000)
    assert memory.recall(query) == []


# Revise


@pytest.mark.clause("ATL-21")
def test_a_revised_memory_is_recalled_in_its_new_version_only(memory: Memory) -> None:
    old = memory.remember("Alice lives in Bern", tags=["home"])
    new = memory.revise(old.id, content="Alice lives in Basel")
    assert texts(memory.recall("Alice lives")) == ["Alice lives in Basel"]
    assert texts(memory.list()) == ["Alice lives in Basel"]
    assert memory.get(old.id).superseded_by == new.id
    assert memory.get(old.id).content == "Alice lives in Bern"
    third = memory.revise(new.id, content="Alice lives in Chur")
    for version in (old, new, third):
        assert [one.id for one in memory.history(version.id)] == [old.id, new.id, third.id]


def test_a_new_version_inherits_what_is_not_given(memory: Memory, clock: Clock) -> None:
    me = memory.at(agent="atlas", account="ada")
    old = me.remember(
        "Alice lives in Bern",
        kind="finding",
        importance=0.8,
        tags=["home"],
        role="user",
        source="mail",
        references=["abc"],
        metadata={"page": 3},
        lifetime="short_term",
        channel="ops",
        conversation="c1",
    )
    clock.now += DAY
    new = me.revise(old.id, content="Alice lives in Basel", tags=["city"])
    kept = ("kind", "importance", "role", "source", "references", "metadata", "lifetime", "tier", "address")
    assert {field: getattr(new, field) for field in kept} == {field: getattr(old, field) for field in kept}
    assert (new.content, new.tags, new.created_at, new.access_count) == (
        "Alice lives in Basel",
        ("city",),
        NOW + DAY,
        0,
    )
    assert new.id != old.id


def test_an_account_memory_stays_one_when_it_is_revised_from_a_workspace(memory: Memory) -> None:
    old = memory.at(workspace="shop").remember("tabs", tier="account")
    new = memory.at(workspace="office").revise(old.id, content="spaces")
    assert (new.tier, new.address) == ("account", old.address)
    assert texts(memory.at(workspace="shop").list()) == ["spaces"]


def test_a_new_version_lives_as_long_as_the_old_one_did(memory: Memory, clock: Clock) -> None:
    old = memory.remember("a lynx", expires_at=NOW + 10 * DAY)
    clock.now += 3 * DAY
    assert memory.revise(old.id, content="a wolf").expires_at == NOW + 13 * DAY
    for_ever = memory.remember("an owl", created_at="0001-01-01", expires_at="9999-12-31")
    assert memory.revise(for_ever.id, content="a heron").expires_at.year == 9999


def test_the_embedding_goes_with_the_content(memory: Memory) -> None:
    old = memory.remember("a lynx", embedding=[0.5, 1.0], embedding_model="mini")
    tagged = memory.revise(old.id, tags=["cat"])
    assert (tagged.floats, tagged.embedding_model) == ((0.5, 1.0), "mini")
    renamed = memory.revise(tagged.id, content="a wolf")
    assert (renamed.floats, renamed.embedding_model) == (None, None)
    embedded = memory.revise(renamed.id, embedding=[2.0], embedding_model="maxi")
    assert (memory.get(embedded.id).floats, embedded.embedding_model) == ((2.0,), "maxi")


def test_an_old_version_cannot_be_revised_again(memory: Memory) -> None:
    old = memory.remember("a lynx")
    new = memory.revise(old.id, content="a wolf")
    with pytest.raises(ConflictError, match=f"superseded by {new.id}; revise that one"):
        memory.revise(old.id, content="a fox")
    assert texts(memory.list(state=None)) == ["a wolf", "a lynx"]


@pytest.mark.parametrize(
    "change", [{}, {"content": " "}, {"importance": 2}, {"tags": "x"}, {"kind": "No"}, {"metadata": 5}]
)
def test_a_refused_revision_changes_nothing(memory: Memory, change: dict[str, Any]) -> None:
    old = memory.remember("a lynx")
    with pytest.raises(InputError):
        memory.revise(old.id, **change)
    assert memory.list(state=None) == [old]
    assert [entry.action for entry in memory.audit.search()] == ["refuse", "remember"]


# Time and views


def test_time_is_what_the_clock_says_and_nothing_else(tmp_path: Path) -> None:
    then = datetime(2001, 2, 3, 4, 5, 6, 7, tzinfo=UTC)
    with Memory(tmp_path / "memory", clock=lambda: then) as memory:
        owl, fox, elk = memory.remember_many(["an owl", "a fox", "an elk"])
        memory.recall("owl")
        memory.revise(owl.id, content="a robin")
        memory.archive(fox.id)
        receipt = memory.forget(elk.id)
        undone = memory.undo()
        with pytest.raises(InputError):
            memory.remember("")
        memory.audit.record("note", "by hand")
        times = {receipt.at, undone.at, memory.get(fox.id).archived_at, memory.diagnose(fox.id).at}
        times |= {time for one in memory.list(state=None) for time in (one.created_at, one.accessed_at)}
        times |= {entry.at for entry in memory.audit.search(limit=100)}
        memory.export(tmp_path / "export.json")
        assert times == {then}
    assert b'"exported_at":"2001-02-03T04:05:06.000007Z"' in (tmp_path / "export.json").read_bytes()


def test_a_clock_may_be_naive_or_in_any_zone(tmp_path: Path) -> None:
    with Memory(tmp_path / "a", clock=lambda: datetime(2026, 3, 1, 12)) as memory:
        assert memory.remember("a lynx").created_at == NOW
    with Memory(tmp_path / "b", clock=lambda: NOW.astimezone()) as memory:
        assert memory.remember("a lynx").created_at.tzinfo is UTC


def test_a_view_says_where_it_is(memory: Memory) -> None:
    assert repr(memory) == "<Memory recollect>"
    assert repr(memory.at(agent="atlas", workspace="shop")) == "<Memory recollect at agent='atlas', workspace='shop'>"
    assert memory.at(agent="atlas").address.agent == "atlas"
    assert memory.address.agent is None


def test_closing_keeps_everything_and_closes_every_file(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory")
    with memory:
        view = memory.at(workspace="shop")
        stored = view.remember("a lynx")
        view.recall("lynx")
    assert not list(tmp_path.rglob("*-wal"))
    with Memory(tmp_path / "memory") as again:
        assert again.at(workspace="shop").get(stored.id).access_count == 1
