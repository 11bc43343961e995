"""Workflows: start one, go through its steps, and find what they have brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from recollect.cli import output, text
from recollect.cli.forgetting import confirm
from recollect.cli.intake import TextArgument
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import BAD, CAREFUL, GOOD, ID, QUIET, STRONG, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.values.errors import InputError, NotFoundError
from recollect.values.record import render, utc_now

if TYPE_CHECKING:
    from recollect.facets.workflows import Workflow, WorkflowStep
    from recollect.memory import Memory

_STYLES = {"running": CAREFUL, "finished": GOOD, "completed": GOOD, "failed": BAD}
_SHOWN = 300
_LOOKED_AT = 1000


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            "list": "workflows:list_",
            "show": "workflows:show",
            "search": "workflows:search",
            "start": "workflows:start",
            "step": "workflows:step",
            "complete": "workflows:complete",
            "fail": "workflows:fail",
            "finish": "workflows:finish",
            "remove": "workflows:remove",
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


@click.command("list", cls=Leaf)
@click.option("--status", type=click.Choice(["running", "finished", "failed"]), help="Only those.")
@click.option("--contains", help="With this in the name or the goal.")
@click.option("--limit", "-n", type=click.IntRange(1, 100_000), default=100, show_default=True, help="How many.")
@scoped
def list_(target: Target, status: str | None, contains: str | None, limit: int) -> None:
    """List workflows, the newest first.

    \b
    Example:
      recollect workflows list --status running
    """
    with target.open() as memory:
        workflows = memory.workflows.list(status=status, contains=contains, limit=limit)  # pyright: ignore[reportArgumentType]
    if target.json:
        output.emit(workflows)
        return
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


@click.command(cls=Leaf)
@click.argument("workflow", metavar="ID")
@scoped
def show(target: Target, workflow: str) -> None:
    """Show a workflow with its steps. ID may be the end of it.

    \b
    Example:
      recollect workflows show 3fa29c01
    """
    with target.open() as memory:
        shown = memory.workflows.get(_workflow_id(memory, workflow))
        steps = memory.workflows.steps(shown.id)
    if target.json:
        output.emit({"workflow": shown, "steps": steps})
        return
    output.say((text.one_line(shown.name), STRONG), "  ", _status(shown))
    for name, value in (("goal", shown.goal), ("error", shown.error), ("agent", shown.agent), ("id", shown.id)):
        if value:
            output.say((f"{name}  ", QUIET), text.one_line(value), indent=2)
    for step in steps:
        output.say((text.short(step.id), ID), "  ", _status(step), f"  {text.one_line(step.name)}", indent=2)
        result = step.error if step.output is None else render(step.output)
        if result:
            output.say(text.one_line(result, _SHOWN), indent=4)


@click.command(cls=Leaf)
@click.argument("query", cls=TextArgument, nargs=-1, required=True, metavar="QUERY...")
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many.")
@scoped
def search(target: Target, query: tuple[str, ...], limit: int) -> None:
    """Find what completed steps have brought, the newest first.

    \b
    Example:
      recollect workflows search lease
    """
    with target.open() as memory:
        outputs = memory.workflows.search(" ".join(query), limit=limit)
    if target.json:
        output.emit(outputs)
        return
    if not outputs:
        output.say("Nothing found.")
    now = utc_now()
    for result in outputs:
        where = f"{text.one_line(result.workflow)} › {text.one_line(result.step)}"
        output.say((where, STRONG), (f"  {text.ago(result.completed_at, now)}", QUIET))
        output.say(text.one_line(render(result.output), _SHOWN), indent=2)


@click.command(cls=Leaf)
@click.argument("name")
@click.option("--goal", help="What it is for.")
@scoped
def start(target: Target, name: str, goal: str | None) -> None:
    """Start a workflow.

    \b
    Example:
      recollect workflows start onboarding --goal "sign the lease"
    """
    with target.open(create=True, vectors=False) as memory:
        made = memory.workflows.start(name, goal=goal)
    _tell(target, made, "Started")


@click.command(cls=Leaf)
@click.argument("workflow", metavar="ID")
@click.argument("name")
@scoped
def step(target: Target, workflow: str, name: str) -> None:
    """Begin a step of a running workflow.

    \b
    Example:
      recollect workflows step 3fa29c01 "sign the lease"
    """
    with target.open(vectors=False) as memory:
        made = memory.workflows.step(_workflow_id(memory, workflow), name)
    _tell(target, made, "Began")


@click.command(cls=Leaf)
@click.argument("step", metavar="STEP")
@click.argument("result", cls=TextArgument, nargs=-1, metavar="[OUTPUT...]")
@click.option("--json-output", is_flag=True, help="OUTPUT is JSON, and not text.")
@scoped
def complete(target: Target, step: str, result: tuple[str, ...], json_output: bool) -> None:
    """Complete a step with what came out of it, which can be searched from now on.

    \b
    Example:
      recollect workflows complete 3fa29c01 "signed for five years"
    """
    value = _value(" ".join(result), json_output)
    with target.open(vectors=False) as memory:
        made = memory.workflows.complete(_step_id(memory, step), output=value)
    _tell(target, made, "Completed")


def _value(words: str, is_json: bool) -> Any:
    if not is_json:
        return words or None
    try:
        return msgspec.json.decode(words)
    except msgspec.DecodeError:
        raise InputError("output", "is not JSON") from None


@click.command(cls=Leaf)
@click.argument("step", metavar="STEP")
@click.argument("error", cls=TextArgument, nargs=-1, required=True, metavar="ERROR...")
@scoped
def fail(target: Target, step: str, error: tuple[str, ...]) -> None:
    """End a step that did not succeed. To try again, begin a new one.

    \b
    Example:
      recollect workflows fail 3fa29c01 "the notary was away"
    """
    with target.open(vectors=False) as memory:
        made = memory.workflows.fail(_step_id(memory, step), error=" ".join(error))
    _tell(target, made, "Failed")


@click.command(cls=Leaf)
@click.argument("workflow", metavar="ID")
@click.option("--error", help="Why it has failed, if it has.")
@scoped
def finish(target: Target, workflow: str, error: str | None) -> None:
    """End a workflow, whose steps must all have ended.

    \b
    Example:
      recollect workflows finish 3fa29c01
    """
    with target.open(vectors=False) as memory:
        made = memory.workflows.finish(_workflow_id(memory, workflow), error=error)
    _tell(target, made, "Finished" if error is None else "Failed")


@click.command(cls=Leaf)
@click.argument("workflow", metavar="ID")
@click.option("--reason", help="Why; kept in the audit log.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@scoped
def remove(target: Target, workflow: str, reason: str | None, yes: bool) -> None:
    """Erase a workflow with its steps and outputs, for good.

    \b
    Example:
      recollect workflows remove 3fa29c01 --yes
    """
    with target.open(vectors=False) as memory:
        shown = memory.workflows.get(_workflow_id(memory, workflow))
        if not yes:
            confirm(f"Erase the workflow {text.one_line(shown.name)} and all that its steps have brought?")
        receipt = memory.workflows.remove(shown.id, reason=reason)
    if target.json:
        output.emit(receipt)
        return
    output.say("Erased ", (text.one_line(shown.name), STRONG))
    if receipt.note:
        output.say((receipt.note, BAD))


def _tell(target: Target, made: Workflow | WorkflowStep, done: str) -> None:
    if target.json:
        output.emit(made)
    else:
        output.say(f"{done} ", (text.short(made.id), ID), f" {text.one_line(made.name)}")


def _status(entry: Workflow | WorkflowStep) -> tuple[str, str]:
    return entry.status, _STYLES[entry.status]


def _workflow_id(memory: Memory, name: str) -> str:
    return _whole("workflow", name, [workflow.id for workflow in memory.workflows.list(limit=_LOOKED_AT)])


def _step_id(memory: Memory, name: str) -> str:
    if len(name) > text.SHORT:
        return name
    flows = memory.workflows.list(limit=_LOOKED_AT)
    return _whole("step", name, [step.id for flow in flows for step in memory.workflows.steps(flow.id)])


def _whole(what: str, name: str, ids: list[str]) -> str:
    """The id that a person means by the end of it."""
    if len(name) != text.SHORT or name in ids:
        return name
    matching = [ident for ident in ids if ident.endswith(name)]
    if len(matching) > 1:
        raise NotFoundError(f"{len(matching)} have an id that ends in {name}; give the whole id of the {what}")
    return matching[0] if matching else name
