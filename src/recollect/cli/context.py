"""What a model would be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.intake import TextArgument, parse_json, read_file
from recollect.cli.lazy import Leaf
from recollect.cli.output import CAREFUL, QUIET, STRONG, Column, Styled
from recollect.cli.paths import PATH
from recollect.cli.target import Target, scoped
from recollect.values.errors import InputError

if TYPE_CHECKING:
    from recollect.context import Context, Report


@click.command(cls=Leaf)
@click.argument("message", cls=TextArgument, nargs=-1)
@click.option("--messages", metavar="FILE", type=PATH, help="A whole conversation, as JSON; - reads stdin.")
@takes("context", hide=("messages", "query", "system_messages", "skills", "zone", "ids"))
@scoped
def context(target: Target, call: Call, message: tuple[str, ...], messages: str | None) -> None:
    """Show what a model would be told, and where the tokens go.

    That is what a message brings to mind, in the form that the preset has for it. With --messages it takes a
    conversation as OpenAI's and Anthropic's clients do, and --json gives it back with memory put in, ready to be sent.

    \b
    Example:
      recollect context "which indentation does Alice want?"
      recollect context --messages conversation.json --budget 4000 --json
    """
    talk = _talk(message, messages)
    with target.open() as memory:
        made: Context = call.run(memory, messages=talk)
    if target.json:
        output.emit(made)
        return
    output.say(made.text or "Nothing would be added.")
    output.say("")
    _print_report(made.report)


def _talk(words: tuple[str, ...], file: str | None) -> list[Any]:
    if bool(words) == (file is not None):
        raise click.UsageError("Give the MESSAGE, or --messages FILE, and not both.")
    if file is None:
        return [{"role": "user", "content": " ".join(words)}]
    talk = parse_json(read_file(file, "messages"), "messages")
    if not isinstance(talk, list):
        raise InputError("messages", "must be a JSON list of messages, each with role and content")
    return cast("list[Any]", talk)


def _print_report(report: Report) -> None:
    rows: list[list[Styled]] = [[share.name, f"{share.tokens:,}", f"{share.items:,}"] for share in report.sections]
    total = f"{report.tokens:,}" + (f" of {report.budget:,}" if report.budget is not None else "")
    output.table([Column("section"), Column("tokens", right=True), Column("items", right=True)], rows)
    output.say(("total  ", QUIET), (total, STRONG))
    for item in report.left_out:
        name = f"{text.short(item.id)}, " if item.id else ""
        size = f" ({item.tokens:,} tokens)" if item.tokens else ""
        output.say((f"left out of {item.section}: {name}{item.why}{size}", QUIET))
    if report.over:
        output.say((f"{report.over:,} tokens over the budget: what is left may not be cut", CAREFUL))
