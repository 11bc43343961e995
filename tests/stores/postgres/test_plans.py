"""What a tenant's question looks at, as the application's login is told by EXPLAIN: its own rows, found by indexes.

Were it more with more neighbours, the time it takes would tell of them. Rows and pages are counted, never seconds.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from support.concepts import Concepts
from support.deployed import Deployment, deployed
from support.postgres import not_on_citus

from recollect import Memory
from recollect.stores import open_store
from recollect.stores.port import Place
from recollect.stores.postgres.admin.setup import TABLES
from recollect.stores.postgres.statements import whose
from recollect.stores.postgres.store import Postgres
from recollect.stores.tables.engine import Statement

pytestmark = [
    pytest.mark.clause("ATL-18"),
    not_on_citus("the plan is a worker's; that only one is asked is shown in test_citus.py"),
]

OWN = 60
FEW, MANY = 30, 300
"""Neighbours, each of whom has as much."""
HERE = Place("small", "default")


QUESTIONS: dict[str, Callable[[Memory, Postgres], Any]] = {
    "by id": lambda m, s: s.get(HERE, [m.list(limit=1)[0].id]),
    "a page": lambda m, s: m.list(limit=20),
    "a tag": lambda m, s: m.list(tags=["bird.owl"]),
    "a conversation": lambda m, s: m.list(conversation="talk"),
    "texts": lambda m, s: s.with_texts(HERE, ["the owl number 7 sleeps"]),
    "words": lambda m, s: m.recall("owl sleeps"),
    "a phrase": lambda m, s: m.recall('"number 7"'),
    "lacking vectors": lambda m, s: s.lacking(HERE, "concepts", 8, 100),
    "counts": lambda m, s: m.stats(),
    "the log": lambda m, s: m.audit.search("remember"),
    "a shelf": lambda m, s: m.conversations.list(),
}


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with deployed() as deployment:
        with Memory(deployment.location, embedder=Concepts()) as memory:
            view = memory.at(tenant="small")
            view.at(conversation="talk").conversations.start("about owls")
            items = [
                {"content": f"the owl number {n} sleeps", "tags": [f"bird.{'owl' if n % 9 else 'elf'}"]}
                for n in range(OWN)
            ]
            view.remember_many(items)
            view.remember_many([{"content": f"turn {n}", "conversation": "talk"} for n in range(9)])
            view.embed()
        yield deployment


def grow(deployment: Deployment, first: int, last: int) -> None:
    """Neighbours with copies of all that the tenant has. Their words have keys of their own."""
    for table in (*TABLES, "vectors"):
        columns = [
            name
            for (name,) in deployment.sql(
                f"SELECT attname::text FROM pg_attribute WHERE attrelid = '{{s}}.{table}'::regclass AND attnum > 0 "
                "AND attname <> 'tenant' ORDER BY attnum"
            )
        ]
        taken = [
            "regexp_replace(words::text, '''.{8}', '''neighb' || (g % 90 + 10), 'g')::tsvector" if c == "words" else c
            for c in columns
        ]
        deployment.sql(
            f"INSERT INTO {{s}}.{table} (tenant, {', '.join(columns)}) SELECT 'n' || g, {', '.join(taken)} "
            f"FROM {{s}}.{table}, generate_series({first}, {last}) g WHERE tenant = 'small'"
        )
        deployment.sql(f"VACUUM ANALYZE {{s}}.{table}")


class Looked:
    """What a statement looked at."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.rows, self.scanned = 0.0, list[str]()
        self.pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        self.inside = 0
        """Pages that the function which searches words has looked at."""
        self._walk(plan)

    def _walk(self, node: dict[str, Any]) -> None:
        if "Relation Name" in node:
            seen = sum(node.get(key, 0) for key in ("Actual Rows", "Rows Removed by Filter"))
            self.rows += seen * node["Actual Loops"]
            if node["Node Type"] == "Seq Scan" and node["Actual Loops"]:
                self.scanned.append(node["Relation Name"])
        if node["Node Type"] == "Function Scan":
            self.inside += node["Shared Hit Blocks"] + node["Shared Read Blocks"]
        for inner in node.get("Plans", ()):
            self._walk(inner)


def asked(deployment: Deployment, question: Callable[[Memory, Postgres], Any]) -> list[Looked]:
    """What each statement of a question looks at, run again as the application's login runs it."""
    statements: list[Statement] = []
    with closing(open_store(deployment.location)) as store:
        assert isinstance(store, Postgres)
        sessions, read = store.server, store.server.read

        def noted(tenant: str, some: Any, *more: Any, **named: Any) -> Any:
            statements.extend(statement for statement in some if not statement.sql.startswith("SET "))
            return read(tenant, some, *more, **named)

        sessions.read = noted  # type: ignore[method-assign]
        assert question(Memory(store, embedder=Concepts()).at(tenant="small"), store) is not None
        assert statements
        return [_explained(deployment, sessions.sql(one.sql), one.values) for one in statements]


def _explained(deployment: Deployment, sql: str, values: Any) -> Looked:
    with psycopg.connect(deployment.libpq) as connection:
        connection.execute(whose("small").encode())
        connection.execute("SET LOCAL enable_nestloop = off")  # as a search is run
        looked: list[Looked] = []
        for _ in range(4):
            found = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}".encode(), values or None)
            ((explained,),) = found.fetchall()
            looked.append(Looked(explained[0]["Plan"]))
    # The first time makes the function's plan. Pages of the catalogue count, too: they are read again after others on
    # the server have made or dropped tables.
    return min(looked, key=lambda one: one.pages)


def test_a_question_looks_at_its_own_rows_however_many_neighbours_there_are(deployment: Deployment) -> None:
    grow(deployment, 1, FEW)
    before = {name: asked(deployment, question) for name, question in QUESTIONS.items()}
    grow(deployment, FEW + 1, MANY)
    after = {name: asked(deployment, question) for name, question in QUESTIONS.items()}
    for name, looked in after.items():
        assert [one.scanned for one in looked] == [[]] * len(looked), name
        assert sum(one.rows for one in looked) <= sum(one.rows for one in before[name]) + 1, name
        assert sum(one.inside for one in looked) <= sum(one.inside for one in before[name]) + 4, name
        # Ten times as much in the tables is a level more in an index, and rows are looked up one by one.
        assert sum(one.pages for one in looked) <= 3 * sum(one.pages for one in before[name]) + 40, name
    deployment.sql("DROP INDEX {s}.search_by_word; ALTER TABLE {s}.search DROP CONSTRAINT search_pkey")
    without = asked(deployment, QUESTIONS["words"])
    assert sum(one.inside for one in without) > 3 * sum(one.inside for one in after["words"])
