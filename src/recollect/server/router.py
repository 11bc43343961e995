"""Which call a request is for. Paths are taken apart before they are decoded: a name may hold a slash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from recollect.remote.operations import OPERATIONS, Rank
from recollect.server import accounts, api
from recollect.server.access.caller import Caller
from recollect.server.requests import Answer, HttpRequest
from recollect.server.serving import Serving
from recollect.values.errors import NotFoundError

Work = Callable[[Serving, Caller, HttpRequest], Answer]


class Route(NamedTuple):
    method: str
    path: str
    """Below `/v1`."""
    rank: Rank
    work: Work
    name: str
    """The name of the operation."""
    status: int = 200
    """Of its answer, where it is not refused."""


def _verbs() -> Iterator[Route]:
    for operation in OPERATIONS.values():

        def work(serving: Serving, caller: Caller, request: HttpRequest, operation: Any = operation) -> Answer:
            return api.answer(serving, caller, operation, request)

        yield Route(operation.method, operation.path, operation.rank, work, operation.name, operation.status)


ROUTES: tuple[Route, ...] = (
    *_verbs(),
    Route("GET", "/about", "reader", api.about, "about"),
    Route("GET", "/tools", "reader", api.list_tools, "tools"),
    Route("POST", "/tools/{name}", "reader", api.call_tool, "tools.call"),
    Route("GET", "/keys", "admin", accounts.list_keys, "keys.list"),
    Route("POST", "/keys", "admin", accounts.create_key, "keys.create", 201),
    Route("POST", "/keys/{id}/rotate", "admin", accounts.rotate_key, "keys.rotate"),
    Route("DELETE", "/keys/{id}", "admin", accounts.revoke_key, "keys.revoke"),
    Route("GET", "/people", "admin", accounts.list_people, "people.list"),
    Route("POST", "/people", "admin", accounts.add_person, "people.add", 201),
    Route("PUT", "/people/{name}/password", "reader", accounts.set_password, "people.password"),
    Route("DELETE", "/people/{name}", "admin", accounts.remove_person, "people.remove"),
)
"""Whoever is of the rank may call it, and nobody else. What is streamed is beside it: export and import."""


def _streamed(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    raise AssertionError("export and import are answered by the application itself")


EXPORT = Route("GET", "/export", "reader", _streamed, "export")
IMPORT = Route("POST", "/import", "member", _streamed, "import")


class MethodError(NotFoundError):
    """There is something at this address, and not by this method."""

    def __init__(self, method: str, allowed: list[str]) -> None:
        self.allowed = ", ".join(dict.fromkeys(allowed))
        super().__init__(f"{method} is not possible here; {self.allowed} is")


def match(method: str, path: str) -> tuple[Route, Mapping[str, str]]:
    """The route of a request, and the parameters in its path. NotFoundError or MethodError if there is none."""
    if (exact := _EXACT.get((method, path))) is not None:
        return exact, {}
    parts = path.strip("/").split("/")
    candidates = [
        (route, wanted)
        for route, wanted in _SPLIT
        if len(wanted) == len(parts) and all(w == p or w.startswith("{") for w, p in zip(wanted, parts, strict=True))
    ]
    if not candidates:
        raise NotFoundError("there is nothing at this address; /v1/openapi.json lists what there is")
    here = [route for route, wanted in candidates if wanted == candidates[0][1]]
    for route in here:
        if route.method == method:
            pairs = zip(candidates[0][1], parts, strict=True)
            return route, {w[1:-1]: unquote(p) for w, p in pairs if w.startswith("{")}
    raise MethodError(method, [route.method for route in here])


_EXACT = {(route.method, route.path): route for route in (*ROUTES, EXPORT, IMPORT) if "{" not in route.path}
# Literal paths go before those with parameters.
_SPLIT = sorted(
    ((route, route.path.strip("/").split("/")) for route in (*ROUTES, EXPORT, IMPORT)),
    key=lambda pair: [part.startswith("{") for part in pair[1]],
)
