"""Everything recollect raises on purpose.

    RecollectError
    ├── InputError            a value breaks a rule; nothing was changed (also a ValueError)
    │   ├── SecretError       the text looks like a credential; it is repeated nowhere
    │   └── PresetError       a preset has an unknown key or a bad value
    ├── NotFoundError         no such memory, as far as this view can see (also a LookupError)
    ├── AccessError           a view was asked to reach outside its address
    ├── ConflictError         the change no longer fits what is stored
    │   └── ConversationTransitionError   a conversation cannot become that from what it is
    ├── ModelError            a model is missing, cannot be reached, or gave nonsense
    └── StoreError            the store could not do it
        ├── ConcurrencyError  another process held the lock for too long
        ├── DiskFullError     no space left, or a size limit reached
        │   ├── SizeLimitError    the session is as large as its configuration allows
        │   └── LimitError        the tenant has as many memories, or bytes, as it may have
        ├── ReadOnlyError     the folder or file cannot be written
        ├── UnreadableError   the folder or file is there, or may be, and cannot be read
        ├── UnavailableError  a server cannot be reached, or the connection to it was lost
        │   └── MovedError    the tenant is on another server now
        ├── CorruptionError   what is on disk is not what was written
        └── SchemaError       written by a newer recollect, or not set up

    UserWarning
    ├── DamageWarning         an export of a session leaves damaged entries out
    └── UnsavedWarning        the disk refuses a write, which is kept in memory and not durable yet

Messages name the field and the limit and say what to do. They are logged and shown to models, so none of them repeats
what looks like a credential, whoever made it.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HIDDEN = "(a value that looks like a credential)"
_PIECE = re.compile(r"(?<!\w)'(?:[^'\\]|\\.)*'|(?<!\w)\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\S+")
"""A value in a message: quoted, or a word."""
_SCREENED = 16_384
_screens: list[Callable[[str], object]] = []


def screen_with(is_secret: Callable[[str], object]) -> None:
    """Screen messages with this function. policies.secrets calls it: errors.py may not import what is above it."""
    _screens[:] = [is_secret]


def without_secrets(text: str) -> str:
    """Text without the values in it that look like a credential."""
    return _PIECE.sub(lambda piece: _HIDDEN if looks_secret(piece[0]) else piece[0], text)


def shown(value: str, text: str) -> str:
    """`text`, which shows the beginning of a value; something else if that begins a credential.

    A caller may send megabytes where a name belongs. No more of it is screened than a credential that begins in what is
    shown can be long.
    """
    return _HIDDEN if looks_secret(value[:_SCREENED]) else text


def looks_secret(value: str) -> bool:
    if not _screens:
        import_module("recollect.policies.secrets")
    return any(is_secret(value) for is_secret in _screens)


class RecollectError(Exception):
    """The root of every error that recollect raises on purpose."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_secrets(arg) if isinstance(arg, str) else arg for arg in args))


class InputError(RecollectError, ValueError):
    """A value breaks a rule. `field` names the argument; nothing was changed."""

    def __init__(self, field: str, problem: str) -> None:
        problem = without_secrets(problem)
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


_PERSONAL = {
    "card": "a card number",
    "iban": "a bank account number",
    "ssn": "a social security number",
    "passport": "a passport number",
    "code": "a door or alarm code",
    "health": "something about health",
    "religion": "something about religion",
    "politics": "something about politics",
    "sexuality": "something about sexuality",
    "ethnicity": "something about ethnicity",
    "union": "something about a trade union",
    "crime": "something about a crime",
}
"""What a message calls personal data, by the rule. A PIN or a password is a secret as any other."""


class SecretError(InputError):
    """The text looks like a credential. `rule` names what it looked like, never what it was."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(field, f"text appears to contain {_PERSONAL.get(rule, 'a secret')} — not stored")
        self.rule = rule


class PresetError(InputError):
    """A preset has an unknown key or a bad value; `field` is the path of the key."""


class NotFoundError(RecollectError, LookupError):
    """There is no such thing, as far as this view can see."""


class AccessError(RecollectError):
    """A view was asked to reach outside its address."""


class ConflictError(RecollectError):
    """The change no longer fits what is stored."""


class ConversationTransitionError(ConflictError):
    """A conversation is not in a state from which it could become that. Nothing was changed."""

    def __init__(self, conversation: str, status: str, wanted: str, possible: Sequence[str] = ()) -> None:
        can, state = " or ".join(possible) or "nothing else", "has ended" if status == "idle" else f"is {status}"
        problem = "already" if status == wanted else f"and cannot become {wanted}; it can become {can}"
        super().__init__(f"conversation {conversation} {state} {problem}")
        self.status = status
        self.wanted = wanted
        self.possible = tuple(possible)


class ModelError(RecollectError):
    """A model is not installed, cannot be reached, or answered with what cannot be used."""


class StoreError(RecollectError):
    """The store could not do what was asked; nothing acknowledged was lost."""


class ConcurrencyError(StoreError):
    """Another process held the lock for longer than the timeout. Trying again is safe."""


class DiskFullError(StoreError):
    """No space left on the disk, or a size limit was reached. The write was not made."""


class SizeLimitError(DiskFullError):
    """A session is as large as its configuration allows, even after compaction. Nothing was written."""

    def __init__(self, used: int, adding: int, limit: int, may_compact: bool = True) -> None:
        super().__init__(
            f"{used:,} bytes are used and {adding:,} more would pass the limit of {limit:,} bytes "
            f"({100 * used / limit:.0f} % full). Delete what is not needed and compact, or raise "
            "storage.max_session_size_mb in config.json"
        )
        self.used = used
        self.adding = adding
        self.limit = limit
        self.may_compact = may_compact
        """Whether compacting may be tried without asking."""


class LimitError(DiskFullError):
    """A tenant has as much as its limit allows, and the change would add to it. Nothing of the change was stored.

    Deleting and erasing are allowed at any time, also above the limit.
    """

    def __init__(self, limit: str, allowed: int, used: int, adding: int) -> None:
        super().__init__(
            f"{limit}: the tenant may have {allowed:,} {limit} and has {used:,}; {adding:,} more would pass the limit. "
            "Nothing of this change was stored. Delete or erase what is not needed, or have whoever runs the server "
            f"raise the limit (`recollect tenants limit TENANT --{limit} N`)"
        )
        self.limit = limit
        """`memories` or `bytes`."""
        self.allowed = allowed
        self.used = used
        self.adding = adding


class ReadOnlyError(StoreError):
    """The folder or file cannot be written by this process."""


class UnreadableError(StoreError):
    """The folder or file cannot be read by this process. What it holds is not known, and is not taken for nothing."""


class UnavailableError(StoreError):
    """A server cannot be reached, or the connection was lost before it answered. What was acknowledged is kept."""


class MovedError(UnavailableError):
    """The tenant was moved to another server. `server` is the name that it was moved under; nothing was changed."""

    def __init__(self, problem: str, server: str) -> None:
        super().__init__(problem)
        self.server = server


class CorruptionError(StoreError):
    """What is on disk is not what was written."""


class SchemaError(StoreError):
    """The data was written by a newer recollect than this one."""


class DamageWarning(UserWarning):
    """What was asked for lacks entries that cannot be read."""


class UnsavedWarning(UserWarning):
    """The disk refused a write for long. It is kept in memory until it can be written, and is not durable before."""
