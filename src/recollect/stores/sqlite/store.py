"""The SQLite store: one file per workspace, one per tenant for what its accounts share."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from recollect.stores.audit import GENESIS, Entry
from recollect.stores.paths import (
    TRASH,
    check_apart,
    empty_trash,
    folder_name,
    may_hold,
    names_in,
    path_exists,
    unreadable,
)
from recollect.stores.port import NO_SETTINGS, Damage, Place, Settings
from recollect.stores.resident import columns_path
from recollect.stores.sqlite.opening import create, moves
from recollect.stores.sqlite.place_file import PlaceFile
from recollect.stores.sqlite.places import SqlitePlaces
from recollect.stores.tables.audit import AuditTable
from recollect.stores.touches import Touches
from recollect.stores.transactions import StaleFileError, Transaction
from recollect.values.errors import CorruptionError, StoreError
from recollect.values.record import new_id

_WRITTEN = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'"
# Not the last entry's number: where that one was removed, its place stays empty and is missed.
_LAST = f"SELECT coalesce(({_WRITTEN}), 0), coalesce((SELECT hash FROM audit ORDER BY seq DESC LIMIT 1), '{GENESIS}')"


class SqliteStore(SqlitePlaces[PlaceFile], AuditTable):
    """Isolation by files: `root/<tenant>/account.db` and `root/<tenant>/workspaces/<workspace>/memory.db`."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).absolute()
        super().__init__(str(self.root))

    def path(self, place: Place) -> str:
        tenant = f"{self.root}/{folder_name(place.tenant)}"
        if place.workspace is None:
            return f"{tenant}/account.db"
        return f"{tenant}/workspaces/{folder_name(place.workspace)}/memory.db"

    def _open(self, place: Place, new: bool) -> PlaceFile | None:
        path = self.path(place)
        while path_exists(path) if new else _used(path):
            with suppress(StaleFileError):  # dropped by another process, and perhaps begun anew
                return PlaceFile(path, place, self.touches.setdefault(place, Touches()))
        return None

    def _create(self, place: Place) -> None:
        create(self.path(place))

    def places(self, tenant: str) -> list[Place]:
        folder = self.root / folder_name(tenant) / "workspaces"
        places = [*(Place(tenant, name) for name in names_in(folder)), Place(tenant, None)]
        return [place for place in places if may_hold(lambda place: _used(self.path(place)), place)]

    def drop(self, place: Place) -> None:
        if place.workspace is None or not (self.inside().get(place) or _used(self.path(place))):
            return
        with Transaction(self, (place,)) as handle:
            folder = Path(handle.path).parent
            handle.dismiss()
            try:
                with moves.moving(handle.path):
                    os.rename(folder, folder.with_name(TRASH + new_id()))
            except OSError as error:
                raise StoreError(f"workspace {place.workspace} could not be removed: {error.strerror}") from error
        self.discard(place, handle)
        empty_trash(folder.parent)

    def last_entry(self, place: Place) -> tuple[int, str]:
        return self.thread.places[place].writer.execute(_LAST).fetchone() or (0, GENESIS)

    def appended(self, place: Place, entry: Entry) -> None:
        self.thread.places[place].appended(entry)

    def written(self, place: Place) -> int:
        rows = self.rows(place, _WRITTEN)
        return rows[0][0] if rows else 0

    # On disk

    def settings(self, place: Place) -> Settings:
        return NO_SETTINGS

    def size(self, place: Place) -> int:
        return self._read(place, lambda handle: handle.size(), 0)

    def unsaved(self, place: Place) -> int:
        return 0

    def crowded(self, place: Place) -> bool:
        return False

    def scrub(self, place: Place, erased: Collection[str] = ()) -> int:
        def scrubbed(handle: PlaceFile) -> int:
            self.residents.drop(handle)
            handle.settle()
            handle.checkpoint()
            columns_path.remove(handle.path)
            return 0  # a damaged memory is a row, which can be deleted as others are

        return self._read(place, scrubbed, 0)

    def compact(self, place: Place) -> int:
        def compacted(handle: PlaceFile) -> int:
            self.residents.drop(handle)
            columns_path.remove(handle.path)
            return handle.compact()

        empty_trash(self.root / folder_name(place.tenant) / "workspaces")
        return self._read(place, compacted, 0)

    def damage(self, place: Place) -> list[Damage]:
        try:
            return self._read(place, lambda handle: handle.damage(), [])
        except CorruptionError as error:
            return [Damage(self.path(place), str(error))]

    def copy(self, place: Place, folder: str) -> None:
        path = SqliteStore(folder).path(place)
        create(path)
        self._read(place, lambda handle: handle.copy(path), None)

    def elsewhere(self, folder: str) -> SqliteStore:
        return SqliteStore(folder)

    def check_apart(self, folder: str) -> None:
        check_apart(folder, str(self.root))

    def tenants(self) -> list[str]:
        return names_in(self.root)

    def opened_at(self) -> str:
        return str(self.root)


def _used(path: str) -> bool:
    """Whether anything was ever stored there: an empty file is left where the disk was full."""
    try:
        return os.path.getsize(path) > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unreadable(error, path) from error
