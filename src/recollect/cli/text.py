"""How values look to people: short ids, relative times, safe text. Pure functions."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import msgspec

from recollect.values.record import Record

SHORT = 8

_UNITS = ("KiB", "MiB", "GiB", "TiB")

_BIDI = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROL = tuple(code for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t")
_UNSAFE = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in (*_CONTROL, *_BIDI)}
_UNSAFE_IN_JSON = {code: f"\\u{code:04x}" for code in _UNSAFE if code >= 0x7F}


def short(ident: str) -> str:
    """The end of an id, which is random where its beginning is the time. Every command takes it."""
    return ident[-SHORT:]


def printable(text: str) -> str:
    """Text that cannot drive the terminal: control and direction characters are shown, not sent."""
    return text.replace("\r\n", "\n").translate(_UNSAFE)


def json_of(document: Any) -> bytes:
    """A document as JSON, also if a name in it is not UTF-8, as a file's may be."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(document)).encode()


def printable_json(data: bytes) -> bytes:
    """The same document: JSON escapes most of these characters, but not all."""
    return data.decode().translate(_UNSAFE_IN_JSON).encode()


def one_line(text: str, limit: int | None = None) -> str:
    line = printable(" ".join(text.split()))
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def tags(record: Record) -> str:
    return " ".join(f"#{tag}" for tag in record.tags)


def count(number: int, noun: str = "memory", many: str = "memories") -> str:
    return f"{number:,} {noun if number == 1 else many}"


def ago(when: datetime, now: datetime) -> str:
    """`5 min ago`, `in 3 days`; from two weeks on the date."""
    seconds = (now - when).total_seconds()
    amount = _amount(abs(seconds))
    if amount is None:
        return f"{when:%Y-%m-%d}"
    if not amount:
        return "just now"
    return f"{amount} ago" if seconds > 0 else f"in {amount}"


def _amount(seconds: float) -> str | None:
    if seconds < 45:
        return ""
    if seconds < 3600:
        return f"{max(round(seconds / 60), 1)} min"
    if seconds < 86_400:
        return f"{round(seconds / 3600)} h"
    days = round(seconds / 86_400)
    return count(days, "day", "days") if days < 14 else None


def moment(when: datetime, now: datetime) -> str:
    """The exact time and, where it says more, how long ago that is."""
    exact = f"{when:%Y-%m-%d %H:%M:%S} UTC"
    return exact if _amount(abs((now - when).total_seconds())) is None else f"{exact} ({ago(when, now)})"


def span(since: datetime | None, until: datetime | None) -> str:
    """The days of what may be open at both ends."""
    parts = [f"{word} {when:%Y-%m-%d}" for word, when in (("from", since), ("until", until)) if when is not None]
    return " ".join(parts)


def size(number: int) -> str:
    if number < 1024:
        return count(number, "byte", "bytes")
    step = min((number.bit_length() - 1) // 10, len(_UNITS))
    return f"{number / 1024**step:.1f} {_UNITS[step - 1]}"
