"""Groups and commands as this command line has them: loaded late, with the shared options told apart in the help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

SHARED = ("store", "preset", "embedder", "tenant", "workspace", "agent", "account", "channel", "conversation")
"""Options that every command has; `recollect.cli.target` says what they mean."""

_FLAGS = ("--json",)
_SHARED_OPTIONS = frozenset([*(f"--{name}" for name in SHARED), *_FLAGS])


class Leaf(click.Command):
    """A command whose help tells its own options from those that all commands share."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx)) is not None:
                (shared if param.name in SHARED else own).append(row)
        for title, rows in (("Options", own), ("Where (each also as RECOLLECT_STORE, RECOLLECT_PRESET, …)", shared)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class LazyGroup(click.Group):
    """Commands by where they are, `module:name` inside this package, in the sections in which the help shows them.

    The default command is the one that is meant where none is named.
    """

    def __init__(
        self, *args: Any, sections: Mapping[str, Mapping[str, str]], default: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._default = default
        self._where = {name: where for names in sections.values() for name, where in names.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._where)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._where:
            return None
        module, _, name = self._where[cmd_name].partition(":")
        return getattr(import_module(f"recollect.cli.{module}"), name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = _command_first(args)
        unnamed = not words or (words[0].startswith("-") and words[0] not in ctx.help_option_names)
        if self._default and unnamed and not ctx.resilient_parsing:  # while a shell completes, it may still come
            words = [self._default, *args]
        return super().parse_args(ctx, words)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {name!r}{self._suggestion(name)}")
        return super().resolve_command(ctx, args)

    def _suggestion(self, name: str) -> str:
        import difflib

        near = difflib.get_close_matches(name.lower(), self._where, 1, 0.5)
        return f"; did you mean {near[0]!r}?" if near else f"; the commands are {', '.join(self._where)}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(len(name) for name in self._where)
        for title, names in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), self._short_help(ctx, name)) for name in names])

    def _short_help(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=80) if command else ""


def _command_first(args: Sequence[str]) -> list[str]:
    """`--store x recall y` as `recall --store x y`: the shared options may stand before the command, too."""
    rest, moved = list(args), list[str]()
    while rest and rest[0].partition("=")[0] in _SHARED_OPTIONS:
        taken = 1 if rest[0] in _FLAGS or "=" in rest[0] else 2
        moved += rest[:taken]
        rest = rest[taken:]
    if not rest or rest[0].startswith("-"):
        return rest
    return [rest[0], *moved, *rest[1:]]
