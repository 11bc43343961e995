"""Where memories are kept: the port, and the stores that implement it."""

from __future__ import annotations

import os
from importlib import import_module

from recollect.errors import InputError
from recollect.stores.port import Store

_KINDS = {
    "sqlite": ("recollect.stores.sqlite.folder", "SqliteFolder"),
    "ledger": ("recollect.stores.files.ledger", "Ledger"),
    "notebook": ("recollect.stores.files.notebook", "Notebook"),
}
"""Loaded when one is opened: whoever uses one kind of store should not wait for the others."""


def open_store(location: str | os.PathLike[str], default: str = "sqlite") -> Store:
    """A store by its location: `kind:path`, or a path for the default kind. Nothing is created until it is written."""
    text = os.fspath(location)
    scheme, colon, rest = text.partition(":")
    if not colon or "/" in scheme or os.sep in scheme or len(scheme) == 1:
        scheme, rest = default, text
    if scheme not in _KINDS:
        raise InputError("store", f"{scheme!r} is not a kind of store; known: {', '.join(_KINDS)}")
    if "\0" in rest:
        raise InputError("store", "a path cannot hold the character NUL")
    if not rest:
        raise InputError("store", f"a location needs a path, as in {scheme}:./memory")
    module, kind = _KINDS[scheme]
    return getattr(import_module(module), kind)(os.path.expanduser(rest))
