"""Logging in through another provider: what is believed, what is not, and where it leads."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey
from support import plain
from support.browser import launched, need_browser
from support.provider import CLIENT, SECRET, FakeProvider, provided
from support.served import PLENTY, Served, listening

from recollect import AccessError, InputError, Memory
from recollect.server.access import oidc
from recollect.server.access.caller import UnknownCallerError
from recollect.server.access.oidc import OpenId, Provider
from recollect.server.running import built
from recollect.server.serving import Serving


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with provided() as fake:
        yield fake


@pytest.fixture
def site(memory: Memory, provider: FakeProvider) -> Iterator[Served]:
    serving = Serving(memory, limits=PLENTY)
    serving.accounts.people.add("ada@example.org", None, "admin", tenant="acme")
    through = OpenId(Provider(provider.issuer, CLIENT, SECRET, "Example & Co"), seconds=5)
    with listening(built(serving, oidc=through)) as url:
        yield Served(serving, url)


class Browser:
    """Keeps cookies as a browser does, and follows nothing by itself."""

    def __init__(self, site: Served) -> None:
        self.site = site
        self.client = plain.Client(base_url=site.url, follow_redirects=False)

    def there(self, target: str = "/memories") -> str:
        """To the provider and back: the address that its answer leads to."""
        begun = self.client.get("/login/oidc", params={"next": target})
        assert begun.status_code == 303, begun.text
        answer = plain.get(begun.headers["location"])
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def log_in(self, target: str = "/memories") -> httpx.Response:
        return self.client.get(self.there(target))

    def logged_in(self) -> bool:
        return self.client.get("/memories").status_code == 200


@pytest.fixture
def another(site: Served) -> Iterator[Callable[[], Browser]]:
    made: list[Browser] = []

    def new() -> Browser:
        made.append(Browser(site))
        return made[-1]

    yield new
    for one in made:
        one.client.close()


@pytest.fixture
def browser(another: Callable[[], Browser]) -> Browser:
    return another()


def logged(site: Served) -> list[str]:
    return [entry.message for entry in site.serving.accounts.entries() if entry.action == "refuse"]


def test_somebody_who_was_added_comes_in(site: Served, browser: Browser, provider: FakeProvider) -> None:
    page = browser.client.get("/login", params={"next": "/lab?q=tea&limit=5"}).text
    link = re.search(r'href="(/login/oidc[^"]*)">Example &amp; Co<', page)
    assert link
    assert not browser.logged_in()
    answer = browser.log_in("/lab?q=tea&limit=5")
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/lab?q=tea&amp;limit=5">' in answer.text
    assert browser.logged_in()
    me = plain.get(f"{site.url}/v1/about", cookies={"recollect": browser.client.cookies["recollect"]}).json()
    assert "admin" in str(me)
    assert site.serving.accounts.people.get("ada@example.org").last_login is not None
    assert "openid" in provider.authorized["scope"]


def test_the_cookies_are_kept_from_scripts_and_from_other_sites(browser: Browser) -> None:
    begun = browser.client.get("/login/oidc")
    kept = SimpleCookie(begun.headers["set-cookie"])["recollect_oidc"]
    assert (kept["httponly"], kept["samesite"], kept["path"]) == (True, "Lax", "/login/oidc")
    assert 0 < int(kept["max-age"]) <= 600
    back = plain.get(begun.headers["location"]).headers["location"]
    ended = browser.client.get(back)
    found = {name: one for line in ended.headers.get_list("set-cookie") for name, one in SimpleCookie(line).items()}
    assert (found["recollect"]["httponly"], found["recollect"]["samesite"]) == (True, "Strict")
    assert found["recollect_oidc"]["max-age"] == "0"
    assert "recollect_oidc" not in browser.client.cookies


def lies(provider: FakeProvider, how: str) -> None:
    other = RSAKey.generate_key(2048, parameters={"kid": "one", "use": "sig"})
    hour = int(time.time()) - 3600
    changes: dict[str, Any] = {
        "another nonce": {"claims": {"nonce": "x" * 32}},
        "no nonce": {"claims": {"nonce": None}},
        "for another client": {"claims": {"aud": "somebody-else"}},
        "for another as well, and made for that": {"claims": {"aud": [CLIENT, "b"], "azp": "b"}},
        "by another issuer": {"claims": {"iss": "https://evil.example"}},
        "expired": {"claims": {"iat": hour - 300, "exp": hour}},
        "without an end": {"claims": {"exp": None}},
        "not signed": {"unsigned": True},
        "signed by another": {"signing": other},
        "an e-mail that nobody checked": {"claims": {"email_verified": False}},
        "an e-mail of which nothing is said": {"claims": {"email_verified": None}},
        "somebody unknown": {"claims": {"email": "eve@example.org"}},
        "without an e-mail": {"claims": {"email": None}},
        "userinfo of another": {
            "claims": {"email": None},
            "userinfo": {"sub": "u-2", "email": "ada@example.org", "email_verified": True},
        },
    }
    for name, value in changes[how].items():
        setattr(provider, name, value)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("another nonce", "nonce"),
        ("no nonce", "nonce"),
        ("for another client", "aud"),
        ("for another as well, and made for that", "azp"),
        ("by another issuer", "iss"),
        ("expired", "exp"),
        ("without an end", "exp"),
        ("not signed", "alg"),
        ("signed by another", "signature"),
        ("an e-mail that nobody checked", "nobody"),
        ("an e-mail of which nothing is said", "nobody"),
        ("somebody unknown", "nobody"),
        ("without an e-mail", "nobody"),
        ("userinfo of another", "sub"),
    ],
)
def test_what_cannot_be_believed_lets_nobody_in(
    site: Served, browser: Browser, provider: FakeProvider, how: str, why: str
) -> None:
    lies(provider, how)
    back = browser.there()
    answer = browser.client.get(back)
    assert answer.status_code == 401
    assert 'role="alert"' in answer.text
    assert "recollect" not in browser.client.cookies
    assert not browser.logged_in()
    # Neither the page nor the log repeats anything of a token.
    code = dict(parse_qsl(urlsplit(back).query))["code"]
    for told in (answer.text, *logged(site)):
        assert not any(secret in told for secret in (code, "eyJ", SECRET, "eve@", "ada@"))
    assert any(line.startswith("401 GET oidc back") and why in line for line in logged(site)), logged(site)


def test_a_login_that_was_not_begun_here_is_refused(site: Served, browser: Browser) -> None:
    back = browser.there()
    assert plain.get(back).status_code == 401  # another browser: a link that somebody sends
    assert any("no state" in line for line in logged(site))
    forged = plain.get(back, cookies={"recollect_oidc": "e30=." + "0" * 64})
    assert forged.status_code == 401
    other = browser.client.get(re.sub(r"state=[^&]*", "state=other", back))
    assert other.status_code == 401
    assert not browser.logged_in()


def test_an_answer_is_good_for_once(site: Served, browser: Browser) -> None:
    back = browser.there()
    kept = browser.client.cookies["recollect_oidc"]
    assert browser.client.get(back).status_code == 200
    again = plain.get(back, cookies={"recollect_oidc": kept})
    assert again.status_code == 401
    assert "finished already" in again.text
    assert any("used twice" in line for line in logged(site))


def test_an_answer_that_comes_late_is_refused(memory: Memory, provider: FakeProvider) -> None:
    now = [time.time()]
    through = OpenId(Provider(provider.issuer, CLIENT, SECRET), clock=lambda: now[0])
    _, cookie = through.begin("http://127.0.0.1/login/oidc/back", "/")
    now[0] += 601
    with pytest.raises(UnknownCallerError, match="took too long"):
        through.finish(cookie, {"state": "x", "code": "y"}, "http://127.0.0.1/login/oidc/back", lambda _: True)


def test_somebody_who_says_no_is_told_so(browser: Browser) -> None:
    state = dict(parse_qsl(urlsplit(browser.there()).query))["state"]
    answer = browser.client.get("/login/oidc/back", params={"state": state, "error": "access_denied"})
    assert answer.status_code == 401
    assert "did not log you in" in answer.text


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil.example"])
def test_logging_in_leads_to_no_other_site(browser: Browser, site: Served, target: str) -> None:
    assert 'content="0;url=/">' in browser.log_in(target).text
    assert "evil" not in browser.client.get("/login", params={"next": target}).text
    site.serving.accounts.people.add("bo", "a long enough password", "reader")
    form = {"name": "bo", "password": "a long enough password", "next": target}
    assert plain.post(f"{site.url}/login", data=form).headers["location"] == "/"


def test_a_provider_that_is_down_is_told_without_harm(memory: Memory, provider: FakeProvider) -> None:
    serving = Serving(memory, limits=PLENTY)
    serving.accounts.people.add("bo", "a long enough password", "reader")
    through = OpenId(Provider("http://127.0.0.1:9", CLIENT, SECRET), seconds=2)
    with listening(built(serving, oidc=through)) as url:
        answer = plain.get(f"{url}/login/oidc")
        assert answer.status_code == 502
        assert "cannot be reached" in answer.text
        assert "Password" in answer.text
        form = {"name": "bo", "password": "a long enough password"}
        assert plain.post(f"{url}/login", data=form).status_code == 303
        assert any("502 GET oidc (provider)" in line for line in logged(Served(serving, url)))


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ({"issuer": "https://evil.example"}, 401),
        ({"token_endpoint": "http://[::1"}, 502),
        ({"authorization_endpoint": "ftp://evil.example/"}, 502),
        ({"jwks_uri": 7}, 502),
    ],
)
def test_a_provider_that_talks_nonsense_is_not_followed(
    provider: FakeProvider, browser: Browser, says: dict[str, Any], status: int
) -> None:
    provider.says = says
    assert browser.client.get("/login/oidc").status_code == status


def test_a_secret_is_not_sent_on_by_a_redirect(provider: FakeProvider, browser: Browser) -> None:
    provider.says = {"token_endpoint": f"{provider.issuer}/elsewhere"}
    assert browser.log_in().status_code == 502
    assert "/token" not in provider.asked


def test_a_new_key_of_the_provider_is_fetched(
    another: Callable[[], Browser], provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        assert another().log_in().status_code == 200
    assert provider.asked.count("/keys") == 1  # they are known
    provider.key = provider.signing = RSAKey.generate_key(2048, parameters={"kid": "two", "use": "sig"})
    # Whoever names keys that are not there cannot have them fetched again and again.
    assert another().log_in().status_code == 401
    assert provider.asked.count("/keys") == 1
    monkeypatch.setattr(oidc, "_AGAIN", 0.0)
    assert another().log_in().status_code == 200
    assert provider.asked.count("/keys") == 2


def test_an_e_mail_that_only_userinfo_tells_is_believed(browser: Browser, provider: FakeProvider) -> None:
    provider.claims = {"email": None, "email_verified": None}
    provider.userinfo = {"sub": "u-1", "email": "ada@example.org", "email_verified": True}
    assert browser.log_in().status_code == 200
    assert browser.logged_in()


def test_whoever_has_a_subject_comes_by_it_alone(
    site: Served, another: Callable[[], Browser], provider: FakeProvider
) -> None:
    site.serving.accounts.people.add("chen@example.org", None, "reader", subject="u-7")
    provider.claims = {"sub": "u-8", "email": "chen@example.org"}
    assert another().log_in().status_code == 401
    provider.claims = {"sub": "u-7", "email": None}
    assert another().log_in().status_code == 200


def test_an_e_mail_does_not_let_in_to_an_account_with_a_password(
    site: Served, another: Callable[[], Browser], provider: FakeProvider
) -> None:
    accounts = site.serving.accounts
    accounts.people.add("eve@example.org", "a long enough password", "admin")
    provider.claims = {"sub": "u-9", "email": "eve@example.org", "email_verified": True}
    assert another().log_in().status_code == 401
    accounts.people.remove("eve@example.org")
    accounts.people.add("eve@example.org", "a long enough password", "admin", subject="u-9")  # linked on purpose
    assert another().log_in().status_code == 200


def test_without_a_password_none_is_right(site: Served) -> None:
    accounts = site.serving.accounts
    for word in ("", "None", "null", "a long enough password"):
        with pytest.raises(UnknownCallerError, match="the name or the password is wrong"):
            accounts.logins.log_in("ada@example.org", word)
    assert accounts.people.get("ada@example.org").comes_by == "oidc"
    token, _ = accounts.logins.log_in_by_provider(
        "u-1", "ada@example.org"
    )  # too many wrong passwords are no concern of the provider
    assert accounts.logins.caller_of(token).rank == "admin"


def test_nobody_gives_themselves_a_password_who_has_none(site: Served) -> None:
    from recollect.server.accounts import set_password
    from recollect.server.web import HttpRequest

    site.serving.accounts.people.add("dee@example.org", None, "member")
    _, dee = site.serving.accounts.logins.log_in_by_provider("u-5", "dee@example.org")
    asked = HttpRequest("PUT", "/", {"name": "dee@example.org"}, [], {}, {}, b'{"password": "a long enough password"}')
    with pytest.raises(AccessError, match="have none here"):
        set_password(site.serving, dee, asked)


@pytest.mark.parametrize("issuer", ["http://login.example.org", "login.example.org", "https://a@b.example", "ftp://x"])
def test_an_issuer_must_be_reached_safely(issuer: str) -> None:
    with pytest.raises(InputError, match="oidc_issuer"):
        OpenId(Provider(issuer, CLIENT, SECRET))


@pytest.mark.slow
def test_in_a_real_browser_it_ends_where_it_began(site: Served, provider: FakeProvider) -> None:
    """From another site a browser brings no cookie that is for ours only; the page must come about nevertheless."""
    need_browser()
    with launched() as chromium:
        page = chromium.new_page()
        page.goto(f"{site.url}/memories")
        assert "/login" in page.url
        page.get_by_role("link", name="Example & Co").click()
        page.wait_for_url(f"{site.url}/memories")
        assert page.get_by_role("heading", name="Memories").is_visible()
