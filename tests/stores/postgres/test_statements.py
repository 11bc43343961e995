"""What Citus needs of every statement, which is also what pruning and indexes live by.

One statement an execute; the tenant as a value in every query and sub-query that reads a table of ours, so that all of
it runs on one worker; no COPY; rows from JSON only beside a row that says where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import psycopg
import pytest
import sqlglot
from sqlglot import exp
from sqlglot.tokens import TokenType
from support.stores import fresh_location, give_back

from recollect import Memory
from recollect.conformance import StoreConformance
from recollect.stores import open_store
from recollect.stores.port import Store
from recollect.stores.postgres.admin import setup
from recollect.stores.postgres.connections import Location
from recollect.stores.postgres.tenants.placement import LOG

pytestmark = pytest.mark.slow
AROUND = (
    r"BEGIN ISOLATION LEVEL (READ COMMITTED|REPEATABLE READ)|COMMIT|ROLLBACK",
    r"(SAVEPOINT|RELEASE|ROLLBACK TO) s\d+",
    r"SET LOCAL recollect\.tenant = ( E)?'([^'\\]|''|\\\\)*'",
    r"SET LOCAL ROLE (recollect_app|recollect_admin)",
    r"SET LOCAL lock_timeout = \d+|SET LOCAL jit = off|SET LOCAL enable_nestloop = (off|default)",
    r"SET LOCAL citus\.(propagate_set_commands = 'local'|allow_nested_distributed_execution = on)",
)
"""What stands around statements."""
OF_THE_SERVER = re.compile(
    r"SELECT pg_backend_pid\(\)|SELECT current_setting\('server_version_num'\)"
    r"|SELECT coalesce\(max\(number\), 0\) FROM \w+\.migrations"
)
ADMINISTRATION = re.compile(r"SELECT DISTINCT tenant FROM \w+\.places WHERE [^;]*")
"""The one question about all tenants."""
_checked: set[str] = set()


def said(text: str) -> list[str]:
    """The statements in a text, with a value in each place for one."""
    text = re.sub(r"%\(\w+\)s|%s|%b", "'x'", text).replace("%%", "%")
    edges = [
        token.start for token in sqlglot.tokenize(text, dialect="postgres") if token.token_type == TokenType.SEMICOLON
    ]
    starts = [0, *(edge + 1 for edge in edges)]
    parts = [text[start:end].strip() for start, end in zip(starts, [*edges, len(text)], strict=True)]
    return [part for part in parts if part]


def check(text: str, schema: str) -> None:
    shape = text.replace(schema, "ours")
    if shape in _checked:
        return
    assert "set_config" not in text
    assert len(said(text)) == 1, f"several statements in one: {text}"
    for one in said(text):
        if any(re.fullmatch(pattern, one) for pattern in AROUND) or OF_THE_SERVER.match(one):
            continue
        if ADMINISTRATION.fullmatch(one):
            continue
        # sqlglot takes the name of our function for a keyword, also behind that of the schema.
        parsed = sqlglot.parse_one(one.replace(f"{schema}.having(", f"{schema}.finding("), dialect="postgres")
        assert not isinstance(parsed, exp.Command | exp.Set | exp.Transaction), f"not expected: {one}"
        loose = list(unbound(parsed, schema))
        assert not loose, f"{loose} without a tenant in: {one}"
        assert not made_on_the_coordinator(parsed, schema), f"would be sent by COPY: {one}"
    _checked.add(shape)


def unbound(parsed: exp.Expression, schema: str) -> Iterator[str]:
    """Tables of ours that no condition ties to one tenant."""
    for table in parsed.find_all(exp.Table):
        if table.db != schema:
            continue
        if isinstance(table.this, exp.Func):  # the tenant comes first
            if not (table.this.expressions and isinstance(table.this.expressions[0], exp.Literal)):
                yield table.sql()
            continue
        holder = table.parent
        if isinstance(holder, exp.Schema) and isinstance(holder.parent, exp.Insert):
            if holder.expressions[0].name != "tenant":
                yield f"INSERT INTO {table.name}"
            continue
        if not _bound(table.alias_or_name, _scope(table)):
            yield table.sql()


def made_on_the_coordinator(parsed: exp.Expression, schema: str) -> bool:
    """Whether rows are inserted that come from no table of ours: Citus makes them and sends them by COPY."""
    if not isinstance(parsed, exp.Insert) or isinstance(parsed.expression, exp.Values):
        return False
    sources = parsed.expression.find_all(exp.Table)
    return not any(table.db == schema and not isinstance(table.this, exp.Func) for table in sources)


Scope = exp.Select | exp.Update | exp.Delete


def _scope(node: exp.Expression) -> Scope:
    found = node.find_ancestor(exp.Select, exp.Update, exp.Delete)
    assert found is not None, node.sql()
    return found


def _bound(alias: str, scope: Scope, seen: frozenset[str] = frozenset()) -> bool:
    tables = [
        table for table in scope.find_all(exp.Table) if _scope(table) is scope and not isinstance(table.this, exp.Func)
    ]
    alone = len([table for table in tables if table.db]) == 1
    for left, right in _equal(scope):
        for one, other in ((left, right), (right, left)):
            if not isinstance(one, exp.Column) or one.name != "tenant":
                continue
            if one.table != alias and not (not one.table and alone):
                continue
            if isinstance(other, exp.Literal):
                return True
            # Of the same query: a value of the query around it does not tell Citus where a sub-query runs.
            beside = {table.alias_or_name for table in tables} - {*seen, alias}
            tied = isinstance(other, exp.Column) and other.name == "tenant" and other.table in beside
            if tied and _bound(other.table, scope, seen | {alias}):
                return True
    for join in scope.args.get("joins") or ():
        using = [name.name for name in join.args.get("using") or ()]
        if "tenant" in using:
            names = {table.alias_or_name for table in tables}
            others = names - {alias} - seen
            if alias in names and any(_bound(other, scope, seen | {alias}) for other in others):
                return True
    return False


def _equal(scope: Scope) -> Iterator[tuple[exp.Expression, exp.Expression]]:
    """What must be equal: of conditions joined by AND alone."""
    where = scope.args.get("where")
    conditions = [where.this] if where else []
    conditions += [join.args["on"] for join in scope.args.get("joins") or () if join.args.get("on")]
    for source in (scope.args.get("from") or scope.args.get("from_"),):
        for join in (source.this.args.get("joins") or ()) if source and source.this else ():
            conditions += [join.args["on"]] if join.args.get("on") else []
    while conditions:
        one = conditions.pop()
        if isinstance(one, exp.Paren):
            conditions.append(one.this)
        elif isinstance(one, exp.And):
            conditions += [one.left, one.right]
        elif isinstance(one, exp.EQ):
            yield one.left, one.right


@pytest.fixture
def location() -> Iterator[str]:
    yield (location := fresh_location())
    give_back(location)


@pytest.fixture
def recorded(location: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is sent once the schema is there."""
    with closing(open_store(location)) as store:
        store.places("default")
    sent: list[str] = []
    plain = psycopg.Connection.execute

    def execute(self: Any, query: Any, *more: Any, **options: Any) -> Any:
        sent.append(query.decode() if isinstance(query, bytes) else query)
        return plain(self, query, *more, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    yield sent
    monkeypatch.undo()
    schema = location.rpartition("=")[2]
    for text in sent:
        if schema in text or "recollect" in text or not text.startswith("SELECT"):
            check(text, schema)


class TestStatementsOfTheClaims(StoreConformance):
    """All claims of the port once more; what counts here is what was sent for them."""

    @pytest.fixture
    def store(self, recorded: list[str], location: str) -> Iterator[Store]:
        with closing(open_store(location)) as store:
            yield store

    @pytest.fixture
    def reopen(self, recorded: list[str], location: str) -> Any:
        return lambda: open_store(location)


def test_statements_of_the_verbs(recorded: list[str], location: str) -> None:
    with Memory(location).at(tenant="o'clock", workspace="w", account="ann") as memory:
        first = memory.remember("a heron in the reeds", tags=["birds.wading"], kind="fact")
        memory.remember_many(["an owl", "a finch"])
        memory.remember("Ann likes herons", kind="preference", tier="account")
        memory.recall('heron "in the reeds" re*')
        memory.list(tags=["birds"])
        revised = memory.revise(first.id, content="a grey heron")
        memory.archive(revised.id)
        memory.restore(revised.id)
        memory.forget(revised.id)
        memory.undo()
        memory.maintain()
        memory.stats()
        assert memory.doctor().ok
        assert all(log.ok for log in memory.audit.verify())
    assert any("SET LOCAL recollect.tenant = 'o''clock'" in text for text in recorded)
    assert len(recorded) > 50


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM s.memories WHERE workspace = 'x'",
        "SELECT id FROM s.memories WHERE tenant = 'x' OR workspace = 'x'",
        "SELECT m.id FROM s.memories m JOIN s.contents c ON c.seq = m.seq WHERE m.tenant = 'x'",
        "SELECT m.id FROM s.memories m JOIN s.contents c USING (workspace, seq) WHERE m.tenant = 'x'",
        "SELECT m.id FROM s.memories m WHERE m.tenant = 'x' AND EXISTS (SELECT 1 FROM s.tags t WHERE t.seq = m.seq)",
        "SELECT 1 FROM s.memories m WHERE m.tenant = 'x' AND EXISTS (SELECT 1 FROM s.tags t WHERE t.tenant = m.tenant)",
        "INSERT INTO s.tags (tenant, seq) SELECT 'x', seq FROM json_to_recordset('[]') AS x (seq bigint)",
        "COPY s.memories FROM STDIN",
        "SELECT id FROM s.memories WHERE tenant = 'x'; SELECT id FROM s.memories WHERE tenant = 'x'",
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL jit = off",
        "UPDATE s.memories m SET speaker = 'x' WHERE m.workspace = 'x'",
        "DELETE FROM s.memories",
        "INSERT INTO s.memories (workspace, seq) VALUES ('x', 1)",
        "SELECT number FROM s.having(workspace, 'x')",
        "WITH a AS (SELECT seq FROM s.memories) SELECT seq FROM a",
        "SELECT set_config('recollect.tenant', 'x', true)",
        "SET recollect.tenant = 'x'",
        "SET LOCAL recollect.tenant = 'x' || 'y'",
        "SELECT DISTINCT tenant FROM s.memories",
    ],
)
def test_a_statement_about_all_tenants_would_be_found(text: str) -> None:
    with pytest.raises(AssertionError):
        check(text, "s")


def test_what_the_schema_has_is_what_citus_takes(location: str) -> None:
    schema = location.rpartition("=")[2]
    with closing(open_store(location)) as store:
        store.places("default")
    with psycopg.connect(Location.of(location).url, autocommit=True) as connection:

        def names(sql: str) -> list[Any]:
            return [row[0] for row in connection.execute(sql.replace("{s}", schema).encode())]

        ours = "(SELECT oid FROM pg_class WHERE relnamespace = '{s}'::regnamespace AND relname <> 'migrations')"
        assert names(f"SELECT conname FROM pg_constraint WHERE contype = 'f' AND conrelid IN {ours}") == []
        citus_own = "tgname LIKE 'truncate_trigger_%'"
        assert names(f"SELECT tgname FROM pg_trigger WHERE tgrelid IN {ours} AND NOT {citus_own}") == []
        first = "(SELECT attname FROM pg_attribute WHERE attrelid = indrelid AND attnum = indkey[0])"
        unique = f"FROM pg_index WHERE indisunique AND indrelid IN {ours}"
        assert names(f"SELECT indexrelid::regclass::text {unique} AND {first} IS DISTINCT FROM 'tenant'") == []
        assert len(names(f"SELECT 1 {unique}")) >= len(setup.TABLES)


def test_what_is_noted_of_a_tenant_that_is_being_moved_is_written_on_its_worker() -> None:
    check(LOG.replace("{s}", "s"), "s")


def test_a_script_is_run_one_statement_at_a_time() -> None:
    for script in (*setup._MIGRATIONS, *setup._SCRIPTS.glob("*.sql")):
        text = script.read_text()
        statements = list(setup.statements_of(text))
        assert statements
        for statement in statements:
            assert len(said(statement)) == 1, statement
        assert sum(len(said(line)) for line in statements) == len(said(text)), script.name


def test_on_citus_every_table_is_distributed_by_tenant(fresh_postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none here, so the server says that it is one, and what only Citus knows is not run."""
    location, sent, given = Location.of(fresh_postgres), list[str](), list[Any]()
    plain, facts = psycopg.Connection.execute, setup.facts

    def execute(self: Any, query: Any, params: Any = None, **options: Any) -> Any:
        sent.append(str(query))
        if "create_distributed_table" in str(query):
            given.append((query, tuple(params)))
            return plain(self, "SELECT 1")
        if str(query).startswith("ALTER ROLE"):  # the roles are everybody's here
            return plain(self, "SELECT 1")
        if "pg_dist_partition" in str(query):
            done = [values[0].rpartition(".")[2] for _, values in given]
            return plain(self, "SELECT oid FROM pg_class WHERE relname = ANY(%s)", [done])
        return plain(self, query, params, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    monkeypatch.setattr(setup, "facts", lambda *where: msgspec.structs.replace(facts(*where), citus=True))
    with psycopg.connect(location.url, autocommit=True) as connection:
        seen = setup.ready(connection, location)  # type: ignore[arg-type]
        tables = {
            name
            for (name,) in connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')",
                [location.schema],
            )
        }
    spread = [values for query, values in given if "create_distributed_table(%s, 'tenant', colocate_with" in query]
    # Colocated from the start: `none` begins a group of tables that no other table of the database shares.
    assert spread[0] == (f"{location.schema}.places", "none")
    assert {name for name, _ in spread} == {f"{location.schema}.{table}" for table in tables - {"migrations"}}
    assert len(spread) == len(tables) - 1
    assert {values[1] for values in spread[1:]} == {f"{location.schema}.places"}
    assert not any("PARTITION" in text for text in sent if "CREATE TABLE" in text)
    assert not any(re.fullmatch(r"vectors_\d+", table) for table in tables)
    alone = [text for text in sent if text.startswith("CREATE SCHEMA")]
    assert alone
    assert sent[sent.index(alone[0]) + 1 :].index("SELECT pg_advisory_xact_lock(hashtext(%s), 7265)") >= 0
    for role in (setup.OWNER, setup.APP, setup.ADMIN):
        spread_roles = setup.roles_sql(seen.user, seen.database, True)
        assert any(f"CREATE ROLE {role} LOGIN NOSUPERUSER NOBYPASSRLS" in text for text in spread_roles)
        single = setup.roles_sql(seen.user, seen.database, False)
        assert any(f"CREATE ROLE {role} NOLOGIN NOSUPERUSER NOBYPASSRLS" in text for text in single)
