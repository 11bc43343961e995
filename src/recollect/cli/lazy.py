"""Groups and commands as this command line has them: loaded late, with the shared options told apart in the help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

SHARED = ("store", "preset", "embedder", "tenant", "workspace", "agent", "account", "channel", "conversation")
"""Options that every command has; `recollect.cli.target` says what they mean."""

LATE = "__recollect_late_parameters__"
"""The attribute of a command's function that makes further parameters, once they are needed."""

ALL = "all"
"""The object of a context whose help shows every command."""
USES = "__recollect_shared_options__"
"""The attribute of a command's function that names the shared options that it uses."""
FORMER_OPTIONS = {"--in": "--channel", "--as": "--role", "--type": "--kind", "--json-output": "--content-json"}
"""Old spellings, which still work where a command has the new one and not the old."""

_FLAGS = ("--json",)
_SHARED_OPTIONS = frozenset([*(f"--{name}" for name in SHARED), *_FLAGS])


class Leaf(click.Command):
    """A command whose help tells its own options from those that all commands share.

    Parameters that are made from an operation are made when they are needed, and not when a group lists its commands:
    reading signatures imports the whole engine.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._make_late: Callable[[], Iterable[click.Parameter]] | None = getattr(self.callback, LATE, None)

    @property
    def params(self) -> list[click.Parameter]:
        if self.__dict__.get("_make_late") is not None:
            make, self._make_late = self._make_late, None
            self._params = [*(make() if make else ()), *self._params]
        return self._params

    @params.setter
    def params(self, params: list[click.Parameter]) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._params = params

    def make_parser(self, ctx: click.Context) -> Any:
        """The parser of click, which takes the last of two values. Here that is an error: one of them would be lost.

        The shared options may be repeated, because an alias of the shell may hold one.
        """
        parser = super().make_parser(ctx)
        for param in self.get_params(ctx):
            is_single = isinstance(param, click.Option) and not (param.multiple or param.is_flag or param.count)
            if is_single and param.name not in SHARED:
                _take_once(parser, param)
        return parser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spellings = {spelling for param in self.params for spelling in param.opts}
        end = args.index("--") if "--" in args else len(args)
        for at, word in enumerate(args[:end]):
            old, equals, value = word.partition("=")
            new = FORMER_OPTIONS.get(old)
            if new in spellings and old not in spellings:
                args[at] = f"{new}{equals}{value}"
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        names = [_plain_name(param) for param in self.get_params(ctx) if getattr(param, "reads_stdin", False)]
        if names:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f"{' or '.join(names)} may be - for stdin.")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        uses = getattr(self.callback, USES, frozenset(SHARED))
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx)) is not None:
                if param.name not in SHARED:
                    own.append(row)
                elif param.name in uses:
                    shared.append(row)
        for title, rows in (("Options", own), ("Where (each also as RECOLLECT_STORE, RECOLLECT_PRESET, …)", shared)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _take_once(parser: Any, param: click.Parameter) -> None:
    """Have the parser refuse a second value of this option, whichever of its spellings each has."""
    options = {**parser._short_opt, **parser._long_opt}
    option = options[param.opts[0]]  # one object for all its spellings
    process = option.process

    def process_once(value: Any, state: Any) -> None:
        if param.name in state.opts:
            raise click.UsageError(f"{' or '.join(param.opts)} is given twice, and takes one value.")
        process(value, state)

    option.process = process_once


class LazyGroup(click.Group):
    """Commands by where they are, `module:name` inside this package, in the sections in which the help shows them.

    `further` are sections that only `help --all` shows. The default command is the one that is meant where none is
    named. `former` are old names, which still work and are
    not listed.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, str]],
        further: Mapping[str, Mapping[str, str]] | None = None,
        default: str | None = None,
        former: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._further = further or {}
        self._default = default
        self._former = former or {}
        everything = (*sections.values(), *self._further.values())
        self._where = {name: where for names in everything for name, where in names.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._where)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._where:
            return None
        module, _, name = self._where[cmd_name].partition(":")
        return getattr(import_module(f"recollect.cli.{module}"), name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = self.with_new_names(_command_first(args))
        if not words and ctx.resilient_parsing:  # a shell completes the value of a shared option
            words = args
        if args and not words and not self._default:
            if (option := _without_value(args)) is not None:
                raise click.BadOptionUsage(option, f"Option {option!r} requires an argument.", ctx)
            ctx.fail("Missing command.")
        unnamed = not words or (words[0].startswith("-") and words[0] not in ctx.help_option_names)
        if self._default and unnamed and not ctx.resilient_parsing:  # while a shell completes, it may still come
            words = [self._default, *args]
        return super().parse_args(ctx, words)

    def with_new_names(self, words: list[str]) -> list[str]:
        """The words of a command line, whose first may be the old name of a command."""
        return [*self._former[words[0]].split(), *words[1:]] if words and words[0] in self._former else words

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """While a shell completes, also the shared options: they may stand before the command."""
        params = super().get_params(ctx)
        if not ctx.resilient_parsing:
            return params
        from recollect.cli.target import shared_options

        return [*params, *shared_options()]

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
        shown = {**self._sections, **self._further} if ctx.obj == ALL else self._sections
        width = max(len(name) for names in shown.values() for name in names)
        for title, names in shown.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), self._short_help(ctx, name)) for name in names])

    def _short_help(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=80) if command else ""


def _plain_name(param: click.Parameter) -> str:
    """`TEXT` for [TEXT...]."""
    return (param.metavar or param.name or "").strip("[].").upper()


def _without_value(args: Sequence[str]) -> str | None:
    """The shared option at the end whose value is missing, where there is no command."""
    return args[-1] if args and args[-1] in _SHARED_OPTIONS - set(_FLAGS) else None


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
