"""Presets from TOML: reading, extending one with another, checking."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, cast

import msgspec

from recollect.policies import importance, secrets
from recollect.presets import Preset, names
from recollect.values.errors import PresetError


def builtin(name: str) -> Preset:
    return _convert(_read_builtin(name), name)


def from_file(name: str | os.PathLike[str]) -> Preset:
    path = Path(name)
    preset = _convert(_read_file(path, ()), path.name)
    try:
        importance.check(preset.importance)
        secrets.check(preset.secrets)
    except PresetError as error:
        raise PresetError(error.field, f"in preset {path.name}: {error.problem}") from None
    return preset


def is_path(name: str | os.PathLike[str]) -> bool:
    text = os.fspath(name)
    return not isinstance(name, str) or text.endswith(".toml") or "/" in text or os.sep in text


def _read_builtin(name: str) -> dict[str, Any]:
    if name not in names():
        from recollect.presets.problems import closest

        hint = closest(name, names())
        raise PresetError("preset", f"there is no preset `{name}`{hint} (one of {', '.join(names())})")
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))


def _read_file(path: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    here = path.resolve()
    if here in below:
        raise PresetError("extends", f"preset {path.name} extends itself")
    own = _parse(path)
    own = {"name": path.stem, "description": "", **own}
    base: object = own.pop("extends", "recollect")
    if not isinstance(base, str):
        raise PresetError("extends", f"in preset {path.name}: must be the name of a preset or the path of a file")
    if is_path(base):
        return _merge(_read_file(path.parent / base, (*below, here)), own)
    return _merge(_read_builtin(base), own)


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise PresetError("preset", f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise PresetError("preset", f"cannot read {path}: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise PresetError("preset", f"{path.name} is not valid TOML: {error}") from None


def _merge(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in own.items():
        old = merged.get(key)
        merged[key] = _merge(table(old), table(value)) if _same_choice(old, value) else value
    return merged


def _same_choice(old: object, new: object) -> bool:
    """Two tables that can be mixed. Another curve, formula or style has other keys, so it starts afresh."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return False
    old_table, new_table = table(old), table(new)  # pyright: ignore[reportUnknownArgumentType]
    return all(new_table.get(tag, old_table.get(tag)) == old_table.get(tag) for tag in ("curve", "formula", "style"))


def _convert(data: dict[str, Any], origin: str) -> Preset:
    try:
        return msgspec.convert(data, Preset)
    except msgspec.ValidationError as error:
        from recollect.presets.problems import explain

        raise explain(str(error), data, origin) from None


def table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value)
