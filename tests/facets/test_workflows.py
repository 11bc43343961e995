"""Workflows: steps that end once, and outputs that are found, the newest first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.command_line import SECRET
from support.common import Clock
from support.stores import STORES, located, traces
from support.watchdog import together

from recollect import AccessError, ConflictError, InputError, Memory, NotFoundError, SecretError

if TYPE_CHECKING:
    from support.common import Script

pytestmark = pytest.mark.clause("ATL-07")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "m")


@pytest.fixture
def memory(url: str, clock: Clock) -> Iterator[Memory]:
    with Memory(url, preset="atlas", clock=clock, embedder="none") as memory:
        yield memory


def completed(memory: Memory, *outputs: Any, name: str = "onboarding") -> None:
    flow = memory.workflows.start(name)
    for number, output in enumerate(outputs):
        memory.workflows.complete(memory.workflows.step(flow.id, f"step {number}").id, output=output)


def test_a_workflow_goes_from_its_start_to_its_end(memory: Memory, clock: Clock) -> None:
    flows, began = memory.workflows, clock.now
    flow = flows.start("onboarding", goal="sign the Berlin lease")
    assert (flow.name, flow.goal, flow.status, flow.agent) == ("onboarding", "sign the Berlin lease", "running", None)
    assert (flow.started_at, flow.ended_at, flow.version) == (began, None, 1)
    one = flows.step(flow.id, "draft")
    clock.forward(hours=1)
    assert flows.complete(one.id, output={"pages": 3}).output == {"pages": 3}
    two = flows.step(flow.id, "sign")
    assert flows.fail(two.id, error="no pen").error == "no pen"
    three = flows.step(flow.id, "sign")
    assert flows.complete(three.id).output is None
    ended = flows.finish(flow.id)
    assert (ended.status, ended.ended_at, ended.version) == ("finished", began + timedelta(hours=1), 2)
    assert flows.get(flow.id) == ended
    assert [(step.name, step.status, step.output, step.error) for step in flows.steps(flow.id)] == [
        ("draft", "completed", {"pages": 3}, None),
        ("sign", "failed", None, "no pen"),
        ("sign", "completed", None, None),
    ]
    assert flows.steps(flow.id)[0].ended_at == clock.now
    failed = flows.finish(flows.start("other").id, error="given up")
    assert (failed.status, failed.error) == ("failed", "given up")
    assert [one.name for one in flows.list()] == ["other", "onboarding"]
    assert flows.list(status="finished") == flows.list(contains="LEASE") == [ended]
    assert len(flows.list(limit=1)) == 1
    assert memory.audit.search("completed a step")


def test_what_does_not_fit_is_refused_and_changes_nothing(memory: Memory) -> None:
    flows = memory.workflows
    flow = flows.start("onboarding")
    step = flows.step(flow.id, "draft")
    with pytest.raises(ConflictError, match=f"workflow {flow.id} has a step that is running: {step.id}"):
        flows.finish(flow.id)
    done = flows.complete(step.id, output="signed")
    for change in (lambda: flows.complete(step.id, output="again"), lambda: flows.fail(step.id, error="late")):
        with pytest.raises(ConflictError, match=f"step {step.id} is completed already, and no longer running"):
            change()
    assert flows.steps(flow.id) == [done]
    assert [one.output for one in flows.search("signed")] == ["signed"]
    ended = flows.finish(flow.id)
    for change in (lambda: flows.finish(flow.id), lambda: flows.step(flow.id, "late")):
        with pytest.raises(ConflictError, match=f"workflow {flow.id} is finished already, and no longer running"):
            change()
    assert flows.get(flow.id) == ended
    assert flows.steps(flow.id) == [done]


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda flows: flows.start(""), "name"),
        (lambda flows: flows.start("x" * 201), "name"),
        (lambda flows: flows.start("x", goal=" "), "goal"),
        (lambda flows: flows.start("x", goal="x" * 10_001), "goal"),
        (lambda flows: flows.step("no such/id", "x"), "workflow"),
        (lambda flows: flows.complete("../x"), "step"),
        (lambda flows: flows.complete("x", output=object()), "output"),
        (lambda flows: flows.complete("x", output="x" * 2_000_000), "output"),
        (lambda flows: flows.fail("x", error=3), "error"),
        (lambda flows: flows.list(status="done"), "status"),
        (lambda flows: flows.list(limit=0), "limit"),
        (lambda flows: flows.search(3), "query"),
    ],
)
def test_bad_input_names_its_field(memory: Memory, call: Any, field: str) -> None:
    with pytest.raises(InputError) as refused:
        call(memory.workflows)
    assert refused.value.field == field
    assert memory.workflows.list() == []


def test_what_is_not_there_is_not_found(memory: Memory) -> None:
    flows = memory.workflows
    for call in (flows.get, flows.steps, flows.finish, flows.remove, flows.complete, lambda x: flows.step(x, "a")):
        with pytest.raises(NotFoundError):
            call("0" * 32)


def test_secrets_are_refused(memory: Memory) -> None:
    flows = memory.workflows
    flow = flows.start("x")
    step = flows.step(flow.id, "a")
    for call in (
        lambda: flows.start(SECRET),
        lambda: flows.start("x", goal=SECRET),
        lambda: flows.step(flow.id, SECRET),
        lambda: flows.complete(step.id, output={"key": SECRET}),
        lambda: flows.complete(step.id, output={"password": "hunter2hunter2"}),
        lambda: flows.fail(step.id, error=SECRET),
        lambda: flows.finish(flow.id, error=SECRET),
    ):
        with pytest.raises(SecretError):
            call()
    assert [one.status for one in flows.steps(flow.id)] == ["running"]


def test_outputs_are_searched_for_the_whole_term_the_newest_first_and_five(memory: Memory, clock: Clock) -> None:
    for number in range(8):
        clock.forward(minutes=1)
        completed(memory, f"Signed THE LEASE number {number}", "a lease that is not the one")
    found = memory.workflows.search("the lease")
    assert [one.output for one in found] == [f"Signed THE LEASE number {number}" for number in (7, 6, 5, 4, 3)]
    assert {one.similarity for one in found} == {1.0}
    assert (found[0].workflow, found[0].step, found[0].completed_at) == ("onboarding", "step 0", clock.now)
    assert len(memory.workflows.search("the lease", limit=50)) == 8
    results = memory.consult("the lease", limit=50, sources=["workflow"])
    said = "onboarding › step 0: Signed THE LEASE number"
    assert [one.text for one in results] == [f"{said} {number}" for number in (7, 6, 5, 4, 3)]


def test_a_step_that_began_first_and_ended_last_is_the_newest(memory: Memory) -> None:
    flow = memory.workflows.start("x")
    first, second = (memory.workflows.step(flow.id, name) for name in ("first", "second"))
    memory.workflows.complete(second.id, output="the lease")
    memory.workflows.complete(first.id, output="the lease")
    assert [one.step for one in memory.workflows.search("lease")] == ["first", "second"]


def test_only_completed_steps_are_found_and_only_by_their_output(memory: Memory) -> None:
    flow = memory.workflows.start("lease", goal="lease")
    memory.workflows.step(flow.id, "lease")
    memory.workflows.fail(memory.workflows.step(flow.id, "a").id, error="lease")
    assert memory.workflows.search("lease") == []
    completed(memory, {"text": 'he said "no lease"\nand left'}, name="x")
    assert len(memory.workflows.search('said "no lease"\nand')) == 1
    assert memory.workflows.search("output") == memory.workflows.search("") == []


def test_a_question_finds_outputs_by_its_words(memory: Memory) -> None:
    completed(memory, "Signed the Berlin lease for five years", "Signed something else", "fed the owls")
    found = memory.workflows.search("When did we get the lease in Berlin signed?")
    assert [(one.output, one.similarity) for one in found] == [("Signed the Berlin lease for five years", 0.75)]


@pytest.mark.clause("ATL-18")
def test_agents_of_a_tenant_read_them_and_change_only_their_own(memory: Memory) -> None:
    acme = memory.at(tenant="acme")
    ada, bob = acme.at(agent="ada"), acme.at(agent="bob", workspace="other")
    flow = ada.workflows.start("hers")
    step = ada.workflows.step(flow.id, "sign")
    for change in (
        lambda: bob.workflows.step(flow.id, "mine"),
        lambda: bob.workflows.complete(step.id, output="mine"),
        lambda: bob.workflows.fail(step.id, error="mine"),
        lambda: bob.workflows.remove(flow.id),
    ):
        with pytest.raises(AccessError, match="is another agent's, which this view only reads"):
            change()
    ada.workflows.complete(step.id, output="signed the lease")
    with pytest.raises(AccessError):
        bob.workflows.finish(flow.id)
    assert [one.output for one in bob.workflows.search("lease")] == ["signed the lease"]
    assert bob.workflows.get(flow.id).agent == "ada"
    acme.workflows.finish(flow.id)
    shared = acme.workflows.start("of all")
    assert bob.workflows.complete(bob.workflows.step(shared.id, "x").id, output="done").status == "completed"
    for view in (memory, memory.at(tenant="evil"), memory.at(tenant="evil", agent="ada")):
        assert view.workflows.list() == view.workflows.search("lease") == []
        with pytest.raises(NotFoundError):
            view.workflows.get(flow.id)
        assert len(view.consult("lease", sources=["workflow"])) == 0


def test_an_account_sees_its_own_and_what_is_nobodys(memory: Memory) -> None:
    zoe, kim = memory.at(account="zoe"), memory.at(account="kim")
    completed(zoe, "zoe's lease")
    completed(memory, "everybody's lease")
    assert [one.output for one in kim.workflows.search("lease")] == ["everybody's lease"]
    assert [one.output for one in zoe.workflows.search("lease")] == ["everybody's lease", "zoe's lease"]
    (hers,) = [one for one in memory.workflows.list() if one not in kim.workflows.list()]
    with pytest.raises(NotFoundError):
        kim.workflows.finish(hers.id)


def test_removing_one_erases_it(memory: Memory, url: str) -> None:
    completed(memory, "zyxwvut was signed")
    (flow,) = memory.workflows.list()
    receipt = memory.workflows.remove(flow.id, reason="asked to")
    erased = not url.startswith("postgresql")  # a server keeps traces, and says so
    assert (receipt.erased, receipt.reason, receipt.ids) == (erased, "asked to", (flow.id,))
    assert memory.workflows.list() == memory.workflows.search("zyxwvut") == []
    memory.close()
    assert traces(url, b"zyxwvut") == []


def test_of_threads_that_complete_one_step_one_wins(memory: Memory) -> None:
    flow = memory.workflows.start("x")
    step = memory.workflows.step(flow.id, "sign")
    won: list[int] = []
    lost: list[int] = []

    def complete(number: int) -> None:
        try:
            memory.workflows.complete(step.id, output=number)
            won.append(number)
        except ConflictError:
            lost.append(number)

    together(*(lambda number=number: complete(number) for number in range(4)))
    assert (len(won), len(lost)) == (1, 3)
    assert [one.output for one in memory.workflows.steps(flow.id)] == won


COMPLETE = """
import sys
from recollect import ConflictError, Memory
url, step, name = sys.argv[1:]
with Memory(url, preset="atlas", embedder="none") as memory:
    memory.workflows.list()
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print(memory.workflows.complete(step, output=name).output)
    except ConflictError:
        print("")
"""


def test_of_processes_that_complete_one_step_one_wins(memory: Memory, url: str, start: Callable[..., Script]) -> None:
    flow = memory.workflows.start("x")
    step = memory.workflows.step(flow.id, "sign")
    processes = [start(COMPLETE, url, step.id, f"process {number}") for number in range(3)]
    assert [process.line() for process in processes] == ["ready"] * 3
    for process in processes:
        process.tell("go")
    won = [line for line in (process.finish().strip() for process in processes) if line]
    assert len(won) == 1
    assert [one.output for one in memory.workflows.steps(flow.id)] == won


def test_a_very_long_output_does_not_fail_the_source(memory: Memory) -> None:
    completed(memory, "lease " + "x" * 1_000_000)
    answer = memory.consult("lease", sources=["workflow"])
    assert answer.failures == ()
    assert len(answer.results[0].text) == 10_000
    assert json.dumps(answer.results[0].meta)
