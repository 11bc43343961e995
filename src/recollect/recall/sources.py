"""The protocol of a source that `consult` searches besides the memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import msgspec

from recollect.values import validation
from recollect.values.errors import InputError
from recollect.values.record import Address, parse_time


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a source knows about a question."""

    text: str
    similarity: float
    """With the question, 0 to 1."""
    at: datetime | None = None
    """When it was so, in UTC where it has no zone; without it nothing counts as recent."""
    importance: float = 0.5
    id: str | None = None
    meta: dict[str, Any] = {}

    def __post_init__(self) -> None:
        validation.query(self.text, "text")
        validation.importance(self.similarity, "similarity")
        validation.importance(self.importance, "importance")
        if self.at is not None:
            msgspec.structs.force_setattr(self, "at", parse_time(self.at, "at"))
        if self.id is not None:
            validation.label(self.id, "id", 200)
        if not isinstance(self.meta, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("meta", f"must be a dict, not {type(self.meta).__name__}")


@runtime_checkable
class Source(Protocol):
    """Whatever can be searched. It is asked from a thread of its own, and may be asked from several at once.

    It answers everyone alike, so it must hold only what all tenants may know. One that has a method
    `at(address: Address) -> Source` is asked through that, with the address of the view that asks.
    """

    @property
    def name(self) -> str: ...

    def search(self, query: str, limit: int) -> Sequence[Found]:
        """At most so many, best first."""
        ...


@runtime_checkable
class Bound(Protocol):
    """A source that answers each address differently."""

    def at(self, address: Address) -> Source: ...


def checked(sources: Iterable[Source], reserved: Iterable[str] = ()) -> tuple[Source, ...]:
    """Each with a name of its own."""
    names = set(reserved)
    listed = tuple(validation.sequence(sources, "sources"))
    for number, source in enumerate(listed):
        field = f"sources[{number}]"
        if not isinstance(source, Source):
            raise InputError(field, f"must have a name and a method search, and {type(source).__name__} has not")
        name = validation.label(source.name, f"{field}.name")
        if name in names:
            raise InputError(f"{field}.name", f"{name!r} is the name of another source")
        names.add(name)
    return listed
