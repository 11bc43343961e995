"""Whoever calls: a rank, and an address that a request can narrow and never leave."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Literal

import msgspec

from recollect.memory import Memory, limited
from recollect.operations import RANKS, Rank
from recollect.values.errors import AccessError, ConcurrencyError, InputError
from recollect.view import View

_LEVELS = {rank: level for level, rank in enumerate(RANKS)}
"""How much each rank may do."""
PARTS = ("tenant", "workspace", "account", "agent")
"""The parts of an address that a key or a person can be bound to."""


def same(first: str, second: str) -> bool:
    """Whether two secrets are the same, in the same time wherever they differ."""
    return hmac.compare_digest(first.encode("utf-8", "surrogatepass"), second.encode("utf-8", "surrogatepass"))


class Caller(msgspec.Struct, frozen=True):
    id: str
    """Of the key, or the name of the person with its kind before it."""
    name: str
    rank: Rank
    how: Literal["key", "person", "local"]
    bound: dict[str, str] = {}
    """The parts of the address that are not to be chosen any more. A local caller has none, and sees every tenant."""
    session: str = ""
    """What forms must repeat, so that no other page can send them."""

    def may(self, rank: Rank) -> bool:
        return _LEVELS[self.rank] >= _LEVELS[rank]

    def check(self, rank: Rank, what: str) -> None:
        if not self.may(rank):
            raise AccessError(f"{what}: needs the role {rank}, and {self.name} has the role {self.rank}")

    def narrowed(self, parts: Mapping[str, str]) -> dict[str, str]:
        """Where they are, with what a request says. It can only narrow that."""
        for part, value in parts.items():
            if self.bound.get(part, value) != value:
                raise AccessError(f"{part}: this view is bound to {self.bound[part]} and cannot be moved")
        chosen = {**self.bound, **parts}
        if self.how == "key" and "tenant" not in chosen:
            raise InputError("tenant", "must be named in each request of a key for all tenants: Recollect-Tenant")
        return chosen

    def view(self, memory: Memory, parts: Mapping[str, str]) -> Memory:
        """Made from whom the key belongs to and what the request says, at once: both together say where it is."""
        chosen = self.narrowed(parts)
        return limited(memory.at(**chosen) if chosen else memory, self._limited)

    def _limited(self, view: View) -> View:
        """Journals and core memories are seen by the agent's own key and by admins; what is shared belongs to all."""
        if self.may("admin"):
            return view
        owner = self.bound.keys() & {"account", "agent"}
        return msgspec.structs.replace(
            view,
            sees_private="agent" in self.bound,
            forgets_shared=not owner,
            keeps_answers=self.may("member"),
        )


class UnknownCallerError(AccessError):
    """Nobody that we know."""


class ForgedFormError(AccessError):
    """A form of somebody who is logged in, without the token that our own pages put into it."""


class BusyError(ConcurrencyError):
    """More than may be done at once. Whoever comes again in a moment may be let in."""


class RefusedLoginError(UnknownCallerError):
    """A login by way of a provider that is not believed. `why` is for the log, and holds nothing of what was sent."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why


class ProviderError(RefusedLoginError):
    """A provider of logins that cannot be asked."""

    def __init__(self, message: str) -> None:
        super().__init__("provider", message)
