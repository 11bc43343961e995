"""Work on the rows of all tenants, by a role that may act as the owner of the tables and sees which tenants exist."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from recollect.stores.postgres.admin.setup import ADMIN, SetupFacts, ready
from recollect.stores.postgres.connections import Connection, Connections, Location, driver, translated
from recollect.values.errors import AccessError


@contextmanager
def connected_as_owner(location: Location, purpose: str) -> Generator[tuple[Connection, SetupFacts]]:
    """A connection, and what the server is like. AccessError names the purpose."""
    with Connections(location).lent() as connection:
        try:
            seen = ready(connection, location)
            if not seen.may_upgrade or not (seen.unbound or ADMIN in seen.member_of):
                raise AccessError(
                    f"the role {seen.user} may not {purpose}: connect as a member of {seen.owner} and {ADMIN}"
                )
            yield connection, seen
        except driver().Error as error:
            raise translated(error, location) from error


def rows_of_all(connection: Connection, location: Location, seen: SetupFacts, sql: str) -> list[Any]:
    """The answer to a question about the places of all tenants."""
    with connection.transaction():
        for begin in (*seen.begin, *([f"SET LOCAL ROLE {ADMIN}"] if ADMIN in seen.member_of else ())):
            connection.execute(begin)
        return connection.execute(sql.replace("{s}", location.schema)).fetchall()
