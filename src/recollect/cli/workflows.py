"""Workflows: start one, go through its steps, and find what they have brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.derived import derived
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import BAD, CAREFUL, GOOD, ID, QUIET, STRONG, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.values.record import render, utc_now

if TYPE_CHECKING:
    from recollect.facets.workflows import Output, Workflow, WorkflowStep
    from recollect.memory import Memory
    from recollect.verbs.forget import Receipt

_STYLES = {"running": CAREFUL, "finished": GOOD, "completed": GOOD, "failed": BAD}
_SHOWN = 300
_USES = ("store", "preset", "tenant", "agent", "account")


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            name: f"workflows:{name if name != 'list' else 'list_'}"
            for name in ("list", "show", "search", "start", "step", "complete", "fail", "finish", "remove")
        }
    },
)
def workflows() -> None:
    """Workflows of the tenant, their steps, and what came out of them.

    \b
    Example:
      recollect workflows start onboarding --goal "sign the lease"
      recollect workflows search lease
    """


def _print_workflows(workflows: Sequence[Workflow]) -> None:
    if not workflows:
        output.say("There are no such workflows.")
        return
    now = utc_now()
    rows: list[list[Styled]] = [
        [
            text.short(workflow.id),
            _status(workflow),
            text.ago(workflow.started_at, now),
            workflow.agent or "",
            text.one_line(f"{workflow.name}: {workflow.goal}" if workflow.goal else workflow.name),
        ]
        for workflow in workflows
    ]
    columns = [Column("id", ID), Column("status"), Column("started"), Column("agent")]
    output.table([*columns, Column("workflow", flexible=True)], rows)


def _print_outputs(outputs: Sequence[Output]) -> None:
    if not outputs:
        output.say("Nothing matched.")
    now = utc_now()
    for result in outputs:
        where = f"{text.one_line(result.workflow)} › {text.one_line(result.step)}"
        output.say((where, STRONG), (f"  {text.ago(result.completed_at, now)}", QUIET))
        output.say(text.one_line(render(result.output), _SHOWN), indent=2)


def _print_done(done: str, entry: Workflow | WorkflowStep) -> None:
    done = "Failed" if entry.status == "failed" else done
    output.say(f"{done} ", (text.short(entry.id), ID), f" {text.one_line(entry.name)}")


def _print_receipt(receipt: Receipt) -> None:
    output.say("Removed the workflow for good.")
    if receipt.note:
        output.say((receipt.note, BAD))


def _status(entry: Workflow | WorkflowStep) -> tuple[str, str]:
    return entry.status, _STYLES[entry.status]


def _subject(memory: Memory, arguments: Mapping[str, Any]) -> str:
    workflow = memory.workflows.get(arguments["workflow"])
    return f"the workflow {text.one_line(workflow.name)} and all that its steps have brought"


list_ = derived(
    "workflows.list",
    "List workflows, the newest first.",
    "workflows list --status running",
    show=_print_workflows,
    uses=_USES,
)
search = derived(
    "workflows.search",
    "Search the outputs of completed steps, the newest first.",
    "workflows search lease",
    show=_print_outputs,
    uses=_USES,
)
start = derived(
    "workflows.start",
    "Start a workflow.",
    'workflows start onboarding --goal "sign the lease"',
    show=partial(_print_done, "Started"),
    uses=_USES,
)
step = derived(
    "workflows.step",
    "Begin a step of a running workflow.",
    'workflows step 3fa29c01 "sign the lease"',
    show=partial(_print_done, "Began"),
    uses=_USES,
)
complete = derived(
    "workflows.complete",
    "Complete a step with its output, which can be searched from then on.",
    'workflows complete 3fa29c01 "signed for five years"',
    show=partial(_print_done, "Completed"),
    as_arguments=("output",),
    uses=_USES,
)
fail = derived(
    "workflows.fail",
    "End a step that did not succeed. To try again, begin a new one.",
    'workflows fail 3fa29c01 "the notary was away"',
    show=partial(_print_done, "Failed"),
    as_arguments=("error",),
    uses=_USES,
)
finish = derived(
    "workflows.finish",
    "End a workflow, whose steps must all have ended.",
    "workflows finish 3fa29c01",
    show=partial(_print_done, "Finished"),
    uses=_USES,
)
remove = derived(
    "workflows.remove",
    "Remove a workflow with its steps and outputs, for good.",
    "workflows remove 3fa29c01 --yes",
    show=_print_receipt,
    subject=_subject,
    uses=_USES,
)


@click.command(cls=Leaf)
@takes("workflows.get")
@partial(scoped, uses=_USES)
def show(target: Target, call: Call) -> None:
    """Show a workflow with its steps. ID may be the end of it.

    \b
    Example:
      recollect workflows show 3fa29c01
    """
    with target.open() as memory:
        workflow: Workflow = call.run(memory)
        steps = memory.workflows.steps(workflow.id)
    if target.json:
        output.emit({"workflow": workflow, "steps": steps})
        return
    output.say((text.one_line(workflow.name), STRONG), "  ", _status(workflow))
    facts = (("goal", workflow.goal), ("error", workflow.error), ("agent", workflow.agent), ("id", workflow.id))
    for name, value in facts:
        if value:
            output.say((f"{name}  ", QUIET), text.one_line(value), indent=2)
    for step in steps:
        output.say((text.short(step.id), ID), "  ", _status(step), f"  {text.one_line(step.name)}", indent=2)
        result = step.error if step.output is None else render(step.output)
        if result:
            output.say(text.one_line(result, _SHOWN), indent=4)
