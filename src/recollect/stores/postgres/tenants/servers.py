"""The tenants of one installation on several servers: each transaction goes to the server that its tenant is on.

Where a tenant is, `home` knows. It is asked once for each, and again when a server says that the tenant is not there
any more. A tenant that nobody has moved is at home. No number changes by a move, so what is read page by page goes on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from recollect.stores.port import Place, TenantLimits
from recollect.stores.postgres.admin.setup import SetupFacts
from recollect.stores.postgres.connections import PATIENCE
from recollect.stores.postgres.server import PlaceHints, Server
from recollect.stores.postgres.tenants.placement import (
    HOME,
    MOVES,
    PLACEMENT,
    FrozenError,
    Movement,
    Placement,
    moved,
)
from recollect.stores.postgres.transaction import POSITION, OpenTransaction, ServerTransaction
from recollect.stores.tables.engine import Rows, Statement
from recollect.values.errors import AccessError, InputError, MovedError, StoreError

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_PAUSE = 0.003
_TENANTS = "SELECT DISTINCT tenant FROM {s}.places WHERE memories > 0 OR things > 0 OR entries > 0"
_MEMORIES = "SELECT count(*) FROM {s}.memories WHERE tenant = %s"
_BYTES = "SELECT coalesce(sum(content_bytes), 0)::bigint FROM {s}.places WHERE tenant = %s"
LIMITS = "SELECT memories, bytes, requests_per_second FROM {s}.limits WHERE tenant = %s"


def checked_names(servers: Iterable[str]) -> None:
    for name in servers:
        if name == HOME:
            raise InputError("servers", f"{HOME!r} is the name of the store itself; call the others something else")
        if not _NAME.fullmatch(name):
            raise InputError("servers", f"{name[:48]!r} must be 1 to 40 of a-z, 0-9, '_' and '-'")


class Listed(msgspec.Struct, frozen=True):
    """A tenant and where it is."""

    tenant: str
    server: str
    memories: int | None
    """None where it cannot be counted: on a server that was not named, or by a role that may not."""
    moving_to: str | None = None
    bytes: int | None = None
    """Of content, as far as it is counted."""
    limits: TenantLimits | None = None


class Servers:
    """Runs what `Server` runs, for tenants on several servers."""

    def __init__(self, home: Server, others: Mapping[str, Server]) -> None:
        checked_names(others)
        self.named = {HOME: home, **others}
        self._home = home
        self._placed: dict[str, Placement] = {}

    @property
    def facts(self) -> SetupFacts:
        return self._home.facts

    def facts_of(self, tenant: str) -> SetupFacts:
        return self._at(tenant, self.placed(tenant)).facts

    @property
    def hints(self) -> PlaceHints:
        return self._home.hints

    @property
    def transaction(self) -> OpenTransaction | None:
        return next((server.transaction for server in self.named.values() if server.transaction is not None), None)

    # Where a tenant is

    def placed(self, tenant: str) -> Placement:
        return self._placed.get(tenant) or self.look(tenant)

    def look(self, tenant: str) -> Placement:
        """Ask home again. Of a tenant that came back, its replica must know that before it answers for it again."""
        asked, replica = [Statement(PLACEMENT, (tenant,))], self._home.replica
        if replica is not None:
            asked.append(Statement(POSITION))
        rows, *position = self._home.ask(tenant, asked, primary=True)
        placed = Placement(*rows[0]) if rows else Placement()
        if replica is not None and rows and placed.server == HOME:
            replica.wrote([tenant], position[0][0][0])
        self._placed[tenant] = placed
        return placed

    def server_of(self, tenant: str) -> Server:
        """The server that a tenant is on. MovedError for one that was not named here."""
        return self._at(tenant, self.placed(tenant))

    def _at(self, tenant: str, placed: Placement) -> Server:
        if placed.server not in self.named:
            raise moved(tenant, placed.server)
        return self.named[placed.server]

    def tenants(self) -> list[Listed]:
        """All, each where it is. Only some roles may ask."""
        listed: list[Listed] = []
        for name, server in self.named.items():
            for (tenant,) in server.administer(_TENANTS):
                if self.look(tenant).server != name:
                    continue  # a copy that is not finished, or not cleared away
                asked = [Statement(sql, (tenant,)) for sql in (_MEMORIES, MOVES, _BYTES, LIMITS)]
                try:
                    ((count,),), moves, ((size,),), limits = server.ask(tenant, asked, primary=True)
                except AccessError:  # an administrator of tenants who may see nothing that is theirs
                    listed.append(Listed(tenant, name, None))
                    continue
                leaves = [Movement(*row).server for row in moves if row[0] in ("copying", "frozen")]
                limited = TenantLimits(*limits[0]) if limits else None
                listed.append(Listed(tenant, name, count, leaves[0] if leaves else None, size, limited))
        listed += [Listed(tenant, server, None) for tenant, server in self.away().items()]
        return sorted(listed, key=lambda entry: entry.tenant)

    def away(self) -> dict[str, str]:
        """The tenants on servers that were not named here."""
        return {tenant: server for tenant, server in self._home.away().items() if server not in self.named}

    # Reading

    def rows(self, tenant: str, sql: str, values: Any = (), binary: bool = False) -> Rows:
        return self.read(tenant, [Statement(sql, values)], binary)[0]

    def read(self, tenant: str, statements: Sequence[Statement], binary: bool = False) -> list[Rows]:
        """What is said of a move is of the same moment as the answer, so an old copy is never taken for the tenant."""
        if (transaction := self.transaction) is not None:
            return transaction.server.read(tenant, statements, binary)
        asked = [*statements, Statement(MOVES, (tenant,))]
        until = time.monotonic() + PATIENCE
        while True:
            placed = self.placed(tenant)
            *answer, movements = self._at(tenant, placed).ask(tenant, asked, binary, steady=True)
            if not movements or self._holds(tenant, placed, Movement(*movements[0])):
                return answer
            _wait(until, tenant)

    def _holds(self, tenant: str, placed: Placement, movement: Movement) -> bool:
        """Whether what was read there is the tenant's. If not, it is known afterwards where to read."""
        if movement.state == "copying":
            return True
        if movement.state == "arriving" and movement.move == placed.move:
            return True  # home says that it has arrived: only nobody has opened it for writers yet
        now = self.look(tenant)
        if movement.state == "gone" and now == placed:
            raise moved(tenant, movement.server)
        return movement.state == "frozen" and now == placed

    def administer(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        return [row for server in self.named.values() for row in server.administer(sql, values)]

    # Writing

    def writing(self, places: Sequence[Place], steps: int = 2, seconds: float = PATIENCE) -> ServerTransaction:
        return ServerTransaction(self, places, steps, seconds)

    def begin(self, places: Sequence[Place], seconds: float) -> OpenTransaction:
        """Nothing was done before, so it can be begun again elsewhere."""
        until = time.monotonic() + seconds
        while True:
            placed = {place.tenant: self.placed(place.tenant) for place in places}
            try:
                return self._only(placed).start(places, seconds)
            except (MovedError, FrozenError) as error:
                for tenant in placed:
                    self.look(tenant)
                same = all(self._placed[tenant] == before for tenant, before in placed.items())
                if same and (isinstance(error, MovedError) or time.monotonic() + _PAUSE > until):
                    raise
                if same:
                    time.sleep(_PAUSE)

    def _only(self, placed: Mapping[str, Placement]) -> Server:
        servers = {where.server: self._at(tenant, where) for tenant, where in placed.items()}
        if len(servers) > 1:
            raise StoreError(f"one transaction cannot change tenants on several servers ({', '.join(sorted(servers))})")
        return next(iter(servers.values()))

    def end(self, transaction: OpenTransaction, error: BaseException | None) -> None:
        transaction.server.end(transaction, error)

    def abandon(self) -> None:
        for server in self.named.values():
            server.abandon()

    def close(self) -> None:
        for server in self.named.values():
            server.close()


def _wait(until: float, tenant: str) -> None:
    if time.monotonic() + _PAUSE > until:
        raise FrozenError(tenant)
    time.sleep(_PAUSE)
