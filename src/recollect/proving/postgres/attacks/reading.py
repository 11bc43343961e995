"""Reading another tenant's rows: outright, by a way around, and by guessed ids."""

from __future__ import annotations

from recollect.proving.postgres.isolation import Attack, Siege

_NOBODY = "SET LOCAL recollect.tenant = ''"


def attacks(siege: Siege) -> list[Attack]:
    return [*_reading(siege), *_around(siege), *_guessing()]


def _reading(siege: Siege) -> list[Attack]:
    every = [(siege.columns(table), f"{{s}}.{table}") for table in siege.tables]
    return [
        Attack(
            "no tenant said",
            "every table was read in a transaction that does not say whose it is",
            [[f"SELECT {columns} FROM {table} WHERE {{others}}"] for columns, table in every],
            "nothing",
            says=False,
        ),
        Attack(
            "an empty tenant",
            "every table was read in a transaction that says it is nobody's",
            [[_NOBODY, f"SELECT {columns} FROM {table} WHERE {{others}}"] for columns, table in every],
            "nothing",
            control=False,
        ),
        Attack(
            "a forgotten condition",
            "every table was read without a condition, for rows of others",
            [[f"SELECT {columns} FROM {table} WHERE {{others}}"] for columns, table in every],
            "nothing",
        ),
        Attack(
            "read",
            "every table was read by the victim's name",
            [[f"SELECT {columns} FROM {table} WHERE tenant = {{tenant}}"] for columns, table in every],
            "nothing",
        ),
        Attack(
            "count",
            "the victim's rows were counted in every table",
            [[f"SELECT count(*), max(tenant) FROM {table} WHERE tenant = {{tenant}}"] for _, table in every],
        ),
    ]


def _around(siege: Siege) -> list[Attack]:
    """Reading, but not by a plain SELECT from a table."""
    every = [(siege.columns(table), f"{{s}}.{table}") for table in siege.tables]
    whole = [table for columns, table in every if columns == "*"]
    return [
        Attack(
            "physical addresses",
            "rows were read by where they are on the disk, and by samples of the pages",
            [
                *([f"SELECT * FROM {table} WHERE ctid >= '(0,0)' AND {{others}}"] for table in whole),
                *([f"SELECT * FROM {table} TABLESAMPLE SYSTEM (100) WHERE {{others}}"] for table in whole),
            ],
            "nothing",
        ),
        Attack(
            "COPY TO",
            "tables were copied out, as a dump does",
            [[f"COPY (SELECT {columns} FROM {table} WHERE {{others}}) TO STDOUT"] for columns, table in every],
        ),
        Attack(
            "a view, a function and a cursor",
            "tables were read through a view, a function and a cursor of the attacker's own",
            [
                ["CREATE TEMP VIEW theirs AS SELECT * FROM {s}.contents", "SELECT * FROM theirs WHERE {others}"],
                [
                    "CREATE FUNCTION pg_temp.theirs() RETURNS SETOF {s}.contents LANGUAGE sql SECURITY DEFINER "
                    "AS 'SELECT * FROM {s}.contents'",
                    "SELECT * FROM pg_temp.theirs() WHERE {others}",
                ],
                ["DECLARE c CURSOR WITH HOLD FOR SELECT * FROM {s}.contents WHERE {others}", "FETCH ALL FROM c"],
            ],
            "nothing",
        ),
    ]


def _guessing() -> list[Attack]:
    return [
        Attack(
            "guessed ids",
            "memories, contents, audit entries, undo data, vectors and things were asked for by the victim's own ids",
            [
                ["SELECT * FROM {s}.memories WHERE id = {id}"],
                ["SELECT * FROM {s}.contents WHERE seq = {seq} AND {others}"],
                ["SELECT * FROM {s}.embeddings WHERE seq = {seq} AND {others}"],
                ["SELECT * FROM {s}.audit WHERE id = {audit}"],
                ["SELECT * FROM {s}.undo_items WHERE tenant = {tenant} AND entry > 0"],
                ["SELECT * FROM {s}.things WHERE shelf = {shelf} AND key = {key}"],
                ["SELECT * FROM {s}.memories WHERE conversation = {conversation}"],
            ],
            "nothing",
        ),
    ]
