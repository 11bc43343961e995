"""Who may what: every route by every role, one's own tenant and another's. A route without a rule fails here."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import argon2
import httpx
import pytest
from support import plain
from support.common import Clock
from support.served import Served, served

from recollect import AccessError, ConflictError, Memory
from recollect.memory import view_of
from recollect.operations import RANKS, served_operations
from recollect.server.access import account_store, passwords
from recollect.server.access.accounts import Accounts
from recollect.server.access.caller import BusyError, UnknownCallerError
from recollect.server.limits import Limits
from recollect.server.router import EXPORT, IMPORT, ROUTES
from recollect.server.web import HttpRequest, Route, Routes, Trace

_ALL = (*ROUTES, EXPORT, IMPORT)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Memory(tmp_path_factory.mktemp("m")) as memory, served(memory) as server:
        memory.at(tenant="other").remember("what another tenant knows about kites")
        memory.at(tenant="mine").remember("what this tenant knows about boats")
        yield server


@pytest.fixture(scope="module")
def keys(server: Served) -> dict[str, dict[str, str]]:
    return {role: server.headers(role, tenant="mine") for role in RANKS}


def address(server: Served, route: Route, **parts: str) -> str:
    path = route.path
    for part in ("id", "name", "key", "agent", "workflow", "step", "session_id", "memory_id"):
        path = path.replace(f"{{{part}}}", parts.get(part, "0" * 32))
    return f"{server.url}/v1{path}"


def asked(server: Served, route: Route, headers: dict[str, str], **more: Any) -> httpx.Response:
    return plain.request(route.method, address(server, route), headers=headers, **more)


_RANKED = {
    "reader": """
        list ids_like get history diagnose recall query context consult orient simulate stats doctor workspaces
        audit.search audit.matching audit.named conversations.list conversations.get cases.list
        channels.list channels.get scratchpad.list scratchpad.note journal.recent_first journal.for_prompt
        journal.expired journal.has_expired journal.counts journal.counts_by_agent journal.context
        journal.whiteboard.entries knowledge.list knowledge.get knowledge.allowed knowledge.search
        workflows.list workflows.search workflows.get workflows.steps moments.task moments.tool
        moments.decision moments.content moments.delegation sessions.list sessions.search sessions.metrics
        sessions.load sessions.stats sessions.export sessions.query sessions.search_by_topic
        sessions.search_by_type sessions.search_by_time_range sessions.get tools tools.call
        about server.about aliases.list answers proposals sources profile
        people.password export
    """,
    "member": """
        remember remember_many revise forget archive restore undo audit.record conversations.start
        conversations.end conversations.archive conversations.say conversations.observe aliases.save aliases.remove
        confirm dismiss cases.save cases.remove channels.create scratchpad.write scratchpad.clear journal.save
        journal.save_core journal.edit journal.whiteboard.write journal.whiteboard.erase workflows.start
        workflows.finish workflows.step workflows.complete workflows.fail moments.record_task moments.record_tool
        moments.record_decision moments.record_content moments.record_delegation sessions.create
        sessions.close sessions.delete_session sessions.delete_by_topic sessions.delete_by_time_range
        sessions.add sessions.add_many sessions.delete import
    """,
    "admin": """
        deduplicate maintain embed compact verify audit.verify journal.consolidate knowledge.add
        knowledge.publish knowledge.withdraw knowledge.remove knowledge.allow workflows.remove
        sessions.compact sessions.rebuild_index sessions.migrate keys.list keys.create keys.rotate
        keys.revoke people.list people.add people.remove
    """,
}
"""The rank that each route needs, written down here and not read from the table that is under test."""
_EXPECTED = {name: rank for rank, names in _RANKED.items() for name in names.split()}


def test_every_route_has_the_rank_that_is_written_down() -> None:
    assert {route.name: route.rank for route in _ALL} == _EXPECTED
    assert len(_EXPECTED) == 136


@pytest.mark.parametrize("route", _ALL, ids=lambda route: route.name)
def test_every_route_has_a_rule_and_keeps_it(server: Served, keys: dict[str, dict[str, str]], route: Route) -> None:
    rank = _EXPECTED[route.name]
    assert asked(server, route, {}).status_code == 401
    assert asked(server, route, {"authorization": "Bearer rk_000000000000_x"}).status_code == 401
    for role in RANKS:
        status = asked(server, route, keys[role]).status_code
        allowed = RANKS.index(role) >= RANKS.index(rank)
        assert (status == 403) is not allowed or (route.name, role) in _OWN_ONLY, (role, status)
        assert status < 500, (role, status)


_OWN_ONLY = {("tools.call", "reader"), ("people.password", "reader"), ("people.password", "member")}
"""Where a rank alone does not say it: a tool that writes, another's password."""


@pytest.mark.parametrize(
    "route", [r for r in _ALL if r.name in served_operations() or r in (EXPORT, IMPORT)], ids=lambda r: r.name
)
def test_nobody_leaves_the_tenant_of_their_key(server: Served, keys: dict[str, dict[str, str]], route: Route) -> None:
    headers = {**keys["owner"], "recollect-tenant": "other"}
    answer = asked(server, route, headers)
    assert answer.status_code == 403, answer.text
    assert "kites" not in answer.text


def test_a_key_sees_what_is_its_own_and_no_more(server: Served) -> None:
    with server.memory("owner", tenant="mine") as mine, server.memory("owner", tenant="other") as other:
        mine.remember("what this tenant knows about boats")
        other.remember("what another tenant knows about kites")
        told = [hit.memory.text for hit in mine.recall("kites boats")]
        assert "what this tenant knows about boats" in told
        assert not [text for text in told if "kites" in text]
        theirs = other.list()[0]
        answer = plain.get(f"{server.url}/v1/memories/{theirs.id}", headers=server.headers("owner", tenant="mine"))
        assert answer.status_code == 404
        with pytest.raises(AccessError, match="cannot be moved"):
            mine.at(tenant="other")


def test_a_request_can_only_narrow(server: Served) -> None:
    with server.memory("member", tenant="mine", workspace="shop", agent="atlas") as bound:
        bound.remember("the atlas of the shop")
        assert bound.list()[0].address.agent == "atlas"
        with pytest.raises(AccessError):
            bound.at(agent="other")
    for part, value in (("workspace", "default"), ("agent", "other"), ("tenant", "other")):
        headers = {
            **server.headers("member", tenant="mine", workspace="shop", agent="atlas"),
            f"recollect-{part}": value,
        }
        assert plain.get(f"{server.url}/v1/memories", headers=headers).status_code == 403


@pytest.mark.parametrize(("rank", "given"), [("admin", {"rank": "owner"}), ("admin", {"tenant": "other"})])
def test_nobody_gives_more_than_they_have(server: Served, rank: str, given: dict[str, str]) -> None:
    body = {"name": "more", **given}
    answer = plain.post(f"{server.url}/v1/keys", json=body, headers=server.headers(rank, tenant="mine"))
    assert answer.status_code == 403
    person = {**body, "password": "a long enough password"}
    assert (
        plain.post(f"{server.url}/v1/people", json=person, headers=server.headers(rank, tenant="mine")).status_code
        == 403
    )


def test_keys_of_another_tenant_are_neither_seen_nor_revoked(server: Served) -> None:
    made = server.serving.accounts.keys.create("theirs", "reader", tenant="other")
    headers = server.headers("owner", tenant="mine")
    assert made.key.id not in plain.get(f"{server.url}/v1/keys", headers=headers).text
    for method, path in (("DELETE", ""), ("POST", "/rotate")):
        assert plain.request(method, f"{server.url}/v1/keys/{made.key.id}{path}", headers=headers).status_code == 404
    assert server.serving.accounts.keys.caller_of(made.secret).bound == {"tenant": "other"}


def test_a_key_is_shown_once_hashed_at_rest_and_revoked_at_once(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory, served(memory) as server:
        headers = server.headers("owner", tenant="default")
        made = plain.post(f"{server.url}/v1/keys", json={"name": "laptop", "rank": "reader"}, headers=headers).json()
        secret = made["secret"]
        files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert secret.split("_", 2)[2].encode() not in files  # which may have a "_" itself
        listed = plain.get(f"{server.url}/v1/keys", headers=headers).text
        assert "laptop" in listed
        assert secret not in listed
        assert "hash" not in listed
        mine = {"authorization": f"Bearer {secret}"}
        assert plain.get(f"{server.url}/v1/stats", headers=mine).status_code == 200
        rotated = plain.post(f"{server.url}/v1/keys/{made['key']['id']}/rotate", headers=headers).json()["secret"]
        assert plain.get(f"{server.url}/v1/stats", headers=mine).status_code == 401
        mine = {"authorization": f"Bearer {rotated}"}
        assert plain.get(f"{server.url}/v1/stats", headers=mine).status_code == 200
        assert server.serving.accounts.keys.get(made["key"]["id"]).last_used is not None
        plain.delete(f"{server.url}/v1/keys/{made['key']['id']}", headers=headers)
        assert plain.get(f"{server.url}/v1/stats", headers=mine).status_code == 401


def test_another_process_that_revokes_is_heard_at_once(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory, served(memory) as server, Memory(tmp_path) as elsewhere:
        made = server.serving.accounts.keys.create("one", "reader")
        headers = {"authorization": f"Bearer {made.secret}"}
        assert plain.get(f"{server.url}/v1/stats", headers=headers).status_code == 200
        Accounts(view_of(elsewhere).store).keys.revoke(made.key.id)
        assert plain.get(f"{server.url}/v1/stats", headers=headers).status_code == 401


def test_a_password_is_hashed_at_the_cost_that_argon2_advises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # of what makes other tests quick
    advised = argon2.profiles.RFC_9106_LOW_MEMORY
    made = argon2.extract_parameters(passwords.hash_password("a long enough password"))
    assert (made.type, made.time_cost, made.memory_cost) == (argon2.Type.ID, advised.time_cost, advised.memory_cost)


class _Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_whoever_guesses_a_password_waits_ever_longer(tmp_path: Path) -> None:
    clock = _Clock()
    with Memory(tmp_path) as memory:
        accounts = Accounts(view_of(memory).store, clock)
        accounts.people.add("ada", "a long enough password", "admin")
        for _ in range(5):
            with pytest.raises(UnknownCallerError, match="the name or the password is wrong"):
                accounts.logins.log_in("ada", "wrong")
        with pytest.raises(UnknownCallerError, match="too many wrong passwords; try again in 1 s"):
            accounts.logins.log_in("ada", "a long enough password")
        clock.now += timedelta(seconds=1)
        with pytest.raises(UnknownCallerError, match="is wrong"):
            accounts.logins.log_in("ada", "wrong")
        with pytest.raises(UnknownCallerError, match="try again in 2 s"):
            accounts.logins.log_in("ada", "a long enough password")
        clock.now += timedelta(seconds=2)
        token, caller = accounts.logins.log_in("ada", "a long enough password")
        assert accounts.logins.caller_of(token) == caller
        clock.now += timedelta(hours=12)
        with pytest.raises(UnknownCallerError, match="or no longer"):
            accounts.logins.caller_of(token)


def test_many_who_guess_at_once_have_no_more_tries(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        accounts = Accounts(view_of(memory).store, _Clock())
        accounts.people.add("ada", "a long enough password", "admin")

        def guess(_: int) -> str:
            while True:
                try:
                    accounts.logins.log_in("ada", "wrong")
                except BusyError:  # which is no try
                    continue
                except UnknownCallerError as error:
                    return str(error)

        with ThreadPoolExecutor(12) as pool:
            told = list(pool.map(guess, range(12)))
        assert sum("is wrong" in text for text in told) == 5


def test_a_key_that_is_used_while_it_is_revoked_stays_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path) as memory:
        store = view_of(memory).store
        accounts, other = Accounts(store), Accounts(store)
        made = accounts.keys.create("one", "reader")
        find = store.find

        def read_and_then_revoked(*given: Any) -> Any:
            found = find(*given)
            monkeypatch.setattr(store, "find", find)
            other.keys.revoke(made.key.id)
            return found

        monkeypatch.setattr(store, "find", read_and_then_revoked)
        accounts.keys.caller_of(made.secret)
        with pytest.raises(UnknownCallerError):
            accounts.keys.caller_of(made.secret)
        assert accounts.keys.get(made.key.id).revoked_at is not None


def test_another_password_logs_out_everywhere(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        accounts = Accounts(view_of(memory).store)
        accounts.people.add("ada", "a long enough password", "admin")
        token, _ = accounts.logins.log_in("ADA", "a long enough password")
        accounts.people.set_password("ada", "another long password")
        with pytest.raises(UnknownCallerError):
            accounts.logins.caller_of(token)
        with pytest.raises(UnknownCallerError):
            accounts.logins.log_in("ada", "a long enough password")
        token, _ = accounts.logins.log_in("ada", "another long password")
        accounts.people.remove("ada")
        with pytest.raises(UnknownCallerError):
            accounts.logins.caller_of(token)


def test_an_expired_key_is_worth_nothing(tmp_path: Path) -> None:
    clock = _Clock()
    with Memory(tmp_path) as memory:
        accounts = Accounts(view_of(memory).store, clock)
        made = accounts.keys.create("short", "reader", expires_at="2026-03-02")
        accounts.keys.caller_of(made.secret)
        clock.now += timedelta(days=1)
        with pytest.raises(UnknownCallerError, match="expired on 2026-03-02"):
            accounts.keys.caller_of(made.secret)


def test_every_refusal_is_in_the_audit_log_and_fills_no_disk(server: Served, keys: dict[str, dict[str, str]]) -> None:
    before = len(list(server.serving.accounts.entries(10_000)))
    for _ in range(50):
        plain.get(f"{server.url}/v1/workflows", headers={"authorization": "Bearer rk_no_no"})
        plain.post(f"{server.url}/v1/workflows", headers=keys["reader"], json={"name": "x"})
    told = [entry.message for entry in server.serving.accounts.entries(10_000)]
    assert "401 GET workflows.list" in told
    assert "403 POST workflows.start" in told
    assert len(list(server.serving.accounts.entries(10_000))) - before <= 3


def test_the_tenants_audit_log_tells_nothing_of_the_servers_keys(server: Served) -> None:
    with server.memory("owner", tenant="default") as memory:
        entries = memory.audit.search(limit=1000)
    assert not [entry for entry in entries if entry.action in ("key", "person")]


def test_too_many_requests_are_refused_by_key(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory, served(memory, limits=Limits(per_second=1.0, burst=3)) as server:
        headers, others = server.headers("reader"), server.headers("reader")
        told = [plain.get(f"{server.url}/v1/stats", headers=headers) for _ in range(5)]
        assert [answer.status_code for answer in told] == [200, 200, 200, 429, 429]
        assert int(told[-1].headers["retry-after"]) >= 1
        assert plain.get(f"{server.url}/v1/stats", headers=others).status_code == 200


def test_what_goes_out_is_safe(server: Served) -> None:
    for path in ("/healthz", "/v1/stats", "/login", "/nothing"):
        headers = plain.get(f"{server.url}{path}").headers
        policy = headers["content-security-policy"]
        assert ("script-src 'self'" in policy) is (path != "/v1/stats"), "data runs no script at all"
        assert ("default-src 'none'" in policy, "unsafe" in policy) == (True, False)
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers or "uvicorn" in headers["server"]


@pytest.mark.parametrize("secure", [True, False])
def test_every_cookie_is_for_this_server_and_for_tls_where_there_is_one(tmp_path: Path, secure: bool) -> None:
    with Memory(tmp_path / "m") as memory, served(memory, secure=secure) as server:
        server.serving.accounts.people.add("ada", "a long enough password", "owner")
        given = {"name": "ada", "password": "a long enough password"}
        login = plain.post(f"{server.url}/login", data=given)
        token = login.headers["set-cookie"].partition(";")[0]
        form = server.serving.identify(_asked(token)).session
        sent = {"content": "Ada likes tea", "form": form}
        told = plain.post(f"{server.url}/memories/new", data=sent, headers={"cookie": token})
        assert "recollect_said" in told.headers["set-cookie"]
        shown = plain.get(f"{server.url}/", headers={"cookie": f"{token}; {told.headers['set-cookie'].split(';')[0]}"})
        assert "Max-Age=0" in shown.headers["set-cookie"]
        for answer in (login, told, shown):
            flags = answer.headers["set-cookie"].split("; ")
            assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(flags)
            assert ("Secure" in flags) is secure
            assert ("strict-transport-security" in answer.headers) is secure


def _asked(cookie: str) -> HttpRequest:
    return HttpRequest("GET", "/", {}, (), {}, dict([cookie.split("=", 1)]))


def test_what_is_written_out_goes_before_what_stands_for_a_name() -> None:
    routes = Routes([], api=ROUTES)
    route, parts = routes.match("GET", Trace("/v1/journal/agents", {}))
    assert (route.name, parts) == ("journal.counts_by_agent", {})
    route, parts = routes.match("GET", Trace("/v1/memories/a%2Fb", {}))
    assert (route.name, parts) == ("get", {"id": "a/b"})


def test_that_a_key_was_used_is_written_once_a_minute(memory: Memory, clock: Clock) -> None:
    """What is made of a key's row is kept for the next request, and made again when the row has changed."""
    accounts = Accounts(view_of(memory).store, clock)
    made = accounts.keys.create("svc", "member")

    def version() -> int:
        (item,) = view_of(memory).store.find(account_store.PLACE, "keys", [made.key.id])
        return item.version

    for _ in range(3):
        before = version()
        for _ in range(4):
            assert accounts.keys.caller_of(made.secret).rank == "member"
        assert version() == before + 1
        assert accounts.keys.get(made.key.id).last_used == clock.now
        clock.forward(minutes=2)


def test_keys_and_people_live_where_no_view_can_look(server: Served) -> None:
    assert account_store.PLACE.reserved
    memory = server.serving.memory
    assert not [name for name in memory.workspaces() if name.startswith(" ")]
    answer = plain.get(
        f"{server.url}/v1/memories", headers={**server.headers("owner"), "recollect-workspace": "%20server"}
    )
    assert answer.status_code == 400


def test_an_open_browser_is_not_enough_to_take_an_account_over(server: Served) -> None:
    accounts = server.serving.accounts
    accounts.people.add("bob", "a long enough password", "member")
    token, caller = accounts.logins.log_in("bob", "a long enough password")
    with plain.Client(cookies={"recollect": token}, headers={"x-recollect-form": caller.session}) as browser:
        address = f"{server.url}/v1/people/bob/password"
        assert browser.put(address, json={"password": "stolen by a browser"}).status_code == 400
        wrong = {"password": "stolen by a browser", "current": "not that one"}
        assert browser.put(address, json=wrong).status_code == 400
        right = {"password": "another long password", "current": "a long enough password"}
        assert browser.put(address, json=right).status_code == 200
    accounts.logins.log_in("bob", "another long password")


def test_people_of_another_tenant_are_not_there(server: Served) -> None:
    server.serving.accounts.people.add("zoe", "a long enough password", "member", tenant="other")
    body = {"password": "a long enough password"}
    for role, status in (("reader", 403), ("admin", 404)):
        headers = server.headers(role, tenant="mine")
        for name in ("zoe", "nobody"):
            path = f"{server.url}/v1/people/{name}"
            assert plain.put(f"{path}/password", json=body, headers=headers).status_code == status
            assert plain.delete(path, headers=headers).status_code == status


def test_who_is_not_there_is_told_the_same_as_who_is(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        accounts = Accounts(view_of(memory).store, _Clock())
        accounts.people.add("ada", "a long enough password", "admin")
        told: dict[str, list[str]] = {"ada": [], "no such person": []}
        for name, texts in told.items():
            for _ in range(7):
                with pytest.raises(UnknownCallerError) as caught:
                    accounts.logins.log_in(name, "wrong")
                texts.append(str(caught.value))
        assert told["ada"] == told["no such person"]


def test_of_two_who_add_the_same_person_one_is_refused(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        accounts = Accounts(view_of(memory).store)

        def add(word: str) -> str:
            try:
                accounts.people.add("race", f"a long enough password of {word}", "member", tenant="mine")
            except ConflictError:
                return ""
            return word

        with ThreadPoolExecutor(2) as pool:
            (won,) = filter(None, pool.map(add, ("one", "two")))
        accounts.logins.log_in("race", f"a long enough password of {won}")


def test_an_admin_does_not_learn_of_names_in_another_tenant(server: Served) -> None:
    """The same name is added as if nobody had it, and each of the two logs in to their own tenant."""
    server.serving.accounts.people.add("yara", "a long enough password", "member", tenant="other")
    headers = server.headers("admin", tenant="mine")
    body = {"name": "Yara", "password": "another long password"}
    assert plain.post(f"{server.url}/v1/people", json=body, headers=headers).status_code == 201
    assert plain.post(f"{server.url}/v1/people", json=body, headers=headers).status_code == 409
    accounts = server.serving.accounts
    for password, tenant in (("a long enough password", "other"), ("another long password", "mine")):
        assert accounts.logins.log_in("yara", password)[1].bound == {"tenant": tenant}
    change = {"password": "a third long password"}
    path = f"{server.url}/v1/people/yara"
    assert plain.put(f"{path}/password", json=change, headers=headers).status_code == 200
    accounts.logins.log_in("yara", "a long enough password")
    token, _ = accounts.logins.log_in("yara", "a third long password")
    assert plain.delete(path, headers=headers).status_code == 200
    with pytest.raises(UnknownCallerError):
        accounts.logins.caller_of(token)
    with pytest.raises(UnknownCallerError):
        accounts.logins.log_in("yara", "a third long password")
    assert accounts.logins.log_in("yara", "a long enough password")[1].bound == {"tenant": "other"}


def test_a_stranger_locks_nobody_out(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        accounts = Accounts(view_of(memory).store, _Clock())
        accounts.people.add("ada", "a long enough password", "admin")
        for _ in range(8):
            with pytest.raises(UnknownCallerError):
                accounts.logins.log_in("ada", "wrong", "203.0.113.7")
        with pytest.raises(UnknownCallerError, match="too many wrong passwords"):
            accounts.logins.log_in("ada", "a long enough password", "203.0.113.7")
        accounts.logins.log_in("ada", "a long enough password", "198.51.100.2")
        with pytest.raises(UnknownCallerError, match="too many wrong passwords"):  # a right one elsewhere ends no pause
            accounts.logins.log_in("ada", "a long enough password", "203.0.113.7")
        for number in range(8):  # all addresses of a network of IPv6 are one
            with pytest.raises(UnknownCallerError):
                accounts.logins.log_in("ada", "wrong", f"2001:db8::{number}")
        with pytest.raises(UnknownCallerError, match="too many wrong passwords"):
            accounts.logins.log_in("ada", "a long enough password", "2001:db8::ffff")


def test_two_people_whose_names_hold_a_slash_are_two(server: Served) -> None:
    """`z` of `x/y` and `y/z` of `x`: an answer that is kept for one is not the other's."""
    accounts, made = server.serving.accounts, []
    for name, tenant in (("y/z", "x"), ("z", "x/y")):
        accounts.people.add(name, "a long enough password", "member", tenant=tenant)
        token, caller = accounts.logins.log_in(name, "a long enough password")
        headers = {"x-recollect-form": caller.session, "idempotency-key": "one"}
        with plain.Client(cookies={"recollect": token}, headers=headers, base_url=server.url) as browser:
            answer = browser.post("/v1/conversations", json={"title": "mine"})
            assert (answer.status_code, answer.headers.get("idempotent-replay")) == (201, None)
            assert len(browser.get("/v1/conversations").json()) == 1
            made.append((caller.id, answer.json()["id"]))
    assert len({ident for ident, _ in made}) == len({ident for _, ident in made}) == 2


def test_what_is_no_stream_is_no_get(server: Served) -> None:
    """A GET of MCP would keep a connection for as long as its client likes, and nothing would be sent on it."""
    answer = plain.get(f"{server.url}/mcp", headers={**server.headers(), "accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST, DELETE")
