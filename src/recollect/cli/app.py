"""The root of all commands: loading them when they are asked for, and ending with the right exit code."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import click

from recollect.cli import failures
from recollect.cli.lazy import ALL, LazyGroup

_SECTIONS = {
    "Begin": {
        "init": "care:init",
        "demo": "demo:demo",
        "help": "assistance:help_",
    },
    "Remember and recall": {
        "remember": "writing:remember",
        "recall": "recalling:recall",
        "list": "lookup:list_",
        "show": "lookup:show",
        "diagnose": "lookup:diagnose",
        "knowledge": "knowledge:knowledge",
        "conversations": "conversations:conversations",
    },
    "Change and delete": {
        "revise": "writing:revise",
        "archive": "forgetting:archive",
        "restore": "forgetting:restore",
        "forget": "forgetting:forget",
        "undo": "forgetting:undo",
    },
    "Look after": {
        "stats": "care:stats",
        "doctor": "health:doctor",
        "maintain": "maintaining:maintain",
        "export": "moving:export",
        "import": "moving:import_",
    },
    "Serve": {
        "ui": "serving:ui",
        "serve": "serving:serve",
        "mcp": "mcp:mcp",
    },
}
_FURTHER = {
    "More about memories": {
        "history": "lookup:history",
        "context": "context:context",
        "sources": "answers:sources",
        "orient": "questions:orient",
        "consult": "questions:consult",
        "query": "searching:query",
        "about": "questions:about",
        "profile": "questions:profile",
        "journal": "journal:journal",
        "scratchpad": "scratchpad:scratchpad",
        "channels": "conversations:channels",
        "workflows": "workflows:workflows",
        "tools": "tools:tools",
    },
    "More to look after": {
        "audit": "audit:audit",
        "simulate": "simulating:simulate",
        "embed": "care:embed",
        "compact": "care:compact",
        "verify": "upkeep:verify",
        "workspaces": "workspaces:workspaces",
        "aliases": "aliases:aliases",
        "proposals": "proposals:proposals",
        "cases": "cases:cases",
        "eval": "evaluate:evaluate",
    },
    "Move and set up": {
        "backup": "moving:backup",
        "copy": "copying:copy",
        "presets": "presets:presets",
        "models": "models:models",
        "completion": "assistance:completion",
    },
    "For servers": {
        "keys": "keys:keys",
        "people": "people:people",
        "tenants": "tenants:tenants",
        "db": "db:db",
        "prove": "proving:prove",
    },
    "For ledgers": {
        "ledger": "sessions:ledger",
    },
}
_FORMER = {
    "kb": "knowledge",
    "why": "diagnose",
    "call": "tools call",
    "sessions": "ledger",
    "rebuild": "ledger rebuild",
    "migrate": "ledger migrate",
}
"""Short and old names, which are not listed."""

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

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.obj != ALL:
            formatter.write_paragraph()
            formatter.write_text("More commands: recollect help --all.")
        super().format_epilog(ctx, formatter)

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
    further=_FURTHER,
    former=_FORMER,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="The memory is in ./memory, or where --store or RECOLLECT_STORE says.",
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


def _open_closed_streams() -> None:
    """Python has None for a stream that the shell has closed, as in `recollect list >&-`: use /dev/null in its place.

    In this order each gets the lowest free file descriptor, which is the one that was closed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (until the process ends)


def main() -> None:
    """Run the command line and exit."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows an escape instead of ending the command.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")
    warnings.showwarning = _show_warning
    cli.main()
