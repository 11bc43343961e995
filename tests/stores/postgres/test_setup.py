"""Setting up a server: by whom, with what, and what it says where something is missing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.command_line import called
from support.concepts import Concepts
from support.postgres import DSN, Server

from recollect import AccessError, InputError, Memory, SchemaError, UnavailableError
from recollect.stores import open_store
from recollect.stores.port import Place
from recollect.stores.postgres.connections import Location
from recollect.stores.postgres.store import Postgres

pytestmark = pytest.mark.skipif(bool(DSN), reason="needs a server of its own")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def database(server: Server, request: pytest.FixtureRequest) -> str:
    name = f"db_{abs(hash(request.node.name)) % 10**8}"
    server.psql(f"CREATE DATABASE {name}")
    return name


def test_a_superuser_makes_everything_with_the_first_memory(server: Server, database: str) -> None:
    with Memory(server.url(database)) as memory:
        memory.remember("Alice prefers tabs")
        assert memory.recall("tabs")
    owners = server.psql("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'recollect'", database)
    assert owners == [("recollect_owner",)]


def test_an_application_needs_no_more_than_its_role(server: Server, database: str) -> None:
    called("db", "upgrade", "--store", server.url(database))
    server.psql(f"CREATE ROLE {database} LOGIN IN ROLE recollect_app")
    url = server.url(database, user=database)
    with Memory(url) as memory:
        kept = memory.remember("Alice prefers tabs", tags=["style"])
        memory.revise(kept.id, content="Alice prefers spaces")
        assert [hit.memory.content for hit in memory.recall("Alice")] == ["Alice prefers spaces"]
        memory.forget(tag="style")
        memory.undo()
        assert not any(log.breaks for log in memory.audit.verify())
        old = memory.at(workspace="old")
        old.remember("to be dropped")
        old.forget(workspace="old")
    status = json.loads(called("db", "status", "--store", url, "--json").stdout)
    assert (status["ok"], {check["level"] for check in status["checks"]}) == (True, {"ok"})


def test_a_role_that_may_nothing_is_told_what_to_ask_for(server: Server, database: str) -> None:
    server.psql(f"CREATE ROLE {database} LOGIN")
    url = server.url(database, user=database)
    with pytest.raises(SchemaError, match="have an administrator run `recollect db upgrade`"):
        open_store(url).places("default")
    called("db", "upgrade", "--store", server.url(database))
    with pytest.raises(AccessError, match=rf"GRANT recollect_app TO {database}"):
        open_store(url).places("default")
    assert called("recall", "x", "--store", url).returncode == 1


def test_an_administrator_makes_the_roles_by_the_sql_that_is_printed(server: Server, database: str) -> None:
    """As one who may create in the database, but make no roles."""
    server.psql(f"CREATE ROLE {database} LOGIN; GRANT CREATE ON DATABASE {database} TO {database}")
    url = server.url(database, user=database)
    script = called("db", "roles", "--store", url).stdout
    assert "CREATE ROLE recollect_app NOLOGIN" in script
    server.psql(script, database)
    done = called("db", "upgrade", "--store", url)
    assert "The schema is up to date." in done.stdout
    with Memory(url) as memory:
        memory.remember("Alice prefers tabs")
    owners = server.psql("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'recollect'", database)
    assert owners == [("recollect_owner",)]


def test_without_pgvector_recall_is_by_words_and_doctor_says_so(server: Server, database: str) -> None:
    server.psql(f"CREATE ROLE {database} LOGIN")
    server.psql(f"CREATE SCHEMA recollect AUTHORIZATION {database}", database)
    url = server.url(database, user=database)
    with Memory(url, embedder=Concepts()) as memory:
        memory.remember("Ute sold her automobile")
        memory.embed()
        assert memory.recall("automobile")
        assert not memory.recall("car")
        assert any("pgvector" in example for finding in memory.doctor().findings for example in finding.examples)
    status = called("db", "status", "--store", url).stdout
    assert "recall is by words alone" in " ".join(status.split())
    server.psql("CREATE EXTENSION vector", database)
    assert "a table of vectors" in called("db", "upgrade", "--store", url).stdout
    with Memory(url, embedder=Concepts()) as memory:
        memory.embed()  # once more, for there was no table for them
        assert [hit.memory.content for hit in memory.recall("car")] == ["Ute sold her automobile"]


def test_texts_are_utf8_whatever_a_client_is_set_to(
    server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.psql(f"ALTER DATABASE {database} SET client_encoding = 'LATIN1'")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with Memory(server.url(database)) as memory:
        memory.remember("東京 is where Zoë lives")
        assert memory.recall("東京")[0].memory.content == "東京 is where Zoë lives"


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused(server: Server, encoding: str) -> None:
    name = f"narrow_{encoding.lower()}"
    server.psql(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    for words in (["remember", "Zoë"], ["db", "status"], ["db", "upgrade"], ["db", "roles"]):
        done = called(*words, "--store", server.url(name))
        assert (done.returncode, "createdb --encoding=UTF8" in done.stderr) == (1, True), words
        assert "Traceback" not in done.stderr
    assert server.psql("SELECT FROM pg_namespace WHERE nspname = 'recollect'", name) == []


@pytest.mark.parametrize("setting", ["search_path = ''", "row_security = off"])
def test_a_database_may_be_set_to_what_it_likes(server: Server, setting: str) -> None:
    database = f"set_{setting.split()[0]}"
    server.psql(f"CREATE DATABASE {database}")
    server.psql(f"ALTER DATABASE {database} SET {setting}")
    server.psql(f"CREATE ROLE {database} LOGIN")
    with Memory(server.url(database), embedder=Concepts()) as memory:
        memory.remember("Ute sold her automobile")
        server.psql(f"GRANT recollect_app TO {database}")
        memory.embed()
        assert memory.recall("car")
    with Memory(server.url(database, user=database), embedder=Concepts()) as memory:
        kept = memory.remember("Alice prefers tabs")
        assert memory.recall("car")
        memory.forget(kept.id)
        assert memory.undo() is not None
    done = called("tenants", "--store", server.url(database))
    assert (done.returncode, "default" in done.stdout) == (0, True)
    assert called("db", "index", "--store", server.url(database)).returncode == 0


def test_the_schema_public_is_set_up_as_any_other(server: Server, database: str) -> None:
    """It belongs to nobody whom the connecting role is called as."""
    url = f"{server.url(database)}?schema=public"
    with Memory(url) as memory:
        memory.remember("Alice prefers tabs")
        assert memory.recall("tabs")
    server.psql(f"CREATE ROLE {database} LOGIN IN ROLE recollect_app")
    url = f"{server.url(database, user=database)}?schema=public"
    assert called("db", "status", "--store", url).returncode == 0
    assert called("prove", "isolation", "--store", url).returncode == 0


@pytest.mark.parametrize("right", ["SUPERUSER", "BYPASSRLS"])
def test_a_login_that_may_bypass_row_level_security_proves_nothing(server: Server, database: str, right: str) -> None:
    """Its transactions become another role, but whoever has it can leave that out."""
    called("db", "upgrade", "--store", server.url(database))
    server.psql(f"CREATE ROLE {database} LOGIN {right} IN ROLE recollect_app")
    url = server.url(database, user=database)
    status, proof = (called(*words, "--store", url, "--json") for words in (("db", "status"), ("prove", "isolation")))
    printed = called("prove", "isolation", "--store", url)
    server.psql(f"ALTER ROLE {database} NOSUPERUSER NOBYPASSRLS")
    told, found = json.loads(status.stdout), json.loads(proof.stdout)
    assert (status.returncode, told["ok"]) == (1, False)
    (role,) = [check for check in told["checks"] if check["level"] == "problem"]
    assert (role["name"], "BYPASSRLS" in role["told"]) == ("role", True)
    assert (proof.returncode, found["ok"], found["bypasses"]) == (1, False, True)
    assert printed.returncode == 1
    assert f"Nothing is proven for {database}, which may bypass row-level security" in " ".join(printed.stdout.split())
    assert [one["name"] for one in found["attacks"] if one["verdict"] == "leaked"] == ["the login"]


def test_no_statement_is_compiled(server: Server, database: str) -> None:
    """A server that compiles whatever is asked (JIT) takes seconds for what takes milliseconds."""
    server.psql(f"ALTER DATABASE {database} SET jit = on; ALTER DATABASE {database} SET jit_above_cost = 0")
    store = open_store(server.url(database))
    assert isinstance(store, Postgres)
    with closing(store):
        store.places("default")
        assert store.server.rows("default", "SHOW jit") == [("off",)]
        with store.transaction(Place("default", "default")):
            assert store.server.rows("default", "SHOW jit") == [("off",)]


def test_a_wrong_password_is_told_at_once(database: str) -> None:
    with Server(auth="scram-sha-256") as strict:
        strict.psql("CREATE ROLE app LOGIN PASSWORD 'right'")
        begun = time.monotonic()
        with pytest.raises(AccessError, match="Check the user and the password") as error:
            open_store(strict.url(user="app", password="wrong-one")).places("default")
        assert time.monotonic() - begun < 5
        assert "wrong-one" not in str(error.value)
        with pytest.raises(AccessError, match=r"no password supplied.*Check the user and the password"):
            open_store(strict.url(user="app")).places("default")
        entries = strict.data / "pg_hba.conf"
        entries.write_text("host all app 127.0.0.1/32 reject\n" + entries.read_text())
        strict.psql("SELECT pg_reload_conf()")
        with pytest.raises(AccessError, match=r"pg_hba\.conf rejects"):
            open_store(strict.url(user="app", password="right")).places("default")


def test_no_server_is_told_at_once(server: Server) -> None:
    with pytest.raises(UnavailableError, match="Is the server running"):
        open_store("postgresql://nobody@127.0.0.1:1/none").places("default")
    with pytest.raises(UnavailableError, match="createdb"):
        open_store(server.url("nothing_of_the_kind")).places("default")


@pytest.mark.parametrize("name", ["", "Upper", "a b", "x" * 41, "a;b", "1a", "é", "information_schema", "a&schema=b"])
def test_a_schema_must_have_a_plain_name(name: str) -> None:
    with pytest.raises(InputError, match="schema"):
        Location.of(f"postgresql://localhost/x?schema={name}")


def test_what_is_shown_of_a_location_has_no_password() -> None:
    location = Location.of("postgresql://app:secret-word@db.example.com:6432/x?sslmode=require&schema=mine")
    assert (location.schema, location.shown) == ("mine", "postgresql://app@db.example.com:6432/x")
    assert "secret-word" not in repr(location)
    assert location.url == "postgresql://app:secret-word@db.example.com:6432/x?sslmode=require"


def test_two_installations_in_one_database_are_apart(server: Server, database: str) -> None:
    with Memory(server.url(database)) as one, Memory(f"{server.url(database)}?schema=other") as two:
        one.remember("here")
        two.remember("there")
        assert [record.content for record in one.list()] == ["here"]
        assert [record.content for record in two.list()] == ["there"]


def test_the_commands_print_one_json_document(server: Server, database: str) -> None:
    url = server.url(database)
    assert json.loads(called("db", "status", "--store", url, "--json").stdout)["ok"] is False
    assert json.loads(called("db", "upgrade", "--store", url, "--json").stdout)["done"]
    assert json.loads(called("db", "upgrade", "--store", url, "--json").stdout) == {
        "done": [],
        "repaired": [],
        "left": [],
    }
    assert json.loads(called("db", "roles", "--store", url, "--json").stdout)["sql"]
    assert json.loads(called("db", "index", "--store", url, "--json").stdout)["changes"] == []
    assert "is not PostgreSQL" in called("db", "status", "--store", "./folder").stderr


@pytest.mark.parametrize(
    "url",
    [
        "u:s3c/ret@h/d", "u:s3c@ret@h/d", "u:s3c#ret?x@h/d", "u:s3cr%ZZet@h/d", "u:p[s3cret]@h/d", "u:s3c[ret@h/d",
        "h:port/d", "h:99999/d", "u@h:5432:1/d", "[::1/d", "h℀/d",
    ],
)  # fmt: skip
def test_a_url_that_is_none_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InputError, match=r"USER@HOST:PORT/DATABASE, with a PORT .*%40") as error:
        open_store(f"postgresql://{url}")
    assert "s3c" not in str(error.value)
    with pytest.raises(InputError, match="%40"):
        open_store("postgresql://h/d", servers={"b": f"postgresql://{url}"})


def test_a_parameter_that_libpq_does_not_know_is_the_urls_fault(server: Server) -> None:
    with pytest.raises(InputError, match="bogus"):
        open_store(f"{server.url()}?bogus=1").places("default")


def test_no_command_shows_a_password(server: Server, database: str) -> None:
    for url in (server.url(database, password="s3cret"), f"{server.url(database)}?password=s3cret"):
        for words in (["init"], ["init", "--json"], ["remember", "x"], ["doctor"], ["db", "status"], ["stats"]):
            done = called(*words, "--store", url)
            assert "s3cret" not in done.stdout + done.stderr, words


def test_a_role_that_may_not_see_the_tenants_is_not_told_that_there_are_none(server: Server, database: str) -> None:
    server.psql(f"CREATE ROLE {database} LOGIN")
    with Memory(server.url(database)) as memory:
        memory.at(tenant="acme").remember("Alice prefers tabs")
    assert "CREATE ROLE" in called("db", "roles", "--store", server.url(database, user=database)).stdout
    server.psql(f"GRANT recollect_app TO {database}")
    url = server.url(database, user=database)
    for words in (["verify"], ["tenants"], ["maintain", "--all-tenants"]):
        done = called(*words, "--store", url)
        assert (done.returncode, "may not see which tenants" in done.stderr) == (1, True), words
    assert called("verify", "--tenant", "acme", "--store", url).returncode == 0


def test_who_may_only_see_the_tenants_sees_them_and_counts_nothing(server: Server, database: str) -> None:
    with Memory(server.url(database)) as memory:
        memory.at(tenant="acme").remember("Alice prefers tabs")
    server.psql(f"CREATE ROLE {database} LOGIN IN ROLE recollect_admin")
    done = called("tenants", "--json", "--store", server.url(database, user=database))
    assert done.returncode == 0, done.stderr
    assert [(one["tenant"], one["memories"]) for one in json.loads(done.stdout)] == [("acme", None)]


def test_an_application_copies_the_tenant_that_it_names(server: Server, database: str, tmp_path: Path) -> None:
    """Which it needs no list of tenants for."""
    with Memory(server.url(database)) as memory:
        memory.at(tenant="acme").remember("Alice prefers tabs")
    server.psql(f"CREATE ROLE {database} LOGIN IN ROLE recollect_app")
    url, target = server.url(database, user=database), f"sqlite:{tmp_path / 'copy'}"
    done = called("copy", url, target)
    assert (done.returncode, "name one with --tenant" in done.stderr) == (1, True)
    done = called("copy", url, target, "--tenant", "acme")
    assert (done.returncode, done.stderr) == (0, "")
    with Memory(target) as memory:
        assert len(memory.at(tenant="acme").list()) == 1


def test_erasing_says_what_a_server_keeps(server: Server, database: str) -> None:
    with Memory(server.url(database)) as memory:
        kept = memory.remember("to be erased")
        receipt = memory.forget(kept.id, erase=True)
        assert receipt.erased is False
        assert "backups" in (receipt.note or "")
        assert memory.list(state=None) == []
        nothing = memory.forget(tag="of-nothing", erase=True)
        assert (nothing.count, nothing.erased, nothing.note) == (0, False, receipt.note)


def test_a_database_is_not_copied_into_itself_by_another_name(server: Server, database: str) -> None:
    with Memory(server.url(database)) as memory:
        memory.remember("Alice prefers tabs")
    url = server.url(database)
    by_socket = server.socket.replace("/postgres?", f"/{database}?")
    for other in (url, url.replace("127.0.0.1", "localhost"), by_socket):
        done = called("copy", url, other)
        assert (done.returncode, "is where the source is" in done.stderr) == (1, True), other
    assert called("copy", url, f"{by_socket}&schema=another").returncode == 0


def test_a_recall_of_many_gives_as_many(server: Server, database: str) -> None:
    with Memory(server.url(database), embedder="none") as memory:
        memory.remember_many([f"apple number {n}" for n in range(600)])
        assert len(memory.recall("app*", limit=400)) == 400
        assert len(memory.recall("apple", limit=500)) == 500
        assert memory.recall("app*", limit=3)[0].memory.content == "apple number 0"
