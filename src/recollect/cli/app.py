"""The root of all commands: loading them when they are asked for, and ending with the right exit code."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import click

from recollect.cli import failures
from recollect.cli.lazy import LazyGroup

_SECTIONS = {
    "Begin": {
        "init": "care:init",
        "demo": "demo:demo",
        "help": "assistance:help_",
    },
    "Every day": {
        "remember": "writing:remember",
        "recall": "recalling:recall",
        "list": "lookup:list_",
        "show": "lookup:show",
        "why": "lookup:why",
        "context": "context:context",
        "journal": "journal:journal",
        "kb": "kb:kb",
        "workflows": "workflows:workflows",
    },
    "Change and forget": {
        "revise": "writing:revise",
        "history": "lookup:history",
        "forget": "forgetting:forget",
        "undo": "forgetting:undo",
        "archive": "forgetting:archive",
        "restore": "forgetting:restore",
    },
    "Look after": {
        "stats": "care:stats",
        "doctor": "care:doctor",
        "maintain": "maintaining:maintain",
        "simulate": "simulating:simulate",
        "embed": "care:embed",
        "compact": "care:compact",
        "verify": "upkeep:verify",
        "prove": "proving:prove",
        "rebuild": "upkeep:rebuild",
        "migrate": "upkeep:migrate",
        "audit": "audit:audit",
        "workspaces": "workspaces:workspaces",
        "tenants": "tenants:tenants",
        "channels": "conversations:channels",
        "conversations": "conversations:conversations",
        "sessions": "sessions:sessions",
        "eval": "evaluate:evaluate",
    },
    "Move and set up": {
        "backup": "moving:backup",
        "copy": "copying:copy",
        "export": "moving:export",
        "import": "moving:import_",
        "presets": "presets:presets",
        "models": "models:models",
        "tools": "tools:tools",
        "call": "tools:call",
        "completion": "assistance:completion",
    },
    "Serve": {
        "ui": "serving:ui",
        "serve": "serving:serve",
        "keys": "keys:keys",
        "people": "people:people",
        "mcp": "mcp:mcp",
        "db": "db:db",
    },
}

_BROKEN_PIPE = 141
"""What a shell reports for a program that the signal SIGPIPE ended."""


class App(LazyGroup):
    """Errors become one line and an exit code here, and nowhere else."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        arguments = args[0] if args else kwargs.pop("args", None)
        words = sys.argv[1:] if arguments is None else list(arguments)
        kwargs.update(standalone_mode=False, prog_name="recollect")
        try:
            code: Any = super().main(words, **kwargs)
        except Exception as error:
            code = failures.report(error, as_json="--json" in words[: _end_of_options(words)])
            _give_up_on_stdout()
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> None:
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read the output has left
            _give_up_on_stdout()
            ctx.exit(_BROKEN_PIPE)


def _give_up_on_stdout() -> None:
    """What could not be written must not fail once more, and louder, when Python exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end_of_options(words: list[str]) -> int:
    return words.index("--") if "--" in words else len(words)


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from recollect import __version__

        click.echo(f"recollect {__version__}")
        ctx.exit()


@click.group(
    cls=App,
    sections=_SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Where the memory is: --store (default ./memory) or RECOLLECT_STORE. Each command has its own --help.",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Print the version."
)
def cli() -> None:
    """Memory for AI agents: remembers, recalls, explains and forgets. On plain files, with no server.

    \b
    Example:
      recollect remember "Alice prefers tabs" --kind preference
      recollect recall "which indentation does Alice want?"
    """


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    click.echo(f"recollect: {message}", err=True)


def main() -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows an escape instead of ending the command.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")
    warnings.showwarning = _show_warning
    cli.main()
