"""A provider of OpenID Connect on this machine, which lies in whatever way a test asks for."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from support.served import listening

CLIENT, SECRET = "recollect-test", "not-a-real-secret"


class FakeProvider:
    """`claims` are changed before they are signed; None leaves one out. `says` is put into the discovery document."""

    def __init__(self) -> None:
        self.issuer = ""
        self.key = RSAKey.generate_key(2048, parameters={"kid": "one", "use": "sig"})
        self.signing: Any = self.key
        self.claims: dict[str, Any] = {}
        self.says: dict[str, Any] = {}
        self.userinfo: dict[str, Any] | None = None
        self.unsigned = False
        self.asked: list[str] = []
        """Addresses that were asked for."""
        self.authorized: dict[str, str] = {}
        """What the browser was last sent here with."""
        self._codes: dict[str, dict[str, str]] = {}

    def document(self) -> dict[str, Any]:
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        if self.userinfo is not None:
            document["userinfo_endpoint"] = f"{self.issuer}/userinfo"
        return {**document, **self.says}

    def authorize(self, query: dict[str, str]) -> str:
        """As if somebody had typed their password: where their browser is sent."""
        self.authorized = query
        assert query["client_id"] == CLIENT
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        code = secrets.token_urlsafe(12)
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> Response:
        assert authorization == "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        begun = self._codes.pop(form["code"], None)  # which is good for once
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if begun is None or begun["code_challenge"] != digest or begun["redirect_uri"] != form["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        id_token = self.id_token(begun["nonce"])
        return JSONResponse({"access_token": "for-userinfo", "token_type": "Bearer", "id_token": id_token})

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "u-1",
            "email": "Ada@Example.org",
            "email_verified": True,
            "nonce": nonce,
            "iat": now,
            "exp": now + 300,
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.unsigned:
            parts = ({"alg": "none", "typ": "JWT"}, claims)
            return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + "."
        return jwt.encode({"alg": "RS256", "kid": self.signing.kid}, claims, self.signing)

    def app(self) -> Starlette:
        async def describe(request: Request) -> Response:
            return JSONResponse(self.document())

        async def keys(request: Request) -> Response:
            return JSONResponse(dict(KeySet([self.key]).as_dict(private=False)))

        async def authorize(request: Request) -> Response:
            return RedirectResponse(self.authorize(dict(request.query_params)), 302)

        async def token(request: Request) -> Response:
            form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
            return self.token(form, request.headers["authorization"])

        async def userinfo(request: Request) -> Response:
            assert request.headers["authorization"] == "Bearer for-userinfo"
            return JSONResponse(self.userinfo or {})

        async def elsewhere(request: Request) -> Response:
            return RedirectResponse(f"{self.issuer}/token", 307)

        def noted(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
            async def answer(request: Request) -> Response:
                self.asked.append(request.url.path)
                return await endpoint(request)

            return answer

        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", noted(describe)),
                Route("/keys", noted(keys)),
                Route("/authorize", noted(authorize)),
                Route("/token", noted(token), methods=["POST"]),
                Route("/userinfo", noted(userinfo)),
                Route("/elsewhere", noted(elsewhere), methods=["GET", "POST"]),
            ]
        )


@contextmanager
def provided() -> Iterator[FakeProvider]:
    """Under a name that is another site than the server under test, as a real one would be."""
    fake = FakeProvider()
    with listening(fake.app()) as url:
        fake.issuer = url.replace("127.0.0.1", "localhost")
        yield fake
