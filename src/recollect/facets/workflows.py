"""Workflows and their steps: what is being done in order, and what came out of each step."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from recollect.facets.shelf import Shelf
from recollect.policies.secrets import screen, screen_name
from recollect.recall.sources import Found
from recollect.stores.port import Place
from recollect.stores.shelves import Thing
from recollect.text.query_parser import parse_query
from recollect.values import validation
from recollect.values.errors import AccessError, ConflictError, InputError, NotFoundError
from recollect.values.filters import may_see
from recollect.values.record import new_id, render
from recollect.verbs.archive import checked_reason
from recollect.verbs.forget import Receipt, scrub
from recollect.verbs.forget.lineage import drop_undos
from recollect.view import View

WORKFLOW, STEP, OUTPUT = "workflow", "workflow.step", "workflow.output"
"""Shelves. Outputs have their own: what was first kept last is what was completed last."""
WorkflowStatus = Literal["running", "finished", "failed"]
StepStatus = Literal["running", "completed", "failed"]
_LONGEST_TEXT = 10_000
_LONGEST_FOUND = 10_000
"""Letters of an output that `consult` is given."""
_LOOKED_AT = 20_000
"""Outputs that a search looks at, the newest of them."""
_ENOUGH = 0.5
"""The share of a question's words that an output must have."""
_MOST_WORDS = 12


class Workflow(msgspec.Struct, frozen=True):
    id: str
    name: str
    goal: str | None
    status: WorkflowStatus
    error: str | None
    agent: str | None
    """Whose it is; None is of all agents."""
    started_at: datetime
    ended_at: datetime | None
    version: int


class WorkflowStep(msgspec.Struct, frozen=True):
    id: str
    workflow: str
    name: str
    status: StepStatus
    output: Any
    """What came out of it, once it is completed."""
    error: str | None
    """Why it failed, once it has."""
    started_at: datetime
    ended_at: datetime | None
    version: int


class Output(msgspec.Struct, frozen=True):
    """What a completed step has brought."""

    step_id: str
    workflow_id: str
    workflow: str
    step: str
    output: Any
    completed_at: datetime
    similarity: float
    """1 for what has the whole question in it, else the share of its words."""

    @property
    def text(self) -> str:
        return f"{self.workflow} › {self.step}: {render(self.output)}"


class Workflows:
    """Workflows of a tenant: all its agents read them, and what completed steps have brought is searched.

    A workflow goes from running to finished or failed, a step from running to completed or failed, and nothing goes
    back: a change that does not fit is a ConflictError and changes nothing, and of two that complete the same step
    at once one wins. A step that failed is tried again as a new step. What an agent started only that agent and the
    owner change; what the owner started, all. They are on shelves of the tenant, and never fade; secrets are refused.
    A view of an account sees its own and what is nobody's. `consult` asks for outputs as the source `workflow`.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._place = Place(view.address.tenant, None)
        self._shelf = Shelf(view, WORKFLOW, _workflow, action="workflow", place=self._place)

    # Working

    def start(self, name: str, *, goal: str | None = None) -> Workflow:
        view = self._view
        with view.logging_refusals("workflow"):
            view.screen_address()
            body = {"name": self._name(name, "name"), "goal": self._text(goal, "goal"), "status": "running"}
        thing = self._shelf.thing(new_id(), body, None, view.address.account, view.address.agent)
        (stored,) = self._shelf.save("started a workflow", thing, expect=0, workflow=thing.key)
        return _workflow(stored)

    def step(self, workflow: str, name: str) -> WorkflowStep:
        """Begin a step of a running workflow."""
        view = self._view
        with view.logging_refusals("workflow"):
            view.screen_address()
            ident, label = validation.memory_id(workflow, "workflow"), self._name(name, "name")
        self._thing(WORKFLOW, ident)
        now = view.now()
        with view.store.transaction(self._place):
            parent = self._changeable(self._thing(WORKFLOW, ident))
            _check(parent, "running")
            owner = parent.key, parent.account, parent.agent
            body = {"name": label, "workflow": parent.body["name"], "status": "running"}
            step = Thing(STEP, new_id(), body, *owner, created_at=now, changed_at=now)
            (stored,) = self._shelf.save("began a step", step, expect=0, workflow=parent.key, step=step.key)
        return _step(stored)

    def complete(self, step: str, *, output: Any = None) -> WorkflowStep:
        """End a step with what came out of it: any JSON, which can be searched from now on."""
        view = self._view
        with view.logging_refusals("workflow"):
            ident = validation.memory_id(step, "step")
            limit = validation.MAX_CONTENT_BYTES
            value = validation.metadata({"output": output}, "output", limit)["output"]
            screen(view.preset.secrets, "output", render({"output": value}))
        self._thing(STEP, ident)
        with view.store.transaction(self._place):
            before, after = self._end(STEP, ident, "completed")
            changed = [before]
            if value is not None:
                body = {"workflow": after.body["workflow"], "step": after.body["name"], "output": value}
                owner, at = (after.parent, after.account, after.agent), after.changed_at
                changed.append(Thing(OUTPUT, ident, body, *owner, created_at=at, changed_at=at))
                view.store.keep(self._place, changed[-1], expect=0)
            self._shelf.log("completed a step", changed, workflow=after.parent, step=ident)
        return _step(after, value)

    def fail(self, step: str, *, error: str) -> WorkflowStep:
        """End a step that did not succeed."""
        with self._view.logging_refusals("workflow"):
            ident, why = validation.memory_id(step, "step"), self._text(error, "error")
        self._thing(STEP, ident)
        with self._view.store.transaction(self._place):
            before, after = self._end(STEP, ident, "failed", error=why)
            self._shelf.log("a step failed", [before], workflow=after.parent, step=ident)
        return _step(after)

    def finish(self, workflow: str, *, error: str | None = None) -> Workflow:
        """End a workflow, whose steps must all have ended. With an `error` it has failed."""
        view = self._view
        with view.logging_refusals("workflow"):
            ident, why = validation.memory_id(workflow, "workflow"), self._text(error, "error")
        self._thing(WORKFLOW, ident)
        with view.store.transaction(self._place):
            self._changeable(self._thing(WORKFLOW, ident))
            for step in view.store.shelf(self._place, STEP, parent=ident):
                if step.body["status"] == "running":
                    raise ConflictError(f"workflow {ident} has a step that is running: {step.key}")
            before, after = self._end(WORKFLOW, ident, "finished" if why is None else "failed", error=why)
            self._shelf.log("ended a workflow", [before], workflow=ident)
        return _workflow(after)

    def remove(self, workflow: str, *, reason: str | None = None) -> Receipt:
        """Erase a workflow with its steps and their outputs, from the disk and for good."""
        view, place = self._view, self._place
        with view.logging_refusals("workflow"):
            why = None if reason is None else checked_reason(view, reason)
            ident = validation.memory_id(workflow, "workflow")
        self._thing(WORKFLOW, ident)
        with view.store.transaction(place):
            self._changeable(self._thing(WORKFLOW, ident))
            steps = [thing.key for thing in view.store.shelf(place, STEP, parent=ident)]
            for shelf, keys in ((OUTPUT, steps), (STEP, steps), (WORKFLOW, [ident])):
                view.store.remove(place, shelf, keys)
            drop_undos(view, place, (), lambda thing: ident in (thing.key, thing.parent))
            entry = view.log(place, "workflow", "removed a workflow", reason=why, final=True, workflow=ident)
        note = scrub(view, [place]).note
        return Receipt(view.now(), 1, (ident,), why, note is None, (entry.id,), note)

    # Reading

    def list(
        self, *, status: WorkflowStatus | None = None, contains: str | None = None, limit: int = 100
    ) -> builtins.list[Workflow]:
        """The newest first. `contains` is a text in the name or the goal."""
        state = None if status is None else validation.choice(status, "status", WorkflowStatus)
        words = "" if contains is None else validation.query(contains, "contains").casefold()
        limit = validation.count(limit, "limit", high=1_000_000)
        workflows: builtins.list[Workflow] = []
        for thing in self._things(WORKFLOW):
            workflow = _workflow(thing)
            if state in (None, workflow.status) and words in f"{workflow.name}\n{workflow.goal or ''}".casefold():
                workflows.append(workflow)
            if len(workflows) == limit:
                break
        return workflows

    def get(self, workflow: str) -> Workflow:
        return _workflow(self._thing(WORKFLOW, validation.memory_id(workflow, "workflow")))

    def steps(self, workflow: str) -> builtins.list[WorkflowStep]:
        """The steps of a workflow in the order in which they began, with what came out of them."""
        parent = self._thing(WORKFLOW, validation.memory_id(workflow, "workflow"))
        things = list(self._view.store.shelf(self._place, STEP, parent=parent.key))
        outputs = self._view.store.find(self._place, OUTPUT, [thing.key for thing in things])
        values = {thing.key: thing.body["output"] for thing in outputs}
        return [_step(thing, values.get(thing.key)) for thing in things]

    def search(self, query: str, *, limit: int = 5) -> builtins.list[Output]:
        """Completed steps whose output has the whole question in it, whatever its case, the newest first.

        If there is none, those with at least half of its words, most of them first.
        """
        term, limit = validation.query(query).strip().casefold(), validation.count(limit, "limit", high=1000)
        if not term:
            return []
        words = _words(query)
        whole: builtins.list[Output] = []
        some: builtins.list[Output] = []
        for number, thing in enumerate(self._things(OUTPUT)):
            if len(whole) == limit or number == _LOOKED_AT:
                break
            output = _output(thing)
            if term in render(output.output).casefold():
                whole.append(output)
            elif not whole and words:
                text = output.text.casefold()
                share = sum(word in text for word in words) / len(words)
                if share >= _ENOUGH:
                    some.append(replace(output, similarity=share))
        return whole or sorted(some, key=lambda output: -output.similarity)[:limit]

    # What both need

    def _things(self, shelf: str) -> Iterator[Thing]:
        """Those that this view sees, the newest first."""
        yield from filter(self._sees, self._view.store.shelf(self._place, shelf, newest_first=True))

    def _thing(self, shelf: str, ident: str) -> Thing:
        """Looked for before a transaction, too: that would begin a place for what is not there."""
        for thing in filter(self._sees, self._view.store.find(self._place, shelf, [ident])):
            return thing
        raise NotFoundError(f"there is no {_called(shelf)} {ident} that this view can see")

    def _sees(self, thing: Thing) -> bool:
        """Agents read each other's workflows."""
        return may_see(self._view.address, thing.account, None)

    def _changeable(self, thing: Thing) -> Thing:
        if not may_see(self._view.address, thing.account, thing.agent):
            raise AccessError(f"workflow: {thing.key} is another agent's, which this view only reads")
        return thing

    def _end(self, shelf: str, ident: str, status: str, **more: Any) -> tuple[Thing, Thing]:
        """How it was and how it is now. In a transaction; the version makes sure that it is still as it was found."""
        thing = self._changeable(self._thing(shelf, ident))
        _check(thing, "running")
        now = self._view.now()
        body = {**thing.body, "status": status, "ended_at": now.isoformat(), **more}
        new = replace(thing, body=body, changed_at=now)
        return thing, self._view.store.keep(self._place, new, expect=thing.version)

    def _name(self, value: Any, field: str) -> str:
        if isinstance(value, str):
            screen_name(self._view.preset.secrets, field, value)
        return validation.label(value, field, 200)

    def _text(self, value: Any, field: str) -> str | None:
        if value is None:
            return None
        text = validation.query(value, field)
        if not text.strip() or len(text) > _LONGEST_TEXT:
            raise InputError(field, f"must be 1 to {_LONGEST_TEXT:,} characters, and not blank")
        screen(self._view.preset.secrets, field, text)
        return text


def search_outputs(view: View, query: str, limit: int) -> list[Found]:
    """For `consult`."""
    return [
        Found(
            text=output.text[:_LONGEST_FOUND],
            similarity=output.similarity,
            at=output.completed_at,
            id=output.step_id,
            meta={"title": output.workflow, "step": output.step, "workflow": output.workflow_id},
        )
        for output in Workflows(view).search(query, limit=limit)
    ]


def _words(query: str) -> tuple[str, ...]:
    asked = parse_query(query)
    return tuple(dict.fromkeys(word.casefold() for word in (*asked.phrases, *asked.words)))[:_MOST_WORDS]


def _check(thing: Thing, wanted: str) -> None:
    if (status := thing.body["status"]) != wanted:
        raise ConflictError(f"{_called(thing.shelf)} {thing.key} is {status} already, and no longer {wanted}")


def _called(shelf: str) -> str:
    return "step" if shelf == STEP else "workflow"


def _ended(thing: Thing) -> datetime | None:
    at = thing.body.get("ended_at")
    return None if at is None else datetime.fromisoformat(at)


def _workflow(thing: Thing) -> Workflow:
    body = thing.body
    fields = body["name"], body["goal"], body["status"], body.get("error"), thing.agent
    return Workflow(thing.key, *fields, thing.created_at, _ended(thing), thing.version)


def _step(thing: Thing, output: Any = None) -> WorkflowStep:
    body = thing.body
    fields = body["name"], body["status"], output, body.get("error")
    return WorkflowStep(thing.key, thing.parent or "", *fields, thing.created_at, _ended(thing), thing.version)


def _output(thing: Thing) -> Output:
    body = thing.body
    fields = body["workflow"], body["step"], body["output"], thing.created_at
    return Output(thing.key, thing.parent or "", *fields, 1.0)
