"""The notebook: one file a workspace, as the notebook document has it, that a person may read and write."""

from __future__ import annotations

import os

from recollect.stores.files.agent_file import AgentSettings
from recollect.stores.files.config import Config, Storage
from recollect.stores.files.folder import JsonlFolder, folders, holds_something
from recollect.stores.files.formats import NotebookFormat
from recollect.stores.files.searching import SearchedBook
from recollect.stores.port import Place, Settings

_CONFIG = Config(storage=Storage(max_session_size_mb=None))


class Notebook(JsonlFolder):
    """`PATH` is the file of the default workspace, or the folder that it is in as `memories.jsonl`.

    What the document's lines have no room for is kept beside it in `.memories/`, other workspaces in `workspaces/`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = os.path.abspath(path)
        is_file = path.endswith(".jsonl") or os.path.isfile(path)
        self._file = os.path.basename(path) if is_file else NotebookFormat.file
        self._agents: dict[str, AgentSettings] = {}
        super().__init__(os.path.dirname(path) if is_file else path)

    def path(self, place: Place) -> str:
        tenant = self.root if place.tenant == "default" else os.path.join(self.root, "tenants", place.tenant)
        if place.workspace is None:
            return os.path.join(tenant, "account")
        if place == Place("default", "default"):
            return self.root
        return os.path.join(tenant, "workspaces", place.workspace)

    def parts(self, place: Place) -> list[str]:
        folder = self.path(place)
        return [self._memories(folder), self._aside(folder)] if folder == self.root else [folder]

    def _memories(self, folder: str) -> str:
        return os.path.join(folder, self._file if folder == self.root else NotebookFormat.file)

    def _aside(self, folder: str) -> str:
        """Named after the file: another notebook may be beside it."""
        return os.path.join(folder, "." + os.path.basename(self._memories(folder)).removesuffix(".jsonl"))

    def settings(self, place: Place) -> Settings:
        folder = self.path(place)
        found = self._agents.get(folder)
        if found is None:
            found = self._agents[folder] = AgentSettings(folder)
        return found.now()

    def make(self, place: Place) -> SearchedBook:
        folder = self.path(place)
        return SearchedBook(self._aside(folder), self._memories(folder), place, NotebookFormat(), _CONFIG, self.meter)

    def tenants(self) -> list[str]:
        others = folders(os.path.join(self.root, "tenants"))
        return [name for name in ("default", *others) if self.workspaces(name) or self._holds(Place(name, None))]

    def workspaces(self, tenant: str) -> list[str]:
        names = folders(os.path.dirname(self.path(Place(tenant, "any"))))
        own = ["default"] if tenant == "default" else []
        return [name for name in (*own, *names) if self._holds(Place(tenant, name))]

    def _holds(self, place: Place) -> bool:
        folder = self.path(place)
        return holds_something(self._memories(folder), os.path.join(self._aside(folder), "audit.jsonl"))
