"""The page to log in at, and the way by another provider: there by a link, and back with what it vouches for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from litestar import Request, Response, get
from litestar.types import ControllerRouterHandler

from recollect.server.access.caller import RefusedLoginError
from recollect.server.http import guarded, request_from, response
from recollect.server.pages import site
from recollect.server.problems import status_of
from recollect.server.requests import Answer, HttpRequest
from recollect.server.serving import COOKIE, Serving

if TYPE_CHECKING:
    from recollect.server.access.oidc import OpenId

START = "/login/oidc"
BACK = "/login/oidc/back"
BEGUN = "recollect_oidc"
"""The cookie that a browser carries to the provider's answer. It must survive coming from another site."""
_LASTS = 600


def login_page(
    serving: Serving, request: HttpRequest, oidc: OpenId | None, problem: str = "", status: int = 200
) -> Answer:
    target = site.ours(request.first("next", "/"))
    data: dict[str, Any] = {"problem": problem, "single": serving.single, "next": target, "other": None}
    if oidc is not None:
        data["other"] = {"name": oidc.name, "address": f"{START}?{urlencode({'next': target})}"}
    return site.rendered(None, "login.html", "Log in", data, status)


def routes(serving: Serving, oidc: OpenId) -> list[ControllerRouterHandler]:
    tls = "; Secure" if serving.secure else ""

    def back(http_request: HttpRequest) -> str:
        return f"{'https' if serving.secure else 'http'}://{http_request.headers.get('host', '')}{BACK}"

    def begun(http_request: HttpRequest) -> Answer:
        serving.rates.take(f"login:{http_request.client}")
        address, state = oidc.begin(back(http_request), site.ours(http_request.first("next", "/")))
        cookie = f"{BEGUN}={state}; HttpOnly; SameSite=Lax; Path={START}; Max-Age={_LASTS}{tls}"
        return Answer(b"", 303, site.HTML, {"location": address, "set-cookie": cookie})

    def ended(http_request: HttpRequest) -> Answer:
        serving.rates.take(f"login:{http_request.client}")
        identity, target = oidc.finish(
            http_request.cookies.get(BEGUN, ""), dict(http_request.query), back(http_request), serving.vault.first_time
        )
        token, _ = serving.vault.log_in_by(identity.subject, identity.email)
        cookie = f"{COOKIE}={token}{serving.cookie_flags}; Max-Age=43200"
        # Not by a redirect: what began at another site does not bring a cookie that is for ours only.
        answer = site.rendered(None, "entered.html", "Logged in", {"next": site.ours(target)})
        return answer._replace(headers={**answer.headers, "set-cookie": cookie})

    def tried(http_request: HttpRequest, name: str, run: Any) -> Answer:
        try:
            return run(http_request)
        except RefusedLoginError as error:
            serving.refused(http_request, f"{name} ({error.why})", error, status_of(error))
            return login_page(serving, http_request, oidc, str(error), status_of(error))

    @get(START, include_in_schema=False)
    async def start(request: Request[Any, Any, Any]) -> Response[bytes]:
        http_request = request_from(request.scope)
        return response(await guarded(serving, http_request, "oidc", lambda: tried(http_request, "oidc", begun)))

    @get(BACK, include_in_schema=False)
    async def end(request: Request[Any, Any, Any]) -> Response[bytes]:
        http_request = request_from(request.scope)
        made = response(
            await guarded(serving, http_request, "oidc back", lambda: tried(http_request, "oidc back", ended))
        )
        made.delete_cookie(BEGUN, path=START)
        return made

    return [start, end]
