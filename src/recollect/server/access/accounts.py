"""Everybody who may use a server: programs with keys, and people with logins."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from recollect.server.access.account_store import AccountStore
from recollect.server.access.keys import Keys
from recollect.server.access.logins import Logins
from recollect.server.access.people import People
from recollect.stores.port import Store
from recollect.values.record import utc_now


class Accounts:
    def __init__(self, store: Store, clock: Callable[[], datetime] = utc_now) -> None:
        self._accounts = AccountStore(store, clock)
        self.keys = Keys(self._accounts)
        self.people = People(self._accounts)
        self.logins = Logins(self._accounts, self.people)
        self.log, self.entries = self._accounts.log, self._accounts.entries

    @property
    def empty(self) -> bool:
        """Whether nobody can be let in: there is no person, and no key that is not revoked."""
        return not self.people.list() and not any(key.revoked_at is None for key in self.keys.list())
