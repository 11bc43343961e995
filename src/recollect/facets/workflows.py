"""Workflows and their steps: what is being done in order, and what came out of each step."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from recollect.facets.shelf import Shelf
from recollect.operations import Doc, QueryText, Reason, StepId, WorkflowId, operation
from recollect.policies.secrets import screen, screen_name
from recollect.recall.sources import Found
from recollect.stores.port import Place
from recollect.stores.shelves import ShelfItem
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

    @operation("POST /workflows", does="creates")
    def start(
        self,
        name: Annotated[str, Doc("The name of the workflow.")],
        *,
        goal: Annotated[str | None, Doc("What it is for.")] = None,
    ) -> Workflow:
        """Start a workflow; steps are added to it while it runs."""
        view = self._view
        with view.logging_refusals("workflow"):
            view.screen_address()
            body = {"name": self._name(name, "name"), "goal": self._text(goal, "goal"), "status": "running"}
        item = self._shelf.thing(new_id(), body, None, view.address.account, view.address.agent)
        (stored,) = self._shelf.save("started a workflow", item, expect=0, workflow=item.key)
        return _workflow(stored)

    @operation("POST /workflows/{workflow}/steps", does="creates")
    def step(
        self,
        workflow: WorkflowId,
        name: Annotated[str, Doc("The name of the step.")],
    ) -> WorkflowStep:
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
            step = ShelfItem(STEP, new_id(), body, *owner, created_at=now, changed_at=now)
            (stored,) = self._shelf.save("began a step", step, expect=0, workflow=parent.key, step=step.key)
        return _step(stored)

    @operation("POST /steps/{step}/complete", does="changes")
    def complete(
        self,
        step: StepId,
        *,
        output: Annotated[Any, Doc("What came out of it: any JSON.")] = None,
    ) -> WorkflowStep:
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
                changed.append(ShelfItem(OUTPUT, ident, body, *owner, created_at=at, changed_at=at))
                view.store.keep(self._place, changed[-1], expect=0)
            self._shelf.log("completed a step", changed, workflow=after.parent, step=ident)
        return _step(after, value)

    @operation("POST /steps/{step}/fail", does="changes")
    def fail(
        self,
        step: StepId,
        *,
        error: Annotated[str, Doc("Why it failed.")],
    ) -> WorkflowStep:
        """End a step that did not succeed."""
        with self._view.logging_refusals("workflow"):
            ident, why = validation.memory_id(step, "step"), self._text(error, "error")
        self._thing(STEP, ident)
        with self._view.store.transaction(self._place):
            before, after = self._end(STEP, ident, "failed", error=why)
            self._shelf.log("a step failed", [before], workflow=after.parent, step=ident)
        return _step(after)

    @operation("POST /workflows/{workflow}/finish", does="changes")
    def finish(
        self,
        workflow: WorkflowId,
        *,
        error: Annotated[str | None, Doc("Why it failed, if it did.")] = None,
    ) -> Workflow:
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

    @operation("DELETE /workflows/{workflow}", does="removes", rank="admin")
    def remove(
        self,
        workflow: WorkflowId,
        *,
        reason: Reason = None,
    ) -> Receipt:
        """Erase a workflow with its steps and their outputs, from the disk and for good."""
        view, place = self._view, self._place
        with view.logging_refusals("workflow"):
            why = None if reason is None else checked_reason(view, reason)
            ident = validation.memory_id(workflow, "workflow")
        self._thing(WORKFLOW, ident)
        with view.store.transaction(place):
            self._changeable(self._thing(WORKFLOW, ident))
            steps = [item.key for item in view.store.shelf(place, STEP, parent=ident)]
            for shelf, keys in ((OUTPUT, steps), (STEP, steps), (WORKFLOW, [ident])):
                view.store.remove(place, shelf, keys)
            drop_undos(view, place, (), lambda item: ident in (item.key, item.parent))
            entry = view.log(place, "workflow", "removed a workflow", reason=why, final=True, workflow=ident)
        note = scrub(view, [place]).note
        return Receipt(view.now(), 1, (ident,), why, note is None, (entry.id,), note)

    # Reading

    @operation("GET /workflows")
    def list(
        self,
        *,
        status: Annotated[WorkflowStatus | None, Doc("Only those in this state.")] = None,
        contains: Annotated[str | None, Doc("Only workflows with this text in the name or the goal.")] = None,
        limit: Annotated[int, Doc("The most workflows.")] = 100,
    ) -> builtins.list[Workflow]:
        """The newest first. `contains` is a text in the name or the goal."""
        state = None if status is None else validation.choice(status, "status", WorkflowStatus)
        words = "" if contains is None else validation.query(contains, "contains").casefold()
        limit = validation.count(limit, "limit", high=1_000_000)
        workflows: builtins.list[Workflow] = []
        for item in self._things(WORKFLOW):
            workflow = _workflow(item)
            if state in (None, workflow.status) and words in f"{workflow.name}\n{workflow.goal or ''}".casefold():
                workflows.append(workflow)
            if len(workflows) == limit:
                break
        return workflows

    @operation("GET /workflows/{workflow}")
    def get(self, workflow: WorkflowId) -> Workflow:
        """One workflow, without its steps."""
        return _workflow(self._thing(WORKFLOW, validation.memory_id(workflow, "workflow")))

    @operation("GET /workflows/{workflow}/steps")
    def steps(self, workflow: WorkflowId) -> builtins.list[WorkflowStep]:
        """The steps of a workflow in the order in which they began, with what came out of them."""
        parent = self._thing(WORKFLOW, validation.memory_id(workflow, "workflow"))
        items = list(self._view.store.shelf(self._place, STEP, parent=parent.key))
        outputs = self._view.store.find(self._place, OUTPUT, [item.key for item in items])
        values = {item.key: item.body["output"] for item in outputs}
        return [_step(item, values.get(item.key)) for item in items]

    @operation("POST /workflows-search", asks_model=True)
    def search(
        self,
        query: QueryText,
        *,
        limit: Annotated[int, Doc("The most outputs.")] = 5,
    ) -> builtins.list[Output]:
        """Completed steps whose output has the whole question in it, whatever its case, the newest first.

        If there is none, those with at least half of its words, most of them first.
        """
        term, limit = validation.query(query).strip().casefold(), validation.count(limit, "limit", high=1000)
        if not term:
            return []
        words = _words(query)
        whole: builtins.list[Output] = []
        some: builtins.list[Output] = []
        for number, item in enumerate(self._things(OUTPUT)):
            if len(whole) == limit or number == _LOOKED_AT:
                break
            output = _output(item)
            if term in render(output.output).casefold():
                whole.append(output)
            elif not whole and words:
                text = output.text.casefold()
                share = sum(word in text for word in words) / len(words)
                if share >= _ENOUGH:
                    some.append(replace(output, similarity=share))
        return whole or sorted(some, key=lambda output: -output.similarity)[:limit]

    # What both need

    def _things(self, shelf: str) -> Iterator[ShelfItem]:
        """Those that this view sees, the newest first."""
        yield from filter(self._sees, self._view.store.shelf(self._place, shelf, newest_first=True))

    def _thing(self, shelf: str, ident: str) -> ShelfItem:
        """Looked for before a transaction, too: that would begin a place for what is not there."""
        for item in filter(self._sees, self._view.store.find(self._place, shelf, [ident])):
            return item
        raise NotFoundError(f"there is no {_called(shelf)} {ident} that this view can see")

    def _sees(self, item: ShelfItem) -> bool:
        """Agents read each other's workflows."""
        return may_see(self._view.address, item.account, None)

    def _changeable(self, item: ShelfItem) -> ShelfItem:
        if not may_see(self._view.address, item.account, item.agent):
            raise AccessError(f"workflow: {item.key} is another agent's, which this view only reads")
        return item

    def _end(self, shelf: str, ident: str, status: str, **more: Any) -> tuple[ShelfItem, ShelfItem]:
        """How it was and how it is now. In a transaction; the version makes sure that it is still as it was found."""
        item = self._changeable(self._thing(shelf, ident))
        _check(item, "running")
        now = self._view.now()
        body = {**item.body, "status": status, "ended_at": now.isoformat(), **more}
        new = replace(item, body=body, changed_at=now)
        return item, self._view.store.keep(self._place, new, expect=item.version)

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


def _check(item: ShelfItem, wanted: str) -> None:
    if (status := item.body["status"]) != wanted:
        raise ConflictError(f"{_called(item.shelf)} {item.key} is {status} already, and no longer {wanted}")


def _called(shelf: str) -> str:
    return "step" if shelf == STEP else "workflow"


def _ended(item: ShelfItem) -> datetime | None:
    at = item.body.get("ended_at")
    return None if at is None else datetime.fromisoformat(at)


def _workflow(item: ShelfItem) -> Workflow:
    body = item.body
    fields = body["name"], body["goal"], body["status"], body.get("error"), item.agent
    return Workflow(item.key, *fields, item.created_at, _ended(item), item.version)


def _step(item: ShelfItem, output: Any = None) -> WorkflowStep:
    body = item.body
    fields = body["name"], body["status"], output, body.get("error")
    return WorkflowStep(item.key, item.parent or "", *fields, item.created_at, _ended(item), item.version)


def _output(item: ShelfItem) -> Output:
    body = item.body
    fields = body["workflow"], body["step"], body["output"], item.created_at
    return Output(item.key, item.parent or "", *fields, 1.0)
