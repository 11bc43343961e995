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
"""Bytes below which an answer is not compressed."""


class HttpRequest(NamedTuple):
    method: str
    path: str
    parts: Mapping[str, str]
    """The parameters in the path, by name."""
    query: Sequence[tuple[str, str]]
    headers: Mapping[str, str]
    """By their lower-case names."""
    cookies: Mapping[str, str]
    body: bytes = b""
    client: str = ""
    """The client's IP address."""
    trace: Trace = Trace()
    """What the access log says of it."""

    @property
    def takes_gzip(self) -> bool:
        return self._weight("accept-encoding", "gzip") > 0

    def prefers(self, wanted: str, other: str) -> bool:
        """Whether the client prefers one content type to the other."""
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
    """The ids of the memories in the answer."""
    tag: str = ""
    """The ETag, if it is not to be made from the content."""

    def tagged(self, seen_tags: str | None) -> Answer:
        """The answer with an ETag; 304 without content if the client has this version already."""
        tag = self.tag or tag_of(self.content)
        headers = {**self.headers, "etag": tag}
        if (held := matching(seen_tags, tag, weak=True)) is not None:
            return Answer(b"", 304, self.media_type, {**headers, "etag": held})
        return self._replace(headers=headers)

    def packed(self, request: HttpRequest) -> Answer:
        """The answer compressed, if the client accepts gzip. It gets its own ETag, because its bytes differ."""
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
    """The tag of a header that matches this ETag, compressed or not. `weak` accepts weak tags, too."""
    for listed in (header or "").split(","):
        if (listed.strip().removeprefix("W/") if weak else listed.strip()) in (tag, _packed_tag(tag)):
            return listed.strip().removeprefix("W/")
    return None


def tag_of(content: bytes) -> str:
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(msgspec.json.encode(value), status, JSON, headers)
