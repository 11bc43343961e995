"""Diagnosis of one memory, and of all of them: why it was forgotten, why it was retrieved, whether it is outdated."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest
from support.common import Clock

from recollect import InputError, Memory
from recollect.policies.secrets import Screen
from recollect.presets import Preset, load
from recollect.verbs.diagnose import Finding

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    """As in the Atlas document, but with room for two."""
    path = tmp_path / "small.toml"
    path.write_text('extends = "atlas"\n[retention]\nquota = 2\n')
    with Memory(tmp_path / "memory", preset=path, clock=clock) as memory:
        yield memory


def finding(memory: Memory, problem: str) -> Finding | None:
    return next((one for one in memory.doctor().findings if one.problem == problem), None)


@pytest.mark.clause("ATL-19")
def test_a_live_memory_can_be_recalled(memory: Memory, clock: Clock) -> None:
    owl = memory.remember("an owl", kind="fact", importance=0.8)
    clock.now += timedelta(weeks=2)
    found = memory.diagnose(owl.id)
    assert (found.id, found.status, found.reason, found.at) == (owl.id, "live", "can be recalled", NOW)
    assert found.strength == pytest.approx(0.8 * 0.95**2)


@pytest.mark.clause("ATL-19")
def test_an_expired_memory_says_when_it_expired(memory: Memory, clock: Clock) -> None:
    owl = memory.remember("we talked about owls", kind="conversation")
    clock.now += 7 * DAY
    found = memory.diagnose(owl.id)
    assert (found.status, found.at) == ("expired", NOW + 7 * DAY)
    assert "a conversation is kept for a limited time" in found.reason


@pytest.mark.clause("ATL-19")
def test_an_archived_memory_says_what_archived_it(memory: Memory, clock: Clock) -> None:
    owl, fox = memory.remember_many({"content": text, "kind": "fact", "importance": 0.5} for text in ("owl", "fox"))
    memory.archive(owl.id)
    assert memory.diagnose(owl.id).reason == "was archived by hand"
    assert (memory.diagnose(owl.id).status, memory.diagnose(owl.id).at) == ("archived", NOW)
    memory.restore(owl.id)
    assert memory.diagnose(owl.id).status == "live"
    clock.now += DAY
    memory.remember("elk", kind="fact", importance=0.9)
    assert memory.diagnose(owl.id).reason == "was archived to keep the quota"
    assert memory.diagnose(owl.id).at == NOW + DAY
    clock.now += timedelta(weeks=40)
    memory.maintain()
    assert memory.diagnose(fox.id).reason == "had decayed below the limit and was archived"
    bee = memory.remember("bee", kind="fact", importance=0.15)
    memory.maintain(early=True)
    assert memory.diagnose(bee.id).reason == "was of too little importance and was archived"


@pytest.mark.clause("ATL-19", "ATL-21")
def test_an_outdated_memory_names_what_superseded_it_and_what_holds_now(memory: Memory) -> None:
    first = memory.remember("lives in Bern")
    second = memory.revise(first.id, content="lives in Basel")
    third = memory.revise(second.id, content="lives in Chur")
    found = memory.diagnose(first.id)
    assert (found.status, found.reason, found.current) == (
        "superseded",
        f"is outdated: superseded by {second.id}",
        third.id,
    )
    assert memory.diagnose(second.id).current == third.id
    assert memory.diagnose(third.id).current is None


@pytest.mark.clause("ATL-19")
@pytest.mark.parametrize(
    ("forget", "reason"),
    [
        (lambda m, one: m.forget(one, reason="asked"), "forgot 1 memory: asked"),
        (lambda m, one: m.forget(one, erase=True), "forgot 1 memory"),
        (lambda m, one: m.undo(), "undid: remembered a conversation"),
    ],
    ids=["forget", "erase", "undo"],
)
def test_a_forgotten_memory_says_why_and_when(
    memory: Memory, clock: Clock, forget: Callable[[Memory, str], object], reason: str
) -> None:
    owl = memory.remember("an owl")
    clock.now += DAY
    forget(memory, owl.id)
    found = memory.diagnose(owl.id)
    assert (found.status, found.reason, found.at) == ("forgotten", reason, NOW + DAY)


@pytest.mark.clause("ATL-19")
def test_what_was_never_there_is_unknown(memory: Memory) -> None:
    memory.remember("an owl")
    assert memory.diagnose("0" * 32).status == "unknown"
    with pytest.raises(InputError, match=r"^id: "):
        memory.diagnose("../x")


def test_what_an_agent_writes_into_the_log_explains_nothing(memory: Memory) -> None:
    owl = memory.remember("an owl")
    memory.archive(owl.id)
    memory.audit.record("quota", "forged", {"changed": [owl.id]})
    assert memory.diagnose(owl.id).reason == "was archived by hand"
    memory.audit.record("forget", "forged", {"deleted": ["0" * 32]})
    assert memory.diagnose("0" * 32).status == "unknown"


def test_versions_that_supersede_each_other_in_a_circle_end_somewhere(tmp_path: Path, memory: Memory) -> None:
    first, second = memory.remember_many(["an owl", "a robin"])
    memory.export(tmp_path / "export.json")
    document = json.loads((tmp_path / "export.json").read_text())
    document["memories"][0]["superseded_by"] = second.id
    document["memories"][1]["superseded_by"] = first.id
    (tmp_path / "circle.json").write_text(json.dumps(document))
    circle = memory.at(workspace="circle")
    circle.import_(tmp_path / "circle.json")
    assert circle.diagnose(first.id).status == "superseded"
    assert {one.id for one in circle.history(first.id)} == {first.id, second.id}
    assert circle.forget(first.id).count == 2


@pytest.mark.clause("ATL-19")
def test_a_retrieval_is_explained_by_the_parts_of_its_score(memory: Memory, clock: Clock) -> None:
    memory.remember("the owl is in the tree", kind="fact", importance=0.6)
    clock.now += 7 * DAY
    (hit,) = memory.recall("owl tree")
    parts = {part.name: (part.value, part.weight) for part in hit.explain().parts}
    assert parts == {
        "similarity": (1.0, 0.5),
        "recency": (0.5, 0.2),
        "importance": (0.6, 0.2),
        "source": (1.0, 0.1),
    }
    assert hit.score == pytest.approx(0.5 + 0.1 + 0.12 + 0.1)
    assert (
        str(hit.explain()) == "0.820 = 0.5·similarity 1.00 + 0.2·recency 0.50 + 0.2·importance 0.60 + 0.1·source 1.00"
    )


# The doctor


def test_a_healthy_memory_has_no_findings(memory: Memory) -> None:
    memory.remember("an owl")
    health = memory.doctor()
    assert (health.memories, health.findings, health.ok) == (1, (), True)


@pytest.mark.clause("ATL-03")
def test_the_doctor_finds_what_could_be_better(tmp_path: Path, clock: Clock) -> None:
    with Memory(tmp_path / "memory", preset="atlas", clock=clock) as memory:
        memory.remember_many(["an owl", "an owl", {"content": "ok thanks", "kind": "fact"}])
        memory.remember("weak", kind="fact", importance=0.11)
        assert finding(memory, "duplicates").count == 1
        assert finding(memory, "unimportant").count == 2
        clock.now += timedelta(weeks=5)
        assert finding(memory, "expired").count == 2
        assert finding(memory, "duplicates") is None
        assert finding(memory, "decayed").examples
        assert finding(memory, "never recalled").count == 2
        assert memory.doctor().ok
        assert all(one.advice for one in memory.doctor().findings)


def test_the_doctor_finds_secrets_that_were_stored_before_they_were_refused(tmp_path: Path) -> None:
    careless = Preset(name="careless", secrets=Screen(enabled=False))
    with Memory(tmp_path / "memory", preset=careless) as memory:
        leaked = memory.remember("the password" + ": hunter2")
        memory.archive(leaked.id)
        assert memory.doctor().ok
    with Memory(tmp_path / "memory") as memory:
        health = memory.doctor()
        assert not health.ok
        assert [(one.problem, one.severity, one.examples) for one in health.findings] == [
            ("secrets", "error", (leaked.id,))
        ]
        assert "hunter2" not in repr(health)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE memories SET text = 'forged'",
        "UPDATE memories SET kind = 'forged'",
        "UPDATE memories SET created_at = created_at + 1",
        "UPDATE memories SET checksum = 'sha256:0'",
    ],
)
def test_the_doctor_finds_rows_that_were_changed_outside(tmp_path: Path, sql: str) -> None:
    with Memory(tmp_path / "memory") as memory:
        owl = memory.remember("an owl")
    with apsw.Connection(str(next(tmp_path.rglob("memory.db")))) as connection:
        connection.execute(sql)
    with Memory(tmp_path / "memory") as memory:
        corrupt = finding(memory, "corrupt")
        assert (corrupt.severity, corrupt.count) == ("error", 1)
        assert owl.id in corrupt.examples[0]
        assert not memory.doctor().ok
        for part in ("agent", "account", "channel", "conversation"):
            assert memory.at(**{part: "other"}).doctor().ok


def test_the_doctor_looks_at_what_the_view_sees(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory", preset=load("atlas")) as memory:
        memory.at(agent="a").remember_many(["an owl", "an owl"])
        memory.at(agent="b").remember("a fox")
        assert memory.at(agent="a").doctor().memories == 2
        assert memory.at(agent="b").doctor().findings == ()
        assert memory.doctor().memories == 3
