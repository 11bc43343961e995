"""What strangers send, and what they put between a client and its server."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import httpx
import pytest
from support import plain
from support.common import eventually
from support.served import PLENTY, Served, listening, served
from support.web import Request, serving

from recollect import AccessError, InputError, Memory, StoreError
from recollect.remote import client as remote_client
from recollect.server import idempotency
from recollect.server.running import built
from recollect.server.serving import COOKIE, Serving


@contextmanager
def before(server: Served, meddle: Callable[[Request, httpx.Response], httpx.Response | None]) -> Iterator[str]:
    """A proxy. `meddle` is given each answer; None cuts the connection in its place."""

    def answer(request: Request) -> None:
        known = {name: value for name, value in request.headers.items() if name.lower() not in ("host", "connection")}
        told = plain.request(
            request.command,
            server.url + request.path,
            headers=known,
            content=request.body,
            timeout=60,
            follow_redirects=False,
        )
        changed = meddle(request, told)
        if changed is None:
            request.drop()
            return
        names = ("content-type", "location", "retry-after")
        kept = {name: changed.headers[name] for name in names if name in changed.headers}
        request.reply(changed.content, changed.status_code, kept)

    with serving(answer) as proxy:
        yield proxy.url


_PORTAL = b"<html>Log in to the network</html>"


@pytest.mark.parametrize(
    "instead",
    [
        httpx.Response(302, headers={"location": "https://sso.example/login"}),
        httpx.Response(200, content=_PORTAL, headers={"content-type": "text/html"}),
        httpx.Response(204),
        httpx.Response(200, content=b'{"format":"recollect","schema_version":1,"memories":[\n'),
        None,
    ],
)
def test_an_export_is_whole_or_not_there(server: Served, tmp_path: Path, instead: httpx.Response | None) -> None:
    def meddle(request: Request, told: httpx.Response) -> httpx.Response | None:
        return instead if "/export" in request.path else told

    backup = tmp_path / "backup.json"
    backup.write_text("yesterday's")
    with before(server, meddle) as url, Memory(url, key=server.key()) as memory:
        memory.remember("Ada likes tea")
        with pytest.raises(StoreError):
            memory.export(backup)
        assert backup.read_text() == "yesterday's"
        assert [one.text for one in memory.list()] == ["Ada likes tea"]


def test_an_export_that_leads_elsewhere_says_where(server: Served, tmp_path: Path) -> None:
    elsewhere = httpx.Response(302, headers={"location": "https://sso.example/login"})

    def meddle(request: Request, told: httpx.Response) -> httpx.Response | None:
        return elsewhere if "/export" in request.path else told

    with (
        before(server, meddle) as url,
        Memory(url, key=server.key()) as memory,
        pytest.raises(StoreError, match=r"leads on to https://sso\.example/login"),
    ):
        memory.export(tmp_path / "backup.json")


def test_a_kind_of_content_is_told_once(server: Served) -> None:
    assert plain.get(f"{server.url}/login").headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize("content", [_PORTAL, b"", b"[]", b"null", b'{"x": 1}'])
def test_what_is_no_answer_of_ours_is_told_as_such(server: Served, content: bytes) -> None:
    strange: list[bool] = []

    def meddle(request: Request, told: httpx.Response) -> httpx.Response | None:
        return httpx.Response(200, content=content) if strange else told

    with before(server, meddle) as url, Memory(url, key=server.key()) as memory:
        strange.append(True)
        with pytest.raises(StoreError, match="not as recollect does"):
            memory.remember("Ada likes tea")
        with pytest.raises(StoreError, match="not as recollect does"):
            Memory(url, key=server.key())


@pytest.mark.parametrize("address", ["http://ada:pw@127.0.0.1:1", "http://127.0.0.1:1?x=1", "http://", "http://h#x"])
def test_an_address_is_one_and_no_more(address: str) -> None:
    with pytest.raises(InputError) as refused:
        Memory(address, key="rk_a_b")
    assert refused.value.field == "store"
    assert "pw" not in str(refused.value).split()


def test_an_address_may_be_in_capitals(server: Served) -> None:
    with Memory(server.url.replace("http", "HTTP"), key=server.key()) as memory:
        assert memory.stats().total == 0


def test_a_write_whose_connection_is_cut_is_waited_for(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is done once, and whoever asked hears what came of it, however often the connection is cut."""
    monkeypatch.setattr(remote_client, "_TIMEOUT", 0.3)
    verb, begun = Memory.remember_many, threading.Event()

    @wraps(verb)
    def slow(self: Memory, items: Any, **options: Any) -> Any:
        begun.set()
        time.sleep(1.5)
        return verb(self, items, **options)

    with server.memory() as memory:
        monkeypatch.setattr(Memory, "remember_many", slow)
        assert [one.text for one in memory.remember_many(["one", "two"])] == ["one", "two"]
        assert begun.is_set()
        assert memory.stats().total == 2


def test_what_is_under_way_here_is_not_taken_for_interrupted(
    server: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "_UNDER_WAY", idempotency._KEPT * 0)
    verb, going, go = Memory.remember, threading.Event(), threading.Event()

    @wraps(verb)
    def slow(self: Memory, *given: Any, **options: Any) -> Any:
        going.set()
        assert go.wait(20)
        return verb(self, *given, **options)

    monkeypatch.setattr(Memory, "remember", slow)
    sent = {"json": {"content": "x"}, "headers": {"idempotency-key": "k"}}
    first = threading.Thread(target=lambda: client.post("/memories", **sent))  # type: ignore[arg-type]
    first.start()
    assert going.wait(20)
    second = client.post("/memories", **sent)  # type: ignore[arg-type]
    assert (second.status_code, second.json()["title"], second.headers["retry-after"]) == (409, "ConflictError", "1")
    go.set()
    first.join()
    assert client.post("/memories", **sent).status_code == 201  # type: ignore[arg-type]
    assert client.get("/stats").json()["total"] == 1


def test_a_large_answer_is_given_again_too(client: httpx.Client) -> None:
    many = {"items": [{"content": f"note {n}", "tags": ["t"]} for n in range(1500)]}
    assert client.post("/memories/batch", json=many).status_code < 300
    told = [client.post("/forget", json={"tag": "t"}, headers={"idempotency-key": "k"}) for _ in range(2)]
    assert len(told[0].content) > 65_536 // 2
    assert (told[1].status_code, told[1].content) == (told[0].status_code, told[0].content)
    assert told[1].headers["idempotent-replay"] == "true"


def test_another_process_answers_again_what_this_one_has_done(tmp_path: Path) -> None:
    """Its answer is in the memory of one process only, and the other makes it anew from the audit log."""
    with Memory(tmp_path / "m") as one, Memory(tmp_path / "m") as other, served(one) as here, served(other) as there:
        memory = one.at()
        memory.remember("x", tags=["t"])
        headers = {**here.headers(), "idempotency-key": "k"}
        answers = [plain.post(f"{s.url}/v1/forget", json={"tag": "t"}, headers=headers) for s in (here, there)]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[0].json()["ids"] == answers[1].json()["ids"] != []
        assert answers[1].headers["idempotent-replay"] == "true"
        assert [entry.action for entry in one.audit.search(limit=5)].count("forget") == 1


def test_what_was_done_and_cannot_be_told_again_names_its_audit_entry(tmp_path: Path) -> None:
    with Memory(tmp_path / "m") as one, Memory(tmp_path / "m") as other, served(one) as here, served(other) as there:
        headers = {**here.headers(), "idempotency-key": "k"}
        call = {"json": {"content": "x"}, "headers": headers}
        answers = [plain.post(f"{s.url}/v1/tools/remember", **call) for s in (here, there)]  # type: ignore[arg-type]
        assert [answer.status_code for answer in answers] == [200, 409]
        (entry,) = one.audit.search(action="remember")
        assert answers[1].json()["title"] == "UnavailableError"
        assert entry.id in answers[1].json()["detail"]
        assert len(one.list()) == 1


def test_a_secret_is_made_once_and_told_once(server: Served, client: httpx.Client) -> None:
    sent = {"json": {"name": "svc", "rank": "reader"}, "headers": {"idempotency-key": "k"}}
    made = client.post("/keys", **sent)  # type: ignore[arg-type]
    again = client.post("/keys", **sent)  # type: ignore[arg-type]
    assert (made.status_code, again.status_code) == (201, 409)
    assert "secret" not in again.text
    assert [key["name"] for key in client.get("/keys").json()].count("svc") == 1
    ident, headers = made.json()["key"]["id"], {"idempotency-key": "r"}
    secret = client.post(f"/keys/{ident}/rotate", headers=headers).json()["secret"]
    assert client.post(f"/keys/{ident}/rotate", headers=headers).status_code == 409
    assert plain.get(f"{server.url}/v1/stats", headers={"authorization": f"Bearer {secret}"}).status_code == 200
    gone = [client.delete(f"/keys/{ident}", headers={"idempotency-key": "d"}).status_code for _ in range(2)]
    assert gone == [200, 200]


# Where a request is


def test_keys_and_people_are_where_the_request_is(server: Served) -> None:
    every, mine = server.headers(all_tenants=True), server.headers("admin", tenant="acme")
    acme, sales = {"recollect-tenant": "acme"}, {"recollect-workspace": "sales"}

    def post(path: str, headers: dict[str, str], **body: Any) -> httpx.Response:
        return plain.post(f"{server.url}/v1{path}", json={"rank": "reader", **body}, headers=headers)

    made = post("/keys", {**every, **acme}, name="svc").json()["key"]
    assert made["tenant"] == "acme"
    assert post("/people", {**every, **acme}, name="ada", password="a long enough password").json()["tenant"] == "acme"
    assert post("/keys", {**mine, **sales}, name="s").json()["key"]["workspace"] == "sales"
    assert post("/keys", {**mine, **sales}, name="s", workspace="hr").status_code == 403
    assert post("/keys", {**mine, "recollect-tenant": "bolt"}, name="s").status_code == 403
    assert post("/keys", every, name="s").json()["field"] == "tenant"
    assert post("/keys", {**mine, "recollect-channel": "c"}, name="s").status_code == 400
    listed = plain.get(f"{server.url}/v1/keys", headers={**every, **acme}).json()
    assert {key["tenant"] for key in listed} == {"acme"}
    assert {k["workspace"] for k in plain.get(f"{server.url}/v1/keys", headers={**mine, **sales}).json()} == {"sales"}


def test_a_key_for_all_tenants_names_one_in_each_request(server: Served) -> None:
    every = server.headers(all_tenants=True)
    refused = plain.post(f"{server.url}/v1/memories", json={"content": "whose is it?"}, headers=every)
    assert (refused.status_code, refused.json()["field"]) == (400, "tenant")
    assert server.serving.memory.stats().total == 0
    named = plain.post(f"{server.url}/v1/memories", json={"content": "x"}, headers={**every, "recollect-tenant": "t"})
    assert named.json()["address"]["tenant"] == "t"
    with server.memory(all_tenants=True) as memory:  # a program says `default`, as it does without a server
        assert memory.remember("here").address.tenant == "default"


def test_a_key_of_an_agent_works_in_any_workspace(server: Served) -> None:
    headers = {**server.headers("member", agent="zoe"), "recollect-workspace": "hr"}
    made = plain.post(f"{server.url}/v1/memories", json={"content": "x"}, headers=headers).json()
    assert (made["address"]["agent"], made["address"]["workspace"]) == ("zoe", "hr")
    with server.memory("member", agent="zoe") as memory:
        assert [one.id for one in memory.at(workspace="hr").list()] == [made["id"]]
        with pytest.raises(AccessError):
            memory.at(workspace="hr").at(agent="bora")
    other = plain.get(f"{server.url}/v1/memories", headers={**headers, "recollect-agent": "bora"})
    assert other.status_code == 403


@pytest.mark.parametrize("name", ["%ff", "%c3", b"zo\xc3\xab"])
def test_a_name_that_could_be_another_is_refused(server: Served, name: Any) -> None:
    headers = {**server.headers(), "recollect-agent": name}
    refused = plain.get(f"{server.url}/v1/memories", headers=headers)
    assert (refused.status_code, refused.json()["field"]) == (400, "recollect-agent")


# What a request says


def _sent(server: Served, *lines: str, body: bytes = b"") -> bytes:
    """As it is, over a bare connection; all that comes back until it is closed or silent."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    told = b""
    with closing(socket.create_connection((host, int(port)), timeout=20)) as connection:
        connection.sendall("\r\n".join([*lines, "Host: localhost", "", ""]).encode() + body)
        connection.settimeout(2)
        try:
            while part := connection.recv(65_536):
                told += part
        except TimeoutError:
            pass
    return told


def test_two_ways_to_tell_where_a_body_ends_are_refused(server: Served) -> None:
    key = f"Authorization: {server.headers()['authorization']}"
    hidden = f"GET /v1/keys HTTP/1.1\r\nHost: localhost\r\n{key}\r\n\r\n".encode()
    head = ["POST /v1/recall HTTP/1.1", key, "Content-Length: 5", "Transfer-Encoding: chunked"]
    told = _sent(server, *head, body=b"0\r\n\r\n" + hidden)
    assert told.count(b"HTTP/1.1 ") == 1
    assert b" 400 " in told.partition(b"\r\n")[0]
    assert b"connection: close" in told.lower()


@pytest.mark.parametrize("name", ["authorization", "recollect-tenant", "recollect-workspace", "idempotency-key"])
def test_what_counts_once_is_not_given_twice(server: Served, name: str) -> None:
    value = {"authorization": server.headers()["authorization"]}.get(name, "default")
    known = [("authorization", server.headers()["authorization"])] if name != "authorization" else []
    refused = plain.get(f"{server.url}/v1/stats", headers=[*known, (name, value), (name, value)])
    assert (refused.status_code, refused.json()["field"]) == (400, name)


def test_a_packed_body_is_refused_by_name(client: httpx.Client) -> None:
    refused = client.post("/memories", content=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert (refused.status_code, refused.json()["field"]) == (415, "content-encoding")


@pytest.mark.parametrize("path", ["/healthz", "/login", "/v1/stats", "/v1/openapi.json"])
def test_whoever_asks_for_the_head_gets_it(server: Served, path: str) -> None:
    headers = {} if path == "/login" else server.headers()
    head = plain.head(server.url + path, headers=headers)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == plain.get(server.url + path, headers=headers).headers["content-type"]


def test_a_large_body_of_nobody_is_not_read(server: Served) -> None:
    lines = ["POST /v1/memories HTTP/1.1", "Content-Length: 8000000"]
    assert b" 401 " in _sent(server, *lines, body=b"x" * 70_000).partition(b"\r\n")[0]


@pytest.mark.parametrize(("path", "length"), [("/v1/memories", 9_000_000), ("/v1/import", 2_000_000_000)])
def test_a_body_over_the_limit_is_refused_by_its_length_alone(server: Served, path: str, length: int) -> None:
    key = f"Authorization: {server.headers()['authorization']}"
    told = _sent(server, f"POST {path} HTTP/1.1", key, f"Content-Length: {length}", body=b"{")
    assert b" 413 " in told.partition(b"\r\n")[0]


def test_a_large_form_of_nobody_is_not_read(server: Served) -> None:
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        lines = ["POST /knowledge/add HTTP/1.1", "Content-Length: 8000000", f"Content-Type: {kind}"]
        first_line, _, rest = _sent(server, *lines, body=b"x" * 70_000).partition(b"\r\n")
        assert b" 303 " in first_line
        assert b"location: /login" in rest


def test_a_large_form_without_its_token_changes_nothing(server: Served) -> None:
    server.serving.accounts.people.add("ada", "a long enough password", "owner")
    token, caller = server.serving.accounts.logins.start(server.serving.accounts.people.thing("ada", None).key)
    form = {"content": "x" * 100_000, "form": "wrong"}
    headers = {"cookie": f"{COOKIE}={token}"}
    assert plain.post(f"{server.url}/memories/new", data=form, headers=headers).status_code == 403
    assert server.serving.memory.stats().total == 0
    form["form"] = caller.session
    assert plain.post(f"{server.url}/memories/new", data=form, headers=headers).status_code == 303
    assert server.serving.memory.stats().total == 1


def test_an_import_to_another_tenant_is_refused_before_it_is_read(server: Served) -> None:
    key = f"Authorization: {server.headers('member', tenant='acme')['authorization']}"
    lines = ["POST /v1/import HTTP/1.1", "Content-Length: 8000000", key, "Recollect-Tenant: other"]
    assert b" 403 " in _sent(server, *lines, body=b"{").partition(b"\r\n")[0]


def test_mcp_answers_under_the_name_of_the_server(tmp_path: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with Memory(tmp_path / "m") as memory:
        state = Serving(memory)
        key = state.accounts.keys.create("k", "reader").secret
        headers = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
        with listening(built(state, hosts=["memory.example.org"])) as url:
            for host, status in (("memory.example.org", 200), ("evil.example", 421)):
                told = plain.post(f"{url}/mcp", json=call, headers={**headers, "host": host}, timeout=60)
                assert told.status_code == status, host


def test_what_comes_too_slowly_is_told_so(tmp_path: Path) -> None:
    with Memory(tmp_path / "m") as memory, served(memory, limits=PLENTY._replace(seconds=0.3)) as server:
        key = f"Authorization: {server.headers()['authorization']}"
        for path in ("/v1/memories", "/v1/import", "/mcp"):
            told = _sent(server, f"POST {path} HTTP/1.1", key, "Content-Length: 100", body=b"{")
            assert b" 408 " in told.partition(b"\r\n")[0], path


def test_whoever_leaves_in_the_middle_is_no_failure_of_the_server(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    key = f"Authorization: {server.headers()['authorization']}"
    caplog.set_level(logging.INFO, "recollect.server.access")
    for path in ("/v1/memories", "/mcp"):
        with closing(socket.create_connection((host, int(port)), timeout=20)) as connection:
            lines = [f"POST {path} HTTP/1.1", "Host: localhost", key, "Content-Length: 100", "", "{"]
            connection.sendall("\r\n".join(lines).encode())
    assert eventually(lambda: len([record for record in caplog.records if record.name.endswith("access")]) == 2)
    assert b'status="500"' not in server.serving.metrics.text()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_what_a_call_does_not_look_at_is_refused(server: Served, client: httpx.Client) -> None:
    """It would be read as if it had been heeded: an export of one kind, a key that is removed if it has not changed."""
    ident = client.post("/keys", json={"name": "svc", "rank": "reader"}).json()["key"]["id"]
    assert client.get("/export?kind=journal").status_code == 400
    assert client.post("/import?dry_run=true", content=b"{}").status_code == 400
    assert client.get("/keys?nosuch=1").status_code == 400
    assert client.post("/memories?kind=preference", json={"content": "x"}).status_code == 400
    refused = client.delete(f"/keys/{ident}", headers={"if-match": '"x"'})
    assert (refused.status_code, refused.json()["field"]) == (400, "if-match")
    assert [key["revoked_at"] for key in client.get("/keys").json() if key["id"] == ident] == [None]
    assert client.delete(f"/keys/{ident}").status_code == 200


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"content": "x", "importance": 1e400}', "too large"),
        (b'{"content": ' + b"[" * 5000 + b"]" * 5000 + b"}", "too deeply"),
        (b"[1]", "must be a JSON object"),
        (b"{", "is not JSON"),
        (b'{"content": "\xff"}', "is not JSON"),
    ],
)
def test_a_body_that_cannot_be_read_says_why(client: httpx.Client, body: bytes, problem: str) -> None:
    answer = client.post("/memories", content=body)
    assert (answer.status_code, answer.json()["field"]) == (400, "body")
    assert problem in answer.json()["detail"]


def test_drops_do_not_keep_mcp_waiting(tmp_path: Path) -> None:
    with Memory(tmp_path / "m") as memory, served(memory, limits=PLENTY._replace(seconds=0.5)) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        lines = ["POST /mcp HTTP/1.1", "Host: localhost", f"Authorization: {server.headers()['authorization']}"]
        lines += ["Content-Type: application/json", "Content-Length: 1000", "", ""]
        with closing(socket.create_connection((host, int(port)), timeout=20)) as connection:
            connection.sendall("\r\n".join(lines).encode())
            connection.setblocking(False)

            def gone() -> bool:
                try:
                    connection.send(b"x")
                    return connection.recv(1000) is not None  # an answer, or the end
                except BlockingIOError:
                    return False
                except OSError:
                    return True

            until = time.monotonic() + 5
            while not gone():
                assert time.monotonic() < until, "a byte now and then has kept it"
                time.sleep(0.1)


@pytest.mark.parametrize("query", ["newest_first=no", "newest_first=maybe", "newest_first="])
def test_a_truth_value_is_true_or_false(client: httpx.Client, query: str) -> None:
    assert client.get(f"/memories?{query}").json()["field"] == "newest_first"


@pytest.mark.parametrize(
    "given", [{"tags": "ab"}, {"contains": 5}, {"limit": "3"}, {"limit": 2.5}, {"state": "any"}, {"newest_first": 3}]
)
def test_a_call_takes_there_what_it_takes_here(server: Served, given: dict[str, Any]) -> None:
    with server.memory() as memory, pytest.raises(InputError) as refused:
        memory.list(**given)
    assert refused.value.field == next(iter(given))


def test_the_log_is_searched_from_afar(server: Served) -> None:
    with server.memory() as memory:
        memory.remember("Ada likes tea")
        assert [one.action for one in memory.audit.matching(["remembered"])] == ["remember"]


def test_a_memory_that_was_retrieved_is_the_same(client: httpx.Client) -> None:
    ident = client.post("/memories", json={"content": "Ada likes tea"}).json()["id"]
    tag = client.get(f"/memories/{ident}").headers["etag"]
    assert client.post("/recall", json={"query": "tea"}).json()["hits"]
    again = client.get(f"/memories/{ident}")
    assert (again.json()["access_count"], again.headers["etag"]) == (1, tag)
    assert client.patch(f"/memories/{ident}", json={"content": "tea!"}, headers={"if-match": tag}).status_code == 200


def test_lines_come_back_as_they_went(client: httpx.Client) -> None:
    client.post("/memories/batch", json={"items": [{"content": f"note {n}"} for n in range(3)]})
    client.put("/scratchpad/x", json={"value": 1}, headers={"recollect-conversation": "c"})
    lines = client.get("/export", headers={"accept": "application/x-ndjson"})
    assert len(lines.text.splitlines()) > 3
    client.post("/forget", json={"since": "2000-01-01"})
    done = client.post("/import", content=lines.content, headers={"content-type": "application/x-ndjson"})
    assert (done.status_code, done.json()["added"]) == (200, 3)
    assert len(client.get("/memories").json()) == 3
    note = client.get("/scratchpad/x", headers={"recollect-conversation": "c"})
    assert note.json()["value"] == 1


@pytest.mark.parametrize(
    ("accept", "lines"),
    [
        ("application/x-ndjson", True),
        ("APPLICATION/X-NDJSON", True),
        ("application/x-ndjson;q=0", False),
        ("application/json, application/x-ndjson;q=0.1", False),
        ("*/*", False),
    ],
)
def test_lines_are_for_who_wants_them(client: httpx.Client, accept: str, lines: bool) -> None:
    client.post("/memories", json={"content": "Ada likes tea"})
    told = client.get("/export", headers={"accept": accept})
    assert (told.headers["content-type"] == "application/x-ndjson") is lines
    assert ("format" in json.loads(told.text.splitlines()[0] if lines else told.text)) is not lines


def test_a_reader_is_offered_what_a_reader_may_call(server: Served) -> None:
    names = [tool["name"] for tool in plain.get(f"{server.url}/v1/tools", headers=server.headers("reader")).json()]
    assert "recall" in names
    assert "remember" not in names


def test_no_refusal_begins_a_workspace(server: Served) -> None:
    reader = server.headers("reader")
    server.serving.memory.remember("Ada likes tea")
    for number in range(5):
        headers = {**reader, "recollect-workspace": f"nowhere{number}"}
        assert plain.post(f"{server.url}/v1/recall", json={"nope": 1}, headers=headers).status_code == 400
        assert (
            plain.post(f"{server.url}/v1/recall", json={"query": "x", "limit": 0}, headers=headers).status_code == 400
        )
    assert plain.get(f"{server.url}/v1/workspaces", headers=reader).json() == ["default"]


def test_a_key_of_one_workspace_knows_no_other(server: Served) -> None:
    for name in ("sales", "hr"):
        server.serving.memory.at(workspace=name).remember("x")
    told = plain.get(f"{server.url}/v1/workspaces", headers=server.headers(workspace="sales"))
    assert told.json() == ["sales"]
