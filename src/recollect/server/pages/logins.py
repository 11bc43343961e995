"""How people get in: by the link that was printed, by a password, or by way of another provider."""

from __future__ import annotations

import contextlib
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from recollect.server.access.caller import BusyError, Caller, RefusedLoginError, UnknownCallerError
from recollect.server.pages import site
from recollect.server.problems import status_of
from recollect.server.serving import COOKIE, Serving
from recollect.server.web import Answer, HttpRequest, Refuse, Route
from recollect.values.errors import InputError, RecollectError

if TYPE_CHECKING:
    from recollect.server.access.oidc import OpenId

START = "/login/oidc"
BACK = "/login/oidc/back"
BEGUN = "recollect_oidc"
"""The cookie that a browser carries to the provider's answer. It must survive coming from another site."""
_BEGUN_LASTS = 600
_LASTS = 43_200
_LONGEST = 16_384
"""Bytes of a form with a name and a password: whoever sends it is not known yet."""


def login_routes(oidc: OpenId | None, refuse: Refuse) -> list[Route]:
    """`refuse` shows errors as a page."""
    routes = [
        Route("GET", "/enter", None, _enter, "enter", body="none", refuse=refuse),
        Route("GET", "/login", None, partial(_show_form, oidc), "login", body="none", refuse=refuse),
        Route(
            "POST",
            "/login",
            None,
            partial(_log_in, oidc),
            "login",
            body="form",
            longest=_LONGEST,
            threads="logins",
            refuse=partial(_refuse_login, refuse),
        ),
        Route("POST", "/logout", "reader", _log_out, "logout", body="form", refuse=refuse),
    ]
    if oidc is not None:
        routes += [
            Route("GET", START, None, partial(_begin, oidc), "oidc", body="none", refuse=refuse),
            Route("GET", BACK, None, partial(_come_back, oidc), "oidc back", body="none", refuse=refuse),
        ]
    return routes


def _enter(serving: Serving, caller: None, request: HttpRequest) -> Answer:
    """By the link that was printed."""
    if request.only_head:  # as a mail program looks at a link before it is opened
        return site.redirect_to("/")
    try:
        token = serving.redeem(request.first("ticket"))
    except UnknownCallerError as error:
        return site.refused(None, error)
    return site.redirect_to("/", f"{COOKIE}={token}{serving.cookie_flags}")


def _page(
    oidc: OpenId | None, serving: Serving, target: str, problem: str = "", status: int = 200, **headers: str
) -> Answer:
    """The page to log in at; `target` is the page to go on to."""
    data: dict[str, Any] = {"problem": problem, "single": serving.single, "next": target, "other": None}
    if oidc is not None:
        data["other"] = {"name": oidc.name, "address": f"{START}?{urlencode({'next': target})}"}
    return site.rendered(None, "login.html", "Log in", data, status, **headers)


def _show_form(oidc: OpenId | None, serving: Serving, caller: None, request: HttpRequest) -> Answer:
    with contextlib.suppress(RecollectError):
        serving.identify(request)
        return site.redirect_to("/")
    return _page(oidc, serving, site.ours(request.first("next", "/")))


def _log_in(oidc: OpenId | None, serving: Serving, caller: None, request: HttpRequest) -> Answer:
    origin = urlsplit(request.headers.get("origin", "")).netloc
    elsewhere = request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    if elsewhere or (origin and origin != request.headers.get("host", "")):
        raise InputError("origin", "a page of another site cannot log in here")
    serving.rates.take(f"login:{request.client}")
    target = site.ours(request.field("next", "/"))
    try:
        token, _ = serving.accounts.logins.log_in(request.field("name"), request.field("password"), request.client)
    except UnknownCallerError as error:
        serving.refused(request, "login", error, 401)
        return _page(oidc, serving, target, str(error), 401)
    return site.redirect_to(target, f"{COOKIE}={token}{serving.cookie_flags}; Max-Age={_LASTS}")


def _refuse_login(
    refuse: Refuse, serving: Serving, caller: Caller | None, request: HttpRequest, error: RecollectError
) -> Answer:
    return _busy(str(error)) if isinstance(error, BusyError) else refuse(serving, caller, request, error)


@cache
def _busy(problem: str) -> Answer:
    """Made once: nothing is worked on for a flood of logins."""
    data = {"problem": problem, "single": False, "next": "/", "other": None}
    return site.rendered(None, "login.html", "Log in", data, 503, **{"retry-after": "1"})


def _log_out(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    serving.log_out(request.cookies.get(COOKIE, ""))
    return site.redirect_to("/login", f"{COOKIE}=; Max-Age=0{serving.cookie_flags}")


# By way of a provider


def _back_address(serving: Serving, request: HttpRequest) -> str:
    return f"{'https' if serving.secure else 'http'}://{request.headers.get('host', '')}{BACK}"


def _begun_cookie(serving: Serving, state: str, lasts: int) -> str:
    tls = "; Secure" if serving.secure else ""
    return f"{BEGUN}={state}; HttpOnly; SameSite=Lax; Path={START}; Max-Age={lasts}{tls}"


def _begin(oidc: OpenId, serving: Serving, caller: None, request: HttpRequest) -> Answer:
    serving.rates.take(f"login:{request.client}")
    target = site.ours(request.first("next", "/"))
    try:
        address, state = oidc.begin(_back_address(serving, request), target)
    except RefusedLoginError as error:
        return _refused(oidc, serving, request, "oidc", error)
    return site.redirect_to(address, _begun_cookie(serving, state, _BEGUN_LASTS))


def _come_back(oidc: OpenId, serving: Serving, caller: None, request: HttpRequest) -> Answer:
    serving.rates.take(f"login:{request.client}")
    logins = serving.accounts.logins
    over = _begun_cookie(serving, "", 0)
    try:
        identity, target = oidc.finish(
            request.cookies.get(BEGUN, ""),
            dict(request.query),
            _back_address(serving, request),
            logins.use_state_once,
        )
        token, _ = logins.log_in_by_provider(identity.subject, identity.email)
    except RefusedLoginError as error:
        return _refused(oidc, serving, request, "oidc back", error)._replace(cookies=[over])
    cookie = f"{COOKIE}={token}{serving.cookie_flags}; Max-Age={_LASTS}"
    # Not by a redirect: what began at another site does not bring a cookie that is for ours only.
    answer = site.rendered(None, "entered.html", "Logged in", {"next": site.ours(target)})
    return answer._replace(cookies=[cookie, over])


def _refused(oidc: OpenId, serving: Serving, request: HttpRequest, name: str, error: RefusedLoginError) -> Answer:
    serving.refused(request, f"{name} ({error.why})", error, status_of(error))
    target = site.ours(request.first("next", "/"))
    return _page(oidc, serving, target, str(error), status_of(error))
