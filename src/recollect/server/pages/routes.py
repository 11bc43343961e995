"""The routes of the pages, of their forms, and of the files that belong to them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from recollect.server.access.caller import Caller, ForgedFormError, UnknownCallerError
from recollect.server.pages import all_pages, site
from recollect.server.pages.logins import login_routes
from recollect.server.pages.site import Action, Page, Visit
from recollect.server.serving import Serving
from recollect.server.web import Answer, HttpRequest, Route
from recollect.values.errors import NotFoundError, RecollectError

if TYPE_CHECKING:
    from recollect.server.access.oidc import OpenId

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}


def page_routes(oidc: OpenId | None = None) -> list[Route]:
    """`oidc` is a provider through which people can log in as well."""
    all_pages()
    return [
        *(
            Route("GET", page.path, page.rank, partial(_show, page), "page", body="none", refuse=refuse)
            for page in site.PAGES
        ),
        *(
            Route("POST", form.path, form.rank, partial(_act, form), "page", body="form", refuse=partial(_again, form))
            for form in site.ACTIONS
        ),
        *login_routes(oidc, refuse),
        Route("GET", "/static/{name}", None, _file, "static", body="none"),
    ]


def _no_such_page(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    raise NotFoundError("there is no such page")


def _show(page: Page, serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    visit = Visit(serving, caller, request)
    data = page.load(visit)
    return data if isinstance(data, Answer) else site.rendered(visit, page.template, page.title, data)


def _act(form: Action, serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    visit = Visit(serving, caller, request)
    return site.redirect(visit, form.run(visit))


def refuse(serving: Serving, caller: Caller | None, request: HttpRequest, error: RecollectError) -> Answer:
    """A page that says why, or the page to log in at, which leads back."""
    if isinstance(error, UnknownCallerError):
        query = f"?{urlencode(request.query)}" if request.query else ""
        return _to_login(request.path + query)
    return site.refused(Visit(serving, caller, request) if caller else None, error)


def _to_login(back: str) -> Answer:
    return site.redirect_to(f"/login?next={quote(back, safe='/')}")


def _again(
    form: Action, serving: Serving, caller: Caller | None, request: HttpRequest, error: RecollectError
) -> Answer:
    """The page of a refused form once more, where it has one. Never with what another site has typed into it."""
    if isinstance(error, UnknownCallerError):  # a login leads to a page, and not to where its form is sent
        parts = {name: quote(value, safe="") for name, value in request.parts.items()}
        return _to_login(form.again.format(**parts) or "/")
    if caller is not None and form.again and not isinstance(error, ForgedFormError):
        with contextlib.suppress(RecollectError):  # of the page: then there is no form to show it beside
            return site.refused_form(Visit(serving, caller, request), form, error)
    return refuse(serving, caller, request, error)


MISSING = Route("GET", "", "reader", _no_such_page, "page", body="none", refuse=refuse)
"""Answers paths that no page has, to whoever is logged in."""


def _file(serving: Serving, caller: None, request: HttpRequest) -> Answer:
    if (answer := _files().get(request.parts["name"])) is None:
        raise NotFoundError("there is no such file")
    return answer


@cache
def _files() -> Mapping[str, Answer]:
    folder = site.FOLDER / "static"
    return {
        path.name: Answer(path.read_bytes(), 200, _TYPES[path.suffix], _FOREVER)
        for path in folder.iterdir()
        if path.suffix in _TYPES
    }
