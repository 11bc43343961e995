"""An HTTP request and its answer, independent of the web framework."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from recollect.server.counting import Trace

JSON = "application/json"
_SMALL = 1024
"""Bytes that are not worth packing."""


class HttpRequest(NamedTuple):
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
    trace: Trace = Trace()
    """What the access log says of it."""

    @property
    def takes_gzip(self) -> bool:
        return self._weight("accept-encoding", "gzip") > 0

    def prefers(self, wanted: str, other: str) -> bool:
        """Whether it wants one kind of content and not rather the other."""
        return self._weight("accept", wanted) > self._weight("accept", other)

    def _weight(self, header: str, name: str) -> float:
        for part in self.headers.get(header, "").lower().replace(" ", "").split(","):
            offered, _, weight = part.partition(";q=")
            if offered == name:
                return float(weight) if weight.replace(".", "", 1).isdigit() else 1.0
        return 0.0

    def first(self, name: str, default: str = "") -> str:
        return next((value for key, value in self.query if key == name), default)


class Answer(NamedTuple):
    content: bytes
    status: int = 200
    media_type: str = JSON
    headers: Mapping[str, str] = {}
    ids: Sequence[str] = ()
    """Of the memories that it tells of."""
    tag: str = ""
    """What tells it from its other versions, where that is not its content."""

    def tagged(self, seen_tags: str | None) -> Answer:
        """With a tag; without the content for whoever has it already."""
        tag = self.tag or tag_of(self.content)
        headers = {**self.headers, "etag": tag}
        if (held := matching(seen_tags, tag, weak=True)) is not None:
            return Answer(b"", 304, self.media_type, {**headers, "etag": held})
        return self._replace(headers=headers)

    def packed(self, request: HttpRequest) -> Answer:
        """Smaller, for whoever can unpack it: other bytes, and so another tag. A cache must tell the two apart."""
        headers = {**self.headers, "vary": "accept-encoding"}
        if len(self.content) < _SMALL or not request.takes_gzip:
            return self._replace(headers=headers)
        headers["content-encoding"] = "gzip"
        if "etag" in headers:
            headers["etag"] = _packed_tag(headers["etag"])
        return self._replace(content=gzip.compress(self.content, 4, mtime=0), headers=headers)


def _packed_tag(tag: str) -> str:
    return f'{tag[:-1]}-gzip"'


def matching(header: str | None, tag: str, *, weak: bool = False) -> str | None:
    """The one of the tags in a header that stands for this content, packed or not. `weak` takes weak tags as well."""
    for listed in (header or "").split(","):
        if (listed.strip().removeprefix("W/") if weak else listed.strip()) in (tag, _packed_tag(tag)):
            return listed.strip().removeprefix("W/")
    return None


def tag_of(content: bytes) -> str:
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(msgspec.json.encode(value), status, JSON, headers)
