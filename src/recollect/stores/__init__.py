"""Where memories are kept: the port, and the stores that implement it."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from recollect.stores.port import Store
from recollect.values.errors import InputError

_STORES = {
    "sqlite": ("recollect.stores.sqlite.store", "SqliteStore"),
    "ledger": ("recollect.stores.files.ledger", "Ledger"),
    "notebook": ("recollect.stores.files.notebook", "Notebook"),
    "postgresql": ("recollect.stores.postgres.store", "Postgres"),
}
"""Loaded when one is opened: whoever uses one kind of store should not wait for the others."""


KINDS = tuple(_STORES)
IN_FILES = ("sqlite", "ledger", "notebook")
"""Those whose location is a path."""


def split(location: str | os.PathLike[str]) -> tuple[str | None, str]:
    """The kind of store that a location names, if it does, and its path. A name that is no kind is told as such."""
    text = os.fspath(location)
    scheme, colon, rest = text.partition(":")
    return (scheme, rest) if colon and "/" not in scheme and os.sep not in scheme and len(scheme) > 1 else (None, text)


def is_served(location: object) -> bool:
    """Whether it is the address of a server, whose store is not to be opened from here."""
    return isinstance(location, str) and location[:8].lower().startswith(("https://", "http://"))


_OPTIONS = {"postgresql": ("replica_url", "servers")}
"""What may be given besides a location."""


def open_store(location: str | os.PathLike[str], default: str = "sqlite", **options: Any) -> Store:
    """A store by its location: `kind:path`, or a path for the default kind. Nothing is created until it is written.

    An option that is None is not given.
    """
    named, rest = split(location)
    scheme = default if named is None else {"postgres": "postgresql"}.get(named, named)
    if is_served(location):
        raise InputError("store", "is a server's address; this is done where its store is, on that machine")
    if scheme not in _STORES:
        raise InputError("store", f"{scheme!r} is not a kind of store; known: {', '.join(KINDS)}")
    if "\0" in rest:
        raise InputError("store", "a path cannot hold the character NUL")
    if any("\ud800" <= character <= "\udfff" for character in rest):
        raise InputError("store", "a path must be valid UTF-8 text")
    if not rest:
        raise InputError("store", f"a location needs a path, as in {scheme}:./memory")
    chosen = {name: value for name, value in options.items() if value is not None}
    for name in chosen:
        if name not in _OPTIONS.get(scheme, ()):
            raise InputError(name, f"is not for a store of the kind {scheme}")
    module, kind = _STORES[scheme]
    return getattr(import_module(module), kind)(os.path.expanduser(rest), **chosen)
