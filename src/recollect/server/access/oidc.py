"""Logging in through somebody else, by OpenID Connect: the way there, the way back, and what is believed of it.

An authorization code with PKCE, a state and a nonce. What the browser carries meanwhile is signed with a key made of
the client's secret, so that every process with the same options can take it back.
"""

# authlib says no types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet, import_key

from recollect.server.access.caller import RefusedLoginError
from recollect.server.access.fetching import Fetching
from recollect.values.errors import InputError

LASTS = 600
"""Seconds that somebody has to log in at the provider."""
_KNOWN_FOR = 3600.0
"""Seconds for which what the provider says of itself is not asked for again."""
_AGAIN = 60.0
"""Seconds before its keys are asked for again because one is missing: anybody can name a key that is not there."""
_LEEWAY = 60
"""Seconds by which its clock may differ from ours."""
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
"""Signatures that only the provider can make. `none` and those by a shared secret are none."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Provider(NamedTuple):
    """What whoever starts the server knows of it."""

    issuer: str
    client_id: str
    secret: str
    name: str = "Company login"


class OidcIdentity(NamedTuple):
    """What the provider vouches for."""

    subject: str
    email: str
    """Empty unless it is verified."""


class _Begun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    state: str
    nonce: str
    verifier: str
    next: str
    until: float


class _Endpoints(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class OpenId:
    def __init__(self, provider: Provider, *, seconds: float = 10.0, clock: Callable[[], float] = time.time) -> None:
        """`seconds` is for each request to the provider."""
        _check(provider)
        self.name = provider.name
        self._provider, self._clock = provider, clock
        self._sign = hashlib.sha256(b"recollect oidc\0" + provider.secret.encode()).digest()
        self._fetching = Fetching(seconds, plain=urlsplit(provider.issuer).scheme == "http")
        self._lock = threading.Lock()
        self._endpoints: tuple[float, _Endpoints] | None = None
        self._keys: tuple[float, KeySet] | None = None

    def begin(self, back: str, target: str) -> tuple[str, str]:
        """Where to send the browser, and what it must bring back in a cookie. `target` is where to go on afterwards."""
        begun = _Begun(
            state=secrets.token_urlsafe(24),
            nonce=secrets.token_urlsafe(24),
            verifier=secrets.token_urlsafe(48),
            next=target,
            until=self._clock() + LASTS,
        )
        address: str = prepare_grant_uri(
            self._read_endpoints().authorization_endpoint,
            self._provider.client_id,
            "code",
            back,
            "openid email",
            begun.state,
            nonce=begun.nonce,
            code_challenge=create_s256_code_challenge(begun.verifier),
            code_challenge_method="S256",
        )
        return address, self._signed(begun)

    def finish(
        self, cookie: str, query: Mapping[str, str], back: str, once: Callable[[str], bool]
    ) -> tuple[OidcIdentity, str]:
        """Who it is, and where to go on. `once` says whether a state is seen for the first time."""
        begun = self._opened(cookie)
        if not hmac.compare_digest(begun.state.encode(), query.get("state", "").encode()):
            raise RefusedLoginError("state", "this login was not begun in this browser; begin again")
        if not once(begun.state):
            raise RefusedLoginError("state used twice", "this login was finished already; begin again")
        if query.get("iss", self._provider.issuer) != self._provider.issuer:
            raise RefusedLoginError("issuer of the answer", "the answer came from another provider; begin again")
        if "error" in query or not query.get("code"):
            raise RefusedLoginError("denied", f"{self.name} did not log you in")
        token = self._exchanged(query["code"], begun, back)
        claims = self._verified(token, begun.nonce)
        return self._identity(claims, token), begun.next

    # What the browser carries

    def _signed(self, begun: _Begun) -> str:
        body = base64.urlsafe_b64encode(msgspec.json.encode(begun)).decode()
        return f"{body}.{self._mark(body)}"

    def _mark(self, body: str) -> str:
        return hmac.new(self._sign, body.encode(), hashlib.sha256).hexdigest()

    def _opened(self, cookie: str) -> _Begun:
        body, _, mark = cookie.partition(".")
        if not body or not hmac.compare_digest(self._mark(body).encode(), mark.encode()):
            raise RefusedLoginError("no state", "this login was not begun in this browser; begin again")
        try:
            begun = msgspec.json.decode(base64.urlsafe_b64decode(body), type=_Begun)
        except (msgspec.MsgspecError, binascii.Error):  # of another version of us
            raise RefusedLoginError("no state", "this login was not begun in this browser; begin again") from None
        if begun.until < self._clock():
            raise RefusedLoginError("state expired", "logging in took too long; begin again")
        return begun

    # What the provider says of itself

    def _read_endpoints(self) -> _Endpoints:
        with self._lock:
            if self._endpoints is not None and time.monotonic() - self._endpoints[0] < _KNOWN_FOR:
                return self._endpoints[1]
        issuer = self._provider.issuer
        endpoints = self._fetching.read(issuer.rstrip("/") + "/.well-known/openid-configuration", _Endpoints)
        if endpoints.issuer != issuer:
            raise RefusedLoginError("issuer of the provider", f"{self.name} says that it is another provider")
        for address in (endpoints.authorization_endpoint, endpoints.token_endpoint, endpoints.jwks_uri):
            self._fetching.check(address)
        with self._lock:
            self._endpoints = time.monotonic(), endpoints
        return endpoints

    def _key_set(self, *, fresh: bool = False) -> KeySet:
        """`fresh` is for a key that is not among those we know, which may be new."""
        with self._lock:
            cached = self._keys
        if cached is not None and time.monotonic() - cached[0] < (_AGAIN if fresh else _KNOWN_FOR):
            return cached[1]
        answer = self._fetching.read(self._read_endpoints().jwks_uri, dict[str, Any])
        keys: list[Any] = []
        listed: Any = answer.get("keys")
        for entry in listed if isinstance(listed, list) else []:
            with contextlib.suppress(JoseError, ValueError, KeyError, TypeError, AttributeError):  # of no use to us
                if entry.get("use", "sig") == "sig" and entry["kty"] != "oct":
                    keys.append(import_key(entry))
        made = KeySet(keys)
        with self._lock:
            self._keys = time.monotonic(), made
        return made

    # What it says of whoever comes

    def _exchanged(self, code: str, begun: _Begun, back: str) -> dict[str, Any]:
        endpoints = self._read_endpoints()
        by_post = "client_secret_basic" not in endpoints.token_endpoint_auth_methods_supported
        method = "client_secret_post" if by_post else "client_secret_basic"
        body: str = prepare_token_request("authorization_code", "", back, code=code, code_verifier=begun.verifier)
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        auth = ClientAuth(self._provider.client_id, self._provider.secret, method)
        prepared: tuple[str, dict[str, str], str] = auth.prepare("POST", endpoints.token_endpoint, headers, body)
        return self._fetching.read(prepared[0], dict[str, Any], "POST", prepared[1], prepared[2].encode())

    def _verified(self, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        id_token = token.get("id_token")
        if not isinstance(id_token, str):
            raise RefusedLoginError("id_token", f"{self.name} did not say who you are")
        try:
            read = self._read(id_token)
            claims: Any = CodeIDToken(
                read.claims,
                read.header,
                options={
                    "iss": {"essential": True, "value": self._provider.issuer},
                    "aud": {"essential": True, "value": self._provider.client_id},
                    "exp": {"essential": True},
                    "sub": {"essential": True},
                },
                params={
                    "nonce": nonce,
                    "client_id": self._provider.client_id,
                    "access_token": token.get("access_token"),
                },
            )
            claims.validate(now=int(self._clock()), leeway=_LEEWAY)
        except (JoseError, ValueError, TypeError) as error:
            why = getattr(error, "claim", None) or getattr(error, "error", "") or "id_token"
            raise RefusedLoginError(f"id_token: {why}", f"what {self.name} said of you cannot be believed") from None
        return dict(claims)

    def _read(self, id_token: str) -> jwt.Token:
        try:
            return jwt.decode(id_token, self._key_set(), algorithms=_ALGORITHMS)
        except InvalidKeyIdError:
            return jwt.decode(id_token, self._key_set(fresh=True), algorithms=_ALGORITHMS)

    def _identity(self, claims: Mapping[str, Any], token: Mapping[str, Any]) -> OidcIdentity:
        """Who has logged in. Some providers give the e-mail at their userinfo endpoint only."""
        subject, access = str(claims["sub"]), token.get("access_token")
        if "email" not in claims and (address := self._read_endpoints().userinfo_endpoint) and isinstance(access, str):
            more = self._fetching.read(address, dict[str, Any], headers={"authorization": f"Bearer {access}"})
            if more.get("sub") != subject:
                raise RefusedLoginError("userinfo: sub", f"what {self.name} said of you cannot be believed")
            claims = more
        verified = claims.get("email_verified") in (True, "true")
        return OidcIdentity(subject, str(claims.get("email") or "") if verified else "")


def _check(provider: Provider) -> None:
    parts = urlsplit(provider.issuer)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise InputError("oidc_issuer", "must be an address such as https://login.example.org")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise InputError("oidc_issuer", "must begin with https:// unless it is on this machine")
    if not provider.client_id or not provider.secret:
        raise InputError("oidc_client_id", "and the secret must not be empty")
