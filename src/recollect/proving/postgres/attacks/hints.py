"""What tells of rows that it does not show: errors, plans and statistics."""

from __future__ import annotations

from recollect.proving.postgres.isolation import Attack, Siege

_SAME_PLAN = (
    "SET LOCAL enable_seqscan = off",
    "SET LOCAL enable_bitmapscan = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",  # how many workers start differs from one run to the next
)
"""Whatever the tables' sizes and the server's settings: the same plan for the victim and for the phantom."""


def attacks(siege: Siege) -> list[Attack]:
    return [*_errors(), *_plans(siege)]


def _errors() -> list[Attack]:
    made = (
        "CREATE FUNCTION pg_temp.tell(tenant text, t text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 "
        "AS $$ BEGIN IF tenant = {tenant} THEN RAISE HOW 'seen: %', t; END IF; RETURN true; END $$"
    )
    shouted, raised = made.replace("HOW", "NOTICE"), made.replace("HOW", "EXCEPTION")
    return [
        Attack(
            "functions that tell",
            "cheap functions that tell what they are given were put before the policy",
            [
                [shouted, "SELECT count(*) FROM {s}.contents WHERE pg_temp.tell(tenant, text)"],
                [raised, "SELECT count(*) FROM {s}.contents WHERE {others} AND pg_temp.tell(tenant, text)"],
                [raised, "SELECT count(*) FROM {s}.things WHERE pg_temp.tell(tenant, body) AND tenant = {tenant}"],
            ],
        ),
        Attack(
            "errors",
            "casts and divisions by zero were to fail on the victim's rows, and to name what is in them",
            [
                ["SELECT count(*) FROM {s}.contents WHERE {others} AND text::int = 1"],
                ["SELECT count(*) FROM {s}.memories WHERE tenant = {tenant} AND 1 / (seq - seq) = 1"],
                ["SELECT count(*) FROM {s}.things WHERE {others} AND body::xml IS NOT NULL"],
                ["SELECT 1 / (length(id) - 32) FROM {s}.memories WHERE id = {id}"],
            ],
        ),
    ]


def _plans(siege: Siege) -> list[Attack]:
    explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)"
    statistics = "schemaname = {schema} AND tablename <> 'migrations'"
    # On Citus the plan is that of a shard: those of two tenants differ by what else the shards hold.
    shared = [] if siege.server.facts.citus else siege.tables
    return [
        Attack(
            "plans",
            "EXPLAIN ANALYZE was asked how many rows a search for the victim's looked at",
            [
                [
                    *_SAME_PLAN,
                    f"{explain} SELECT 1 FROM {{s}}.{table} WHERE tenant = {{tenant}} AND workspace = {{workspace}}",
                ]
                for table in shared
                if table != "vectors"  # whose plan names a partition, which a name is enough to work out
            ],
        ),
        Attack(
            "statistics",
            "the server's statistics were read, which hold the commonest values of columns",
            [
                [f"SELECT tablename, attname FROM pg_stats WHERE {statistics}"],
                [f"SELECT tablename FROM pg_stats_ext WHERE {statistics}"],
            ],
            "nothing",
            control=False,
        ),
        Attack(
            "statistics of the system",
            "the table that the statistics are kept in was read",
            [["SELECT starelid FROM pg_statistic LIMIT 1"], ["SELECT stxoid FROM pg_statistic_ext_data LIMIT 1"]],
            "refused",
        ),
    ]
