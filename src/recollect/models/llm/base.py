"""The protocol of a language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

import msgspec

Role = Literal["system", "user", "assistant"]
LONGEST_NAME = 200


class Message(msgspec.Struct, frozen=True):
    role: Role
    content: str


class Llm(Protocol):
    """A language model. ModelError when it cannot be had, fails, or says nothing that can be used.

    May be used from several threads, and in a process that was forked from the one that made it.
    """

    @property
    def name(self) -> str:
        """The model's, as its provider calls it."""
        ...

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> str:
        """The whole answer, which is never empty. It may end in the middle where `max_tokens` were reached."""
        ...

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Iterator[str]:
        """The answer in pieces, as they come. An error after the first of them leaves the answer without its end."""
        ...

    def close(self) -> None:
        """Release resources. A later call acquires them again."""
        ...
