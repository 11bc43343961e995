"""A request and its answer, apart from whatever carries them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

JSON = "application/json"


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


def tag_of(content: bytes) -> str:
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(msgspec.json.encode(value), status, JSON, headers)
