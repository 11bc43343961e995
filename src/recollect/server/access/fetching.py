"""Asking a provider of logins: within a time and a size, and at the address that was meant."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from recollect.server.access.caller import ProviderError

_LARGEST = 1 << 20
T = TypeVar("T")


class Fetching:
    def __init__(self, seconds: float, *, plain: bool = False) -> None:
        """`plain` allows http, for a provider on this machine."""
        self._seconds, self._schemes = seconds, ("https", "http") if plain else ("https",)

    def check(self, address: str) -> None:
        try:
            parts = urlsplit(address)
            safe = parts.scheme in self._schemes and bool(parts.hostname)
        except ValueError:
            safe = False
        if not safe:
            raise ProviderError("the provider of the login names an address that is not safe")

    def read(
        self,
        address: str,
        kind: type[T],
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> T:
        """ProviderError for whatever is no answer, a redirect among them: it could lead a secret anywhere."""
        self.check(address)
        try:
            return msgspec.json.decode(self._bytes(address, method, headers, content), type=kind)
        except (httpx.HTTPError, httpx.InvalidURL):
            raise ProviderError("the provider of the login cannot be reached; try again soon") from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise ProviderError("the provider of the login gave no answer that can be used") from None

    def _bytes(self, address: str, method: str, headers: Mapping[str, str] | None, content: bytes | None) -> bytes:
        until = time.monotonic() + self._seconds
        body = bytearray()
        with (
            httpx.Client(timeout=self._seconds, follow_redirects=False) as client,
            client.stream(method, address, headers=headers, content=content) as answer,
        ):
            if answer.status_code != 200:
                raise ProviderError(f"the provider of the login answered with {answer.status_code}")
            for part in answer.iter_bytes():
                body += part
                # A timeout is for each part. One that sends a byte a second would hold a thread for ever.
                if len(body) > _LARGEST or time.monotonic() > until:
                    raise ProviderError("the provider of the login says too much, or too slowly")
        return bytes(body)
