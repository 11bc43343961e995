"""The notebook: one file a workspace, as the notebook document has it, that a person may read and write."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from recollect.stores.files import files
from recollect.stores.files.agent_file import AgentSettings
from recollect.stores.files.config import Config, Storage
from recollect.stores.files.fileset import FileSet
from recollect.stores.files.formats import NotebookFormat
from recollect.stores.files.log import Log
from recollect.stores.files.metrics import Meter
from recollect.stores.files.store import FileStore, holds_something
from recollect.stores.paths import check_apart, existing_or_coded, may_hold, names_in
from recollect.stores.port import Place, Settings, Shortfall
from recollect.values.errors import InputError, SchemaError
from recollect.values.record import Record

_FORMAT, _FORMAT_FILE = 1, "format"
_CONFIG = Config(storage=Storage(max_session_size_mb=None))


class NotebookLayout:
    """`path` is the file of the default workspace, or the folder that it is in as `memories.jsonl`.

    What the document's lines have no room for is kept beside it in `.memories/`, other workspaces in `workspaces/`.
    """

    def __init__(self, path: str) -> None:
        self.opened_at = path
        is_file = path.endswith(".jsonl") or os.path.isfile(path)
        self._file = os.path.basename(path) if is_file else NotebookFormat.file
        self.root = os.path.dirname(path) if is_file else path

    @property
    def own_folder(self) -> str:
        return self._aside(self.root)

    def path(self, place: Place) -> str:
        tenant, tenants = self.root, os.path.join(self.root, "tenants")
        if place.tenant != "default":
            tenant = os.path.join(tenants, existing_or_coded(tenants, place.tenant))
        if place.workspace is None:
            return os.path.join(tenant, "account")
        if place == Place("default", "default"):
            return self.root
        workspaces = os.path.join(tenant, "workspaces")
        return os.path.join(workspaces, existing_or_coded(workspaces, place.workspace))

    def parts(self, place: Place) -> list[str]:
        folder = self.path(place)
        return [self._memories(folder), self._aside(folder)] if folder == self.root else [folder]

    def beside(self, place: Place) -> list[str]:
        return [os.path.join(self.path(place), "agent.json")]

    def elsewhere(self, folder: str) -> str:
        return folder if self.opened_at == self.root else os.path.join(folder, self._file)

    def own(self) -> list[str]:
        """The folders that hold nothing but this notebook."""
        others = (Place("default", None), Place("default", "any"), Place("any", None))
        folders = [self.path(others[0]), *(os.path.dirname(self.path(place)) for place in others[1:])]
        return [*folders, self._aside(self.root)]

    def _memories(self, folder: str) -> str:
        return os.path.join(folder, self._file if folder == self.root else NotebookFormat.file)

    def _aside(self, folder: str) -> str:
        """Named after the file: another notebook may be beside it."""
        return os.path.join(folder, "." + os.path.basename(self._memories(folder)).removesuffix(".jsonl"))

    def make(self, place: Place, meter: Meter) -> Log:
        folder = self.path(place)
        fileset = FileSet(self._aside(folder), self._memories(folder), NotebookFormat.file)
        return Log(place, fileset, NotebookFormat(), _CONFIG, meter)

    def places(self, tenant: str) -> list[Place]:
        names = names_in(os.path.dirname(self.path(Place(tenant, "any"))))
        own = ["default"] if tenant == "default" else []
        places = [*(Place(tenant, name) for name in (*own, *names)), Place(tenant, None)]
        return [place for place in places if may_hold(self._holds, place)]

    def tenants(self) -> list[str]:
        others = names_in(os.path.join(self.root, "tenants"))
        return [name for name in ("default", *others) if self.places(name)]

    def _holds(self, place: Place) -> bool:
        folder = self.path(place)
        beside = (os.path.join(self._aside(folder), name) for name in ("audit.jsonl", "shelves.jsonl"))
        return holds_something(self._memories(folder), *beside)

    def starting(self) -> None:
        """A notebook has nothing that must be there before it is written to."""

    def check_format(self, place: Place) -> None:
        path = os.path.join(self._aside(self.path(place)), _FORMAT_FILE)
        written = files.read_whole(path).strip()
        if written.isdigit() and int(written) > _FORMAT:
            raise SchemaError(
                f"{path} says format {written.decode()}; this recollect knows up to {_FORMAT}. "
                "Upgrade recollect; the files were left untouched"
            )

    def write_format(self, place: Place) -> None:
        path = os.path.join(self._aside(self.path(place)), _FORMAT_FILE)
        with suppress(OSError):  # without the file it is the first format
            if not os.path.exists(path):
                files.replace(path, b"%d\n" % _FORMAT)


class Notebook(FileStore):
    def __init__(self, path: str | os.PathLike[str]) -> None:
        layout = self._notebook = NotebookLayout(os.path.abspath(path))
        self.root = layout.root
        self._agents: dict[str, AgentSettings] = {}
        super().__init__(layout)

    def settings(self, place: Place) -> Settings:
        folder = self._layout.path(place)
        agent = self._agents.get(folder)
        if agent is None:
            agent = self._agents[folder] = AgentSettings(folder)
        return agent.now()

    def opened_at(self) -> str:
        return self._notebook.opened_at

    def elsewhere(self, folder: str) -> Notebook:
        return Notebook(self._notebook.elsewhere(folder))

    def shortfalls(self, place: Place, records: Iterable[Record]) -> list[Shortfall]:
        format, renamed, changed = NotebookFormat(), 0, 0
        for record in records:
            renamed += format.renames(record)
            changed += record.checksum != record.digest()
        shortfalls: list[Shortfall] = []
        if renamed:
            shortfalls.append(
                Shortfall(
                    f"{renamed:,} would get other ids (m-1, m-2, …), while the audit log names the old ones; "
                    "what undo needs is left out",
                    ("id", "checksum"),
                )
            )
        if changed:
            shortfalls.append(
                Shortfall(f"{changed:,} do not match their checksum, and would get a new one", ("checksum",))
            )
        return shortfalls

    def check_apart(self, folder: str) -> None:
        """Other files may be beside a notebook, and so may its copy."""
        check_apart(folder, *self._notebook.own())
        if folder == self.root:
            raise InputError("target", f"{folder} is where the notebook is")

    def crowded(self, place: Place) -> bool:
        """It has no limit."""
        return False
