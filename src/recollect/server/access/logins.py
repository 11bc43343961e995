"""Logins: from a right password, or the word of a provider, to a token in a browser's cookie."""

from __future__ import annotations

import ipaddress
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from recollect.server.access.account_store import PLACE, AccountStore, hash_secret
from recollect.server.access.caller import BusyError, Caller, RefusedLoginError, UnknownCallerError
from recollect.server.access.passwords import owner_of
from recollect.server.access.people import LOGINS, SHELF, People, person_of
from recollect.stores.shelves import ShelfItem
from recollect.values.errors import ConflictError
from recollect.values.record import parse_time

_LASTS = timedelta(hours=12)
_STATE_LASTS = timedelta(hours=1)
_FREE_TRIES = 5
"""Wrong passwords before somebody has to wait."""
_LONGEST_WAIT = 900.0
_MOST_UNKNOWN_NAMES = 10_000
_unknown_names: OrderedDict[str, dict[str, Any]] = OrderedDict()
"""Tries with names that nobody has, in the same form as the tries of people. By their hash, which is short."""
_unknown_names_lock = threading.Lock()
_MOST_ADDRESSES = 64
"""Addresses whose tries of one name are counted. The latest count."""
LOGINS_AT_ONCE = 2
_checking = threading.BoundedSemaphore(LOGINS_AT_ONCE + 1)
"""Limits the password checks at once: each takes 64 MiB, and nobody shall take all there is by guessing.

One more than there are logins at once: whoever is logged in can change their password during a flood of logins.
"""


class Logins:
    def __init__(self, accounts: AccountStore, people: People) -> None:
        self._accounts, self._people = accounts, people

    def log_in(self, name: str, password: str, address: str = "") -> tuple[str, Caller]:
        """A token for a cookie, for whoever of this name has this password.

        From the fifth wrong password on, the delay doubles with each try. Only tries from the same address count, so
        that no stranger can lock anybody out.
        """
        name, address = name.strip().lower(), _network(address)
        if not _checking.acquire(blocking=False):  # before it counts as a try
            raise BusyError("too many are logging in at once; try again in a moment")
        try:
            key = self._check_password(name, password, address)
        finally:
            _checking.release()
        self._accounts.change(SHELF, key, "person", lambda body: self._after_right_password(body, address))
        return self.start(key)

    def log_in_by_provider(self, subject: str, email: str) -> tuple[str, Caller]:
        """Whoever a provider vouches for. `email` is empty unless it is verified. They must have been added before.

        An e-mail lets in only who was added without a password: an account with one is linked by its `subject`.
        """
        items = list(self._accounts.store.shelf(PLACE, SHELF))
        by_subject = [item for item in items if item.body.get("subject") == subject]
        by_email = [
            item
            for item in items
            if email
            and item.body.get("subject") is None
            and item.body.get("password") is None
            and item.body["name"] == email.lower()
        ]
        if not (matches := by_subject or by_email):
            raise RefusedLoginError("nobody", "nobody was added under this login; ask whoever manages this server")
        self._accounts.change(SHELF, matches[0].key, "person", {"last_login": self._accounts.clock()})
        return self.start(matches[0].key)

    def start(self, key: str) -> tuple[str, Caller]:
        """A login of somebody who has proved who they are; `key` is theirs on the shelf of people."""
        token, form_token = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        body = {"person": key, "form": form_token, "until": self._accounts.clock() + _LASTS}
        item = ShelfItem(LOGINS, hash_secret(token), msgspec.to_builtins(body), parent=key)
        self._accounts.store.keep(PLACE, item)
        return token, person_of(self._accounts.get(SHELF, key, "person")).caller(form_token)

    def caller_of(self, token: str) -> Caller:
        """The person with this token. UnknownCallerError if they are not logged in, or no longer."""
        login = self._accounts.find(LOGINS, hash_secret(token))
        if login is None or parse_time(login.body["until"], "until") <= self._accounts.clock():
            raise UnknownCallerError("you are not logged in, or no longer")
        person = self._accounts.find(SHELF, login.body["person"])
        if person is None:
            raise UnknownCallerError("you are not logged in, or no longer")
        return person_of(person).caller(login.body["form"])

    def log_out(self, token: str) -> None:
        self._accounts.remove(LOGINS, [hash_secret(token)])

    def clean(self) -> int:
        """Delete expired logins. Returns how many."""
        now = self._accounts.clock()
        logins = self._accounts.store.shelf(PLACE, LOGINS)
        return self._accounts.remove(
            LOGINS, [login.key for login in logins if parse_time(login.body["until"], "until") <= now]
        )

    def use_state_once(self, state: str) -> bool:
        """Whether a provider's answer with this `state` comes for the first time, to any process."""
        oldest = self._accounts.clock() - _STATE_LASTS
        expired: list[str] = []
        for item in self._accounts.store.shelf(PLACE, "states"):
            if item.created_at >= oldest:
                break
            expired.append(item.key)
        self._accounts.remove("states", expired)
        try:
            self._accounts.add("states", hash_secret(state), {})
        except ConflictError:
            return False
        return True

    def _check_password(self, name: str, password: str, address: str) -> str:
        """The key of whoever of this name has this password."""
        # Counted before it is known whether it is right: else many could guess at once.
        bodies = {
            item.key: self._accounts.change(SHELF, item.key, "person", lambda body: self._count_try(body, address))
            for item in self._people.things_named(name)
        }
        if not bodies:  # an unknown name is answered exactly as a known one
            hashed = hash_secret(name)
            with _unknown_names_lock:
                _unknown_names[hashed] = self._count_try(_unknown_names.get(hashed, {}), address)
                _unknown_names.move_to_end(hashed)
                while len(_unknown_names) > _MOST_UNKNOWN_NAMES:
                    _unknown_names.popitem(last=False)
        return owner_of(password, {key: body["password"] for key, body in bodies.items()})

    def _after_right_password(self, body: Mapping[str, Any], address: str) -> dict[str, Any]:
        """Clears the tries of this address only: who guesses elsewhere goes on waiting."""
        tries = {client: tried for client, tried in body.get("tries", {}).items() if client != address}
        return {"failures": 0, "locked_until": None, "tries": tries, "last_login": self._accounts.clock()}

    def _count_try(self, body: Mapping[str, Any], address: str) -> dict[str, Any]:
        """The fields that a try at a password changes. UnknownCallerError while there has to be a pause."""
        tries: dict[str, Any] = dict(body.get("tries", {}))
        before, now = tries.pop(address, {}), self._accounts.clock()
        locked = before.get("locked_until")
        if locked is not None and (until := parse_time(locked, "locked_until")) > now:
            raise UnknownCallerError(f"too many wrong passwords; try again in {_words(until - now)}")
        failures = int(before.get("failures", 0)) + 1
        wait = min(2.0 ** (failures - _FREE_TRIES), _LONGEST_WAIT) if failures >= _FREE_TRIES else 0.0
        pause = now + timedelta(seconds=wait) if wait else None
        tries[address] = {"failures": failures, "locked_until": pause}
        while len(tries) > _MOST_ADDRESSES:
            del tries[next(iter(tries))]
        return {"tries": tries, "failures": int(body.get("failures", 0)) + 1, "locked_until": pause}


def _network(address: str) -> str:
    """Of IPv6 the network, because a household or an attacker has all of its addresses."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else str(parsed)


def _words(wait: timedelta) -> str:
    seconds = max(1, round(wait.total_seconds()))
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
