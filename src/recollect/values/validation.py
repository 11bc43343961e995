"""Validation of everything that is stored. Every error names the field and the limit."""

from __future__ import annotations

import math
import re
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, get_args

import msgspec

from recollect.values.errors import InputError, shown
from recollect.values.record import MAX_SOURCES, pack

MAX_CONTENT_BYTES = 1_048_576
MAX_METADATA_BYTES = 65_536
MAX_TAGS = 64
MAX_REFERENCES = 256
MAX_DIMENSIONS = 16_384
MAX_DEPTH = 100

MAX_NAME_BYTES = 64
_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_TAG = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_encode = msgspec.json.Encoder().encode


def name(value: Any, field: str) -> str:
    """A part of an address: whatever id somebody has. Stores make of it what their file system can take."""
    if isinstance(value, str) and value.isprintable() and value.strip() == value and _fits_a_name(value):
        return value
    raise InputError(
        field,
        f"{_shown(value)} must be 1 to {MAX_NAME_BYTES} bytes of printable text, without spaces at its ends",
    )


def _fits_a_name(value: str) -> bool:
    return 0 < len(value) <= MAX_NAME_BYTES and (value.isascii() or len(value.encode()) <= MAX_NAME_BYTES)


def memory_id(value: Any, field: str = "id") -> str:
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    raise InputError(field, f"{_shown(value)} must be 1 to 32 letters, digits, '_' or '-'")


def memory_ids(values: str | Iterable[str], field: str = "id") -> list[str]:
    """One id or several, each once."""
    if isinstance(values, str):
        return [memory_id(values, field)]
    return list(dict.fromkeys(memory_id(value, field) for value in sequence(values, field)))


def kind(value: Any, field: str = "kind") -> str:
    if isinstance(value, str) and _KIND.fullmatch(value):
        return value
    raise InputError(field, f"{_shown(value)} must be 1 to 32 of a-z, 0-9, '_' or '-', starting with a letter")


def choice(value: Any, field: str, literal: Any) -> Any:
    """One of a closed set, such as the roles."""
    allowed = get_args(literal)
    if value in allowed:
        return value
    raise InputError(field, f"{_shown(value)} must be one of {', '.join(allowed)}")


def content(value: Any) -> Any:
    """Text, or JSON that survives a round trip unchanged."""
    if isinstance(value, str):
        _text(value, "content", MAX_CONTENT_BYTES)
        if not value or value.isspace():
            raise InputError("content", "must not be empty or blank")
        return value
    if value is None or (isinstance(value, Mapping | list | tuple) and not value):
        raise InputError("content", "must not be empty")
    return _json(value, "content", MAX_CONTENT_BYTES)


def metadata(value: Any, field: str = "metadata", limit: int = MAX_METADATA_BYTES) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(field, f"must be a JSON object, not {type(value).__name__}")
    return _json(value, field, limit)


def importance(value: Any, field: str = "importance") -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0:
        return float(value)
    raise InputError(field, f"{_shown(value)} must be a number from 0 to 1")


def tag(value: Any, field: str = "tags") -> str:
    if isinstance(value, str) and len(value) <= 32 and _TAG.fullmatch(value):
        return value
    raise InputError(
        field, f"{_shown(value)} must be 1 to 32 letters, digits, '-' or '_'; a '.' separates levels, as in 'a.b'"
    )


def any_tag(value: Any, field: str = "tags") -> str:
    """Whatever somebody may have chosen for one, to look for it or where a preset lets people choose."""
    return label(value, field)


def tags(values: Iterable[str] | None, limit: int = MAX_TAGS, rule: Callable[[Any], str] = tag) -> tuple[str, ...]:
    if values is None or values == [] or values == ():
        return ()
    checked = tuple(dict.fromkeys(rule(value) for value in sequence(values, "tags")))
    if len(checked) > limit:
        raise InputError("tags", f"{len(checked)} tags are over the limit of {limit}")
    return checked


def any_tags(values: Iterable[str] | None) -> tuple[str, ...]:
    return tags(values, rule=any_tag)


def references(values: Iterable[str] | None, field: str = "references", limit: int = MAX_REFERENCES) -> tuple[str, ...]:
    if values is None or values == [] or values == ():
        return ()
    ids = tuple(dict.fromkeys(memory_id(value, field) for value in sequence(values, field)))
    if len(ids) > limit:
        raise InputError(field, f"{len(ids)} {field} are over the limit of {limit}")
    return ids


def sources(values: Iterable[str] | None) -> tuple[str, ...]:
    """The ids of what a memory was derived from."""
    return references(values, "derived_from", MAX_SOURCES)


def validity(valid_from: datetime | None, valid_until: datetime | None) -> None:
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        raise InputError("valid_until", "must be later than valid_from")


def label(value: Any, field: str, limit: int = 64) -> str:
    """A short free text on one line, such as a source or a reason."""
    if isinstance(value, str) and 0 < len(value) <= limit and value.isprintable() and not value.isspace():
        return value
    raise InputError(field, f"{_shown(value)} must be 1 to {limit} printable characters on one line")


def or_empty(rule: Callable[..., str], value: Any, *arguments: Any) -> str:
    """Optional text whose default is "". Only that is let through unchecked: None, 0, False and [] are not text."""
    return "" if isinstance(value, str) and not value else rule(value, *arguments)


def query(value: Any, field: str = "query") -> str:
    """What to recall by: any text that can be encoded."""
    if not isinstance(value, str):
        raise InputError(field, f"must be text, not {type(value).__name__}")
    _text(value, field, MAX_CONTENT_BYTES)
    return value


def embedding(values: Sequence[float]) -> bytes:
    """A vector as bytes. An array of numpy is taken as a whole: a caller may bring a million of them."""
    numpy: Any = sys.modules.get("numpy")  # whoever has an array has imported it
    if numpy is not None and isinstance(values, numpy.ndarray):
        return _packed_array(numpy, values)
    try:
        if isinstance(values, bytes | bytearray):  # a packed vector would be taken for 256 small numbers
            raise TypeError
        blob = pack(values)
    except (TypeError, OverflowError, struct.error):
        raise InputError("embedding", "must be a sequence of numbers that fit float32") from None
    _check_dimensions(len(values))
    # One NaN or infinity makes the sum one, and no float32 values add up to one.
    if not math.isfinite(sum(values)):
        raise InputError("embedding", "must not contain NaN or infinity")
    return blob


def _packed_array(numpy: Any, values: Any) -> bytes:
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        raise InputError("embedding", "must be a sequence of numbers that fit float32")
    _check_dimensions(len(values))
    if not numpy.isfinite(values).all():
        raise InputError("embedding", "must not contain NaN or infinity")
    with numpy.errstate(over="ignore"):  # what does not fit becomes infinite
        packed = values.astype("<f4")
    if not numpy.isfinite(packed).all():
        raise InputError("embedding", "must be a sequence of numbers that fit float32")
    return packed.tobytes()


def _check_dimensions(dimensions: int) -> None:
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise InputError("embedding", f"{dimensions} dimensions are outside 1 to {MAX_DIMENSIONS}")


def count(value: Any, field: str, low: int = 1, high: int = 10_000) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise InputError(field, f"{_shown(value)} must be a whole number from {low:,} to {high:,}")


def flag(value: Any, field: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InputError(field, f"{_shown(value)} must be True or False")


def zone(value: Any) -> tzinfo:
    if isinstance(value, tzinfo):
        return value
    raise InputError("zone", f'{_shown(value)} must be a time zone, such as zoneinfo.ZoneInfo("Europe/Vienna")')


def _text(value: str, field: str, limit: int) -> None:
    if value.isascii():
        size = len(value)
    else:
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            problem = f"has a lone surrogate at character {error.start}; it is not valid text"
            raise InputError(field, problem) from None
    if size > limit:
        raise InputError(field, f"{size:,} bytes is over the limit of {limit:,} bytes")


def _json(value: Any, field: str, limit: int) -> Any:
    try:
        _check_json(value, field, MAX_DEPTH)
        encoded = _encode(value)
    except UnicodeEncodeError:
        raise InputError(field, "has a lone surrogate; it is not valid text") from None
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(field, f"is not JSON: {error}") from None
    if len(encoded) > limit:
        raise InputError(field, f"{len(encoded):,} bytes is over the limit of {limit:,} bytes")
    return msgspec.json.decode(encoded)


def _check_json(value: Any, field: str, depth: int) -> None:
    """A memory must come back as it went; msgspec would write NaN as null, bytes as base64, and any key as text."""
    if depth < 0:
        raise InputError(field, f"is nested deeper than the limit of {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            if not isinstance(key, str):
                raise InputError(field, f"has the key {_shown(key)}; JSON keys are text")
            _check_json(item, field, depth - 1)
    elif isinstance(value, list | tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            _check_json(item, field, depth - 1)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(field, "must not contain NaN or infinity")
    elif value is not None and not isinstance(value, str | int | bool):
        raise InputError(field, f"is not JSON: it holds a {type(value).__name__}")


def sequence(values: Any, field: str) -> Iterable[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(field, f"must be a list, not {type(values).__name__}")
    return values  # pyright: ignore[reportUnknownVariableType]


def _shown(value: Any) -> str:
    """A hostile value may be a megabyte long or full of control characters."""
    plain = isinstance(value, str | float | None) or (isinstance(value, int) and value.bit_length() < 256)
    text = repr(value) if plain else type(value).__name__
    short = text if len(text) <= 48 else f"{text[:44]}…{text[-1]}"
    return shown(value, short) if isinstance(value, str) else short
