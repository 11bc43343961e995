"""Workspaces: list them, remove one."""

from __future__ import annotations

import click
from msgspec.structs import replace

from recollect.cli import output, text
from recollect.cli.asking import confirm
from recollect.cli.completing import COMPLETED
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import QUIET, STRONG, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.values.errors import NotFoundError


@click.group(
    cls=LazyGroup,
    default="list",
    sections={"Commands": {"list": "workspaces:list_", "remove": "workspaces:remove"}},
    former={"forget": "remove"},
)
def workspaces() -> None:
    """List the tenant's workspaces, or remove one.

    \b
    Example:
      recollect workspaces
      recollect workspaces remove old-project
    """


@click.command("list", cls=Leaf)
@scoped
def list_(target: Target) -> None:
    """List the tenant's workspaces and how many memories are in each.

    \b
    Example:
      recollect workspaces list --tenant acme
    """
    # One that is only the usual one, as RECOLLECT_WORKSPACE says, hides no other; one that was typed does.
    asked = target if "workspace" in target.typed_options else replace(target, workspace=None)
    with asked.open(usual=("tenant",)) as memory:
        names = memory.workspaces()
    # A view of one workspace cannot look into another, so each gets a view of its own.
    counts = {name: _count(target, name) for name in names}
    if target.json:
        output.emit([{"name": name, "memories": number} for name, number in counts.items()])
    elif not counts:
        output.say("There are no workspaces yet.")
    else:
        rows: list[list[Styled]] = [[name, f"{number:,}"] for name, number in counts.items()]
        output.table([Column("workspace"), Column("memories", right=True)], rows)


def _count(target: Target, name: str) -> int:
    with target.open(workspace=name, usual=("tenant",)) as memory:
        counts = memory.stats().tiers
    return sum(number for tier, number in counts.items() if tier != "account")


@click.command(cls=Leaf)
@click.argument("name", shell_complete=COMPLETED["workspace"])
@click.option("--reason", help="Why; kept in the tenant's audit log.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@scoped
def remove(target: Target, name: str, reason: str | None, yes: bool) -> None:
    """Remove a workspace with everything in it, for good.

    \b
    Example:
      recollect workspaces remove old-project --yes
    """
    if name not in (workspaces := target.workspaces()):
        hint = f"; the workspaces are: {', '.join(workspaces)}" if workspaces else ""
        raise NotFoundError(f"there is no workspace {name}{hint}")
    with target.open(workspace=name, usual=("tenant",)) as memory:
        question = f"Remove the workspace {name} and {text.count(_count(target, name))} for good?"
        if not yes:
            confirm(question, no="nothing was removed")
        receipt = memory.forget(workspace=name, reason=reason)
    if target.json:
        output.emit(receipt)
        return
    output.say("Removed the workspace ", (name, STRONG), f" and {text.count(receipt.count)} in it.")
    output.say(("It is gone with everything in it; this cannot be undone.", QUIET))
