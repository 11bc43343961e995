"""Whether tenants are apart on a PostgreSQL deployment: tried there, with tenants made for it and removed again."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from recollect.memory import Memory, view_of
from recollect.proving.postgres.attacks import attacks
from recollect.proving.postgres.isolation import Attack, AttackResult, Siege, TenantNames
from recollect.proving.verbs import VERBS, Prey, Verb, furnish, leak
from recollect.stores import open_store, split
from recollect.stores.postgres.admin.status import bypasses
from recollect.stores.postgres.connections import driver
from recollect.stores.postgres.store import Postgres
from recollect.values.errors import InputError, RecollectError, StoreError
from recollect.values.record import new_id


class Proof(NamedTuple):
    """A deployment under attack."""

    siege: Siege
    attacker: Memory
    victim: Prey
    phantom: Prey

    def attacks(self) -> list[Attack]:
        """Whether the login is bound at all, those by SQL, then those by verbs."""
        login = Attack("the login", "whether row-level security holds for it", by=_bypass)
        return [login, *attacks(self.siege), *self._verbs()]

    def outcomes(self) -> Iterator[AttackResult]:
        return map(self.siege.suffer, self.attacks())

    def _verbs(self) -> Iterator[Attack]:
        for name, verb in VERBS.items():

            def called(siege: Siege, verb: Verb = verb) -> str:
                return leak(verb, self.attacker, self.victim, self.phantom, siege.secret)

            yield Attack(f"memory.{name}", "called with the ids and names of what the victim has", by=called)


def _bypass(siege: Siege) -> str:
    seen = siege.server.facts
    return bypasses(seen) if seen.unbound else ""


@contextmanager
def besieged(location: str) -> Generator[Proof]:
    """Three tenants with names that nobody can guess, there as long as this lasts, however it ends."""
    if split(location)[0] not in ("postgresql", "postgres"):
        raise InputError(
            "store",
            "isolation is proven on a PostgreSQL server, as in postgresql://user@host/database; "
            "stores that are files have a file for each tenant and workspace",
        )
    store = open_store(location)
    assert isinstance(store, Postgres)
    run, secret = f"proof-{secrets.token_hex(16)}", f"zq{secrets.token_hex(5)}x"
    victim, attacker, phantom = (f"{run}-{part}" for part in ("a", "b", "c"))
    with Memory(store, preset="recollect", embedder="none") as memory:
        server = store.server
        names = {tenant: _nothing(tenant) for tenant in (victim, attacker, phantom)}
        siege = Siege(server, run, names[victim], names[attacker], names[phantom], secret)
        try:
            prey = furnish(memory, victim, secret)
            memory.at(tenant=victim).remember(f"more than others have, called {secret}")
            furnish(memory, attacker, "mine")
            siege.victim = _names(siege, prey)
            siege.phantom = siege.phantom._replace(seq=siege.victim.seq)
            yield Proof(siege, memory.at(tenant=attacker), prey, Prey.phantom(phantom))
        except driver().Error as error:
            raise StoreError(f"{siege.location.shown}: {type(error).__name__}: {error}") from error
        finally:
            view_of(memory).settle_answers()  # they would be written into what was removed
            _remove(siege)


def _nothing(tenant: str) -> TenantNames:
    """TenantNames of what a tenant does not have."""
    return TenantNames(tenant, "default", new_id(), 1, new_id(), "conversation", new_id(), new_id())


def _names(siege: Siege, prey: Prey) -> TenantNames:
    names = siege.victim._replace(id=prey.memory, audit=prey.change, conversation=prey.conversation)
    output = siege.answer(
        [
            """SELECT t.shelf, t.key, m.seq FROM {s}.things t JOIN {s}.memories m USING (tenant, workspace)
            WHERE t.tenant = {tenant} AND strpos(t.key, {conversation}) > 0 AND m.id = {id} LIMIT 1"""
        ],
        names,
        names.tenant,
    )
    ((shelf, key, seq),) = output.rows
    return names._replace(shelf=shelf, key=key, seq=seq)


def _remove(siege: Siege) -> None:
    """Also what an attack has added to them. Whoever interrupts a second time is told what is left."""
    tenants = (siege.victim, siege.attacker, siege.phantom)
    try:
        for names in tenants:
            siege.remove(names)
            if any(count for _, count, _ in siege.holdings(names)):
                raise StoreError("rows are left")
    except (RecollectError, KeyboardInterrupt, driver().Error) as error:
        left = ", ".join(names.tenant for names in tenants)
        raise StoreError(
            f"the tenants made for the proof could not be removed ({error}): {left}. "
            "Remove them with `recollect workspaces remove default --tenant NAME`"
        ) from error
