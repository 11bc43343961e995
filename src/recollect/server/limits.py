"""How much one caller may ask for, and how long one may wait to be asked again."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from recollect.server.access.caller import BusyError
from recollect.server.problems import TooManyError
from recollect.stores.port import HasTenantLimits
from recollect.values.errors import RecollectError


class Limits(NamedTuple):
    per_second: float = 100.0
    """Requests of one key, over time."""
    burst: int = 200
    """Requests of one key at once."""
    body: int = 8 * 1024 * 1024
    """Bytes of a request. One memory may have 1 MiB, which escapes make longer."""
    upload: int = 1024 * 1024 * 1024
    """Bytes of an import."""
    seconds: float = 30.0
    """For a client to send its request."""
    tenant_per_second: float | None = None
    """Requests of one tenant, over time, by all its keys and people together; None for no such limit."""
    tenants: Mapping[str, float] = {}
    """The same for some tenants, in place of that."""


def burst_of(per_second: float) -> int:
    """How many requests may come at once where so many may come over time."""
    return max(10, int(2 * per_second))


class _Buckets:
    """A bucket of requests for each name, which fills by itself."""

    _MOST = 10_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, per_second: float, burst: int) -> float:
        """Take a request out. Seconds until there is one again, 0 where there was."""
        now = time.monotonic()
        with self._lock:
            left, then = self._left.pop(name, (float(burst), now))
            left = min(float(burst), left + (now - then) * per_second)
            self._left[name] = (left - 1.0 if left >= 1.0 else left), now
            while len(self._left) > self._MOST:
                self._left.popitem(last=False)
        return 0.0 if left >= 1.0 else (1.0 - left) / per_second


class TenantRates:
    """The limit of each tenant: what the store says of it, else what the server was started with."""

    _FRESH = 30.0
    """Seconds for which the store is not asked again."""
    _MOST = 10_000

    def __init__(self, limits: Limits, store: object = None) -> None:
        self._limits = limits
        self._store = store if isinstance(store, HasTenantLimits) else None
        self._lock = threading.Lock()
        self._stored: OrderedDict[str, tuple[float | None, float]] = OrderedDict()

    def of(self, tenant: str) -> float | None:
        """Requests a second, None for no limit. A store that cannot be asked has the limit it had before."""
        stored = None if self._store is None else self._in_store(self._store, tenant)
        return self._limits.tenants.get(tenant, self._limits.tenant_per_second) if stored is None else stored

    def _in_store(self, store: HasTenantLimits, tenant: str) -> float | None:
        now = time.monotonic()
        with self._lock:
            rate, fresh_until = self._stored.get(tenant, (None, 0.0))
        if now >= fresh_until:
            with suppress(RecollectError):
                rate = store.limits(tenant).requests_per_second
            with self._lock:
                self._stored[tenant] = rate, now + self._FRESH
                self._stored.move_to_end(tenant)
                while len(self._stored) > self._MOST:
                    self._stored.popitem(last=False)
        return rate


class RateLimits:
    """Requests over time: of each caller, and of each tenant. A process counts its own."""

    def __init__(self, limits: Limits, store: object = None) -> None:
        self._limits = limits
        self._rates = TenantRates(limits, store)
        self._callers, self._tenants = _Buckets(), _Buckets()

    def take(self, caller: str) -> None:
        """TooManyError where the caller has had as many as its limit allows."""
        rate = self._limits.per_second
        if seconds := self._callers.take(caller, rate, self._limits.burst):
            raise TooManyError("with this key", rate, seconds)

    def take_for_tenant(self, tenant: str) -> None:
        """TooManyError where the tenant has had as many as its limit allows, whoever asked."""
        rate = self._rates.of(tenant)
        if rate is not None and (seconds := self._tenants.take(tenant, rate, burst_of(rate))):
            raise TooManyError(f"for the tenant {tenant}", rate, seconds)


class ConcurrencyLimit:
    """How many may be at something at once, in all and of one address or caller. Who is too many is refused at once."""

    def __init__(self, most: int, of_one: int, refusal: str) -> None:
        self._most, self._of_one, self._refusal = most, of_one, refusal
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    @contextmanager
    def taken(self, who: str) -> Generator[None]:
        with self._lock:
            if self._taken.total() >= self._most or self._taken[who] >= self._of_one:
                raise BusyError(self._refusal)
            self._taken[who] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[who] -= 1
                if not self._taken[who]:
                    del self._taken[who]
