"""A request and its answer, apart from whatever carries them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

JSON = "application/json"
_SMALL = 1024
"""Bytes that are not worth packing."""


class Asked(NamedTuple):
    method: str
    path: str
    parts: Mapping[str, str]
    """What stands in the path for the names in it."""
    query: Sequence[tuple[str, str]]
    headers: Mapping[str, str]
    """By their names in small letters."""
    cookies: Mapping[str, str]
    body: bytes = b""
    client: str = ""
    """Where it comes from."""

    @property
    def takes_gzip(self) -> bool:
        offered = (one.replace(" ", "").partition(";q=") for one in self.headers.get("accept-encoding", "").split(","))
        return any(name == "gzip" and weight not in ("0", "0.0", "0.00", "0.000") for name, _, weight in offered)

    def first(self, name: str, default: str = "") -> str:
        return next((value for key, value in self.query if key == name), default)


class Answer(NamedTuple):
    content: bytes
    status: int = 200
    media_type: str = JSON
    headers: Mapping[str, str] = {}
    ids: Sequence[str] = ()
    """Of the memories that it tells of."""

    def tagged(self, given: str | None) -> Answer:
        """With a tag of its content; without the content for whoever has it already."""
        tag = tag_of(self.content)
        headers = {**self.headers, "etag": tag}
        if given and tag in [one.strip().removeprefix("W/") for one in given.split(",")]:
            return Answer(b"", 304, self.media_type, headers)
        return self._replace(headers=headers)

    def packed(self, asked: Asked) -> Answer:
        """Smaller, for whoever can unpack it."""
        if len(self.content) < _SMALL or not asked.takes_gzip:
            return self
        headers = {**self.headers, "content-encoding": "gzip", "vary": "accept-encoding"}
        return self._replace(content=gzip.compress(self.content, 4, mtime=0), headers=headers)


def tag_of(content: bytes) -> str:
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(msgspec.json.encode(value), status, JSON, headers)
