"""`agent.json`: what a person may set for a notebook's memory, beside it or above it."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any, Literal

import msgspec

from recollect.stores.files import files
from recollect.stores.files.config import convert
from recollect.stores.port import NO_SETTINGS, Settings

_TICK = 100_000_000
"""Nanoseconds: longer than a step of the clock of any file system, except FAT's."""


class NotebookMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the notebook document lets people set."""

    inject_mode: Literal["relevant", "recent_only", "off"] | msgspec.UnsetType = msgspec.UNSET
    max_inject_chars: Annotated[int, msgspec.Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET
    max_inject_count: Annotated[int, msgspec.Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET
    max_total: Annotated[int, msgspec.Meta(ge=1)] | None = None


class AgentFile(msgspec.Struct, frozen=True):
    """`agent.json`, most of which is about other things and not ours."""

    memory: NotebookMemory | None = None


class AgentSettings:
    """The `memory` block of the nearest `agent.json` that has one, in a folder or above it; read again if changed."""

    def __init__(self, folder: str, above: int = 2) -> None:
        folders = [folder]
        for _ in range(above):
            folders.append(os.path.dirname(folders[-1]))
        self._paths = [os.path.join(parent, "agent.json") for parent in dict.fromkeys(folders)]
        self._seen: list[files.FileIdentity] | None = None
        self._settings = NO_SETTINGS

    def now(self) -> Settings:
        identities = [files.identity(path) for path in self._paths]
        if identities != self._seen:
            read_at = time.time_ns()
            self._settings = self._read()
            # One that was written just now may be written again without another time, and must be looked at again.
            settled = all(read_at - identity.changed > _TICK for identity in identities)
            self._seen = identities if settled else None
        return self._settings

    def _read(self) -> Settings:
        for path in self._paths:
            try:
                with open(path, "rb") as file:
                    data = file.read()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise files.unread(error, path) from error
            if (memory := convert(data, AgentFile, path).memory) is not None:
                fields: dict[str, Any] = msgspec.to_builtins(memory)
                return Settings(quota=fields.pop("max_total", None), injection=fields)
        return NO_SETTINGS
