"""How calls are written on the way to a server and back, and how its refusals become our errors again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Literal, cast, get_args, get_origin
from urllib.parse import quote, unquote
from zoneinfo import ZoneInfo

import msgspec

from recollect.operations import Parameter, Signature, union_members
from recollect.recall.hits import Absence, Hit, Hits
from recollect.values import errors
from recollect.values.errors import InputError, RecollectError, StoreError

ANY = "any"
"""In a query: None in place of a default that is something else, as in `state=any`."""
ADDRESS = ("tenant", "account", "workspace", "channel", "conversation", "agent")
"""The parts of an address that a request may narrow, each in a header of its own."""
UNSAVED = "recollect-unsaved"
"""The header that says that the disk refuses what was just written."""
WAITING = "recollect-unsaved-writes"
"""How many writes the server's disk has refused so far; left out for none."""
VECTORS = "recollect-vectors"
"""The header of whoever wants the vectors of memories, too."""


_WITH_TIMES = frozenset(("entries", "entry", "query"))
"""Arguments made of others, of which some are times."""
_TIMES = frozenset(("created_at", "expires_at", "valid_from", "valid_until"))
"""The same, of one of many memories."""


def header(part: str) -> str:
    return f"recollect-{part}"


_HEADERS = {part: header(part) for part in ADDRESS}


def address_headers(parts: Mapping[str, str]) -> dict[str, str]:
    return {header(part): quote(value, safe="") for part, value in parts.items()}


def address_of(headers: Mapping[str, str]) -> dict[str, str]:
    return {part: _name_in(part, headers[name]) for part, name in _HEADERS.items() if name in headers}


def _name_in(part: str, text: str) -> str:
    """InputError for what could be read as another name than was meant."""
    try:
        text.encode("ascii")
        return unquote(text, errors="strict")
    except UnicodeError:
        raise InputError(header(part), "must be in UTF-8, and %-encoded where it is not ASCII") from None


class RecallResult(msgspec.Struct, frozen=True):
    """Hits as JSON has them."""

    hits: tuple[Hit, ...]
    absence: Absence | None = None
    pending: int = 0
    report: str = ""
    answered: float | None = None

    @classmethod
    def of(cls, hits: Hits) -> RecallResult:
        return cls(tuple(hits), hits.absence, hits.pending, hits.report, hits.answered)

    def back(self) -> Hits:
        hits = Hits(self.hits)
        hits.absence, hits.pending, hits.report = self.absence, self.pending, self.report
        hits.answered = self.answered
        return hits


def given_as(kind: Any) -> Any:
    """The type that JSON has in place of what a verb gives."""
    return RecallResult if kind is Hits else kind


def sendable(parameter: Parameter, value: Any) -> Any:
    """An argument as JSON takes it. InputError for what it would change on the way, or not take."""
    name, listed = parameter.name, parameter.is_list
    takes_time = datetime in union_members(parameter.hint) or name in _WITH_TIMES
    if listed and isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping):
        several = cast("Iterable[Any]", value)
        value = [_materialised(item) for item in several] if name == "items" else list(several)
    left: list[tuple[str, Any]] = [(name, value)]
    while left:  # a loop, no recursion: values may be nested deeply
        field, item = left.pop()
        if isinstance(item, list | tuple):
            left += [(field, part) for part in cast("Iterable[Any]", item)]
        elif isinstance(item, Mapping):
            pairs = cast("Mapping[Any, Any]", item)
            _check_keys(field, pairs)
            left += [(key if field == "items" else field, part) for key, part in pairs.items()]
        else:
            _check_plain(field, item, takes_time or field in _TIMES)
    return cast("Any", value)


def _materialised(item: Any) -> Any:
    """One of many, with tags and the like as lists, however they were given."""
    if not isinstance(item, Mapping):
        return item
    fields = cast("Mapping[Any, Any]", item)
    return {
        key: list(cast("Iterable[Any]", value)) if isinstance(value, Iterator | set | frozenset) else value
        for key, value in fields.items()
    }


def _check_keys(field: str, value: Mapping[Any, Any]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise InputError(field, f"has the key {key!r:.40}; JSON keys are text")
        _check_plain(field, key)


def _check_plain(field: str, value: Any, takes_time: bool = False) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(field, "must not contain NaN or infinity")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(field, f"has a lone surrogate at character {error.start}") from None
    elif isinstance(value, datetime) and takes_time:
        return
    elif value is not None and not isinstance(value, bool | int | float | msgspec.Struct | tzinfo):
        if callable(value):
            raise InputError(field, "cannot be sent to a server: it is a function")
        raise InputError(field, f"must be text or JSON data; it holds a {type(value).__name__}")


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(RecallResult.of(value) if isinstance(value, Hits) else value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, tzinfo):
        return zone_name(value)
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise TypeError(f"{type(value).__name__} cannot be sent to a server")


def decoded(content: bytes, signature: Signature) -> Any:
    if signature.gives is type(None):
        return None
    value = msgspec.json.decode(content, type=given_as(signature.gives))
    return value.back() if isinstance(value, RecallResult) else value


def in_query(name: str, value: Any, kind: Any, default: Any = None) -> list[str]:
    """An argument of a request without a body. There all is text, so what it is must be right before it is sent."""
    takes_none = type(None) in (kind, *get_args(kind))
    if value is None and takes_none:
        return [ANY]
    if value == ANY and takes_none and default is not None:  # it would be read as None
        raise InputError(name, "is not known")
    if not isinstance(value, datetime | tzinfo):
        _check_kind(name, value, kind)
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, datetime):
        return [value.isoformat()]
    if isinstance(value, tzinfo):
        return [zone_name(value)]
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [str(item) for item in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [str(value)]


def _check_kind(name: str, value: Any, kind: Any) -> None:
    if isinstance(value, str) and any(get_origin(member) is Literal for member in (kind, *get_args(kind))):
        return  # a text in any case, and the server says which there are
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(name, str(error).partition(" - at ")[0].replace("`", "").lower()) from None


def zone_name(zone: tzinfo) -> str:
    if isinstance(zone, ZoneInfo):
        return zone.key
    offset = zone.utcoffset(None)
    if not offset:
        return "UTC"
    minutes = int(offset.total_seconds() // 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def zone_of(name: str) -> tzinfo:
    """By its name, as in `Europe/Vienna`, or its distance from UTC, as in `+02:00`."""
    if name in ("UTC", "Z"):
        return UTC
    try:
        if name[:1] in ("+", "-"):
            hours, _, minutes = name[1:].partition(":")
            away = timedelta(hours=int(hours), minutes=int(minutes or 0))
            return timezone(-away if name[0] == "-" else away)
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise InputError("zone", "is no time zone; give one such as Europe/Vienna, +02:00 or UTC") from None


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A refusal, as RFC 9457 has it."""

    title: str
    """The name of the error."""
    status: int
    detail: str
    type: str = "about:blank"
    field: str | None = None
    extra: dict[str, Any] = {}
    """What else the error knows."""

    @classmethod
    def of(cls, error: RecollectError, status: int) -> Problem:
        extra: dict[str, Any] = {
            name: value for name, value in vars(error).items() if isinstance(value, str | int | float | bool | tuple)
        }
        field = extra.pop("field", None)
        return cls(type(error).__name__, status, str(error), field=field, extra=extra)

    def error(self) -> RecollectError:
        """The error that the server met, as if it had been met here."""
        kind = getattr(errors, self.title, None)
        if not isinstance(kind, type) or not issubclass(kind, RecollectError):
            return StoreError(f"the server says {self.status}: {self.detail}")
        error = kind.__new__(kind, self.detail)
        Exception.__init__(error, self.detail)
        arguments = {name: tuple(cast("list[Any]", v)) if isinstance(v, list) else v for name, v in self.extra.items()}
        vars(error).update(arguments if self.field is None else {**arguments, "field": self.field})
        return error
