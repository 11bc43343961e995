"""Tenants on PostgreSQL, attacked by a login that is a member of recollect_app and of nothing else.

The attacks are those of `recollect prove isolation`. Each kind of them must notice when what it tries is let through:
that is tried on schemas broken for the purpose.
"""

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
import psycopg
import pytest
from msgspec.structs import replace
from support import postgres
from support.command_line import recollect
from support.deployed import Deployment, deployed

from recollect import Memory
from recollect.proving.isolation import Proof, besieged
from recollect.proving.postgres.attacks import attacks
from recollect.proving.verbs import VERBS, Prey, furnish, leak
from recollect.stores import open_store
from recollect.stores.port import Place
from recollect.stores.shelves import ShelfItem

pytestmark = pytest.mark.clause("ATL-18")

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOT_VERBS = {"close", "backup"}
"""What a view of a tenant does not do to memories: letting go, and copying all of a store, which only the owner may."""
WRITES_ONLY = {
    "at a workspace", "compact", "embed", "stats", "verify", "workspaces", "remember_many",
    "remember by conversation", "remember by references", "revise by references", "cases.save by ids",
    "maintain by only", "audit.matching by about", "deduplicate", "forget by workspace", "import_",
    "channels.list", "maintain", "simulate", "moments.task", "doctor", "recall by SQL", "query by reference",
    "audit.verify", "channels.get", "confirm by ids", "dismiss",
}  # fmt: skip
"""Verbs by which even the victim is told nothing of the secret, called as the attacker calls them."""


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with deployed() as deployment:
        yield deployment


def verdicts(proof: Proof, *names: str) -> dict[str, str]:
    chosen = [attack for attack in attacks(proof.siege) if not names or attack.name in names]
    assert not names or {attack.name for attack in chosen} == set(names)
    return {attack.name: proof.siege.suffer(attack).verdict for attack in chosen}


# As it is set up, everything holds


@pytest.mark.slow
def test_every_attack_by_sql_and_by_verbs_is_held(deployment: Deployment) -> None:
    with besieged(deployment.location) as proof:
        assert proof.siege.server.facts.role is None  # nothing to step down from: the login is what is meant
        outcomes = list(proof.outcomes())
    assert [one for one in outcomes if one.verdict != "held"] == []
    assert len(outcomes) > 100


@pytest.mark.slow
def test_a_strong_login_steps_down_and_is_told_of(deployment: Deployment) -> None:
    with besieged(deployment.owned) as proof:
        outcomes = list(proof.outcomes())
    beyond = [one for one in outcomes if one.verdict != "held"]
    verdicts = {one.name: one.verdict for one in beyond}
    assert verdicts == {"the login": "leaked", "become somebody else": "limit", "leave the role": "limit"}
    limits = [one for one in beyond if one.verdict == "limit"]
    assert all("more than a member of recollect_app" in one.happened for one in limits)


def test_every_verb_is_among_the_attacks() -> None:
    public = {name for name in dir(Memory) if not name.startswith("_")}
    tried = {name.split()[0].partition(".")[0] for name in VERBS}
    others = {"address", "preset", "unsaved", "skills"}  # nothing of a tenant's
    assert public - tried - NOT_VERBS - others - {"sessions"} == set()  # sessions are of ledgers only


@pytest.mark.slow
def test_the_verbs_would_show_the_secret_if_it_could_be_seen(deployment: Deployment) -> None:
    secret, phantom, silent = "zqsecretx", Prey.phantom("nobody"), set[str]()
    with Memory(deployment.location, embedder="none") as memory:
        for number, name in enumerate(sorted(VERBS.keys() - WRITES_ONLY)):
            prey = furnish(memory, f"insider{number}", secret)
            if not leak(VERBS[name], memory.at(tenant=prey.tenant), prey, phantom, secret):
                silent.add(name)
    assert silent == set()


def test_an_administrator_who_is_also_an_application_sees_one_tenant_at_a_time() -> None:
    with deployed("GRANT recollect_admin TO {login}") as deployment, besieged(deployment.location) as proof:
        seen = verdicts(proof, "a forgotten condition", "read", "count", "no tenant said", "the catalogue")
        assert set(seen.values()) == {"held"}
        with closing(open_store(deployment.location)) as store:
            assert proof.victim.tenant in store.tenants()  # which is what it is an administrator for


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt])
def test_what_was_made_for_a_proof_is_removed_however_it_ends(deployment: Deployment, end: type[BaseException]) -> None:
    proof = besieged(deployment.location)
    siege = proof.__enter__().siege
    made = f"tenant IN ('{siege.victim.tenant}', '{siege.attacker.tenant}', '{siege.phantom.tenant}')"
    assert all(deployment.sql(f"SELECT 1 FROM {{s}}.{table} WHERE {made}") for table in siege.tables)
    assert not proof.__exit__(end, end(), None)
    assert [table for table in siege.tables if deployment.sql(f"SELECT 1 FROM {{s}}.{table} WHERE {made}")] == []


# Every protection, taken away

HAVING = """CREATE OR REPLACE FUNCTION {s}.having(of_tenant text, of_workspace text, queries text[])
    RETURNS TABLE (number integer, seq bigint) LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT 1, s.seq FROM {s}.search s WHERE s.words @@ queries[1]::tsquery $$"""
ALL_POLICIES = "; ".join(
    f"CREATE POLICY spy ON {{s}}.{table} USING (true)"
    for table in (
        "places",
        "memories",
        "contents",
        "tags",
        "embeddings",
        "search",
        "audit",
        "undo_items",
        "things",
        "vectors",
    )
)
BROKEN: dict[str, tuple[str, set[str]]] = {
    "a policy that lets all through": (
        ALL_POLICIES,
        {
            "no tenant said",
            "an empty tenant",
            "a forgotten condition",
            "read",
            "count",
            "physical addresses",
            "COPY TO",
            "a view, a function and a cursor",
            "guessed ids",
            "change",
            "delete",
            "lock rows",
            "give rows away",
            "add rows",
            "conflicts",
            "functions that tell",
            "errors",
            "plans",
            "after a transaction",
            "prepared statements",
            "a pooled connection",
            "leave the role",
            "the catalogue",
            "names that shadow a policy",
        },
    ),
    "no row-level security on one table": (
        "ALTER TABLE {s}.contents DISABLE ROW LEVEL SECURITY",
        {"no tenant said", "read", "COPY TO", "functions that tell", "statistics", "switch it off", "the catalogue"},
    ),
    "not forced on one table": ("ALTER TABLE {s}.things NO FORCE ROW LEVEL SECURITY", {"the catalogue"}),
    "a table without a policy": (
        "CREATE TABLE {s}.later (tenant text); ALTER TABLE {s}.later ENABLE ROW LEVEL SECURITY; "
        "ALTER TABLE {s}.later FORCE ROW LEVEL SECURITY",
        {"the catalogue"},
    ),
    "references to a table": (
        "GRANT CREATE ON SCHEMA {s} TO recollect_app; GRANT REFERENCES ON {s}.places TO recollect_app",
        {"references", "the catalogue"},
    ),
    "rows for others": (
        "DROP POLICY own_tenant ON {s}.tags; CREATE POLICY own_tenant ON {s}.tags "
        "USING (tenant = nullif(current_setting('recollect.tenant', true), '')) WITH CHECK (true)",
        {"add rows", "conflicts", "the catalogue"},
    ),
    "words that can be read": ("GRANT SELECT ON {s}.search TO recollect_app", {"the index of words"}),
    "words of all": (HAVING, {"words of another", "the victim's words", "names that shadow"}),
    "a function that takes names from its caller": (
        "ALTER FUNCTION {s}.having(text, text, text[]) RESET search_path",
        {"the catalogue"},
    ),
    "a function for everybody": ("GRANT EXECUTE ON FUNCTION {s}.drop_place TO PUBLIC", {"the catalogue"}),
    "a schema that others write to": (
        "GRANT CREATE ON SCHEMA {s} TO recollect_app",
        {"names in our schema"},
    ),
    "a log that can be changed": ("GRANT UPDATE, DELETE ON {s}.audit TO recollect_app", {"change the log"}),
    "a log that can be said to be shorter": ("GRANT UPDATE ON {s}.places TO recollect_app", {"shorten the log"}),
    "places that can be removed": ("GRANT DELETE ON {s}.places TO recollect_app", {"shorten the log"}),
    "migrations that can be written": (
        "GRANT INSERT ON {s}.migrations TO recollect_app",
        {"change the schema", "the catalogue"},
    ),
    "tables that can be emptied": ("GRANT TRUNCATE ON {s}.memories TO recollect_app", {"change the schema"}),
    "partitions that can be read": ("GRANT SELECT ON {s}.vectors_3 TO recollect_app", {"parts of tables"}),
    "a table without row-level security": ("CREATE TABLE {s}.later (tenant text)", {"the catalogue"}),
    "a view": ("CREATE VIEW {s}.everything AS SELECT * FROM {s}.contents", {"the catalogue"}),
    "an application that owns a table": ("ALTER TABLE {s}.tags OWNER TO {login}", {"the catalogue", "switch it off"}),
    "a role past row-level security": (
        "REVOKE recollect_app FROM {login}; ALTER ROLE {login} BYPASSRLS; GRANT USAGE ON SCHEMA {s} TO {login}; "
        "GRANT ALL ON ALL TABLES IN SCHEMA {s} TO {login}; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {s} TO {login}",
        {"no tenant said", "read", "change", "delete", "leave the role", "the catalogue"},
    ),
    "system tables that can be read": ("GRANT SELECT ON pg_statistic TO {login}", {"statistics of the system"}),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_broken_is_noticed(broken: str) -> None:
    sabotage, noticed = BROKEN[broken]
    if postgres.on_citus() and "vectors_" in sabotage:
        pytest.skip("on Citus the table of vectors has shards and no partitions")
    with deployed(sabotage) as deployment:
        if "statistics" in noticed:
            deployment.sql("ANALYZE {s}.contents")
        with besieged(deployment.location) as proof:
            seen = verdicts(proof, *noticed)
    if (
        postgres.on_citus()
    ):  # where functions in pg_temp and statistics are not on the workers, and tenants cannot change
        assert "leaked" in seen.values()
    else:
        assert seen == dict.fromkeys(noticed, "leaked")


def test_a_setting_that_outlives_its_transaction_is_noticed(deployment: Deployment) -> None:
    with besieged(deployment.location) as proof:
        deployment.sql(f"ALTER ROLE {{login}} SET recollect.tenant = '{proof.victim.tenant}'")
        try:
            assert verdicts(proof, "no tenant said", "after a transaction") == {
                "no tenant said": "leaked",
                "after a transaction": "leaked",
            }
        finally:
            deployment.sql("ALTER ROLE {login} RESET recollect.tenant")


def test_what_the_victim_has_is_the_same_in_whatever_order_it_is_told(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parallel plan gives the tables in any order."""

    class Shuffled:
        def __init__(self, rows: list[Any]) -> None:
            self.rows = rows

        def fetchall(self) -> list[Any]:
            random.shuffle(self.rows)
            return self.rows

    with besieged(deployment.location) as proof:
        siege, connected = proof.siege, proof.siege.connected

        @contextmanager
        def shuffled() -> Iterator[Any]:
            with connected() as connection:
                run = connection.execute
                connection.execute = lambda sql: Shuffled(run(sql).fetchall()) if "UNION ALL" in sql else run(sql)
                yield connection

        monkeypatch.setattr(siege, "connected", shuffled)
        random.seed(1)
        assert len({str(siege.holdings(siege.victim)) for _ in range(10)}) == 1
        monkeypatch.setattr(siege, "connected", connected)


def test_a_membership_too_many_is_told_of() -> None:
    for role in ("recollect_owner", "recollect_admin"):
        with deployed(f"GRANT {role} TO {{login}}") as deployment, besieged(deployment.location) as proof:
            assert verdicts(proof, "become somebody else") == {"become somebody else": "limit"}


# The command


@pytest.mark.slow
def test_the_command_prints_what_was_tried_and_ends_well(deployment: Deployment) -> None:
    told = recollect("prove", "isolation", "--store", deployment.location)
    assert told.returncode == 0, told.stdout
    assert "held    read: every table was read by the victim's name — nothing was found" in told.stdout
    assert "can say to be any tenant" in told.stdout
    assert "The tenants made for this were removed" in told.stdout
    assert "LEAKED" not in told.stdout
    assert "hostile:hostile" not in told.stdout


@pytest.mark.slow
def test_the_command_fails_when_something_leaks() -> None:
    with deployed("ALTER TABLE {s}.things DISABLE ROW LEVEL SECURITY") as deployment:
        told = recollect("prove", "isolation", "--store", deployment.location)
        again = recollect("prove", "isolation", "--json", "--store", deployment.location)
        assert "LEAKED  read: every table" in told.stdout
        left = deployment.sql("SELECT 1 FROM {s}.places WHERE tenant LIKE 'proof-%'")
    found = msgspec.json.decode(again.stdout)
    assert (told.returncode, again.returncode) == (1, 1)
    assert found["ok"] is False
    assert {"leaked", "held"} == {one["verdict"] for one in found["attacks"]}
    assert found["removed"] is True
    assert left == []


def test_the_command_says_which_stores_it_is_for(tmp_path: Any) -> None:
    told = recollect("prove", "isolation", "--store", str(tmp_path / "memory"))
    assert told.returncode == 1
    assert "isolation is proven on a PostgreSQL server, as in postgresql://user@host/database" in told.stderr


# Roles and tables


def test_every_table_is_the_owners_and_nothing_is_the_applications(deployment: Deployment) -> None:
    owners = deployment.sql(
        """SELECT DISTINCT pg_get_userbyid(relowner)::text, relkind::text FROM pg_class
        WHERE relnamespace = '{s}'::regnamespace"""
    )
    assert {owner for owner, _ in owners} == {"recollect_owner"}
    assert {kind for _, kind in owners} <= {"r", "p", "i", "I", "S"}  # tables, their indexes and numbers
    assert (
        deployment.sql(
            """SELECT relname FROM pg_class WHERE relnamespace = '{s}'::regnamespace AND CASE WHEN relkind = 'S'
        THEN has_sequence_privilege('recollect_app', oid, 'SELECT, USAGE, UPDATE') END"""
        )
        == []
    )
    owned = "SELECT 1 FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid WHERE d.deptype = 'o' AND r.rolname = "
    assert deployment.sql(f"{owned} 'recollect_app'") == []
    assert deployment.sql(
        "SELECT rolcanlogin, rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = 'recollect_app'"
    ) == [(postgres.on_citus(), False, False, False)]  # the coordinator connects to the workers as the role
    assert deployment.sql("SELECT 1 FROM pg_largeobject_metadata") == []


# What cannot be kept from whoever runs SQL of their own, as the command and the documentation say


def test_who_runs_sql_can_say_any_tenant_and_no_value_can(deployment: Deployment) -> None:
    hostile = "x'; SET recollect.tenant = 'acme"
    with Memory(deployment.location, embedder="none") as memory:
        memory.at(tenant="acme").remember("the safe is behind the picture")
        for name in (hostile, "x\\'; SET recollect.tenant = 'acme", "acme ", "ACME", "$$acme$$"):
            try:
                view = memory.at(tenant=name)
            except ValueError:
                continue
            assert view.list(state=None) == []
            assert view.recall("safe") == []
    with psycopg.connect(deployment.libpq, autocommit=True) as connection:
        count = f"SELECT count(*) FROM {deployment.schema}.contents".encode()
        assert connection.execute(count).fetchone() == (0,)
        connection.execute("SET recollect.tenant = 'acme'")
        assert connection.execute(count).fetchone() == (0 if postgres.on_citus() else 1,)  # no worker is told of it


def test_another_login_sees_no_statement_and_the_same_login_does(deployment: Deployment) -> None:
    seen = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%' || 'acme' || '%' AND pid <> pg_backend_pid()"
    with deployed() as other, psycopg.connect(deployment.libpq, autocommit=True) as working:
        working.execute("BEGIN")
        working.execute("SET LOCAL recollect.tenant = 'acme'")
        counts = []
        for login in (other, deployment):
            with psycopg.connect(login.libpq) as looking:
                counts.append(looking.execute(seen.encode()).fetchone())
    assert counts == [(0,), (1,)]


# Transactions of several tenants, and poolers


def test_a_step_that_is_taken_back_gives_the_turn_back(deployment: Deployment) -> None:
    mine, theirs = Place("acme", "w"), Place("other", "w")
    thing = ShelfItem("shelf", "key", {"owl": 1}, created_at=NOW, changed_at=NOW)
    with closing(open_store(deployment.location)) as store:
        with store.transaction(mine, theirs):
            store.keep(mine, thing)
            with suppress(ZeroDivisionError), store.transaction(theirs):
                store.keep(theirs, thing)
                raise ZeroDivisionError
            store.keep(theirs, replace(thing, key="another"))
            assert store.find(mine, "shelf", ["key", "another"])[0].key == "key"
        assert [one.key for one in store.shelf(theirs, "shelf")] == ["another"]
        assert [one.key for one in store.shelf(mine, "shelf")] == ["key"]


def test_retrievals_are_counted_for_each_of_several_tenants(deployment: Deployment) -> None:
    with Memory(deployment.location, embedder="none") as memory, closing(open_store(deployment.location)) as store:
        kept = {name: memory.at(tenant=name).remember(f"an owl of {name}") for name in ("first", "last")}
        places = [Place(name, "default") for name in kept]
        for place in places:
            store.touch(place, [kept[place.tenant].id], NOW)
        with store.transaction(*places):
            pass
        assert [memory.at(tenant=name).get(one.id).access_count for name, one in kept.items()] == [1, 1]


@pytest.mark.slow
@pytest.mark.skipif(bool(postgres.DSN), reason="a pooler is put before a server of our own")
@pytest.mark.skipif(bool(postgres.bouncer_missing()), reason=postgres.bouncer_missing())
def test_everything_holds_through_a_pooler(deployment: Deployment) -> None:
    server = postgres.shared()
    assert isinstance(server, postgres.Server)
    with postgres.Bouncer(server, pool_size=1, users=("postgres", deployment.login)) as pooler:
        url = f"{pooler.url(user=deployment.login)}?schema={deployment.schema}"
        with besieged(url) as proof:
            found = verdicts(proof)
    assert {name: verdict for name, verdict in found.items() if verdict != "held"} == {}
