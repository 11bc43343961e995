"""A copy of a whole store, made while others write to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from recollect.defaults import path_for
from recollect.stores.integrity import all_places, damage_in
from recollect.stores.port import Damage, OnDisk, Store
from recollect.values.errors import AccessError, InputError, StoreError
from recollect.values.record import new_id
from recollect.view import View


class Backup(msgspec.Struct, frozen=True):
    """The result of a backup."""

    path: str
    places: int
    """Workspaces, and what the accounts of each tenant share."""
    size_bytes: int
    damage: tuple[Damage, ...] = ()
    """What the copy was found to hold that does not match its checksum, as the store itself does then."""


def backup(view: View, target: str | os.PathLike[str], progress: Callable[[int], None] | None = None) -> Backup:
    """Every place is copied as it is at one moment. The copy is complete and verified, or it is not there."""
    if view.bound:
        raise AccessError(f"backup: it holds the whole store, and this view is bound to {min(view.bound)}")
    view.settle_answers()
    store, disk = view.store, view.on_disk
    if disk is None:
        raise StoreError("backup: this store is not one of files; export it")
    path = _free(target)
    disk.check_apart(str(path))
    # Beside it, so that it can be renamed; hidden, so that nobody takes it for a backup.
    partial = path.with_name(f".{path.name}-{new_id()}")
    try:
        partial.mkdir(mode=0o700, parents=True)
        places = all_places(store)
        for number, place in enumerate(places, 1):
            disk.copy(place, str(partial))
            if progress is not None:
                progress(number)
        copy = disk.elsewhere(str(partial))
        _copy_settings(disk, copy)
        damage = _verified(copy, str(partial), str(path))
        size = _made_durable(partial)
        _put(partial, path)
    except OSError as error:
        raise StoreError(f"backup: {error.filename or path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Backup(str(path), len(places), size, damage)


def _copy_settings(disk: OnDisk, copy: Store) -> None:
    """What the `recollect.toml` of the store says holds for the copy too: its preset, and whose it is."""
    path = path_for(disk.opened_at())
    if os.path.isfile(path) and isinstance(copy, OnDisk):
        shutil.copy(path, path_for(copy.opened_at()))


def _free(target: str | os.PathLike[str]) -> Path:
    if not os.fspath(target):
        raise InputError("target", "must be a folder for the copy")
    path = Path(os.path.abspath(os.path.expanduser(target)))
    if path.is_symlink() or path.is_file() or (path.exists() and any(path.iterdir())):
        raise InputError("target", f"{path} is there already; give a folder that is new or empty")
    return path


def _verified(copy: Store, partial: str, path: str) -> tuple[Damage, ...]:
    try:
        damages = [damage for place in all_places(copy) for damage in damage_in(copy, place)]
    finally:
        copy.close()
    return tuple(
        Damage(found_damage.where.replace(partial, path), found_damage.problem.replace(partial, path))
        for found_damage in damages
    )


def _made_durable(folder: Path) -> int:
    """The bytes of all files in it."""
    size = 0
    for inside, _, names in os.walk(folder):
        size += sum(os.path.getsize(os.path.join(inside, name)) for name in names)
        _sync(inside)
    return size


def _put(partial: Path, path: Path) -> None:
    try:
        os.rename(partial, path)  # also onto an empty folder
    except OSError as error:
        raise InputError("target", f"{path} was made by somebody else meanwhile: {error.strerror}") from error
    _sync(path.parent)


def _sync(folder: str | os.PathLike[str]) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
