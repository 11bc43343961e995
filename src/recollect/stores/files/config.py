"""`config.json` of a ledger: what a person may set for all of its sessions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from recollect.policies.decay import Decay, HalfLife, NoDecay
from recollect.stores.files import files
from recollect.stores.files.lock import Patience
from recollect.values.errors import InputError

Positive = Annotated[float, msgspec.Meta(gt=0.0)]
Share = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=3_600_000)]


class Storage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    root_directory: str = "./memory"
    """For people. The folder is where `config.json` is."""
    max_session_size_mb: Positive | None = 10.0
    compaction_threshold: Share = 0.9
    auto_compact: bool = True


class Concurrency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lock_timeout_ms: Milliseconds = 5000
    max_retries: Annotated[int, msgspec.Meta(ge=0, le=100)] = 3
    retry_backoff_ms: Milliseconds = 100


class KindDecay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    half_life_hours: Positive | None = None
    decay_enabled: bool = True


_RATES = {
    "conversation": KindDecay(168.0),
    "decision": KindDecay(720.0),
    "finding": KindDecay(336.0),
    "preference": KindDecay(decay_enabled=False),
}


class DecaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool = True
    update_interval_minutes: Positive = 60.0
    type_specific: dict[str, KindDecay] = {}
    """A type that is left out is as in the ledger document."""
    half_life_hours: Positive = 168.0
    min_decay_factor: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.1

    def curve(self) -> Decay:
        if not self.enabled:
            return NoDecay()
        rates = {**_RATES, **self.type_specific}
        hours = {kind: rate.half_life_hours for kind, rate in rates.items() if rate.half_life_hours}
        never = tuple(kind for kind, rate in rates.items() if not rate.decay_enabled)
        return HalfLife(hours, self.half_life_hours, never, self.min_decay_factor)


LEDGER_DECAY = DecaySettings()
"""The ledger document's rates."""
_SHOWN_DECAY = DecaySettings(type_specific=_RATES)
"""The same, as a generated file has them."""


class Performance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cache_size: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 100
    batch_write_interval_ms: Milliseconds = 1000
    index_in_memory: bool = True


class Integrity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    enable_checksums: bool = True
    checksum_algorithm: Literal["sha256"] = "sha256"


class Compaction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When compaction takes the longest parts of an entry's metadata away. Its content stays."""

    strip_metadata_after_hours: Annotated[float, msgspec.Meta(ge=0.0)] | None = 720.0
    """None for never."""
    strip_metadata_over_bytes: Annotated[int, msgspec.Meta(ge=2)] = 1024


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal["1.0"] = "1.0"
    storage: Storage = Storage()
    concurrency: Concurrency = Concurrency()
    decay: DecaySettings | None = None
    """Goes before the preset's decay, where it is there."""
    performance: Performance = Performance()
    integrity: Integrity = Integrity()
    compaction: Compaction = Compaction()

    @property
    def patience(self) -> Patience:
        wait = self.concurrency
        return Patience(wait.lock_timeout_ms / 1000, wait.max_retries, wait.retry_backoff_ms / 1000)

    @property
    def limit(self) -> int | None:
        size = self.storage.max_session_size_mb
        return None if size is None else int(size * 1024 * 1024)


def load(path: str, overrides: Mapping[str, Any] | None = None) -> Config:
    """The settings in a file, or the usual ones where there is none. What is given goes before the file's.

    Decay as in the ledger document is as good as none: other presets have curves of their own.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        data = b"{}"
    except OSError as error:
        raise files.unread(error, path) from error
    config = convert(data, Config, path)
    if overrides:
        settings: dict[str, Any] = msgspec.to_builtins(config)
        if config.decay is None:
            del settings["decay"]
        config = convert(msgspec.json.encode(_over(settings, overrides)), Config, "what the store was made with")
    return replace(config, decay=None) if config.decay in (LEDGER_DECAY, _SHOWN_DECAY) else config


def _over(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Block by block."""
    new = dict(base)
    for name, value in overrides.items():
        old: Any = new.get(name)
        new[name] = _over(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value  # pyright: ignore[reportUnknownArgumentType]
    return new


def unlimited(config: Config) -> Config:
    """The same without a limit to the size."""
    return msgspec.structs.replace(config, storage=msgspec.structs.replace(config.storage, max_session_size_mb=None))


def with_half_life(settings: Mapping[str, Any] | None, hours: float) -> dict[str, Any]:
    """Settings with another half-life for types that have none of their own, neither in the document nor in these."""
    if not hours > 0:
        raise InputError("default_decay_half_life", "must be a number of hours above 0")
    return _over({"decay": {"half_life_hours": hours}}, settings or {})


def convert(data: bytes, into: Any, path: str) -> Any:
    """Settings from JSON. InputError names the key, the file, and what is wrong."""
    try:
        return msgspec.json.decode(data, type=into)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        key = place.rstrip("`").lstrip(".")
        if problem.startswith("Object contains unknown field"):
            unknown = problem.split("`")[1]
            key, problem = f"{key}.{unknown}".lstrip("."), "is not a setting"
        raise InputError(key or "config", f"{problem[:1].lower()}{problem[1:]}, in {path}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(os.path.basename(path), f"is not JSON: {error}, in {path}") from None


def shown(config: Config) -> bytes:
    """As a file for people."""
    decay = config.decay or _SHOWN_DECAY
    rates = {**_RATES, **decay.type_specific}
    fields: dict[str, Any] = msgspec.to_builtins(replace(config, decay=replace(decay, type_specific=rates)))
    for rate in fields["decay"]["type_specific"].values():
        if rate["decay_enabled"]:
            del rate["decay_enabled"]
        if rate["half_life_hours"] is None:
            del rate["half_life_hours"]
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"
