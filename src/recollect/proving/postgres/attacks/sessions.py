"""Connections, and what one tenant leaves on them for the next."""

from __future__ import annotations

from recollect.proving.postgres.isolation import DUD, Attack, Siege
from recollect.stores.postgres.statements import whose


def attacks(siege: Siege) -> list[Attack]:
    return [
        Attack(
            "after a transaction",
            "a connection was used for the victim until COMMIT, ROLLBACK or ROLLBACK TO, then for another",
            by=_after_a_transaction,
        ),
        Attack(
            "prepared statements",
            "a statement was planned and run for the victim, then run for the attacker and for nobody",
            by=_prepared,
        ),
        Attack(
            "a pooled connection",
            "the store worked for the victim, then the attacker and nobody used the same connection",
            by=_pooled,
        ),
        Attack(
            "parts of tables",
            "the partitions of a table were read and deleted from directly",
            [
                [statement]
                for part in _partitions(siege)
                for statement in (f"SELECT * FROM {part} WHERE {{others}}", f"DELETE FROM {part} WHERE {{others}}")
            ],
            "refused",
        ),
    ]


def _partitions(siege: Siege) -> list[str]:
    sql = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = to_regclass('{s}.vectors')"
    with siege.connected() as connection:
        return [name for (name,) in connection.execute(siege.filled(sql, siege.victim))]


def _theirs(siege: Siege) -> str:
    return siege.filled("SELECT tenant, text FROM {s}.contents WHERE {others}", siege.victim)


def _after_a_transaction(siege: Siege) -> str:
    """The setting is of a transaction, and of nothing that comes after."""
    for end in ("COMMIT", "ROLLBACK"):
        with siege.connected() as connection:
            for statement in siege.beginning(siege.victim.tenant):
                connection.execute(statement)
            if not connection.execute(_theirs(siege)).fetchall():
                return DUD
            connection.execute(end)
            for statement in siege.beginning(None):
                connection.execute(statement)
            if connection.execute(_theirs(siege)).fetchall():
                return f"after {end} the next transaction on the connection still was the victim's"
    with siege.connected() as connection:
        for statement in (*siege.beginning(siege.attacker.tenant), "SAVEPOINT s", whose(siege.victim.tenant)):
            connection.execute(statement)
        connection.execute("ROLLBACK TO s")
        if connection.execute(_theirs(siege)).fetchall():
            return "after ROLLBACK TO a savepoint the transaction still was the victim's"
    return ""


def _prepared(siege: Siege) -> str:
    """A plan that is kept must ask anew whose turn it is, also one made for all values.

    In one transaction: a pooler in between would give the next one another session, or leave somebody this statement.
    """
    turns = siege.victim.tenant, siege.attacker.tenant, ""
    for mode in ("auto", "force_generic_plan", "force_custom_plan"):
        with siege.connected() as connection:
            for statement in (*siege.beginning(turns[0]), f"SET LOCAL plan_cache_mode = {mode}"):
                connection.execute(statement)
            connection.execute(f"PREPARE theirs AS {_theirs(siege)}")
            seen: list[list[object]] = []
            for turn in turns:
                connection.execute(whose(turn))
                seen += [[row for _ in range(7) for row in connection.execute("EXECUTE theirs").fetchall()]]
            connection.execute("DEALLOCATE theirs")
            if not seen[0]:
                return DUD
            if seen[1] or seen[2]:
                return f"a statement planned for the victim showed its rows to another ({mode})"
    return ""


def _pooled(siege: Siege) -> str:
    """As the store lends connections: the one that was used last comes first."""
    server, sql = siege.server, "SELECT tenant FROM {s}.memories WHERE tenant = %s"
    if not server.rows(siege.victim.tenant, sql, [siege.victim.tenant]):
        return DUD
    if server.rows(siege.attacker.tenant, sql, [siege.victim.tenant]):
        return "the attacker saw the victim's rows on a connection that the victim had used"
    with server.connections.lent() as connection:
        for statement in siege.beginning(None):
            connection.execute(statement)
        rows = connection.execute(_theirs(siege)).fetchall()
        connection.execute("ROLLBACK")
    return "nobody saw the victim's rows on a connection that the victim had used" if rows else ""
