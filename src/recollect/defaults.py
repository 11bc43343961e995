"""The defaults in a store's `recollect.toml`: the preset, the embedder and the address."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from recollect.policies.secrets import Screen, screen, screen_name
from recollect.presets import Preset, load
from recollect.stores import IN_FILES, is_served, split
from recollect.stores.port import Store
from recollect.values import validation
from recollect.values.errors import InputError

FILE = "recollect.toml"
ADDRESS = ("tenant", "workspace", "agent", "account")


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """None is what the file does not say."""

    store: str | None = None
    """The kind of store, for a location that names none."""
    preset: str | None = None
    embedder: str | None = None
    tenant: str | None = None
    workspace: str | None = None
    agent: str | None = None
    account: str | None = None

    def address(self) -> dict[str, str]:
        parts = {part: getattr(self, part) for part in ADDRESS}
        return {part: value for part, value in parts.items() if value is not None}


NONE = Defaults()
_EXAMPLES = {
    "store": "ledger",
    "preset": "recollect",
    "embedder": "local",
    "tenant": "acme",
    "workspace": "shop",
    "agent": "atlas",
    "account": "alice",
}


def path_for(location: str | os.PathLike[str]) -> str:
    """`<folder>/recollect.toml`; for a notebook of one file `<name>.recollect.toml` beside it."""
    path = os.path.abspath(os.path.expanduser(split(location)[1]))
    if os.path.isfile(path) or (path.endswith(".jsonl") and not os.path.isdir(path)):
        return f"{path.removesuffix('.jsonl')}.{FILE}"
    return os.path.join(path, FILE)


def read(location: str | os.PathLike[str]) -> Defaults:
    """InputError that names the key for one that is unknown or bad."""
    if "\0" in os.fspath(location) or is_served(location):
        return NONE  # the store refuses the one, and the server has a file of its own
    path = path_for(location)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return NONE
    except (OSError, UnicodeError) as error:
        if isinstance(error, PermissionError) and not os.access(os.path.dirname(path), os.X_OK):
            return NONE  # every verb says that the store cannot be read
        raise InputError(FILE, f"{path} cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    import tomllib

    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(FILE, f"{path} is not valid TOML: {error}") from None
    return _checked(settings, path)


def resolved(
    store: str | os.PathLike[str] | Store | None, preset: str | os.PathLike[str] | Preset | None
) -> tuple[str | os.PathLike[str] | Store, Preset, Defaults]:
    """Where a memory is, its preset, and what else its file says. A Store that is open already has no file."""
    if store is not None and not isinstance(store, str | os.PathLike) and not hasattr(store, "places"):
        raise InputError("store", f"must be a path, a location or a Store, not {type(store).__name__}")
    chosen = preset if preset is None or isinstance(preset, Preset) else load(preset)
    where = (chosen or load("recollect")).location if store is None else store
    settings = read(where) if isinstance(where, str | os.PathLike) else NONE
    return where, chosen or load(settings.preset or "recollect"), settings


def write(location: str | os.PathLike[str], settings: Defaults) -> str:
    """Write `recollect.toml`, with unset keys as comments for people to edit. The store's folder must exist."""
    path = path_for(location)
    check(location, settings)
    lines = [
        "# What this memory uses unless an option or an argument says otherwise.",
        "# Keys and passwords do not belong here: they are read from the environment.",
    ]
    for key, example in _EXAMPLES.items():
        value = getattr(settings, key)
        shown = msgspec.json.encode(_from_here(key, value, path) if value else example).decode()
        lines.append(f"{'' if value else '# '}{key} = {shown}")
    with open(path, "x", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def check(location: str | os.PathLike[str], settings: Defaults) -> None:
    """InputError if this may not be written."""
    _checked(msgspec.to_builtins(settings), path_for(location))


def _checked(settings: dict[str, Any], path: str) -> Defaults:
    names = Defaults.__struct_fields__
    for key, value in settings.items():
        if key not in names:
            shown = key[:48].encode("ascii", "backslashreplace").decode()
            raise InputError(shown, f"is not a key of {path}; known: {', '.join(names)}")
        if value is None:
            continue
        if not isinstance(value, str):
            raise InputError(key, f"in {path}: must be text, not {type(value).__name__}")
        (screen_name if key in ADDRESS else screen)(Screen(), key, value)
        try:
            _check(key, value)
        except InputError as error:
            raise InputError(key, f"in {path}: {error.problem}") from None
    return Defaults(**{key: _resolved(key, value, path) for key, value in settings.items() if value is not None})


def _check(key: str, value: str) -> None:
    if key in ADDRESS:
        validation.name(value, key)
    elif key == "store" and value not in IN_FILES:
        raise InputError(key, f"{value[:40]!r} is not a kind of store of files; known: {', '.join(IN_FILES)}")
    elif not value.strip():
        raise InputError(key, "must not be empty")
    elif key == "embedder" and "@" in value.partition("#")[0].partition("://")[2].partition("/")[0]:
        raise InputError(key, "must not hold a user or password; they are read from the environment")


def _resolved(key: str, value: str, path: str) -> str:
    """Paths in the file are relative to the file, wherever the program runs."""
    prefix, name = _path_in(key, value)
    return f"{prefix}{os.path.join(os.path.dirname(path), os.path.expanduser(name))}" if name else value


def _from_here(key: str, value: str, path: str) -> str:
    prefix, name = _path_in(key, value)
    return f"{prefix}{os.path.relpath(os.path.expanduser(name), os.path.dirname(path))}" if name else value


def _path_in(key: str, value: str) -> tuple[str, str]:
    """What stands before a path, and the path; none where the value is a name."""
    if key == "preset" and (value.endswith(".toml") or "/" in value or os.sep in value):
        return "", value
    if key == "embedder" and value.startswith("local:"):
        return "local:", value.removeprefix("local:")
    return "", ""
