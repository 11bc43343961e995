"""The attacks that are tried: by `recollect prove isolation`, and by the tests.

In a script `{s}` is our schema, `{me}` the attacker's tenant, `{schema}` the schema's name as a text, and `{tenant}`,
`{workspace}`, `{id}`, `{seq}`, `{audit}`, `{shelf}`, `{key}`, `{conversation}` and `{word}` are the victim's. What
would be about all tenants is narrowed by `{others}` to those made for the proof, without naming one: where something
leaks, nothing of anybody else's is shown, changed or locked.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from recollect.stores.postgres.connections import driver
from recollect.stores.postgres.isolation import DUD, Attack, Siege
from recollect.stores.postgres.setup import ADMIN, APP, OWNER
from recollect.stores.postgres.statements import whose

_NOBODY = "SET LOCAL recollect.tenant = ''"
_FIXED = ("audit", "search")
"""Tables whose rows the application may add, and change no more."""

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
        *_reading(siege),
        *_guessing(),
        *_changing(siege),
        *_adding(siege),
        *_errors(),
        *_plans(siege),
        *_searching(),
        *_names(siege),
        *_sessions(siege),
        *_rights(siege),
        *_becoming(),
        _catalogue(),
    ]


def _reading(siege: Siege) -> list[Attack]:
    every = [(siege.columns(table), f"{{s}}.{table}") for table in siege.tables]
    whole = [table for columns, table in every if columns == "*"]
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
                ["SELECT * FROM {s}.undo WHERE tenant = {tenant} AND seq > 0"],
                ["SELECT * FROM {s}.things WHERE shelf = {shelf} AND key = {key}"],
                ["SELECT * FROM {s}.memories WHERE conversation = {conversation}"],
            ],
            "nothing",
        ),
    ]


def _changing(siege: Siege) -> list[Attack]:
    free = [f"{{s}}.{table}" for table in siege.tables if table not in _FIXED]
    mine = [f"{{s}}.{table}" for table in siege.tables if table != "audit"]
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
            [[f"DELETE FROM {table} WHERE {which}"] for table in mine for which in ("tenant = {tenant}", "{others}")],
        ),
        Attack(
            "lock rows",
            "the victim's rows were locked by SELECT … FOR UPDATE",
            [[f"SELECT 1 FROM {table} WHERE tenant = {{tenant}} FOR UPDATE NOWAIT"] for table in free],
            "nothing",
        ),
        Attack(
            "give rows away",
            "the attacker's own rows were made the victim's",
            [[f"UPDATE {table} SET tenant = {{tenant}} WHERE tenant = {{me}}"] for table in free],
            "refused",
        ),
        Attack(
            "change the log",
            "audit entries were changed and deleted, and words replaced",
            [
                ["UPDATE {s}.audit SET message = 'nothing happened' WHERE {others}"],
                ["DELETE FROM {s}.audit WHERE {others}"],
                ["UPDATE {s}.search SET part = 0 WHERE {others}"],
                ["SELECT {s}.drop_log({tenant}, {workspace})"],
                ["SELECT {s}.drop_log(NULL, {workspace})"],
            ],
            "refused",
        ),
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
            [["COPY {s}.places (tenant, workspace) FROM STDIN"], ["COPY {s}.search FROM STDIN"]],
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
    return [
        Attack(
            "plans",
            "EXPLAIN ANALYZE was asked how many rows a search for the victim's looked at",
            [
                [
                    "SET LOCAL enable_seqscan = off",  # whatever the tables' sizes: the same plan for both
                    "SET LOCAL enable_bitmapscan = off",
                    f"{explain} SELECT 1 FROM {{s}}.{table} WHERE tenant = {{tenant}} AND workspace = {{workspace}}",
                ]
                for table in siege.tables
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


def _searching() -> list[Attack]:
    having = "SELECT * FROM {s}.having"
    return [
        Attack(
            "words of another",
            "the function that searches words was called for the victim, for nobody, and with no tenant said",
            [
                [f"{having}({{tenant}}, {{workspace}}, ARRAY[{{word}}])"],
                [f"{having}(NULL, {{workspace}}, ARRAY[{{word}}])"],
                [_NOBODY, f"{having}('', {{workspace}}, ARRAY[{{word}}])"],
                ["RESET recollect.tenant", f"{having}({{tenant}}, {{workspace}}, ARRAY[{{word}}])"],
            ],
            "refused",
        ),
        Attack(
            "the victim's words",
            "the function was called for the attacker itself: for words as the victim has them, and for all there are",
            [
                [f"{having}({{me}}, {{workspace}}, ARRAY[{{word}}, {{word}}])"],
                [
                    f"SELECT h.seq FROM ({having}({{me}}, {{workspace}}, ARRAY['!nothing'])) h "
                    "WHERE h.seq NOT IN (SELECT seq FROM {s}.memories)"  # the victim has more than the attacker
                ],
            ],
            "nothing",
            control=False,
        ),
        Attack(
            "hostile words",
            "the function was called with what is no query",
            [
                [f"{having}({{me}}, {{workspace}}, ARRAY[NULL])"],
                [f"{having}({{me}}, {{workspace}}, NULL)"],
                [f"{having}({{me}}, {{tenant}}, ARRAY[$$' | '$$ || {{tenant}}])"],
            ],
            control=False,
        ),
        Attack(
            "the index of words",
            "the words themselves were read",
            [
                ["SELECT words FROM {s}.search WHERE {others}"],
                ["SELECT * FROM {s}.search WHERE {others}"],
                ["SELECT count(*) FROM {s}.search WHERE {others} AND words @@ {word}"],
                ["COPY (SELECT * FROM {s}.search WHERE {others}) TO STDOUT"],
                ["SELECT word FROM ts_stat($$SELECT words FROM {s}.search WHERE {others}$$)"],
            ],
            "refused",
        ),
    ]


def _names(siege: Siege) -> list[Attack]:
    shadows = [
        "CREATE TEMP TABLE search (tenant text, workspace text, seq bigint, part integer, words tsvector)",
        "CREATE FUNCTION pg_temp.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT {tenant} $$",
        "CREATE FUNCTION pg_temp.yes(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE FUNCTION pg_temp.yes(tsvector, tsquery) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR pg_temp.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.yes)",
        "CREATE OPERATOR pg_temp.@@ (LEFTARG = tsvector, RIGHTARG = tsquery, FUNCTION = pg_temp.yes)",
        "SET LOCAL search_path = pg_temp, pg_catalog",
    ]
    having = "SELECT * FROM {s}.having"
    return [
        Attack(
            "names that shadow",
            "a table, functions and operators called as ours were put first on the search path, for a function's sake",
            [
                [*shadows, f"{having}({{tenant}}, {{workspace}}, ARRAY[{{word}}])"],
                [*shadows, "SELECT {s}.drop_log({tenant}, {workspace})"],
            ],
            "refused",
        ),
        Attack(
            "names that shadow a policy",
            "the same, for the sake of what the policy and the function compare",
            [
                [*shadows, f"{having}({{me}}, {{workspace}}, ARRAY[{{word}}])"],
                [*shadows, "SELECT * FROM {s}.contents WHERE {others}"],
            ],
            "nothing",
            control=False,
        ),
        Attack(
            "names in our schema",
            "tables, functions and views were put into our schema, and the function that searches was replaced",
            [
                ["CREATE TABLE {s}.spy (t text)"],
                ["CREATE VIEW {s}.spy AS SELECT * FROM {s}.contents"],
                ["CREATE FUNCTION {s}.spy() RETURNS text LANGUAGE sql AS 'SELECT 1::text'"],
                [
                    "CREATE OR REPLACE FUNCTION {s}.having(of_tenant text, of_workspace text, queries text[]) "
                    "RETURNS TABLE (number integer, seq bigint) LANGUAGE sql SECURITY DEFINER "
                    "AS 'SELECT 1, seq FROM {s}.search'"
                ],
                ["ALTER FUNCTION {s}.having(text, text, text[]) SET search_path = pg_temp"],
                ["ALTER FUNCTION {s}.having(text, text, text[]) RESET ALL"],
            ],
            "refused",
        ),
    ]


def _sessions(siege: Siege) -> list[Attack]:
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
    sessions, sql = siege.sessions, "SELECT tenant FROM {s}.memories WHERE tenant = %s"
    if not sessions.rows(siege.victim.tenant, sql, [siege.victim.tenant]):
        return DUD
    if sessions.rows(siege.attacker.tenant, sql, [siege.victim.tenant]):
        return "the attacker saw the victim's rows on a connection that the victim had used"
    with sessions.connections.lent() as connection:
        for statement in siege.beginning(None):
            connection.execute(statement)
        found = connection.execute(_theirs(siege)).fetchall()
        connection.execute("ROLLBACK")
    return "nobody saw the victim's rows on a connection that the victim had used" if found else ""


_TRIGGER = "suppress_redundant_updates_trigger"


def _rights(siege: Siege) -> list[Attack]:
    tables = [f"{{s}}.{table}" for table in siege.tables]
    return [
        Attack(
            "switch it off",
            "row-level security was switched off: for the session, on the tables, by policies",
            [
                *(["SET LOCAL row_security = off", f"SELECT tenant FROM {table} WHERE {{others}}"] for table in tables),
                *([f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"] for table in tables),
                *([f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY"] for table in tables),
                *([f"CREATE POLICY spy ON {table} USING (true)"] for table in tables),
                *([f"DROP POLICY own_tenant ON {table}"] for table in tables),
                *([f"ALTER POLICY own_tenant ON {table} USING (true)"] for table in tables),
                ["SET LOCAL session_replication_role = replica"],
            ],
            "refused",
        ),
        Attack(
            "change the schema",
            "tables were emptied, dropped, renamed, given triggers and rules, and written that say what is set up",
            [
                *([f"TRUNCATE {table}"] for table in tables),
                *([f"DROP TABLE {table}"] for table in tables),
                ["ALTER TABLE {s}.memories RENAME TO old"],
                [f"CREATE TRIGGER spy AFTER INSERT ON {{s}}.contents EXECUTE FUNCTION {_TRIGGER}()"],
                ["CREATE RULE spy AS ON INSERT TO {s}.contents DO ALSO NOTIFY spy"],
                ["DROP SCHEMA {s} CASCADE"],
                ["INSERT INTO {s}.migrations VALUES (99, 'forged')"],
                ["UPDATE {s}.migrations SET name = 'forged'"],
                ["DELETE FROM {s}.migrations"],
            ],
            "refused",
        ),
    ]


def _becoming() -> list[Attack]:
    return [
        Attack(
            "become somebody else",
            "the session became the owner, the administrator, and whoever may do anything",
            [
                *([f"SET ROLE {role}", "SELECT 1"] for role in (OWNER, ADMIN)),
                *([f"SET SESSION AUTHORIZATION {role}", "SELECT 1"] for role in (OWNER, ADMIN)),
                [f"ALTER ROLE {APP} BYPASSRLS"],
                [f"GRANT {OWNER} TO {APP}"],
                ["SELECT pg_read_file('PG_VERSION')"],
                ["SELECT lo_import('/etc/passwd')"],
                ["COPY {s}.places TO PROGRAM 'cat'"],
            ],
            "refused",
            login=True,
        ),
        Attack(
            "leave the role",
            "RESET ROLE and SET ROLE NONE, then every table was read",
            by=_left,
            login=True,
        ),
    ]


def _left(siege: Siege) -> str:
    """What is left of a login when the role that it took on is laid down."""
    for leave in ("RESET ROLE", "SET ROLE NONE", "RESET SESSION AUTHORIZATION"):
        for table in siege.tables:
            script = [leave, f"SELECT {siege.columns(table)} FROM {{s}}.{table} WHERE {{others}}"]
            with suppress(driver().Error):
                if siege.answer(script, siege.victim, siege.attacker.tenant).rows:
                    return f"after {leave} the rows of others were there"
    return ""


def _catalogue() -> Attack:
    """What is in the schema, whatever it is: a table that somebody adds later is not forgotten here."""
    return Attack(
        "the catalogue",
        "every table, view, policy and function in the schema was looked at for one that lets others through",
        [[question] for question in _questions()],
        "nothing",
        control=False,
    )


def _questions() -> Sequence[str]:
    ours = "JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = {schema}"
    tables = f"FROM pg_class c {ours} AND c.relkind IN ('r', 'p', 'f')"
    kept = "AND c.relname <> 'migrations'"
    public = "SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee = 0"
    return (
        f"SELECT c.relname, 'has no row-level security' {tables} WHERE NOT c.relrowsecurity {kept}",
        f"""SELECT c.relname, 'does not force it' {tables}
            WHERE NOT c.relforcerowsecurity {kept} AND c.relname <> 'search'""",
        f"""SELECT c.relname, 'has no policy' {tables}
            WHERE NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid) {kept}""",
        f"""SELECT tablename, policyname, 'lets others through' FROM pg_policies WHERE schemaname = {{schema}}
            AND permissive = 'PERMISSIVE' AND (qual IS DISTINCT FROM {_POLICY} OR with_check IS NOT NULL)
            AND NOT (tablename = 'places' AND cmd = 'SELECT' AND roles = ARRAY['{ADMIN}']::name[])""",
        f"SELECT c.relname, 'is this role''s own' {tables} WHERE pg_has_role(c.relowner, 'USAGE')",
        f"SELECT c.relname, 'shows what its owner sees' FROM pg_class c {ours} AND c.relkind IN ('v', 'm')",
        "SELECT 'this role goes past row-level security' FROM pg_roles WHERE rolname = current_user AND "
        "(rolbypassrls OR rolsuper)",
        f"""SELECT 'this role is an administrator' FROM pg_roles
            WHERE rolname IN ('{ADMIN}', '{OWNER}') AND pg_has_role(oid, 'USAGE')""",
        "SELECT 'this role makes things in the schema' WHERE has_schema_privilege({schema}, 'CREATE')",
        f"""SELECT c.relname, 'can be written' {tables} AND c.relname = 'migrations'
            WHERE has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')""",
        f"""SELECT c.relname, 'can be emptied, or watched' {tables}
            WHERE has_table_privilege(c.oid, 'TRUNCATE, REFERENCES, TRIGGER')""",
        f"""SELECT p.proname, 'is anybody''s to run, or takes names from whoever calls it' FROM pg_proc p
            JOIN pg_namespace n ON n.oid = p.pronamespace AND n.nspname = {{schema}} WHERE EXISTS ({public})
            OR p.prosecdef AND NOT coalesce(p.proconfig, '{{}}') @> ARRAY['search_path=pg_catalog, pg_temp']""",
    )


_POLICY = "'(tenant = NULLIF(current_setting(''recollect.tenant''::text, true), ''''::text))'"
"""As the server writes it."""
