"""Passwords: hashed by Argon2, and checked so that nobody learns from the time it takes whether a name exists."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping

from recollect.server.access.caller import UnknownCallerError
from recollect.values.errors import InputError


def hash_password(password: str) -> str:
    """InputError for one that is too short or too long."""
    from argon2 import PasswordHasher

    if not isinstance(password, str) or not 12 <= len(password) <= 200:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("password", "must have 12 to 200 characters")
    return PasswordHasher().hash(password)


def owner_of(password: str, hashes: Mapping[str, str | None]) -> str:
    """The key of the person whose password it is."""
    from argon2 import PasswordHasher
    from argon2.exceptions import VerificationError

    # Whoever has no password, or is not there, is refused like anybody, and after as long.
    for key, stored in hashes.items() or [("", None)]:
        with contextlib.suppress(VerificationError):
            if PasswordHasher().verify(stored or _nobodys_hash(), password) and stored:
                return key
    raise UnknownCallerError("the name or the password is wrong")


def _nobodys_hash() -> str:
    """A hash that takes as long to check as anybody's."""
    global _nobody
    if not _nobody:
        _nobody = hash_password(secrets.token_urlsafe(16))
    return _nobody


_nobody = ""
