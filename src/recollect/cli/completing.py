"""Values that a shell completes: presets, workspaces, channels, kinds and agents of the memory that is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.lazy import SHARED

if TYPE_CHECKING:
    from recollect.memory import Memory

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _of_memory(values: Callable[[Memory], Iterable[str]]) -> Complete:
    """Completes from what is stored. Whatever goes wrong, the shell is offered nothing: it cannot show an error."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from recollect.cli.target import Target

        shared: dict[str, Any] = {name: ctx.params.get(name) for name in SHARED}
        if param.name in shared:
            shared[param.name] = None
        target = Target(**shared, json=True, typed_options=(), typed="")
        try:
            if target.served:
                return []
            with target.open(report_damage=False, vectors=False) as memory:
                return sorted(value for value in values(memory) if value.startswith(incomplete))
        except Exception:
            return []

    return complete


def _presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from recollect.presets import names

    return [name for name in names() if name.startswith(incomplete)]


def _tools(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from recollect import tools

    return [tool.name for tool in tools.all() if tool.name.startswith(incomplete)]


def complete_command(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The commands that may follow the words before, as in `recollect help audit <TAB>`."""
    root = ctx.find_root()
    command: click.Command | None = root.command
    for word in ctx.params.get(param.name or "") or ():
        command = command.get_command(root, word) if isinstance(command, click.Group) else None
    names = command.list_commands(root) if isinstance(command, click.Group) else []
    return [name for name in names if name.startswith(incomplete)]


COMPLETED: dict[str, Complete] = {
    "preset": _presets,
    "workspace": _of_memory(lambda memory: memory.workspaces()),
    "channel": _of_memory(lambda memory: [channel.name for channel in memory.channels.list()]),
    "kind": _of_memory(lambda memory: memory.stats().kinds),
    "agent": _of_memory(lambda memory: filter(None, memory.stats().agents)),
    "tool": _tools,
    "category": _of_memory(lambda memory: {document.category for document in memory.knowledge.list()}),
}
"""By the name of the option, in every command."""
