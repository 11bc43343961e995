"""How pages are reached: logging in, looking, sending a form, and the files that belong to them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from litestar import Request, Response, get, route
from litestar.types import ControllerRouterHandler

from recollect.server.access.caller import BusyError, Caller, UnknownCallerError
from recollect.server.http import body_of, guarded, request_from, response
from recollect.server.pages import all_pages, site
from recollect.server.pages.oidc import login_page, routes
from recollect.server.requests import Answer, HttpRequest
from recollect.server.serving import COOKIE, FORM, Serving
from recollect.values.errors import InputError, NotFoundError, RecollectError

if TYPE_CHECKING:
    from recollect.server.access.oidc import OpenId

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FIELDS = 10_000
Form = Mapping[str, Sequence[Any]]
_FOREVER = "public, max-age=31536000, immutable"


def handlers(serving: Serving, *, oidc: OpenId | None = None) -> list[ControllerRouterHandler]:
    """`oidc` is a provider through which people can log in as well."""
    all_pages()
    flags = serving.cookie_flags

    @get("/static/{name:str}", include_in_schema=False)
    async def file(request: Request[Any, Any, Any]) -> Response[bytes]:
        path = site.FOLDER / "static" / request.path_params["name"]
        if path.suffix not in _TYPES or path.parent != site.FOLDER / "static" or not path.is_file():
            return response(Answer(b"", 404))
        http_request, headers = request_from(request.scope), {"cache-control": _FOREVER}
        http_request.trace.route = "/static"

        def read() -> Answer:
            return Answer(path.read_bytes(), 200, _TYPES[path.suffix], headers).packed(http_request)

        return response(await serving.in_thread(read))

    @get("/enter", include_in_schema=False)
    async def enter(request: Request[Any, Any, Any]) -> Response[bytes]:
        """By the link that was printed."""
        http_request = request_from(request.scope)

        def run() -> Answer:
            try:
                token = serving.redeem(http_request.first("ticket"))
            except UnknownCallerError as error:
                return site.refused(None, http_request, error)
            return Answer(b"", 303, site.HTML, {"location": "/", "set-cookie": f"{COOKIE}={token}{flags}"})

        return response(await guarded(serving, http_request, "enter", run))

    @route("/login", http_method=["GET", "POST"], include_in_schema=False, status_code=200)
    async def login(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await _answering(
            request,
            serving,
            lambda http_request, form: _login(serving, http_request, form, flags, oidc),
            "login",
            login=True,
        )

    @route("/logout", http_method=["POST"], include_in_schema=False, status_code=200)
    async def logout(request: Request[Any, Any, Any]) -> Response[bytes]:
        def run(http_request: HttpRequest, form: Form) -> Answer:
            serving.identify(_proven(http_request, form))
            serving.log_out(http_request.cookies.get(COOKIE, ""))
            return Answer(b"", 303, site.HTML, {"location": "/login", "set-cookie": f"{COOKIE}=; Max-Age=0{flags}"})

        return await _answering(request, serving, run, "logout")

    @route(["/", "/{rest:path}"], http_method=["GET", "POST"], include_in_schema=False, status_code=200)
    async def anything(request: Request[Any, Any, Any]) -> Response[bytes]:
        path = request.scope["path"]
        page_path = next((page.path for page in site.PAGES if page.path == path), "page")
        return await _answering(
            request, serving, lambda http_request, form: _answer(serving, http_request, form), page_path
        )

    others = routes(serving, oidc) if oidc else []
    return [file, enter, login, logout, *others, anything]


async def _answering(
    request: Request[Any, Any, Any],
    serving: Serving,
    work: Callable[[HttpRequest, Form], Answer],
    name: str,
    login: bool = False,
) -> Response[bytes]:
    """What was sent is read, and worked on in a thread. A form with a password is a `login`."""
    try:
        http_request, form = await _sent(request, serving)
    except RecollectError as error:
        return response(site.refused(None, request_from(request.scope), error))
    checks = login and http_request.method == "POST"
    try:
        return response(await guarded(serving, http_request, name, lambda: work(http_request, form), login=checks))
    except BusyError as error:
        return response(_busy(str(error)))


@cache
def _busy(problem: str) -> Answer:
    """Made once: nothing is worked on for a flood of logins."""
    answer = site.rendered(
        None, "login.html", "Log in", {"problem": problem, "single": False, "next": "/", "other": None}, 503
    )
    return answer._replace(headers={**answer.headers, "retry-after": "1"})


async def _sent(request: Request[Any, Any, Any], serving: Serving) -> tuple[HttpRequest, Form]:
    raw = request.scope["raw_path"].decode("latin-1")
    if request.method != "POST":
        return request_from(request.scope)._replace(path=raw), {}
    kind = request.headers.get("content-type", "")
    if kind.startswith("multipart/form-data"):
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > serving.limits.body:
            raise InputError("file", f"must have at most {serving.limits.body:,} bytes")
        try:
            async with asyncio.timeout(serving.limits.seconds):
                data = await request.form()
        except TimeoutError:
            raise InputError("file", f"did not arrive within {serving.limits.seconds:g} s") from None
        form: dict[str, list[Any]] = {}
        for name, value in data.multi_items():
            if hasattr(value, "filename"):
                content = await value.read()
                value = Upload(value.filename, content)
            form.setdefault(name, []).append(value)
        return request_from(request.scope)._replace(path=raw), form
    body = await body_of(request.scope, request.receive, serving.limits.body, serving.limits.seconds)
    if body.count(b"&") >= _FIELDS:
        raise InputError("form", f"must have at most {_FIELDS:,} fields")
    return request_from(request.scope)._replace(path=raw), parse_qs(
        body.decode("utf-8", "replace"), keep_blank_values=True
    )


class Upload:
    def __init__(self, filename: str, content: bytes) -> None:
        self.filename, self.content = filename, content


def _proven(request: HttpRequest, form: Form) -> HttpRequest:
    """A form proves by a field what a program proves by a header."""
    return request._replace(headers={**request.headers, FORM: str(next(iter(form.get("form", ())), ""))})


def _answer(serving: Serving, request: HttpRequest, form: Form) -> Answer:
    visit: site.Visit | None = None
    entry: Any = None
    try:
        caller = serving.identify(_proven(request, form) if request.method == "POST" else request)
        entries = site.PAGES if request.method == "GET" else site.ACTIONS
        visit = site.Visit(serving, caller, request, form)
        entry, parts = site.match_path(entries, request.path)
        visit = site.Visit(serving, caller, request._replace(parts=parts), form)
        caller.check(entry.rank, entry.path)
        return site.shown(visit, entry) if request.method == "GET" else site.redirect(visit, entry.run(visit))
    except UnknownCallerError:
        if site.wants_json(request):
            raise
        here = request.path + (f"?{urlencode(request.query)}" if request.query and request.method == "GET" else "")
        return Answer(b"", 303, site.HTML, {"location": f"/login?next={quote(here, safe='/')}"})
    except RecollectError as error:
        answer = _refused(visit, entry, request, error)
        serving.refused(request, "page", error, answer.status)
        return answer


def _refused(visit: site.Visit | None, entry: Any, request: HttpRequest, error: RecollectError) -> Answer:
    if visit is not None and isinstance(entry, site.Action) and entry.again and not site.wants_json(request):
        with contextlib.suppress(RecollectError):  # of the page: then there is no form to show it beside
            return site.refused_form(visit, entry, error)
    return site.refused(visit, request, error)


def _login(serving: Serving, request: HttpRequest, form: Form, flags: str, oidc: OpenId | None) -> Answer:
    if request.method == "GET":
        with contextlib.suppress(RecollectError):
            serving.identify(request)
            return Answer(b"", 303, site.HTML, {"location": "/"})
        return login_page(serving, request, oidc)
    name, password = (str(next(iter(form.get(field, ())), "")) for field in ("name", "password"))
    origin = urlsplit(request.headers.get("origin", "")).netloc
    elsewhere = request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    if elsewhere or (origin and origin != request.headers.get("host", "")):
        raise InputError("origin", "a page of another site cannot log in here")
    serving.rates.take(f"login:{request.client}")
    target = site.ours(str(next(iter(form.get("next", ())), "/")))
    try:
        token, _ = serving.vault.log_in(name, password, request.client)
    except UnknownCallerError as error:
        serving.refused(request, "login", error, 401)
        return login_page(serving, request._replace(query=[("next", target)]), oidc, str(error), 401)
    return Answer(b"", 303, site.HTML, {"location": target, "set-cookie": f"{COOKIE}={token}{flags}; Max-Age=43200"})


__all__ = ["Caller", "NotFoundError", "handlers"]
