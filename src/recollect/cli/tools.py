"""What a model may call: show the definitions, and call one as a model would."""

from __future__ import annotations

from typing import Any

import click

from recollect.cli import output
from recollect.cli.completing import COMPLETED
from recollect.cli.intake import TextArgument
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import ID, QUIET, Column, Styled
from recollect.cli.target import Target, scoped

_FORMATS = ("openai", "anthropic", "mcp")


@click.group(cls=LazyGroup, default="list", sections={"Commands": {"list": "tools:list_", "call": "tools:call"}})
def tools() -> None:
    """List the tools that a model may call, or call one.

    \b
    Example:
      recollect tools --preset aegis
      recollect tools call recall '{"query": "which indentation?"}'
    """


@click.command("list", cls=Leaf)
@click.option("--format", type=click.Choice(_FORMATS), help="JSON as this interface takes it.")
@click.option("--all", "every", is_flag=True, help="Every tool, not only those of the preset.")
@scoped
def list_(target: Target, format: str | None, every: bool) -> None:
    """List the tools that a model may call.

    \b
    Example:
      recollect tools list --preset aegis
      recollect tools list --format openai > tools.json
    """
    from msgspec.structs import replace

    from recollect import tools

    preset = target.rules()
    if every:
        preset = replace(preset, tools=tuple(tool.name for tool in tools.all()))
    if format is not None:
        output.emit(getattr(tools, format)(preset))
    elif target.json:
        output.emit(tools.of(preset))
    else:
        output.table(
            [Column("tool", ID), Column("takes", QUIET), Column("for", flexible=True, wrap=True)],
            [_row(tool) for tool in tools.of(preset)],
        )


def _row(tool: Any) -> list[Styled]:
    required = tool.parameters["required"]
    takes = " ".join(name if name in required else f"[{name}]" for name in tool.parameters["properties"])
    return [tool.name, takes, tool.description.partition(". ")[0].removesuffix(".") + "."]


@click.command(cls=Leaf)
@click.argument("name", shell_complete=COMPLETED["tool"])
@click.argument("arguments", cls=TextArgument, required=False, metavar="[JSON]")
@scoped
def call(target: Target, name: str, arguments: str | None) -> None:
    """Call a tool as a model would, and print its result.

    JSON are the arguments. The exit code is 1 if the tool refused.

    \b
    Example:
      recollect tools call remember '{"content": "Alice prefers tabs", "kind": "preference"}'
      recollect tools call recall '{"query": "which indentation?"}'
    """
    from recollect import tools

    writes = {tool.name for tool in tools.all() if tool.writes}
    with target.open(create=name in writes, vectors=name not in writes) as memory:
        result = tools.call(memory, name, arguments)
    output.emit(result)
    if "error" in result:
        click.get_current_context().exit(1)
