"""Atlas UX, "Memory Retrieval: search_my_memories" and its merging, through the public surface."""

import math
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.common import Clock
from support.stores import DATABASES, located

from recollect import Memory, tools
from recollect.recall.consult import Consulted
from recollect.recall.sources import Found, Source

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Wiki:
    """A further source with these texts, as similar as they say."""

    name = "wiki"

    def __init__(self, *found: Found) -> None:
        self._found = found

    def search(self, query: str, limit: int) -> Sequence[Found]:
        return self._found[:limit]


class Atlas:
    """Makes the memory with these sources, and gives one agent's view of it."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url, self._clock = url, clock
        self.memory: Memory

    def __call__(self, *sources: Source) -> Memory:
        self.memory = Memory(self._url, preset="atlas", clock=self._clock, sources=sources)
        return self.memory.at(tenant="acme", agent="cfo")

    def complete(self, output: object, workflow: str = "onboarding", step: str = "sign") -> None:
        flows = self.memory.at(tenant="acme", agent="coo").workflows
        flows.complete(flows.step(flows.start(workflow).id, step).id, output=output)

    def publish(self, title: str, text: str) -> None:
        self.memory.at(tenant="acme").knowledge.add(text, title=title, status="published")


@pytest.fixture(params=DATABASES)
def atlas(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Atlas]:
    atlas = Atlas(located(request.param, tmp_path / "memory"), clock)
    yield atlas
    atlas.memory.close()


def sources(consulted: Consulted) -> list[str]:
    return [one.source for one in consulted]


def everything(atlas: Atlas, *further: Source) -> Memory:
    """An agent's view, with something about a lease in each of the four."""
    me = atlas(*further)
    me.remember("We signed the lease of the Berlin office", kind="decision")
    me.audit.record("sign", "signed the lease, 4,200 a month")
    atlas.complete("the lease was signed")
    atlas.publish("Handbook", "How a lease is signed here")
    return me


def fail(*given: object, **options: object) -> None:
    raise ConnectionError("the server is down")


SEARCHES = {
    "memory": "recollect.recall.consult.recall",
    "audit": "recollect.audit.AuditLog.search",
    "workflow": "recollect.facets.workflows.Workflows.search",
    "knowledge": "recollect.facets.knowledge.searching.ranked",
}
"""What each of the four does when it is asked."""


@pytest.mark.clause("ATL-04", "ATL-07", "ATL-08")
def test_four_sources_are_searched_at_once(atlas: Atlas) -> None:
    me = everything(atlas)
    answer = me.consult("lease")
    assert sorted(sources(answer)) == ["audit", "knowledge", "memory", "workflow"]
    assert answer.failures == ()
    results = tools.call(me, "search_my_memories", {"query": "lease"})["results"]
    found = {one["source"]: one["content"] for one in results}
    assert found == {
        "memory": "We signed the lease of the Berlin office",
        "audit": "signed the lease, 4,200 a month",
        "workflow": "onboarding › sign: the lease was signed",
        "knowledge": "Handbook\n\nHow a lease is signed here",
    }


@pytest.mark.clause("ATL-08")
@pytest.mark.parametrize("broken", [*([name] for name in SEARCHES), ["workflow", "knowledge"], [*SEARCHES]], ids=str)
def test_a_source_that_fails_is_reported_and_the_others_answer(
    atlas: Atlas, broken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    me = everything(atlas)
    for name in broken:
        monkeypatch.setattr(SEARCHES[name], fail)
    answer = me.consult("lease")
    assert [(one.source, one.reason) for one in answer.failures] == [
        (name, "ConnectionError: the server is down") for name in broken
    ]
    assert set(sources(answer)) == SEARCHES.keys() - set(broken)
    found = tools.call(me, "search_my_memories", {"query": "lease"})
    assert [one["source"] for one in found["failed"]] == broken


@pytest.mark.clause("ATL-08")
@pytest.mark.parametrize("slow", SEARCHES)
def test_a_source_that_is_slow_is_reported_and_the_others_answer(
    atlas: Atlas, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, ended = everything(atlas), threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(SEARCHES[slow], lambda *given, **options: ended.wait(20) and [])
        answer = me.consult("lease", deadline=1.0)
        ended.set()
    assert [(one.source, one.reason) for one in answer.failures] == [(slow, "no answer within 1 s")]
    assert set(sources(answer)) == SEARCHES.keys() - {slow}


@pytest.mark.clause("ATL-08")
@pytest.mark.parametrize("atlas", ["sqlite"], indirect=True)
def test_a_damaged_knowledge_base_does_not_fail_the_call(atlas: Atlas, tmp_path: Path) -> None:
    me = everything(atlas)
    atlas.memory.close()
    for path in (tmp_path / "memory" / "acme" / "workspaces" / "%20knowledge").iterdir():
        path.write_bytes(b"no database" * 1000)
    answer = me.consult("lease")
    assert [one.source for one in answer.failures] == ["audit", "knowledge"]  # its log is of the same file
    assert set(sources(answer)) == {"memory", "workflow"}


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


class Angles:
    """Vectors at the angle that ends a text, in degrees; a question is at 0."""

    model, dimensions = "angles", 2

    def embed_query(self, text: str) -> Sequence[float]:
        return [1.0, 0.0]

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        angles = [math.radians(float(text.split()[-1])) for text in texts]
        return [[math.cos(angle), math.sin(angle)] for angle in angles]

    def close(self) -> None:
        pass


@pytest.mark.clause("ATL-09", "ATL-23")
@pytest.mark.parametrize("kind", DATABASES)
def test_the_ten_memories_are_the_most_similar_whatever_their_importance(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), preset="atlas", embedder=Angles()) as memory:
        me = memory.at(tenant="acme", agent="cfo")
        me.remember_many({"content": f"lease {n} at 40", "importance": 1.0, "kind": "fact"} for n in range(12))
        similar = me.remember("another lease at 20", importance=0.0, kind="fact")
        me.embed(wait=True)
        chosen = [one for one in me.consult("lease", limit=50) if one.source == "memory"]
        assert len(chosen) == 10
        assert similar.id in {one.id for one in chosen}


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
    me = everything(atlas, Wiki(Found(text="a page about the lease", similarity=0.6, at=NOW, importance=0.3)))
    clock.forward(days=7)
    me.remember("a memory of the lease", kind="fact", importance=0.3, created_at=NOW)
    priorities = {"memory": 1.0, "audit": 0.8, "workflow": 0.6, "knowledge": 0.5, "wiki": 0.0}
    found = {one.source: one for one in me.consult("lease", limit=10)}
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
    for source in ("audit", "workflow", "knowledge"):
        assert found[source].score == pytest.approx(0.5 * 1.0 + 0.2 * 0.5 + 0.2 * 0.5 + 0.1 * priorities[source])
    assert found["wiki"].score == pytest.approx(0.5 * 0.6 + 0.2 * 0.5 + 0.2 * 0.3)


@pytest.mark.clause("ATL-10")
def test_the_same_text_from_two_sources_comes_once_with_its_better_score(atlas: Atlas) -> None:
    me = atlas(Wiki(Found(text="the  LEASE is signed\n", similarity=0.1)))
    atlas.publish("Sign", "x lease")
    atlas.complete("the lease", workflow="a", step="b")
    me.remember("A › b: the Lease", kind="fact", importance=0.5)
    me.remember("The lease is signed", kind="fact", importance=0.5)
    found = [(one.source, one.text) for one in me.consult("lease", limit=10)]
    assert sorted(found) == [
        ("knowledge", "Sign\n\nx lease"),
        ("memory", "A › b: the Lease"),
        ("memory", "The lease is signed"),
    ]


@pytest.mark.clause("ATL-10")
def test_the_five_best_come_best_first(atlas: Atlas) -> None:
    me = atlas()
    for number in range(5):
        atlas.complete(f"lease {number}")
    me.remember_many({"content": f"The lease of house {n}", "importance": n / 10, "kind": "fact"} for n in range(10))
    found = me.consult("lease")
    scores = [one.score for one in found]
    assert len(found) == 5
    assert scores == sorted(scores, reverse=True)
    assert scores == [one.score for one in me.consult("lease", limit=15)][:5]
    assert len(me.consult("lease", limit=15)) == 15


@pytest.mark.clause("ATL-04", "ATL-10", "ATL-14")
def test_the_five_best_become_system_messages_and_passages_come_after_them(atlas: Atlas) -> None:
    me = atlas(Wiki(*(Found(text=f"lease {n}", similarity=n / 10, at=NOW) for n in range(5))))
    me.remember_many({"content": f"The lease of house {n}", "importance": n / 10, "kind": "fact"} for n in range(5))
    best = [one.text for one in me.consult("lease")]
    atlas.publish("Handbook", "How a lease is signed here")
    made = me.context([{"role": "system", "content": "You are the CFO."}, {"role": "user", "content": "lease"}])
    roles = [one["role"] for one in made.messages]
    assert roles == ["system"] * 7 + ["user"]
    for message, text in zip(made.messages[1:6], best, strict=True):
        assert f"- {text}\n" in message["content"]
    assert "How a lease is signed here" in made.messages[6]["content"]
    assert "(knowledge, Handbook, 2026-03-01" in made.messages[6]["content"]


@pytest.mark.clause("ATL-08")
def test_the_tool_asks_all_four_at_the_same_time(atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answers once all four were asked: one after the other they would wait for each other in vain."""
    meeting = threading.Barrier(4)

    def meet(*arguments: object, **options: object) -> list[Found]:
        meeting.wait(4.0)  # less than the tool waits for its sources
        return []

    me = atlas()
    for search in SEARCHES.values():
        monkeypatch.setattr(search, meet)
    assert tools.call(me, "search_my_memories", {"query": "lease"}) == {"results": [], "failed": []}


@pytest.mark.clause("ATL-07", "ATL-08", "ATL-09")
def test_each_source_gives_as_many_as_the_document_says(atlas: Atlas, clock: Clock) -> None:
    """Ten memories and ten audit entries, five steps and five chunks: of those, texts that say the same count once."""
    me = atlas()
    me.remember_many(f"memory of the lease {number}" for number in range(12))
    for number in range(12):
        clock.forward(minutes=1)
        me.audit.record("sign", f"signed the lease number {number}")
        atlas.complete(f"the lease {number}")
        atlas.publish(f"Page {number}", "about the lease")
    for limit in (50, 1000):
        counts = Counter(sources(me.consult("the lease", limit=limit)))
        assert counts == {"memory": 10, "audit": 10, "workflow": 5, "knowledge": 5}
    steps = [one for one in me.consult("the lease", limit=50) if one.source == "workflow"]
    assert [one.text for one in steps] == [f"onboarding › sign: the lease {number}" for number in (11, 10, 9, 8, 7)]
    for _ in range(7):
        me.audit.record("sign", "signed the lease once more")
    assert len(me.consult("the lease", limit=50, sources=["audit"])) == 4


@pytest.mark.clause("ATL-04", "ATL-22")
def test_the_knowledge_search_alone_is_limited_to_the_agents_categories(atlas: Atlas) -> None:
    me = everything(atlas)
    owner = atlas.memory.at(tenant="acme").knowledge
    owner.add("A lease is a secret of the lawyers", title="Law", category="legal", status="published")
    owner.add("A lease that nobody has approved", title="Draft", category="legal")
    other = tools.call(me, "search_atlasux_knowledge", {"query": "lease", "categories": ["legal"]})
    assert [one["title"] for one in other["results"]] == ["Law"]
    owner.allow("cfo", ["general"])
    found = tools.call(me, "search_atlasux_knowledge", {"query": "lease"})
    assert [(one["title"], one["content"]) for one in found["results"]] == [
        ("Handbook", "Handbook\n\nHow a lease is signed here")
    ]
    assert tools.call(me, "search_atlasux_knowledge", {"query": "lease", "categories": ["legal"]})["count"] == 0
    assert "lawyers" not in str(me.consult("lease", limit=50))
    assert "search_atlasux_knowledge" in [tool.name for tool in tools.of(me)]
    assert tools.call(atlas.memory.at(tenant="evil", agent="cfo"), "search_atlasux_knowledge", {"query": "lease"}) == {
        "count": 0,
        "results": [],
    }
