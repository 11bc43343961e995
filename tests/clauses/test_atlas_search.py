"""Atlas UX, "Memory Retrieval: search_my_memories" and its merging, through the public surface."""

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock

from recollect import Memory, tools
from recollect.recall.consult import Consulted
from recollect.recall.sources import Found, Source

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Shelf:
    """A source with these texts, as similar as they say."""

    def __init__(self, name: str, *found: Found) -> None:
        self.name = name
        self._found = found

    def search(self, query: str, limit: int) -> Sequence[Found]:
        return self._found[:limit]


class Broken:
    def __init__(self, name: str) -> None:
        self.name = name

    def search(self, query: str, limit: int) -> Sequence[Found]:
        raise ConnectionError("the server is down")


class Atlas:
    """Makes the memory with these sources, and gives one agent's view of it."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self.memory: Memory

    def __call__(self, *sources: Source) -> Memory:
        self.memory = Memory(self._folder, preset="atlas", clock=self._clock, sources=sources)
        return self.memory.at(tenant="acme", agent="cfo")


@pytest.fixture
def atlas(tmp_path: Path, clock: Clock) -> Iterator[Atlas]:
    atlas = Atlas(tmp_path / "memory", clock)
    yield atlas
    atlas.memory.close()


def sources(consulted: Consulted) -> list[str]:
    return [one.source for one in consulted]


STEP = Found(text="step 3 of onboarding: the lease was signed", similarity=0.9, at=NOW)
CHUNK = Found(text="How leases are signed here", similarity=0.8)


@pytest.mark.clause("ATL-08")
def test_four_sources_are_searched_at_once(atlas: Atlas) -> None:
    me = atlas(Shelf("workflow", STEP), Shelf("knowledge", CHUNK))
    me.remember("We signed the lease of the Berlin office", kind="decision")
    me.audit.record("sign", "signed the lease, 4,200 a month")
    answer = me.consult("lease")
    assert sorted(sources(answer)) == ["audit", "knowledge", "memory", "workflow"]
    assert answer.failures == ()


@pytest.mark.clause("ATL-08")
@pytest.mark.parametrize("broken", [["workflow"], ["knowledge"], ["workflow", "knowledge"]])
def test_a_source_that_fails_is_reported_and_the_others_answer(atlas: Atlas, broken: list[str]) -> None:
    shelves = {"workflow": Shelf("workflow", STEP), "knowledge": Shelf("knowledge", CHUNK)}
    me = atlas(*(Broken(name) if name in broken else shelves[name] for name in shelves))
    me.remember("We signed the lease", kind="decision")
    answer = me.consult("lease")
    assert {one.source: one.reason for one in answer.failures} == dict.fromkeys(
        broken, "ConnectionError: the server is down"
    )
    assert set(sources(answer)) == {"memory", *shelves} - set(broken)


@pytest.mark.clause("ATL-08")
def test_a_failing_memory_or_audit_log_does_not_fail_the_call_either(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recollect import StoreError, audit
    from recollect.recall import consult as federation

    def broken(*arguments: object, **options: object) -> None:
        raise StoreError("the disk failed")

    me = atlas(Shelf("workflow", STEP))
    me.audit.record("sign", "signed the lease")
    with monkeypatch.context() as patch:
        patch.setattr(federation, "recall", broken)
        answer = me.consult("lease")
        assert [(one.source, one.reason) for one in answer.failures] == [("memory", "StoreError: the disk failed")]
        assert set(sources(answer)) == {"audit", "workflow"}
    monkeypatch.setattr(audit.AuditLog, "search", broken)
    assert [one.source for one in me.consult("lease").failures] == ["audit"]


@pytest.mark.clause("ATL-08", "ATL-09")
def test_the_memories_are_the_agents_own_live_ones_and_ten_at_most(atlas: Atlas, clock: Clock) -> None:
    me = atlas()
    expired = me.remember("an expired lease", kind="fact", expires_at=NOW + timedelta(hours=1))
    archived = me.remember("an archived lease", kind="fact")
    me.archive(archived.id)
    old = me.remember("an old lease", kind="fact")
    new = me.revise(old.id, content="a new lease")
    atlas.memory.at(tenant="acme").remember("a lease that belongs to nobody", kind="fact")
    atlas.memory.at(tenant="acme", agent="ceo").remember("a lease of another", kind="fact")
    clock.forward(hours=2)
    assert [one.id for one in me.consult("lease", limit=50)] == [new.id]
    assert not {expired.id, archived.id, old.id} & {one.id for one in me.consult("lease")}
    me.remember_many(f"lease number {number}" for number in range(20))
    assert len(me.consult("lease", limit=50)) == 10
    found = tools.call(me, "search_my_memories", {"query": "lease", "limit": 50})
    assert len(found["results"]) == 10
    assert "nobody" not in str(found)


@pytest.mark.clause("ATL-08")
def test_the_audit_log_is_searched_for_the_whole_term_whatever_its_case_newest_first(
    atlas: Atlas, clock: Clock
) -> None:
    me = atlas()
    for number in range(15):
        clock.forward(minutes=1)
        me.audit.record("sign", f"Signed THE LEASE number {number}", {"number": number})
        me.audit.record("sign", f"signed a lease that is not the one, {number}")
    found = me.consult("the lease", limit=10, sources=["audit"])
    assert [one.meta["number"] for one in found] == [14, 13, 12, 11, 10, 9, 8, 7, 6, 5]
    assert {one.similarity for one in found} == {1.0}
    assert {one.meta["actor"] for one in found} == {"cfo"}


@pytest.mark.clause("ATL-08")
def test_a_question_finds_audit_entries_by_its_words(atlas: Atlas) -> None:
    me = atlas()
    me.audit.record("sign", "Signed the Berlin lease for five years")
    me.audit.record("sign", "Signed something else")
    me.audit.record("feed", "fed the owls")
    for number in range(12):
        me.audit.record("sign", f"signed lease number {number}")
    found = me.consult("When did we get the lease in Berlin signed?", sources=["audit"])
    assert found.results[0].text == "Signed the Berlin lease for five years"
    assert found.results[0].similarity == 0.75  # get, lease, berlin, signed: three of four
    assert [one.text for one in found][1:] == [f"signed lease number {number}" for number in (11, 10, 9, 8)]
    assert found.results[1].similarity == 0.5
    assert "Signed something else" not in {one.text for one in me.consult("lease Berlin signed get", limit=100)}


@pytest.mark.clause("ATL-08", "ATL-18")
def test_all_agents_of_a_tenant_read_its_audit_log_and_no_other_tenant_does(atlas: Atlas) -> None:
    me = atlas()
    me.audit.record("sign", "signed the lease")
    assert [one.text for one in atlas.memory.at(tenant="acme", agent="ceo").consult("lease")] == ["signed the lease"]
    assert len(atlas.memory.at(tenant="evil", agent="cfo").consult("lease")) == 0


@pytest.mark.clause("ATL-10")
def test_the_score_is_the_weighted_sum_with_the_priorities_of_the_sources(atlas: Atlas, clock: Clock) -> None:
    same = {"similarity": 0.6, "at": NOW - timedelta(days=7), "importance": 0.3}
    me = atlas(
        Shelf("workflow", Found(text="a step about the lease", **same)),
        Shelf("knowledge", Found(text="a chunk about the lease", **same)),
        Shelf("wiki", Found(text="a page about the lease", **same)),
    )
    me.remember("a memory of the lease", kind="fact", importance=0.3, created_at=NOW - timedelta(days=7))
    me.audit.record("sign", "an entry about the lease")
    priorities = {"memory": 1.0, "audit": 0.8, "workflow": 0.6, "knowledge": 0.5, "wiki": 0.0}
    found = {one.source: one for one in me.consult("lease")}
    assert set(found) == set(priorities)
    for source, one in found.items():
        value = {part.name: part.value for part in one.parts}
        assert {part.name: part.weight for part in one.parts} == {
            "similarity": 0.5,
            "recency": 0.2,
            "importance": 0.2,
            "source": 0.1,
        }
        assert value["source"] == priorities[source]
        total = 0.5 * value["similarity"] + 0.2 * value["recency"] + 0.2 * value["importance"] + 0.1 * value["source"]
        assert one.score == pytest.approx(total)
    assert found["workflow"].score == pytest.approx(0.5 * 0.6 + 0.2 * 0.5 + 0.2 * 0.3 + 0.1 * 0.6)
    assert found["knowledge"].score == pytest.approx(0.5 * 0.6 + 0.2 * 0.5 + 0.2 * 0.3 + 0.1 * 0.5)
    assert found["audit"].score == pytest.approx(0.5 * 1.0 + 0.2 * 1.0 + 0.2 * 0.5 + 0.1 * 0.8)
    assert found["memory"].score == pytest.approx(0.5 * 1.0 + 0.2 * 0.5 + 0.2 * 0.3 + 0.1 * 1.0)


@pytest.mark.clause("ATL-10")
def test_the_same_text_from_two_sources_comes_once_with_its_better_score(atlas: Atlas) -> None:
    me = atlas(
        Shelf("workflow", Found(text="The  LEASE was signed", similarity=0.9, at=NOW, id="step")),
        Shelf("knowledge", Found(text="the lease was signed\n", similarity=0.1)),
    )
    one = me.remember("The lease was signed", kind="fact", importance=0.5)
    found = me.consult("lease")
    assert [(result.source, result.id) for result in found] == [("memory", one.id)]


@pytest.mark.clause("ATL-10")
def test_the_five_best_come_best_first(atlas: Atlas) -> None:
    me = atlas(Shelf("workflow", *(Found(text=f"lease {n}", similarity=n / 10, at=NOW) for n in range(5))))
    me.remember_many({"content": f"The lease of house {n}", "importance": n / 10, "kind": "fact"} for n in range(10))
    found = me.consult("lease")
    scores = [one.score for one in found]
    assert len(found) == 5
    assert scores == sorted(scores, reverse=True)
    assert scores == [one.score for one in me.consult("lease", limit=15)][:5]
    assert len(me.consult("lease", limit=15)) == 15


@pytest.mark.clause("ATL-10")
def test_the_five_best_become_system_messages(atlas: Atlas) -> None:
    me = atlas(Shelf("workflow", *(Found(text=f"lease {n}", similarity=n / 10, at=NOW) for n in range(5))))
    me.remember_many({"content": f"The lease of house {n}", "importance": n / 10, "kind": "fact"} for n in range(5))
    best = [one.text for one in me.consult("lease")]
    made = me.context([{"role": "system", "content": "You are the CFO."}, {"role": "user", "content": "lease"}])
    roles = [one["role"] for one in made.messages]
    assert roles == ["system"] * 6 + ["user"]
    for message, text in zip(made.messages[1:6], best, strict=True):
        assert f"- {text}\n" in message["content"]


@pytest.mark.clause("ATL-08")
def test_the_tool_asks_all_four_at_the_same_time(atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answers once all four were asked: one after the other they would wait for each other in vain."""
    from recollect import audit
    from recollect.recall import consult as federation

    meeting = threading.Barrier(4)

    def meet(*arguments: object, **options: object) -> list[Found]:
        meeting.wait(4.0)  # less than the tool waits for its sources
        return []

    class Meeting(Shelf):
        search = meet

    me = atlas(Meeting("workflow"), Meeting("knowledge"))
    monkeypatch.setattr(federation, "recall", meet)
    monkeypatch.setattr(audit.AuditLog, "search", meet)
    assert tools.call(me, "search_my_memories", {"query": "lease"}) == {"results": [], "failed": []}


@pytest.mark.clause("ATL-08", "ATL-09")
def test_each_source_is_asked_for_as_many_as_the_document_says(
    atlas: Atlas, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten memories and ten audit entries, five steps and five chunks: of those, texts that say the same count once."""
    from recollect.recall import consult as federation

    asked: dict[str, int] = {}
    recall = federation.recall

    def recalling(*given: Any, limit: int, **options: Any) -> Any:
        asked["memory"] = limit
        return recall(*given, limit=limit, **options)

    monkeypatch.setattr(federation, "recall", recalling)

    class Asked(Shelf):
        def search(self, query: str, limit: int) -> Sequence[Found]:
            asked[self.name] = limit
            return ()

    me = atlas(Asked("workflow"), Asked("knowledge"))
    for number in range(3):
        me.audit.record("sign", f"signed the lease number {number}")
    for _ in range(7):
        clock.forward(minutes=1)
        me.audit.record("sign", "signed the lease once more")
    for limit in (1, 4, 50):
        tools.call(me, "search_my_memories", {"query": "the lease", "limit": limit})
        assert asked == {"memory": 10, "workflow": 5, "knowledge": 5}
        assert len(me.consult("the lease", limit=limit, sources=["audit"])) == min(limit, 4)
