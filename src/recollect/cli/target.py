"""Where a command works: the store, the preset and the address, as options of every command."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, partial, wraps
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec
from click.core import ParameterSource

from recollect.cli.completing import COMPLETED
from recollect.cli.lazy import SHARED, USES
from recollect.cli.output import note
from recollect.cli.paths import PATH
from recollect.values import validation
from recollect.values.errors import AccessError, InputError

if TYPE_CHECKING:
    from recollect.defaults import Defaults
    from recollect.memory import Memory
    from recollect.presets import Preset
    from recollect.stores.port import Store

_KINDS = ("sqlite", "ledger", "notebook")

_HELP = {
    "store": "A folder, ledger:FOLDER, notebook:FILE, postgresql://…, https://….  [default: ./memory, or the preset's]",
    "preset": "Behaviour, or a TOML file.  [default: recollect]",
    "embedder": "Meaning by: local, local:FOLDER, https://host/v1#model, or none.",
    "tenant": "Tenant.  [default: default]",
    "workspace": "Workspace.  [default: default]",
    "agent": "Act as this agent: its own memories and the shared.",
    "account": "Act for this account (user).",
    "channel": "Channel inside the workspace.",
    "conversation": "Conversation that is going on.",
}


class Home(NamedTuple):
    """Where on the disk a store is."""

    path: Path
    is_file: bool
    """Whether that is one file, as of a notebook, and not a folder."""

    def exists(self, location: str) -> bool:
        """InputError if something else is there."""
        from recollect.stores.paths import path_exists

        if not path_exists(self.path):
            return False
        if self.path.is_dir() and self.is_file:
            raise InputError("store", f"{location} is a folder; give the folder a name that does not end in .jsonl")
        if not self.path.is_dir() and not self.is_file:
            raise InputError(
                "store", f"{location} is a file; a memory is a folder (or, of one file, notebook:{self.path.name})"
            )
        return True

    def make(self) -> None:
        folder = self.path.parent if self.is_file else self.path
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.is_file:
            self.path.touch(mode=0o600)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What the shared options say."""

    store: str | None
    preset: str | None
    embedder: str | None
    tenant: str | None
    workspace: str | None
    agent: str | None
    account: str | None
    channel: str | None
    conversation: str | None
    json: bool
    """Whether to print one JSON document and nothing else."""
    typed_options: tuple[str, ...]
    """Which of the options above were typed, rather than read from the environment."""
    typed: str
    """Those as they were typed, for commands that another command suggests."""

    @property
    def location(self) -> str:
        """What was asked for, else what is found from the working folder upwards, else the preset's own."""
        from recollect.cli.locating import locate

        return self.store or locate(self.preset, os.getcwd())

    @property
    def shown(self) -> str:
        """The location for people to see: without a password."""
        return without_password(self.location)

    @property
    def served(self) -> bool:
        """Whether it is on a server, and reached by its verbs alone."""
        from recollect.stores import is_served

        return is_served(self.location)

    @property
    def defaults(self) -> Defaults:
        """What recollect.toml in the store says."""
        from recollect.defaults import read

        return read(self.location)

    def workspaces(self) -> list[str]:
        """All of the tenant's, for people to choose from: a view that has chosen one sees no other."""
        free = msgspec.structs.replace(self, workspace=None, agent=None, account=None, channel=None, conversation=None)
        with free.open(report_damage=False, vectors=False, usual=("tenant",)) as memory:
            return memory.workspaces()

    def rules(self, preset: str | None = None) -> Preset:
        """The preset: as asked for, else as the store's file says, else the one given here, else `recollect`."""
        if self.served:
            with self.open() as memory:
                return memory.preset
        from recollect.presets import load

        return load(self.preset or self.defaults.preset or preset or "recollect")

    def address(self) -> dict[str, str]:
        """The parts of the address that were chosen."""
        parts = {name: getattr(self, name) for name in SHARED[3:]}
        return {name: value for name, value in parts.items() if value is not None}

    def check_whole(self, verb: str) -> None:
        """AccessError if an option binds to something inside a workspace: some commands are about whole ones."""
        for part in ("account", "channel", "conversation", "agent"):
            if part in self.address():
                raise AccessError(f"{verb}: this is done to whole workspaces; leave out --{part}")

    def find(self) -> tuple[Store, Home | None]:
        """The store, and where it is. A folder without a kind is of the kind that is in it, else of the preset's."""
        from recollect.stores import open_store

        settings, location = self.defaults, self.location
        tenant = validation.name(self.tenant or settings.tenant or "default", "tenant")
        store = open_store(location, "" if self.served else settings.store or self.rules().store)
        kind, path = _split(location)
        if kind is None and path.is_dir() and not store.places(tenant):
            others = (open_store(location, other) for other in _KINDS)
            store = next((other for other in others if other.places(tenant)), store)
        root = getattr(store, "root", None)
        if not self.store and not self.json and os.path.isabs(location):
            _tell_once(f"Using the memory in {location}")
        return store, None if root is None else Home(path, path != Path(os.path.abspath(root)))

    @contextmanager
    def open(
        self,
        located: tuple[Store, Home | None] | None = None,
        *,
        create: bool = False,
        preset: str | None = None,
        report_damage: bool = True,
        vectors: bool = True,
        usual: Sequence[str] = ("tenant", "workspace", "agent", "account"),
        **address: str,
    ) -> Generator[Memory]:
        """The view that was asked for, closed at the end. A missing store is an error unless `create`.

        `usual` are the parts of the address that may come from the store's file: what is about whole workspaces, or
        all of them, is not about whoever is named there. Without `vectors` no model is loaded: a command that only
        stores need not wait for one, and whoever opens the store to ask makes what is missing.

        `located` is the store that the caller has opened already; `preset` is for when none was asked for. Damage that
        was skipped is logged at the end if `report_damage`, but not in JSON.
        """
        from recollect.memory import Memory
        from recollect.models.vectors import embedder_for

        if self.served:
            settings = {name: getattr(self, name) for name in ("preset", "embedder") if name in self.typed_options}
            with Memory(self.location, **settings) as memory:  # which says that it has its own
                yield _view_at(memory, self.address() | address)
            return
        store, home = located or self.find()
        starting = home is not None and not home.exists(self.location)
        if starting and not create:
            raise InputError(
                "store", f"there is no memory at {self.location}; run `recollect init` to start one, or pass --store"
            )
        settings = self.defaults
        unsaid = {part: name for part, name in settings.address().items() if part in usual}
        embedder = self.embedder or settings.embedder
        if not vectors and "embedder" in self.typed_options:
            embedder_for(embedder)  # what is wrong with it is told all the same
        with (
            self._telling(report_damage),
            Memory(store, preset=self.rules(preset), embedder=embedder if vectors else "none") as memory,
        ):
            parts = unsaid | self.address() | address
            if starting and "workspace" in usual:
                # A view of a chosen workspace logs no refusal where nothing is stored: a refused command makes no file.
                parts.setdefault("workspace", memory.address.workspace or "default")
            yield _view_at(memory, parts)
        if starting and not self.json:
            note(f"Started a new memory in {self.location}")

    def _telling(self, report_damage: bool) -> AbstractContextManager[None]:
        """Stores that log have loaded `logging`; whoever uses another should not wait for it."""
        if "logging" not in sys.modules:
            return nullcontext()
        from recollect.cli.damage import heard

        return heard(f"recollect verify{self.typed}" if report_damage and not self.json else None)


def _view_at(memory: Memory, parts: dict[str, str]) -> Memory:
    """The view at an address, whose conversation may be named by its ref code."""
    from recollect.values.bodies import is_ref_code
    from recollect.values.errors import NotFoundError

    if is_ref_code(parts.get("conversation", "")):
        around = {part: name for part, name in parts.items() if part != "conversation"}
        with suppress(NotFoundError):
            parts = parts | {"conversation": memory.at(**around).conversations.get(parts["conversation"]).id}
    return memory.at(**parts) if parts else memory


def without_password(location: str) -> str:
    """A location as it may be shown. What is not like a URL is as it is."""
    shown = re.sub(r"(?<=://)([^:@/?#]*):.*@", r"\1@", location)
    return re.sub(r"(?<=[?&]password=)[^&]*", "…", shown)


@cache
def _tell_once(words: str) -> None:
    note(words)


def _split(location: str) -> tuple[str | None, Path]:
    """The kind of store that a location names, if it does, and its path."""
    kind, colon, path = location.partition(":")
    named = bool(colon) and kind in _KINDS
    return (kind if named else None), Path(os.path.abspath(os.path.expanduser(path if named else location)))


def _given_options() -> tuple[str, ...]:
    source = click.get_current_context().get_parameter_source
    return tuple([name for name in SHARED if source(name) is ParameterSource.COMMANDLINE])


PLACE = ("store", "preset", "tenant", "workspace")
"""The shared options of a command about a whole workspace."""
VIEW = (*PLACE, "agent", "account", "channel", "conversation")
"""Those of a command that sees what one agent or person sees."""


def scoped(command: Callable[..., None], *, uses: Sequence[str] = SHARED) -> Callable[..., None]:
    """Gives a command the shared options, and its function a Target as the first argument.

    All of them are accepted everywhere, so that a script can pass the same ones to each command; the help shows those
    that the command uses.
    """

    @wraps(command)
    def run(**options: Any) -> None:
        shared = {name: options.pop(name, None) for name in (*SHARED, "json")}
        named = _given_options()
        typed = "".join(f" --{name} {quote(without_password(shared[name]))}" for name in named)
        command(Target(**shared, typed_options=named, typed=typed), **options)

    setattr(run, USES, frozenset(uses))
    decorated: Callable[..., None] = run
    for name in reversed(SHARED):
        decorated = click.option(f"--{name}", **_settings_of(name))(decorated)
    return click.option("--json", is_flag=True, help="Print one JSON document.")(decorated)


def shared_options() -> list[click.Option]:
    """The options that every command has, for a shell that completes the value of one before the command."""
    return [click.Option([f"--{name}"], **_settings_of(name)) for name in SHARED]


def _settings_of(name: str) -> dict[str, Any]:
    return {
        "envvar": f"RECOLLECT_{name.upper()}",
        "metavar": {"store": "PATH", "embedder": "SPEC"}.get(name, "NAME"),
        "type": PATH if name in ("store", "preset") else None,
        "help": _HELP[name],
        "shell_complete": COMPLETED.get(name),
    }


scoped_to_workspace = partial(scoped, uses=PLACE)
scoped_to_store = partial(scoped, uses=("store", "preset", "tenant"))
unscoped = partial(scoped, uses=())
