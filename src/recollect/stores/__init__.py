"""Where memories are kept: the port, and the stores that implement it."""

from __future__ import annotations

import os

from recollect.errors import InputError
from recollect.stores.base import JournaledStore


def open_store(location: str | os.PathLike[str]) -> JournaledStore:
    """A store by its location: a folder, or `scheme:path`. Nothing is created until something is stored."""
    text = os.fspath(location)
    scheme, colon, rest = text.partition(":")
    if not colon or "/" in scheme or os.sep in scheme or len(scheme) == 1:
        scheme, rest = "sqlite", text
    if scheme != "sqlite":
        raise InputError("store", f"{scheme!r} is not a kind of store; known: sqlite")
    if "\0" in rest:
        raise InputError("store", "a path cannot hold the character NUL")
    if not rest:
        raise InputError("store", "a location needs a path, as in sqlite:./memory")
    from recollect.stores.sqlite.folder import SqliteFolder

    return SqliteFolder(os.path.expanduser(rest))
