"""The state of a server: its memory, its accounts and sessions, its limits and its metrics."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from recollect.memory import Memory, view_of
from recollect.models.embedders.base import Embedder
from recollect.remote import wire
from recollect.server.access.accounts import Accounts
from recollect.server.access.caller import Caller, ForgedFormError, UnknownCallerError, same
from recollect.server.access.logins import LOGINS_AT_ONCE
from recollect.server.idempotency import Answers
from recollect.server.limits import ConcurrencyLimit, Limits, RateLimits
from recollect.server.metrics import Family, Metrics, Timed, families
from recollect.server.recalls import Recalls
from recollect.server.web import HttpRequest
from recollect.stores.metrics import Metric
from recollect.stores.port import HasMetrics
from recollect.values import validation
from recollect.values.errors import AccessError, InputError, RecollectError
from recollect.values.record import utc_now

T = TypeVar("T")
COOKIE = "recollect"
FORM = "x-recollect-form"
"""The header, or field of a form, that proves that a page of ours sent it."""


_THREADS = 40
_SLOW, _SLOW_OF_ONE = 8, 2
"""Requests that look at a whole store, in all and of one caller. They leave the other threads to everybody else."""
_LOGINS_WAITING = 16
_LOGINS_OF_ONE = 4
"""Logins that are checked or wait, in all and from one address."""
_QUIET = 60.0
"""Seconds in which the same refusal is not logged again."""
_MOST_LOGGED = 1000
_MOST_VIEWS = 1000


class Serving:
    def __init__(
        self,
        memory: Memory,
        *,
        limits: Limits | None = None,
        single: bool = False,
        secure: bool = False,
        open_metrics: bool = False,
    ) -> None:
        """`single` is for one person on this machine, who comes by a link that holds a token for once.

        `secure` is for a server that is reached by TLS only, and keeps cookies to that. `open_metrics` shows /metrics
        to whoever asks; they hold no content and no names.
        """
        self.memory = memory
        store = view_of(memory).store
        self.accounts = Accounts(store, utc_now)
        self.answers = Answers(store, utc_now)
        self.recalls = Recalls(store, utc_now)
        self.limits = limits or Limits()
        self.rates = RateLimits(self.limits, store)
        self.metrics = Metrics()
        self.metrics.add(self._families)
        if (embedding := view_of(memory).embedding) is not None:
            embedding.embedder = cast("Embedder", Timed(embedding.embedder, self.metrics))
        self.single, self.secure, self.open_metrics = single, secure, open_metrics
        self.local_mcp = False
        """Whether MCP alone is served, to this machine alone, without a key."""
        self._threads = ThreadPoolExecutor(_THREADS, "recollect-server")
        # A password takes long to check. A flood of logins must not take the threads of those who have a key.
        self._logins = ThreadPoolExecutor(LOGINS_AT_ONCE, "recollect-login")
        again = "at once; try again in a moment"
        self.login_turns = ConcurrencyLimit(_LOGINS_WAITING, _LOGINS_OF_ONE, f"too many are logging in {again}")
        self._slow = ThreadPoolExecutor(_SLOW, "recollect-slow")
        looking = f"too many requests look at a whole store {again}, with at most {_SLOW_OF_ONE} of one key"
        self.slow_turns = ConcurrencyLimit(_SLOW, _SLOW_OF_ONE, looking)
        self._working: set[int] = set()
        """Threads that answer a request just now."""
        self._started = time.monotonic()
        self._logged: dict[tuple[str, str, int], float] = {}
        self._lock = threading.Lock()
        self._paths = [threading.Lock() for _ in range(64)]
        self._tickets: set[str] = set()
        self._locals: dict[str, Caller] = {}
        self._views: dict[Any, Memory] = {}

    def one_at_a_time(self, path: str) -> threading.Lock:
        """A lock that all requests to the same address share, and some others."""
        return self._paths[hash(path) % len(self._paths)]

    async def in_thread(self, work: Callable[[], T], *, slow: bool = False) -> T:
        """Whatever waits for the store: meanwhile others are heard."""

        def noted() -> T:
            self._working.add(threading.get_ident())
            try:
                return work()
            finally:
                self._working.discard(threading.get_ident())

        return await asyncio.get_running_loop().run_in_executor(self._slow if slow else self._threads, noted)

    @property
    def working(self) -> int:
        """How many requests are being answered."""
        return len(self._working)

    async def in_login_thread(self, client: str, work: Callable[[], T]) -> T:
        """For a login. BusyError at once where too many wait for theirs, from this address or in all."""
        with self.login_turns.taken(client):
            return await asyncio.get_running_loop().run_in_executor(self._logins, work)

    def stop(self) -> None:
        """Accept no new work. Work under way runs to its end, unless the process ends before."""
        for pool in (self._threads, self._slow, self._logins):
            pool.shutdown(wait=False, cancel_futures=True)
        self.recalls.write()

    def recalled(self, memory: Memory) -> None:
        """Count that somebody asked. Nobody waits for it to be written."""
        if self.recalls.count(view_of(memory).place):
            self._threads.submit(self.recalls.write)

    @property
    def cookie_flags(self) -> str:
        return "; HttpOnly; SameSite=Strict; Path=/" + ("; Secure" if self.secure else "")

    def clean(self) -> None:
        """Drop expired data: stored answers, and logins that have ended."""
        with contextlib.suppress(RecollectError):
            self.answers.clean()
            self.accounts.logins.clean()

    def ready(self) -> None:
        """Raises what keeps the store from answering."""
        view_of(self.memory).store.places("default")

    def _families(self) -> list[Family]:
        """The numbers of the store, and those that are looked up when somebody asks."""
        gauges = [Metric("recollect_uptime_seconds", "Since the start.", time.monotonic() - self._started)]
        with contextlib.suppress(InputError, AccessError):  # of a store that has no sessions
            # By the document's names, as Prometheus writes them.
            gauges += [
                Metric(name.replace(".", "_"), f"{name} of the ledger.", number)
                for name, number in self.memory.sessions.metrics().items()
            ]
        store = view_of(self.memory).store
        if not isinstance(store, HasMetrics):
            return families(gauges, "gauge")
        return [*families(store.counters(), "counter"), *families([*gauges, *store.gauges()], "gauge")]

    def refused(self, request: HttpRequest, name: str, error: RecollectError, status: int) -> None:
        """Into the audit log, once a minute for the same: nobody shall fill a disk by being refused."""
        if status not in (401, 403, 429, 502):
            return
        key, now = (request.client, name, status), time.monotonic()
        with self._lock:
            if now - self._logged.get(key, -_QUIET) < _QUIET:
                return
            if len(self._logged) > _MOST_LOGGED:
                self._logged.clear()
            self._logged[key] = now
        with contextlib.suppress(RecollectError):
            self.accounts.log("refuse", f"{status} {request.method} {name}", whence=request.client)

    def ticket(self) -> str:
        """For one link, once."""
        made = secrets.token_urlsafe(24)
        with self._lock:
            self._tickets.add(made)
        return made

    def redeem(self, ticket: str) -> str:
        """A session token for the person at this machine."""
        with self._lock:
            matching = next((issued for issued in self._tickets if same(issued, ticket)), None)
            if not self.single or matching is None:
                raise UnknownCallerError("this link was used already, or is of another run; start `recollect ui` again")
            self._tickets.discard(matching)
            token = secrets.token_urlsafe(32)
            self._locals[token] = Caller("local", "you", "owner", "local", session=secrets.token_urlsafe(16))
        return token

    def log_out(self, token: str) -> None:
        with self._lock:
            if self._locals.pop(token, None) is not None:
                return
        self.accounts.logins.log_out(token)

    def view(self, caller: Caller, parts: Mapping[str, str]) -> Memory:
        """The memory as this caller may see it, at the address of the request."""
        key = caller.rank, caller.how, frozenset(caller.bound.items()), frozenset(parts.items())
        if (view := self._views.get(key)) is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            view = self._views[key] = caller.view(self.memory, parts)
        return view

    def identify(self, request: HttpRequest) -> Caller:
        """The caller of a request. Counts it against the rate limits of the caller and of the tenant."""
        caller = request.trace.caller = self._sender(request)
        self.rates.take(caller.id)
        # A request that names another tenant than its key's is refused later, and must not cost that one anything.
        tenant = caller.bound.get("tenant")
        if tenant is None and (named := wire.address_of(request.headers).get("tenant")) is not None:
            tenant = validation.name(named, "tenant")
        if tenant is not None:
            request.trace.tenant = tenant
            self.rates.take_for_tenant(tenant)
        return caller

    def _sender(self, request: HttpRequest) -> Caller:
        authorization = request.headers.get("authorization", "")
        if authorization:
            scheme, _, key = authorization.partition(" ")
            if scheme.lower() != "bearer" or not key.strip():
                raise UnknownCallerError("authorization: must be `Bearer` and a key")
            return self.accounts.keys.caller_of(key.strip())
        if self.local_mcp:
            return Caller("local", "you", "owner", "local")
        if not (token := request.cookies.get(COOKIE, "")):
            raise UnknownCallerError("a key is needed: send `Authorization: Bearer …`, or log in")
        return self._local(token) or self.accounts.logins.caller_of(token)

    def check_form(self, caller: Caller, request: HttpRequest, token: str) -> None:
        """A cookie alone changes nothing: a form of ours repeats a token that no other page knows."""
        by_cookie = caller.how != "key" and not self.local_mcp
        if by_cookie and request.method != "GET" and not same(token, caller.session):
            raise ForgedFormError("form: this was not sent by a page of ours; load the page again")

    def _local(self, token: str) -> Caller | None:
        with self._lock:
            return next((c for local_token, c in self._locals.items() if same(local_token, token)), None)
