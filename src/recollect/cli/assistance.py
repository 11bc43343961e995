"""Help by name, and completion of commands and options in a shell."""

from __future__ import annotations

import os
from pathlib import Path

import click

from recollect.cli import output
from recollect.cli.completing import complete_command
from recollect.cli.lazy import ALL, LazyGroup, Leaf
from recollect.cli.output import QUIET, STRONG
from recollect.cli.target import Target, unscoped
from recollect.values.errors import InputError

_VARIABLE = "_RECOLLECT_COMPLETE"
_AFTER = {
    "bash": "Open a new shell; the package bash-completion must be installed.",
    "zsh": "Once, in ~/.zshrc before compinit: fpath+=({folder}). Then open a new shell.",
    "fish": "Open a new shell.",
}
SHELLS = tuple(_AFTER)


@click.command("help", cls=Leaf)
@click.argument("words", nargs=-1, metavar="[COMMAND...]", shell_complete=complete_command)
@click.option("--all", "every", is_flag=True, help="List every command.")
@unscoped
def help_(target: Target, words: tuple[str, ...], every: bool) -> None:
    """Show the help of a command, or list all commands.

    \b
    Example:
      recollect help recall
      recollect help audit search
      recollect help --all
    """
    here = click.get_current_context().find_root()
    here.obj = ALL if every else None
    rest = list(words)
    while rest:
        group = here.command
        if not isinstance(group, LazyGroup):
            here.fail(f"{here.command_path} has no command {rest[0]!r}")
        names = [name for name in group.with_new_names(rest) if not name.startswith("-")]
        if not names:
            here.fail(f"{here.command_path} has no command {rest[0]!r}")
        word, *rest = names
        _, command, _ = group.resolve_command(here, [word])
        assert command is not None  # what is not there is an error
        here = click.Context(command, info_name=word, parent=here, max_content_width=here.max_content_width)
    if target.json:
        output.emit({"command": here.command_path, "help": here.get_help()})
    else:
        click.echo(here.get_help())


@click.group(
    cls=LazyGroup,
    sections={"Commands": {"show": "assistance:show", "install": "assistance:install"}},
)
def completion() -> None:
    """Have the shell complete commands and options.

    \b
    Example:
      recollect completion install
      recollect completion show --shell fish
    """


_shell = click.option("--shell", type=click.Choice(SHELLS), metavar="NAME", help="bash, zsh or fish.  [default: yours]")


@click.command(cls=Leaf)
@_shell
@unscoped
def show(target: Target, shell: str | None) -> None:
    """Print the script that completes commands and options.

    \b
    Example:
      recollect completion show --shell zsh
    """
    script = _script(chosen := _chosen(shell))
    if target.json:
        output.emit({"shell": chosen, "script": script})
    else:
        click.echo(script)


@click.command(cls=Leaf)
@_shell
@unscoped
def install(target: Target, shell: str | None) -> None:
    """Put the script where the shell looks for it.

    \b
    Example:
      recollect completion install --shell bash
    """
    chosen = _chosen(shell)
    path = _place(chosen)
    if path.exists() and _VARIABLE not in path.read_text("utf-8", "replace"):
        raise InputError("shell", f"{path} is there already and is not ours; move it away first")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_script(chosen) + "\n", "utf-8")
    if target.json:
        output.emit({"shell": chosen, "file": str(path)})
        return
    output.say("Wrote ", (str(path), STRONG))
    output.say((_AFTER[chosen].format(folder=path.parent), QUIET))


def _chosen(shell: str | None) -> str:
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in SHELLS:
        raise InputError("shell", f"which one? Pass --shell, one of {', '.join(SHELLS)}")
    return name


def _script(shell: str) -> str:
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(click.get_current_context().find_root().command, {}, "recollect", _VARIABLE)
    return (made.source_template % made.source_vars()).strip()


def _place(shell: str) -> Path:
    home = Path.home()
    if shell == "bash":
        data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        return data / "bash-completion" / "completions" / "recollect"
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return config / "fish" / "completions" / "recollect.fish"
    return home / ".zfunc" / "_recollect"
