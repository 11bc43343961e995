"""The attacks that are tried: by `recollect prove isolation`, and by the tests.

In a script `{s}` is our schema, `{me}` the attacker's tenant, `{schema}` the schema's name as a text, and `{tenant}`,
`{workspace}`, `{id}`, `{seq}`, `{audit}`, `{shelf}`, `{key}`, `{conversation}` and `{word}` are the victim's. What
would be about all tenants is narrowed by `{others}` to those made for the proof, without naming one: where something
leaks, nothing of anybody else's is shown, changed or locked.
"""

from __future__ import annotations

from recollect.proving.postgres.attacks import functions, hints, reading, rights, sessions, writing
from recollect.proving.postgres.isolation import Attack, Siege

LIMITS = (
    "Whoever can run SQL of their own as the application's role can say to be any tenant, by SET recollect.tenant. "
    "The role is trusted to say whose turn it is; no value that reaches a verb can.",
    "They can also read what the server tells everybody of all tenants together: the size of tables and how many rows "
    "they have (pg_class, pg_stat_user_tables), what EXPLAIN estimates, and which locks are held (pg_locks).",
    "Sessions of the same login see each other's statements in pg_stat_activity, and names of tenants stand in them.",
    "They can hold locks that others wait for, such as LOCK TABLE: that stops neighbours, and shows nothing of theirs.",
)
"""What row-level security cannot do, and nobody should be led to expect of it."""


def attacks(siege: Siege) -> list[Attack]:
    """All of them, for the tables that are there."""
    return [
        *reading.attacks(siege),
        *writing.attacks(siege),
        *hints.attacks(siege),
        *functions.attacks(),
        *sessions.attacks(siege),
        *rights.attacks(siege),
    ]
