"""Where a command works: the store, the preset and the address, as options of every command."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from recollect.cli.lazy import SHARED
from recollect.cli.output import note
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.engine import Memory

DEFAULT_STORE = "./memory"

_HELP = {
    "store": f"Folder of the memory.  [default: {DEFAULT_STORE}]",
    "preset": "Behaviour, or a TOML file.  [default: recollect]",
    "tenant": "Tenant.  [default: default]",
    "workspace": "Workspace.  [default: default]",
    "agent": "Act as this agent: its own memories and the shared.",
    "account": "Act for this account (user).",
    "channel": "Channel inside the workspace.",
    "conversation": "Conversation that is going on.",
}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What the shared options say."""

    store: str | None
    preset: str | None
    tenant: str | None
    workspace: str | None
    agent: str | None
    account: str | None
    channel: str | None
    conversation: str | None
    json: bool
    """Whether to print one JSON document and nothing else."""
    typed: str
    """The options above as they were typed, for commands that another command suggests."""

    @property
    def location(self) -> str:
        return self.store or DEFAULT_STORE

    def address(self) -> dict[str, str]:
        """The parts of the address that were chosen."""
        parts = {name: getattr(self, name) for name in SHARED[2:]}
        return {name: value for name, value in parts.items() if value is not None}

    @contextmanager
    def open(self, *, create: bool = False, **address: str) -> Generator[Memory]:
        """The view that was asked for, closed at the end. A missing folder is an error unless `create`."""
        from recollect.engine import Memory
        from recollect.stores import open_store

        store = open_store(self.location)
        starting = self._is_missing(getattr(store, "root", None), create)
        with Memory(store, preset=self.preset or "recollect") as memory:
            parts = self.address() | address
            yield memory.at(**parts) if parts else memory
        if starting and not self.json:
            note(f"Started a new memory in {self.location}")

    def _is_missing(self, root: Any, create: bool) -> bool:
        if root is None or root.is_dir():
            return False
        if root.exists():
            raise InputError("store", f"{self.location} is a file; a memory is a folder")
        if create:
            return True
        raise InputError(
            "store", f"there is no memory at {self.location}; run `recollect init` to start one, or pass --store"
        )


def _typed(shared: dict[str, Any]) -> str:
    source = click.get_current_context().get_parameter_source
    given = [name for name in SHARED if source(name) is ParameterSource.COMMANDLINE]
    return "".join(f" --{name} {quote(shared[name])}" for name in given)


def scoped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options, and its function a Target as the first argument."""

    @wraps(command)
    def run(**given: Any) -> None:
        shared = {name: given.pop(name) for name in (*SHARED, "json")}
        command(Target(**shared, typed=_typed(shared)), **given)

    decorated: Callable[..., None] = run
    for name in reversed(SHARED):
        metavar = "PATH" if name == "store" else "NAME"
        option = click.option(f"--{name}", envvar=f"RECOLLECT_{name.upper()}", metavar=metavar, help=_HELP[name])
        decorated = option(decorated)
    return click.option("--json", is_flag=True, help="Print one JSON document.")(decorated)
