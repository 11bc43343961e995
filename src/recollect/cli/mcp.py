"""Serving a memory to agents over the Model Context Protocol."""

from __future__ import annotations

import contextlib
import gc
import re
import sys
from importlib.util import find_spec

import click

from recollect.cli.lazy import Leaf
from recollect.cli.listening import host_and_port, is_loopback, listen, quoted
from recollect.cli.output import note
from recollect.cli.target import Target, scoped
from recollect.values.errors import AccessError, InputError

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?")


@click.command(cls=Leaf)
@click.option("--http", metavar="HOST:PORT", help="Serve over HTTP there, at /mcp, instead of stdin and stdout.")
@click.option("--allow-remote", is_flag=True, help="Let --http listen to other machines. There is no login.")
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Over --http, answer web pages of this origin.",
)
@click.option("--read-only", is_flag=True, help="Leave out the tools that change something.")
@scoped
def mcp(target: Target, http: str | None, allow_remote: bool, origins: tuple[str, ...], read_only: bool) -> None:
    """Serve the memory to agents over the Model Context Protocol (MCP).

    \b
    Example:
      claude mcp add recollect -- recollect mcp --store ~/memory --agent claude
      recollect mcp --http 127.0.0.1:8377
    """
    if http is None and (allow_remote or origins):
        raise click.UsageError("--allow-remote and --allow-origin are for --http.")
    where = None if http is None else _host_and_port(http, allow_remote)
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise InputError("allow_origin", "must be as browsers send it, such as http://localhost:3000")
    if find_spec("mcp") is None:
        raise click.ClickException(
            "the MCP server needs the package mcp; run `pip install '.[mcp]'` in a clone of recollect"
        )
    located = None if target.served else target.find()
    home = located[1] if located else None
    starting = home is not None and not read_only and not home.exists(target.location)
    listening = None if where is None else listen(*where, "http")
    if home is not None and starting:
        home.make()
        note(f"Started a new memory in {target.location}")

    gc.disable()  # loading the SDK takes a second, a tenth of it to look for garbage among what stays
    from recollect.server import reporting, transports
    from recollect.server.mcp import serve
    from recollect.server.upkeep import BackgroundMaintenance

    gc.freeze()
    gc.enable()
    reporting.to_stderr()
    with target.open(located, told=False) as memory, contextlib.ExitStack() as background:
        if not target.served and not read_only:  # a server looks after its own store
            background.enter_context(BackgroundMaintenance(memory))
        server = serve(memory, read_only=read_only)
        if listening is None or where is None:
            if sys.stdin.isatty():
                note("Waiting for an MCP client on stdin; this is meant to be started by one. Ctrl-C ends it.")
            transports.over_stdio(server)
        else:
            host, port = where[0], listening.getsockname()[1]
            note(f"Listening on http://{quoted(host)}:{port}{transports.PATH}")
            transports.over_http(server, listening, host, origins)


def _host_and_port(address: str, allow_remote: bool) -> tuple[str, int]:
    host, port = host_and_port(address, "http")
    if not allow_remote and not is_loopback(host):
        raise AccessError(
            f"http: {host} can be reached from other machines, and there is no login; "
            "use 127.0.0.1, or pass --allow-remote if something else keeps strangers out"
        )
    return host, port
