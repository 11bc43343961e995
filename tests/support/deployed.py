"""A PostgreSQL store as it is deployed: a schema of its own, and a login that is a member of recollect_app only."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recollect import Memory
from support import postgres
from support.stores import fresh_location


class Deployment:
    """A schema of its own, and a login that may use it as an application does."""

    def __init__(self, *, also: str = "") -> None:
        self.owned = fresh_location(untouched=True)
        self.schema = self.owned.rpartition("=")[2]
        with Memory(self.owned, embedder="none") as memory:
            memory.remember("there is a schema now")
        self.login = f"hostile_{secrets.token_hex(4)}"
        self.sql(f"CREATE ROLE {self.login} LOGIN PASSWORD 'hostile'; GRANT recollect_app TO {self.login}")
        if also:
            self.sql(also)
        url = postgres.shared().url(user=self.login, password="hostile")
        self.location = f"{url}{'&' if '?' in url else '?'}schema={self.schema}"

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """As whoever may do anything."""
        return postgres.shared().run(statement.replace("{s}", self.schema).replace("{login}", self.login))

    @property
    def libpq(self) -> str:
        """The location as others than us read it."""
        return self.location.partition("schema=")[0].rstrip("?&")

    def remove(self) -> None:
        self.sql("DROP OWNED BY {login}; DROP ROLE {login}; DROP SCHEMA {s} CASCADE")


@contextmanager
def deployed(also: str = "") -> Iterator[Deployment]:
    deployment = Deployment(also=also)
    try:
        yield deployment
    finally:
        deployment.remove()
