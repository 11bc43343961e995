"""Changing, deleting and locking another tenant's rows, and adding some for it."""

from __future__ import annotations

from recollect.proving.postgres.isolation import Attack, Siege

_FIXED = ("audit", "search", "places")
"""Tables whose rows the application may add, and not change as it likes."""


def attacks(siege: Siege) -> list[Attack]:
    return [*_changing(siege), *_adding(siege)]


_OWN_ROW = "FROM {s}.places WHERE tenant = {me} AND workspace = {workspace}"
"""As the store calls these functions."""
_LOG = [
    Attack(
        "change the log",
        "audit entries were changed and deleted, and words replaced",
        [
            ["UPDATE {s}.audit SET message = 'nothing happened' WHERE {others}"],
            ["DELETE FROM {s}.audit WHERE {others}"],
            ["UPDATE {s}.search SET part = 0 WHERE {others}"],
            ["UPDATE {s}.places SET workspace = 'taken' WHERE {others}"],
            ["DELETE FROM {s}.places WHERE {others}"],
            ["SELECT {s}.drop_place({tenant}, {workspace})"],
            ["SELECT {s}.drop_place(NULL, {workspace})"],
            ["SELECT {s}.write_head({tenant}, {workspace}, 0, 0, 0, '')"],
            ["SELECT {s}.write_head(NULL, {workspace}, 0, 0, 0, '')"],
        ],
        "refused",
    ),
    Attack(
        "shorten the log",
        "the attacker's own audit log was removed, cut off and said to be another, with the workspace left there",
        [
            [f"SELECT {{s}}.drop_place({{me}}, {{workspace}}) {_OWN_ROW}"],
            [
                "DELETE FROM {s}.memories WHERE tenant = {me}",
                f"SELECT {{s}}.drop_place({{me}}, {{workspace}}) {_OWN_ROW}",
            ],
            ["UPDATE {s}.places SET entries = 0, sealed = '' WHERE tenant = {me}"],
            ["DELETE FROM {s}.places WHERE tenant = {me}"],
            ["INSERT INTO {s}.places (tenant, workspace, entries) VALUES ({me}, 'made up', 5)"],
            [f"SELECT {{s}}.write_head({{me}}, {{workspace}}, 0, 0, 0, '') {_OWN_ROW}"],
            [f"SELECT {{s}}.write_head({{me}}, {{workspace}}, 0, 0, 1000, 'forged') {_OWN_ROW}"],
            [
                "INSERT INTO {s}.audit SELECT tenant, workspace, seq + 1000, id, at, action, message, folded, "
                "actor, meta, 'forged' FROM {s}.audit WHERE tenant = {me} AND workspace = {workspace}",
                f"SELECT {{s}}.write_head({{me}}, {{workspace}}, 0, 0, 1001, 'forged') {_OWN_ROW}",
            ],
        ],
        "refused",
    ),
]
"""Attacks on audit logs: the victim's, and the attacker's own."""


def _changing(siege: Siege) -> list[Attack]:
    free = [f"{{s}}.{table}" for table in siege.tables if table not in _FIXED]
    tables = [f"{{s}}.{table}" for table in siege.tables if table not in ("audit", "places")]
    return [
        Attack(
            "change",
            "the victim's rows were updated, by name and by everything that is not the attacker's",
            [
                [f"UPDATE {table} SET workspace = 'taken' WHERE {which}"]
                for table in free
                for which in ("tenant = {tenant}", "{others}")
            ],
        ),
        Attack(
            "delete",
            "the victim's rows were deleted, by name and by everything that is not the attacker's",
            [[f"DELETE FROM {table} WHERE {which}"] for table in tables for which in ("tenant = {tenant}", "{others}")],
        ),
        Attack(
            "lock rows",
            "the victim's rows were locked by SELECT … FOR UPDATE",
            [[f"SELECT 1 FROM {table} WHERE tenant = {{tenant}} FOR UPDATE NOWAIT"] for table in (*free, "{s}.places")],
            "nothing",
        ),
        Attack(
            "give rows away",
            "the attacker's own rows were made the victim's",
            [[f"UPDATE {table} SET tenant = {{tenant}} WHERE tenant = {{me}}"] for table in free],
            "refused",
        ),
        *_LOG,
    ]


def _adding(siege: Siege) -> list[Attack]:
    whole = [table for table in siege.tables if siege.columns(table) == "*"]
    copied = "SELECT (json_populate_record(r, json_build_object('tenant', {tenant}))).* FROM {s}.TABLE r"
    made = [f"INSERT INTO {{s}}.{table} {copied.replace('TABLE', table)}" for table in whole]
    made.append("INSERT INTO {s}.search VALUES ({tenant}, {workspace}, {seq}, 0, 'forged')")
    return [
        Attack(
            "add rows",
            "rows were added for the victim: under numbers and ids that it has, and that nobody has",
            [[statement] for statement in made],
            "refused",
        ),
        Attack(
            "conflicts",
            "rows were added so that a conflict would tell that the victim has such a row",
            [
                *([f"{statement} ON CONFLICT DO NOTHING"] for statement in made),
                [
                    "INSERT INTO {s}.places (tenant, workspace) VALUES ({tenant}, {workspace}) "
                    "ON CONFLICT (tenant, workspace) DO UPDATE SET memories = 0 RETURNING sealed"
                ],
            ],
            "refused",
        ),
        Attack(
            "COPY FROM",
            "rows were copied in",
            [
                ["COPY {s}.places (tenant, workspace) FROM STDIN\n{tenant}\tmade up"],
                ["COPY {s}.search FROM STDIN\n{tenant}\tmade up\t1\t0\tforged"],
            ],
            "refused",
        ),
        Attack(
            "references",
            "what looks past row-level security was made on the tables: foreign keys, indexes, statistics",
            [
                ["CREATE TABLE {s}.spy (t text, w text, FOREIGN KEY (t, w) REFERENCES {s}.places)"],
                ["CREATE INDEX ON {s}.contents (md5(text))"],
                ["CREATE STATISTICS {s}.spy ON tenant, workspace FROM {s}.memories"],
            ],
            "refused",
        ),
    ]
