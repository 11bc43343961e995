"""One request, one answer and one table of routes, for the API, the pages, MCP, static files and probes alike."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec

from recollect.operations import Rank
from recollect.remote import wire
from recollect.server.problems import CONTENT_TYPE, MethodError, TooManyError, UnderWayError, problem_of
from recollect.values.errors import NotFoundError, RecollectError

if TYPE_CHECKING:
    from recollect.server.access.caller import Caller
    from recollect.server.serving import Serving

ROOT = "/v1"
"""All paths of the API begin with it."""
JSON = "application/json"
_SMALL = 1024
"""Bytes below which an answer is not compressed."""
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


class Trace:
    """Facts for the metrics and the access log, of which some become known while a request is answered."""

    __slots__ = ("caller", "headers", "path", "route", "tenant")

    def __init__(self, path: str, headers: Mapping[str, str]) -> None:
        self.path, self.headers = path, headers  # the path as it was sent: a name in it may hold a slash
        self.route = "none"  # a path that a client made up must not become a label
        self.caller: Caller | None = None
        self.tenant: str | None = None


class HttpRequest(NamedTuple):
    method: str
    path: str
    """As it was sent, without decoding: a name may hold a slash as `%2F`."""
    parts: Mapping[str, str]
    """The parameters in the path, by name, decoded."""
    query: Sequence[tuple[str, str]]
    headers: Mapping[str, str]
    """By their lower-case names."""
    cookies: Mapping[str, str]
    body: bytes = b""
    client: str = ""
    """The client's IP address."""
    trace: Trace = Trace("", {})
    form: Mapping[str, Sequence[Any]] = {}
    """The fields of a form; a file is an `Upload`."""
    file: IO[bytes] | None = None
    """The body of a route that takes a file."""
    only_head: bool = False
    """Whether nobody reads the content of the answer. Then nothing is used up by giving it."""

    @classmethod
    def from_scope(cls, scope: Any, method: str, parts: Mapping[str, str], trace: Trace) -> HttpRequest:
        headers = trace.headers
        client = scope.get("client") or ("",)
        sent = scope["query_string"].decode("latin-1")
        query = parse_qsl(sent, keep_blank_values=True) if sent else ()
        cookies = _cookies(headers["cookie"]) if "cookie" in headers else {}
        only_head = scope["method"] == "HEAD"
        return cls(method, trace.path, parts, query, headers, cookies, b"", client[0], trace, only_head=only_head)

    @property
    def length(self) -> int:
        """The Content-Length; 0 if there is none."""
        length = self.headers.get("content-length", "")
        return int(length) if length.isascii() and length.isdigit() else 0

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
                try:
                    return float(weight or 1)
                except ValueError:
                    return 1.0
        return 0.0

    def first(self, name: str, default: str = "") -> str:
        return next((value for key, value in self.query if key == name), default)

    def field(self, name: str, default: str = "") -> str:
        """The first value of a field of the form."""
        return str(next(iter(self.form.get(name, ())), default))


def _cookies(header: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in header.split(";"))
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}


class StreamedBody(NamedTuple):
    """An answer that is too long to be held in memory."""

    file: IO[bytes]
    """Closed when all is sent, or the client has left."""
    parts: Iterator[bytes]


class Answer(NamedTuple):
    content: bytes
    status: int = 200
    media_type: str = JSON
    headers: Mapping[str, str] = {}
    ids: Sequence[str] = ()
    """The ids of the memories in the answer."""
    tag: str = ""
    """The ETag, if it is not to be made from the content."""
    cookies: Sequence[str] = ()
    stream: StreamedBody | None = None
    """Sent instead of `content`."""
    application: Asgi | None = None
    """An ASGI application that reads the body and answers instead."""

    def tagged(self, seen_tags: str | None) -> Answer:
        """The answer with an ETag; 304 without content if the client has this version already."""
        tag = self.tag or tag_of(self.content)
        headers = {**self.headers, "etag": tag}
        held = tag if (seen_tags or "").strip() == "*" else matching(seen_tags, tag, weak=True)
        if held is not None:
            return Answer(b"", 304, self.media_type, {**headers, "etag": held})
        return self._replace(headers=headers)

    def packed(self, request: HttpRequest) -> Answer:
        """The answer compressed, if the client accepts gzip. It gets its own ETag, because its bytes differ."""
        vary = self.headers.get("vary")
        headers = {**self.headers, "vary": f"{vary}, accept-encoding" if vary else "accept-encoding"}
        if (self.stream is None and len(self.content) < _SMALL) or not request.takes_gzip:
            return self._replace(headers=headers)
        headers["content-encoding"] = "gzip"
        if "etag" in headers:
            headers["etag"] = _packed_tag(headers["etag"])
        if self.stream is not None:
            stream = self.stream._replace(parts=_gzipped(self.stream.parts))
            return self._replace(stream=stream, headers=headers)
        return self._replace(content=b"".join(_gzipped([self.content])), headers=headers)

    def asgi_headers(self) -> list[tuple[bytes, bytes]]:
        headers = [(b"content-type", self.media_type.encode())]
        if self.stream is None and self.status != 304:  # which has no body
            headers.append((b"content-length", b"%d" % len(self.content)))
        headers += [(name.encode(), value.encode()) for name, value in self.headers.items()]
        return headers + [(b"set-cookie", cookie.encode()) for cookie in self.cookies]


def _gzipped(parts: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(4, wbits=31)
    for part in parts:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()


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


def refusal(error: RecollectError) -> Answer:
    """An error as `application/problem+json`."""
    problem = problem_of(error)
    headers = {"www-authenticate": "Bearer"} if problem.status == 401 else {}
    if problem.status in (429, 503) or isinstance(error, UnderWayError):
        headers["retry-after"] = str(max(1, round(error.seconds)) if isinstance(error, TooManyError) else 1)
    if isinstance(error, MethodError):
        headers["allow"] = error.allowed
    return Answer(msgspec.json.encode(problem), problem.status, CONTENT_TYPE, headers)


def stopping() -> Answer:
    problem = wire.Problem("UnavailableError", 503, "the server is stopping; whether this was done is not known")
    return Answer(msgspec.json.encode(problem), 503, CONTENT_TYPE, {"retry-after": "1"})


def failure() -> Answer:
    problem = wire.Problem("StoreError", 500, "something went wrong here; it is in the server's log")
    return Answer(msgspec.json.encode(problem), 500, CONTENT_TYPE)


Work = Callable[["Serving", Any, HttpRequest], Answer]
"""Answers a request. The second argument is its Caller, or None where the route has no rank."""
Refuse = Callable[["Serving", "Caller | None", HttpRequest, RecollectError], Answer]


class Route(NamedTuple):
    method: str
    path: str
    """Of the API, below `/v1`. `{name}` stands for one part of it."""
    rank: Rank | None
    """The least rank of the caller. None: for everybody, and nobody is identified."""
    work: Work
    name: str
    """The name of the operation, for the audit log and the spans."""
    status: int = 200
    """Of its answer, where it is not refused."""
    body: Literal["bytes", "form", "file", "none"] = "bytes"
    """How its body is read. What goes into a `file` may be longer."""
    longest: int | None = None
    """Bytes of its body; None for as many as any request may have."""
    threads: Literal["workers", "logins", "slow", "none"] = "workers"
    """Where it runs. `slow` is for what looks at a whole store; `none` is for what answers at once and must do so while
    all threads are busy."""
    keys_only: bool = False
    """Whether a browser's cookie does not count."""
    refuse: Refuse | None = None
    """Makes the answer to an error; None for problem+json."""


class _Node:
    """The routes at one path, and below it by the next part. `{}` is for any part."""

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.routes: dict[str, tuple[Route, Sequence[tuple[int, str]]]] = {}
        """By method, with the names of the parameters and which part of the path they are."""

    def find(self, parts: Sequence[str], at: int = 0) -> _Node | None:
        """The node of the parts from `at` on. Literal parts go before parameters."""
        if at == len(parts):
            return self if self.routes else None
        for name in (parts[at], "{}"):
            node = self.below.get(name)
            if node is not None and (end := node.find(parts, at + 1)) is not None:
                return end
        return None


class Routes:
    """Finds routes by their raw path: it is taken apart before it is decoded, because a name may hold a slash."""

    def __init__(self, routes: Iterable[Route], api: Sequence[Route] = ()) -> None:
        """`api` are those below `/v1`."""
        self._root = _Node()
        self._hint = f"; {ROOT}/openapi.json lists what there is" if api else ""
        for prefix, listed in (("", routes), (ROOT, api)):
            for route in listed:
                node, parts = self._root, (prefix + route.path).split("/")
                for part in parts:
                    node = node.below.setdefault("{}" if part.startswith("{") else part, _Node())
                names = [(at, part[1:-1]) for at, part in enumerate(parts) if part.startswith("{")]
                node.routes[route.method] = route, names

    def match(self, method: str, trace: Trace) -> tuple[Route, Mapping[str, str]]:
        """The route of a request, and the parameters in its path. NotFoundError or MethodError if there is none."""
        parts = trace.path.rstrip("/").split("/") if trace.path != "/" else ["", ""]
        node = self._root.find(parts)
        if node is None:
            raise NotFoundError(f"there is nothing at this address{self._hint}")
        trace.route = next(iter(node.routes.values()))[0].path
        if method not in node.routes:
            raise MethodError(method, list(node.routes))
        route, names = node.routes[method]
        return route, {name: unquote(parts[at]) for at, name in names}
