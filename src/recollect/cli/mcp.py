"""Serving a memory to agents over the Model Context Protocol."""

from __future__ import annotations

import contextlib
import gc
import sys
from importlib.util import find_spec

import click

from recollect.cli.lazy import Leaf
from recollect.cli.output import note
from recollect.cli.serving import ServeOptions, serve_with
from recollect.cli.target import Target, scoped


@click.command(cls=Leaf)
@click.option("--http", metavar="HOST:PORT", hidden=True, help="Use `recollect serve --mcp-only` instead.")
@click.option("--allow-remote", is_flag=True, hidden=True)
@click.option("--allow-origin", "origins", multiple=True, metavar="ORIGIN", hidden=True)
@click.option("--read-only", is_flag=True, help="Leave out the tools that change something.")
@scoped
def mcp(target: Target, http: str | None, allow_remote: bool, origins: tuple[str, ...], read_only: bool) -> None:
    """Serve the memory to agents over the Model Context Protocol (MCP).

    It speaks over stdin and stdout, to the one agent that starts it. `recollect serve --mcp-only` speaks over HTTP, to
    many.

    \b
    Example:
      claude mcp add recollect -- recollect mcp --store ~/memory --agent claude
    """
    if allow_remote:
        raise click.UsageError("--allow-remote is no more: make a key, and use `recollect serve --mcp-only`.")
    if http is not None:
        note(f"`recollect mcp --http` is deprecated; use `recollect serve --mcp-only --listen {http}`.")
        options = ServeOptions(listening=http, logged="none", mcp_only=True, read_only=read_only, origins=origins)
        serve_with(target, options, "http")
        return
    if origins:
        raise click.UsageError("--allow-origin is for `recollect serve --mcp-only`.")
    if find_spec("mcp") is None:
        raise click.ClickException(
            "the MCP server needs the package mcp; run `pip install '.[mcp]'` in a clone of recollect"
        )
    located = None if target.served else target.find()
    home = located[1] if located else None
    if home is not None and not read_only and not home.exists(target.location):
        home.make()
        note(f"Started a new memory in {target.location}")

    gc.disable()  # loading the SDK takes a second, a tenth of it to look for garbage among what stays
    from recollect.server import reporting, transports
    from recollect.server.mcp import serve
    from recollect.server.upkeep import BackgroundMaintenance

    gc.freeze()
    gc.enable()
    reporting.to_stderr()
    with target.open(located, report_damage=False) as memory, contextlib.ExitStack() as background:
        if not target.served and not read_only:  # a server looks after its own store
            background.enter_context(BackgroundMaintenance(memory))
        if sys.stdin.isatty():
            note("Waiting for an MCP client on stdin; this is meant to be started by one. Ctrl-C ends it.")
        transports.over_stdio(serve(memory, read_only=read_only))
