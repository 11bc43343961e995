"""Which memory is meant where nobody says: the one in the working folder, or in a folder above it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from recollect.defaults import FILE
from recollect.values.errors import InputError

if TYPE_CHECKING:
    from recollect.stores.port import Store


@lru_cache(maxsize=8)
def locate(preset: str | None, folder: str) -> str:
    """A location. Where there is none yet, the preset's own in the working folder.

    As relative as presets write it where it is in the working folder, else absolute.
    """
    from recollect.presets import load, names

    own = load(preset or "recollect").location
    usual = list(dict.fromkeys([own, *(load(name).location for name in names())]))
    if os.path.isfile(FILE):
        return "."
    for location in usual:
        if os.path.exists(location):
            return location
    for above in _upwards(folder):
        if home := _in(above, usual, above == folder):
            return home
    return own


def _upwards(folder: str) -> Iterator[str]:
    """The folder and those above it, up to the home folder, else to the root."""
    home = os.path.expanduser("~")
    while True:
        yield folder
        above = os.path.dirname(folder)
        if folder in (home, above):
            return
        folder = above


def _in(folder: str, usual: list[str], here: bool) -> str | None:
    """A folder that is a store, has one where presets put it, or has one folder that `recollect init` has made."""
    if os.path.isfile(os.path.join(folder, FILE)):
        return folder
    for location in usual:
        path = os.path.normpath(os.path.join(folder, location))
        if _is_store(path):
            return path
    made = sorted(_made(folder))
    if len(made) > 1:
        raise InputError("store", f"{folder} has several memories; choose one with --store: {', '.join(made)}")
    if made:
        return made[0] if here else os.path.join(folder, made[0])
    return None


def _made(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries if os.path.isfile(os.path.join(entry.path, FILE)))
    except OSError:
        return  # whose it is does not let others look


def _is_store(path: str) -> bool:
    """Above the working folder, a folder must not only have the name: others call theirs `memory` too."""
    from recollect.stores import IN_FILES, open_store
    from recollect.values.errors import StoreError

    if not os.path.isdir(path):
        return False
    try:
        return any(_holds(open_store(path, kind)) for kind in IN_FILES)
    except StoreError:
        return False


def _holds(store: Store) -> bool:
    from recollect.stores.port import Administered

    return isinstance(store, Administered) and any(store.places(tenant) for tenant in store.tenants())
