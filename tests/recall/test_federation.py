"""Consulting every source at once: failures, lateness, bad answers, and whose memories are seen."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock

from recollect import Address, AsyncMemory, InputError, Memory, NotFoundError
from recollect.recall.consult import Consulted, Failure
from recollect.recall.sources import Found, Source

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Fixed:
    """Answers as it was told to."""

    def __init__(self, name: str, answer: Callable[[], Any]) -> None:
        self.name = name
        self.asked: list[tuple[str, int]] = []
        self._answer = answer

    def search(self, query: str, limit: int) -> Sequence[Found]:
        self.asked.append((query, limit))
        return self._answer()


def found(text: str, similarity: float = 1.0, **more: Any) -> Found:
    return Found(text=text, similarity=similarity, **more)


def failing(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Memory]]:
    made: list[Memory] = []

    def make(*sources: Source, preset: str = "atlas") -> Memory:
        made.append(Memory(tmp_path / preset, preset=preset, clock=clock, sources=sources))
        return made[-1]

    yield make
    for memory in made:
        memory.close()


Make = Callable[..., Memory]


def texts(consulted: Consulted) -> list[str]:
    return [one.text for one in consulted]


def test_an_unknown_or_doubtful_wish_is_refused(make: Make) -> None:
    memory = make(Fixed("wiki", list))
    with pytest.raises(NotFoundError, match="no source kb; known: memory, audit, workflow, knowledge, wiki"):
        memory.consult("owl", sources=["kb"])
    bad: list[dict[str, Any]] = [
        {"query": 7},
        {"limit": 0},
        {"limit": 1001},
        {"limit": True},
        {"sources": "wiki"},
        {"sources": [3]},
        *({"deadline": value} for value in (0, -1, float("nan"), float("inf"), 601, True, "2", None)),
    ]
    for wrong in bad:
        with pytest.raises(InputError) as refused:
            memory.consult(**{"query": "owl", **wrong})
        assert refused.value.field == next(iter(wrong))


@pytest.mark.parametrize(
    ("sources", "field"),
    [
        ([Fixed("memory", list)], "sources[0].name"),
        ([Fixed("a", list), Fixed("audit", list)], "sources[1].name"),
        ([Fixed("a", list), Fixed("a", list)], "sources[1].name"),
        ([Fixed("", list)], "sources[0].name"),
        ([Fixed("two\nlines", list)], "sources[0].name"),
        ([object()], "sources[0]"),
        ("wiki", "sources"),
    ],
)
def test_sources_need_names_of_their_own(tmp_path: Path, sources: Any, field: str) -> None:
    with pytest.raises(InputError) as refused:
        Memory(tmp_path / "memory", sources=sources)
    assert refused.value.field == field
    assert not (tmp_path / "memory").exists()


@pytest.mark.parametrize("query", ["", "  \n"])
def test_nothing_is_asked_without_a_question(make: Make, query: str) -> None:
    wiki = Fixed("wiki", lambda: [found("x")])
    memory = make(wiki)
    memory.audit.record("pay", "paid")
    assert memory.consult(query) == Consulted()
    assert wiki.asked == []
    assert memory.consult("owl", sources=[]) == Consulted()


@pytest.mark.parametrize("preset", ["recollect", "atlas", "aegis", "inklings", "journal"])
def test_every_preset_can_be_consulted(make: Make, preset: str) -> None:
    memory = make(Fixed("wiki", lambda: [found("An owl is a bird", 0.25)]), preset=preset)
    memory.remember("the owl sleeps in the barn")
    memory.audit.record("watch", "saw an owl")
    answer = memory.consult("owl")
    assert answer.failures == ()
    assert sorted(one.source for one in answer) == ["audit", "memory", "wiki"]
    assert answer.results[0].source == "memory"
    assert [part.name for part in answer.results[0].parts] == ["similarity", "recency", "importance", "source"]
    assert "memory: the owl sleeps in the barn" in str(answer)


def test_a_memory_that_is_returned_counts_as_retrieved_and_no_other_does(make: Make, clock: Clock) -> None:
    memory = make(Fixed("wiki", lambda: [found("better", 1.0, at=NOW, importance=1.0)]))
    one = memory.remember("the owl", kind="fact", importance=0.1, created_at=NOW - timedelta(days=100))
    clock.forward(days=1)
    assert texts(memory.consult("owl", limit=1)) == ["better"]
    assert memory.get(one.id).access_count == 0
    memory.consult("owl", limit=2)
    assert (memory.get(one.id).access_count, memory.get(one.id).accessed_at) == (1, clock.now)


ERRORS: dict[str, tuple[BaseException, str]] = {
    "plain": (RuntimeError("no route to host"), "RuntimeError: no route to host"),
    "silent": (KeyError(), "KeyError"),
    "our own": (InputError("query", "too long"), "InputError: query: too long"),
    "exit": (SystemExit(3), "SystemExit: 3"),
    "password in an address": (OSError("cannot reach postgresql://bob:hunter2@db/x"), "OSError"),
    "a key": (ValueError("bad key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"), "ValueError"),
    "control characters": (ValueError("one\x1b[31m\ntwo\x00"), "ValueError: one [31m two"),
    "a page": (ValueError("long " * 1000), f"ValueError: {('long ' * 1000)[:199]}…"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_a_failure_is_told_in_a_line_without_secrets(make: Make, case: str) -> None:
    error, reason = ERRORS[case]
    memory = make(Fixed("wiki", failing(error)))
    memory.remember("an owl")
    answer = memory.consult("owl")
    assert answer.failures == (Failure("wiki", reason),)
    assert texts(answer) == ["an owl"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda: ["a text"], "must return Found, not str"),
        (lambda: None, "TypeError"),
        (lambda: [found("x", 1.5)], "similarity: 1.5 must be a number from 0 to 1"),
        (lambda: [found("x", float("nan"))], "similarity: nan"),
        (lambda: [found("x", importance=-1)], "importance: -1"),
        (lambda: [found(b"x")], "text: must be text, not bytes"),  # type: ignore[arg-type]
        (lambda: [found("x\ud800")], "text: has a lone surrogate"),
        (lambda: [found("x", at="yesterday")], "at: 'yesterday' is not"),
        (lambda: [found("x", id=7)], "id: 7 must be"),
        (lambda: [found("x", meta=["title"])], "meta: must be a dict, not list"),
    ],
)
def test_an_answer_that_makes_no_sense_is_a_failure(make: Make, answer: Callable[[], Any], problem: str) -> None:
    consulted = make(Fixed("wiki", answer)).consult("owl")
    assert len(consulted) == 0
    assert problem in consulted.failures[0].reason


def test_a_time_without_a_zone_is_taken_as_utc(make: Make) -> None:
    (one,) = make(Fixed("wiki", lambda: [found("x", at=datetime(2026, 2, 22, 12))])).consult("owl")
    assert {part.name: part.value for part in one.parts}["recency"] == 0.5
    assert one.at == NOW - timedelta(days=7)


def test_what_has_no_time_is_not_recent_and_an_unknown_source_has_no_priority(make: Make) -> None:
    (one,) = make(Fixed("wiki", lambda: [found("x", 0.5, importance=0.25)])).consult("owl")
    parts = {part.name: part.value for part in one.parts}
    assert parts["source"] == 0.0
    assert parts["recency"] == pytest.approx(0.0)
    assert one.score == pytest.approx(0.5 * 0.5 + 0.2 * 0.25)
    assert (
        str(one.explain()) == "0.300 = 0.5·similarity 0.50 + 0.2·recency 0.00 + 0.2·importance 0.25 + 0.1·source 0.00"
    )


def test_a_source_that_gives_too_much_is_cut_and_one_is_asked_for_as_much_as_is_wanted(make: Make) -> None:
    wiki = Fixed("wiki", lambda: [found(f"text {number}") for number in range(100)])
    memory = make(wiki)
    assert len(memory.consult("owl", limit=30)) == 30
    assert len(memory.consult("owl", limit=5)) == 5
    assert wiki.asked == [("owl", 30), ("owl", 10)]


def test_sources_are_asked_at_the_same_time(make: Make) -> None:
    """Each waits for the others; one after another they would wait for ever."""
    meeting = threading.Barrier(3)

    def meet() -> list[Found]:
        meeting.wait(60)
        return [found("met")]

    answer = make(*(Fixed(name, meet) for name in "abc")).consult("owl", deadline=60)
    assert answer.failures == ()


def test_one_that_is_late_is_reported_and_what_it_says_later_is_not_heard(make: Make) -> None:
    asked, free, done = threading.Event(), threading.Event(), threading.Event()

    def late() -> list[Found]:
        asked.set()
        assert free.wait(60)
        done.set()
        return [found("too late")]

    memory = make(Fixed("wiki", late))
    memory.remember("an owl")
    assert texts(memory.consult("owl", sources=["memory"])) == ["an owl"]  # which has loaded what is slow to load
    log = memory.audit.search(limit=100)
    answer = memory.consult("owl", deadline=2)
    assert answer.failures == (Failure("wiki", "no answer within 2 s"),)
    assert texts(answer) == ["an owl"]
    assert asked.is_set()
    free.set()
    assert done.wait(60)
    assert texts(answer) == ["an owl"]
    assert memory.audit.search(limit=100) == log


def test_a_source_that_hangs_is_not_asked_for_ever(make: Make) -> None:
    free = threading.Event()

    def hang() -> list[Found]:
        assert free.wait(60)
        return [found("at last")]

    wiki = Fixed("wiki", hang)
    memory = make(wiki)
    try:
        reasons = [memory.consult("owl", sources=["wiki"], deadline=0.001).failures[0].reason for _ in range(40)]
        assert reasons[:32] == ["no answer within 0.001 s"] * 32
        assert set(reasons[32:]) == {"busy: 32 earlier questions are not answered yet"}
    finally:
        free.set()
    for thread in threading.enumerate():
        if thread.name == "recollect-wiki":
            thread.join(60)
    assert texts(memory.consult("owl", sources=["wiki"])) == ["at last"]


def test_where_no_thread_can_be_started_the_call_still_returns(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    memory = make(Fixed("wiki", list))
    memory.remember("an owl")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        answer = memory.consult("owl")
    assert [one.reason for one in answer.failures] == ["RuntimeError: can't start new thread"] * 5
    assert memory.consult("owl").failures == ()


def test_a_source_that_never_answers_does_not_keep_the_process(run: Callable[..., str], tmp_path: Path) -> None:
    script = """
import sys, threading
from recollect import Memory
class Stuck:
    name = "stuck"
    def search(self, query, limit):
        threading.Event().wait()
memory = Memory(sys.argv[1], preset="atlas", sources=[Stuck()])
memory.remember("an owl")
print(memory.consult("owl", deadline=0.3))
memory.close()
"""
    assert "stuck gave no answer: no answer within 0.3 s" in run(script, tmp_path / "memory")


def test_it_can_be_awaited(tmp_path: Path) -> None:
    async def ask() -> None:
        async with AsyncMemory(
            tmp_path / "memory", preset="atlas", sources=[Fixed("wiki", failing(OSError()))]
        ) as memory:
            await memory.remember("an owl")
            answer = await memory.consult("owl")
            assert texts(answer) == ["an owl"]
            assert answer.failures == (Failure("wiki", "OSError"),)

    asyncio.run(ask())


class PerTenant:
    """A source that knows who asks."""

    name = "notes"

    def __init__(self) -> None:
        self.addresses: list[Address] = []

    def at(self, address: Address) -> Source:
        self.addresses.append(address)
        return Fixed(self.name, lambda: [found(f"of {address.tenant} for {address.agent}")])

    def search(self, query: str, limit: int) -> Sequence[Found]:
        raise AssertionError("asked without an address")


def test_a_source_can_be_told_who_asks(make: Make) -> None:
    memory = make(PerTenant())
    assert texts(memory.at(tenant="acme", agent="cfo").consult("owl")) == ["of acme for cfo"]
    assert texts(memory.at(tenant="evil").consult("owl")) == ["of evil for None"]


SECRET = "Euterpe"


@pytest.mark.clause("ATL-18", "ATL-08")
@pytest.mark.parametrize(
    "mallory",
    [
        {"agent": "mallory"},
        {"agent": "Alice"},
        {"agent": "alic_"},
        {"agent": "alice.x"},
        {"agent": "alice", "tenant": "evil"},
        {"agent": "alice", "workspace": "other"},
    ],
    ids=str,
)
@pytest.mark.parametrize("preset", ["atlas", "recollect"])
def test_no_other_agents_memory_comes_through_any_source(make: Make, mallory: dict[str, str], preset: str) -> None:
    memory = make(preset=preset)
    alice, other = memory.at(agent="alice"), memory.at(**mallory)
    owl = alice.remember(f"an owl called {SECRET}", tags=["bird"], conversation="c1")
    newer = alice.revise(owl.id, content=f"a newer owl called {SECRET}")
    alice.archive(newer.id)
    alice.restore(newer.id)
    fox = alice.remember(f"a fox called {SECRET}")
    alice.moments.record_task(f"feed {SECRET}", "failure")
    alice.moments.record_delegation("binky", f"feed {SECRET}", "success", share=False)
    alice.forget(fox.id)
    alice.undo()
    before = alice.list(state=None, limit=100)
    for query in (f"owl fox {SECRET}", SECRET, owl.id, f'"{SECRET}"', "Eut*", "%", "_", "remembered a fact", "alice"):
        found = repr(other.consult(query, limit=100).results)
        found += repr(other.context([{"role": "user", "content": query}]))
        moments = other.moments
        found += repr([moments.task(query), moments.tool(query), moments.decision(query), moments.content(query)])
        found += repr(moments.delegation(query))
        assert SECRET not in found.replace(query, ""), query
        assert not any(one.id in found.replace(query, "") for one in before), query
    assert alice.list(state=None, limit=100) == before
    assert SECRET in repr(alice.consult(SECRET))


@pytest.mark.parametrize("agent", ["", "alice\x00", "alice ", "alice\n", "x" * 65])
def test_hostile_names_of_agents_are_refused(make: Make, agent: str) -> None:
    with pytest.raises(InputError):
        make().at(agent=agent)


def test_what_the_engine_notes_itself_is_found_in_its_own_words_only(make: Make) -> None:
    memory = make()
    memory.remember("an owl", kind="fact")
    memory.audit.record("note", "a fact about the harbour")
    assert texts(memory.consult("remembered a fact", sources=["audit"])) == ["remembered a fact"]
    assert texts(memory.consult("which facts or fact was remembered?", sources=["audit"])) == []
    assert texts(memory.consult("what is the fact about the harbour?", sources=["audit"])) == [
        "a fact about the harbour"
    ]


def test_details_of_the_engines_own_entries_stay_in_the_log(make: Make) -> None:
    memory = make()
    one = memory.at(agent="alice").remember("an owl", kind="fact")
    (seen,) = memory.at(agent="bob").consult("remembered a fact").results
    assert seen.meta == {"action": "remember", "actor": "alice"}
    assert one.id not in repr(seen)
