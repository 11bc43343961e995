"""Errors as a client of HTTP sees them."""

from __future__ import annotations

from recollect.remote.wire import Problem
from recollect.server.access.caller import ProviderError, UnknownCallerError
from recollect.values import errors
from recollect.values.errors import RecollectError

CONTENT_TYPE = "application/problem+json"


class TooLargeError(errors.InputError):
    """The body has more bytes than this server takes."""


class TooManyError(errors.ConcurrencyError):
    """More requests than the key may make, or the tenant may have made for it."""

    def __init__(self, whose: str, per_second: float, seconds: float) -> None:
        super().__init__(
            f"too many requests {whose}: the limit is {per_second:g} a second over time; try again in {seconds:.1f} s"
        )
        self.seconds = seconds


class MethodError(errors.NotFoundError):
    """There is something at this address, and not by this method."""

    def __init__(self, method: str, allowed: list[str]) -> None:
        self.allowed = ", ".join(dict.fromkeys(allowed))
        super().__init__(f"{method} is not possible here; {self.allowed} is")


class StaleError(errors.ConflictError):
    """`If-Match` names another version than the one that is there."""


class TooSlowError(errors.InputError):
    """The body did not come in time."""


class EncodingError(errors.InputError):
    """The body is packed in a way that is not taken here."""


class UnderWayError(errors.ConflictError):
    """The same request is being worked on. A retry in a moment gets its answer."""


class DoneError(errors.UnavailableError):
    """The same request was done, or may have been, and its answer is lost."""


_STATUS: dict[type[RecollectError], int] = {
    ProviderError: 502,
    UnknownCallerError: 401,
    errors.AccessError: 403,
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.InputError: 400,
    errors.ModelError: 424,
    errors.ConcurrencyError: 503,
    errors.UnavailableError: 503,
    # Also of a tenant's LimitError, as with quotas of WebDAV. 429 would say that waiting helps, and 413 that a smaller
    # request would be taken.
    errors.DiskFullError: 507,
    errors.StoreError: 500,
    RecollectError: 500,
    TooLargeError: 413,
    TooSlowError: 408,
    EncodingError: 415,
    TooManyError: 429,
    MethodError: 405,
    StaleError: 412,
    UnderWayError: 409,
    DoneError: 409,
}


def status_of(error: RecollectError) -> int:
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def problem_of(error: RecollectError) -> Problem:
    problem = Problem.of(error, status_of(error))
    if type(error).__module__ != errors.__name__:  # known to servers only
        base = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
        problem = Problem(base.__name__, problem.status, problem.detail, field=problem.field, extra=problem.extra)
    return problem
