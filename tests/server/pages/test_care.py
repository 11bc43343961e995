"""Jobs, audit, keys, people and settings, without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support import plain
from support.common import Clock
from support.furnished import PASSWORD, Furnished
from support.page_data import page_data
from support.served import Served, served

from recollect import Memory
from recollect.memory import view_of
from recollect.server.pages import settings
from recollect.server.serving import COOKIE
from recollect.stores import open_store


@pytest.fixture
def furnished(site: Served, store_url: str, clock: Clock) -> Furnished:
    return Furnished(site.serving, store_url, clock)


@pytest.fixture
def client(site: Served) -> Iterator[httpx.Client]:
    with plain.Client(base_url=site.url, headers=site.headers("owner", all_tenants=True), timeout=30) as client:
        yield client


# Jobs


def test_jobs_say_what_they_would_do_and_do_it(store_url: str, clock: Clock) -> None:
    with Memory(store_url, preset="atlas", clock=clock) as memory, served(memory) as server:
        for number in range(3):
            memory.remember(f"the ferry log has page {number}", importance=0.3, kind="fact")
        clock.forward(days=400)
        headers = server.headers("admin")

        def plans() -> dict[str, Any]:
            shown = page_data(plain, f"{server.url}/jobs", headers=headers)
            return {one["name"]: one for one in shown["jobs"]} | {"past": shown["past"]}

        waiting = [name for name, one in plans().items() if name != "past" and one["plan"].startswith("archive 3")]
        assert waiting
        form = {"job": waiting, "confirm": "run", "force": "1"}
        assert len(memory.list()) == 3
        assert plain.post(f"{server.url}/jobs/run", data=form, headers=headers).status_code == 303
        assert memory.list() == []
        after = plans()
        assert [after[name]["plan"] for name in waiting] == [""] * len(waiting)
        assert {one["action"] for one in after["past"]} <= set(waiting)
        assert after["past"]


def test_a_job_that_another_process_does_is_shown(client: httpx.Client, furnished: Furnished) -> None:
    from recollect.maintenance import leases

    view = view_of(furnished.memory)
    assert leases.take(view, view.place, "undo")
    shown = {one["name"]: one for one in page_data(client, "/jobs")["jobs"]}
    assert shown["undo"]["until"] is not None
    assert shown["compact"]["until"] is None
    assert "leased until" in client.get("/jobs").text


def test_a_run_without_a_job_is_refused(client: httpx.Client, furnished: Furnished) -> None:
    answer = client.post("/jobs/run", data={"confirm": "run"})
    assert answer.status_code == 400
    assert "choose at least one first" in answer.text
    assert client.post("/jobs/run", data={"confirm": "run", "job": "dance"}).status_code == 400


# Audit


def test_the_log_is_searched_paged_and_exported(client: httpx.Client, furnished: Furnished) -> None:
    for number in range(60):
        furnished.memory.audit.record("visit", f"guest number {number}")

    def messages(**asked: Any) -> list[str]:
        found = page_data(client, "/audit", asked)
        return [one["message"] for one in found["entries"]]

    assert messages(action="visit") == [f"guest number {n}" for n in range(59, 9, -1)]
    assert messages(action="visit", page=2) == [f"guest number {n}" for n in range(9, -1, -1)]
    assert messages(text="number 4", action="visit")[-1] == "guest number 4"
    assert messages(about=furnished.core) == ["remembered a core"]
    lines = client.get("/audit/export", params={"kind": "ndjson", "action": "visit"})
    assert lines.headers["content-disposition"] == 'attachment; filename="audit.ndjson"'
    assert [json.loads(line)["message"] for line in lines.text.splitlines()] == [
        f"guest number {n}" for n in range(59, -1, -1)
    ]
    whole = client.get("/audit/export", params={"kind": "json", "action": "visit"}).json()
    assert len(whole) == 60
    assert 'role="alert"' in client.get("/audit", params={"action": "not one!"}).text


def test_a_broken_chain_is_told_as_such(client: httpx.Client, furnished: Furnished, store_url: str) -> None:
    assert "The chain is whole" in client.get("/audit?verify=1").text
    import sqlite3
    from pathlib import Path

    file = next(path for path in Path(store_url).rglob("*") if path.is_file() and _has_log(path))
    with sqlite3.connect(file) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE audit SET message = 'nothing happened' WHERE seq = 2")
    shown = client.get("/audit?verify=1").text
    assert "The chain is broken" in shown
    assert "edited or moved" in shown


def _has_log(path: Any) -> bool:
    import sqlite3

    try:
        with sqlite3.connect(path) as database:
            return database.execute("SELECT count(*) FROM audit WHERE seq = 2").fetchone()[0] == 1
    except sqlite3.DatabaseError:
        return False


def test_a_change_is_taken_back_from_the_log(client: httpx.Client, furnished: Furnished) -> None:
    made = furnished.memory.remember("a slip")
    entry = furnished.memory.audit.search(about=made.id)[0].id
    answer = client.post("/audit/undo", data={"change": entry, "back": "/audit?action=remember"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/audit?action=remember")
    assert furnished.memory.list(contains="a slip") == []
    again = client.post("/audit/undo", data={"change": entry})
    assert again.status_code in (400, 404, 409)
    assert 'role="alert"' in again.text


# Keys and people


def test_a_secret_is_shown_once(client: httpx.Client, site: Served, furnished: Furnished) -> None:
    made = client.post("/access/keys", data={"name": "laptop", "rank": "reader", "expires_at": "2099-01-01"})
    assert made.headers["cache-control"] == "no-store"
    secret = re.findall(r"rk_[0-9a-f]{12}_[\w-]+", made.text)[0]
    headers = {"authorization": f"Bearer {secret}"}
    assert plain.get(f"{site.url}/settings", headers=headers).status_code == 200
    assert secret not in client.get("/access").text
    shown = str(page_data(client, "/access"))
    assert secret not in shown
    assert "hash" not in shown
    ident = secret.split("_")[1]
    rotated = client.post(f"/access/keys/{ident}/rotate", data={"confirm": "rotate"}).text
    fresh = re.findall(r"rk_[0-9a-f]{12}_[\w-]+", rotated)[0]
    assert plain.get(f"{site.url}/settings", headers=headers).status_code == 303
    headers = {"authorization": f"Bearer {fresh}"}
    assert plain.get(f"{site.url}/settings", headers=headers).status_code == 200
    client.post(f"/access/keys/{ident}/revoke", data={"confirm": "revoke"})
    assert plain.get(f"{site.url}/settings", headers=headers).status_code == 303


def test_nobody_gives_more_than_they_have(site: Served, furnished: Furnished) -> None:
    headers = site.headers("admin", tenant="default", workspace="shop")
    before = len(site.serving.accounts.keys.list())
    for more in ({"rank": "owner"}, {"tenant": "other"}, {"workspace": "lab"}):
        answer = plain.post(f"{site.url}/access/keys", data={"name": "more", **more}, headers=headers)
        assert answer.status_code == 403, more
    assert len(site.serving.accounts.keys.list()) == before
    shown = page_data(plain, f"{site.url}/access", headers=headers)
    assert shown["ranks"] == ["reader", "member", "admin"]
    assert shown["free"] == ["account", "agent"]
    assert {one["workspace"] for one in shown["keys"]} == {"shop"}
    assert plain.post(f"{site.url}/access/keys", data={"name": "k"}, headers=headers).status_code == 200


def test_people_come_and_go(client: httpx.Client, site: Served, furnished: Furnished) -> None:
    form = {"name": "Bora", "password": PASSWORD, "rank": "member"}
    assert client.post("/access/people", data=form).status_code == 303
    token, _ = site.serving.accounts.logins.log_in("bora", PASSWORD)
    headers = {"cookie": f"{COOKIE}={token}"}
    assert plain.get(f"{site.url}/settings", headers=headers).status_code == 200
    assert client.post("/access/people/bora/password", data={"password": "another long password"}).status_code == 303
    assert plain.get(f"{site.url}/settings", headers=headers).status_code == 303
    assert client.post("/access/people/bora/remove", data={"confirm": "bora"}).status_code == 303
    assert "bora" not in [one.name for one in site.serving.accounts.people.list()]


def test_everybody_changes_their_own_password_by_the_one_they_have(site: Served) -> None:
    accounts = site.serving.accounts
    accounts.people.add("chen", PASSWORD, "reader")
    token, caller = accounts.logins.log_in("chen", PASSWORD)
    headers = {"cookie": f"{COOKIE}={token}"}
    form = {"form": caller.session, "password": "another long password"}
    wrong = plain.post(f"{site.url}/settings/password", data={**form, "current": "wrong"}, headers=headers)
    assert wrong.status_code == 400
    assert "the password is wrong" in wrong.text
    done = plain.post(f"{site.url}/settings/password", data={**form, "current": PASSWORD}, headers=headers)
    assert (done.status_code, done.headers["location"]) == (303, "/login")
    assert plain.get(f"{site.url}/settings", headers=headers).status_code == 303
    accounts.logins.log_in("chen", "another long password")
    key = site.headers("reader")
    assert plain.post(f"{site.url}/settings/password", data=form, headers=key).status_code == 400


# Settings


def test_settings_say_what_this_memory_is(client: httpx.Client, furnished: Furnished, store_url: str) -> None:
    shown = page_data(client, "/settings")
    assert shown["preset"]["name"] == "recollect"
    assert shown["store"]["location"] == store_url
    assert shown["workspaces"] == ["default", "lab"]
    for page in ("/", "/settings"):  # from within one, the way to the others is there
        inside = page_data(client, page, {"workspace": "lab"})
        assert inside["workspaces"] == ["default", "lab"]
    assert {"name": "limit", "value": "10"} in next(one for one in shown["rules"] if one["name"] == "recall")["rows"]
    assert page_data(client, "/settings?workspace=lab")["address"]["workspace"] == "lab"
    address = str(client.base_url).rstrip("/")
    assert all(address in one["text"] for one in shown["snippets"])


def test_the_snippets_work(site: Served, furnished: Furnished) -> None:
    key = site.key("member")
    made = settings.snippets(site.url, False)
    text = next(one["text"] for one in made if one["name"] == "Python").replace(
        f'"{site.url}"', f'"{site.url}", key="{key}"'
    )
    told: list[str] = []
    names: dict[str, Any] = {"print": told.append}
    exec(text, names)
    names["memory"].close()
    assert told == ["Ada likes green tea"]
    mcp = json.loads(next(one["text"] for one in made if one["name"] == "MCP"))
    assert mcp["mcpServers"]["recollect"]["url"] == f"{site.url}/mcp"


def test_a_reader_is_not_told_where_the_store_is(site: Served, furnished: Furnished, store_url: str) -> None:
    assert store_url not in plain.get(f"{site.url}/settings", headers=site.headers("reader")).text


def test_no_password_is_shown() -> None:
    store = open_store("postgresql://me:hush-hush@localhost/db?sslpassword=hush-hush")
    assert settings.location(store) == "postgresql://me@localhost/db"


def test_a_host_that_is_none_is_not_repeated(site: Served) -> None:
    headers = {**site.headers("reader"), "host": "evil.example/<script>"}
    answer = plain.get(f"{site.url}/settings", headers=headers)
    assert "evil" not in answer.text
