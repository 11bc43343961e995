"""Commands that are made from an operation: its arguments become options, and a printer shows its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output
from recollect.cli.arguments import Call, takes
from recollect.cli.asking import confirm
from recollect.cli.lazy import Leaf
from recollect.cli.target import VIEW, Target, scoped

if TYPE_CHECKING:
    from recollect.memory import Memory

Printer = Callable[[Any], None]
Subject = Callable[["Memory", Mapping[str, Any]], str]


def derived(
    operation: str,
    words: str,
    *examples: str,
    show: Printer,
    name: str | None = None,
    document: Callable[[Any], Any] | None = None,
    subject: Subject | None = None,
    preset: str | None = None,
    of_tenant: bool = False,
    uses: Sequence[str] = VIEW,
    hide: Sequence[str] = (),
    as_options: Sequence[str] = (),
    as_arguments: Sequence[str] = (),
    spelled: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> click.Command:
    """A command that calls an operation and prints what it gives.

    `words` is its help, `examples` are command lines without `recollect`. `show` prints the result for people, and
    `document` makes the JSON of it, where that is not the result itself. `subject` names what is removed, and raises
    NotFoundError where that is not there: the command asks before. `preset` is the usual one of the command;
    `of_tenant` ignores the agent and account of recollect.toml.
    """

    @takes(
        operation,
        hide=hide,
        as_options=as_options,
        as_arguments=as_arguments,
        spelled=spelled,
        defaults=defaults,
    )
    @partial(scoped, uses=uses)
    def run(target: Target, call: Call, yes: bool = False) -> None:
        from recollect.operations import find_operation

        facts = find_operation(operation)
        creates = facts.does == "creates" or bool(facts.replaces_in)
        where: dict[str, Any] = {"usual": ("tenant", "workspace")} if of_tenant else {}
        with target.open(create=creates, vectors=not facts.writes, preset=preset, **where) as memory:
            arguments = call.arguments(memory)
            named = subject(memory, arguments) if subject is not None else ""
            if named and not yes:
                confirm(f"Remove {named} for good?", no="nothing was removed")
            result = call.run_with(memory, arguments)
        if target.json:
            output.emit(result if document is None else document(result))
        else:
            show(result)

    if subject is not None:
        run = click.option("--yes", "-y", is_flag=True, help="Do not ask.")(run)
    lines = "\n".join(f"  recollect {example}" for example in examples)
    run.__doc__ = f"{words}\n\n\b\nExample:\n{lines}\n"
    return click.command(name or operation.rpartition(".")[2].replace("_", "-"), cls=Leaf)(run)
