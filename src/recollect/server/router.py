"""The routes of the API: one for each operation, and those beside the verbs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recollect.operations import served_operations
from recollect.server import accounts, api, transfers
from recollect.server.access.caller import Caller
from recollect.server.bodies import check_no_query
from recollect.server.serving import Serving
from recollect.server.web import Answer, HttpRequest, Route, Work
from recollect.values.errors import InputError


def _verbs() -> Iterator[Route]:
    for operation in served_operations().values():

        def work(serving: Serving, caller: Caller, request: HttpRequest, operation: Any = operation) -> Answer:
            return api.answer(serving, caller, operation, request)

        threads = "slow" if operation.slow else "workers"
        yield Route(
            operation.method, operation.path, operation.rank, work, operation.name, operation.status, threads=threads
        )


def _strict(work: Work) -> Work:
    """Refuses what the work does not look at: a query, and the condition that something has not changed."""

    def checked(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
        check_no_query(request)
        if request.method != "GET" and request.headers.get("if-match", "*").strip() != "*":
            raise InputError("if-match", "there is nothing to read at this address that it could be the tag of")
        return work(serving, caller, request)

    return checked


_BESIDE_VERBS = (
    Route("GET", "/about", "reader", api.about, "server.about"),
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
ROUTES: tuple[Route, ...] = (*_verbs(), *(route._replace(work=_strict(route.work)) for route in _BESIDE_VERBS))
"""Whoever is of the rank may call it, and nobody else. What is streamed is beside it: export and import."""
FORMER_ROUTES = tuple(
    route._replace(path="/conversations/{id}/idle") for route in ROUTES if route.name == "conversations.end"
)
"""Old addresses of operations that were renamed. They are served, and OpenAPI does not list them."""
EXPORT = Route("GET", "/export", "reader", _strict(transfers.export), "export", body="none", threads="slow")
IMPORT = Route("POST", "/import", "member", transfers.import_, "import", body="file", threads="slow")
