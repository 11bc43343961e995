"""What a client of HTTP can rely on: tags, repeats, streams, problems, numbers and logs."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from support import plain
from support.concepts import Concepts
from support.served import Served, served

from recollect import (
    AccessError,
    AsyncMemory,
    DiskFullError,
    InputError,
    Memory,
    NotFoundError,
    SecretError,
    UnavailableError,
    tools,
)
from recollect.memory import view_of
from recollect.runtime.logs import JsonLines
from recollect.server import api, idempotency
from recollect.server.limits import Limits
from recollect.server.mcp_mount import McpMount
from recollect.server.reporting import Discreet, DiscreetJson


def test_a_refusal_names_the_field_and_the_limit(client: httpx.Client) -> None:
    answer = client.post("/memories", json={"content": "x" * 2_000_000})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["title"], problem["field"]) == ("InputError", "content")
    assert "1,048,576" in problem["detail"]
    assert client.get("/stats").json()["total"] == 0


def test_personal_data_is_refused_without_its_value_or_tagged_and_left_out(client: httpx.Client) -> None:
    answer = client.post("/memories", json={"content": "my pin is twenty-two eleven"})
    assert (answer.status_code, answer.json()["title"], answer.json()["field"]) == (400, "SecretError", "content")
    assert "eleven" not in answer.text
    for text in ("about my health: I am diabetic", "about my health: I swim on Mondays"):
        assert client.post("/memories", json={"content": text}).status_code == 201
    body = {"messages": [{"role": "user", "content": "what about my health?"}], "without_tags": ["sensitive"]}
    left = client.post("/context", json=body).text
    assert "diabetic" not in left
    assert "Mondays" in left


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", "body"),
        (b"[1]", "body"),
        (b'{"content": "x", "colour": 1}', "colour"),
        (b"{}", "content"),
        (b"\xff", "body"),
    ],
)
def test_a_body_that_is_none_is_refused_by_name(client: httpx.Client, body: bytes, field: str) -> None:
    answer = client.post("/memories", content=body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


def test_errors_are_the_same_as_here(server: Served) -> None:
    with server.memory() as memory:
        with pytest.raises(SecretError) as caught:
            memory.remember("the key is sk-proj-4f9d2c7b1a8e4f9d2c7b1a8e4f9d2c7b1a8e4f9d2c7b")
        assert caught.value.field == "content"
        assert caught.value.rule
        with pytest.raises(NotFoundError):
            memory.get("0" * 32)
        with pytest.raises(InputError, match=r"^limit: "):
            memory.recall("x", limit=0)
        with pytest.raises(InputError, match="rerank: cannot be sent"):
            memory.recall("x", rerank=lambda question, hits: [])
        with pytest.raises(InputError, match="preset: is the server's"):
            Memory(server.url, preset="atlas")
    with pytest.raises(AccessError, match="the key is not known here"):
        Memory(server.url, key="rk_no_no")
    with pytest.raises(UnavailableError, match="cannot be reached"):
        Memory("http://127.0.0.1:1", key="rk_no_no")
    with pytest.raises(InputError, match=r"^key: "):
        Memory("./here", key="rk_no_no")


def test_the_verbs_can_be_awaited_from_afar(server: Served) -> None:
    async def ask() -> list[str]:
        async with AsyncMemory(server.url, key=server.key()) as memory:
            await memory.remember("Ada likes tea")
            return [hit.memory.text for hit in await memory.recall("what does Ada like?")]

    assert asyncio.run(ask()) == ["Ada likes tea"]


def test_what_was_read_has_a_tag(client: httpx.Client) -> None:
    ident = client.post("/memories", json={"content": "Ada likes tea"}).json()["id"]
    read = client.get(f"/memories/{ident}")
    tag = read.headers["etag"]
    assert client.get(f"/memories/{ident}", headers={"if-none-match": tag}).status_code == 304
    assert client.get(f"/memories/{ident}", headers={"if-none-match": "*"}).status_code == 304
    stale = client.patch(f"/memories/{ident}", json={"content": "Ada likes coffee"}, headers={"if-match": '"other"'})
    assert stale.status_code == 412
    assert client.get(f"/memories/{ident}").json()["superseded_by"] is None
    done = client.patch(f"/memories/{ident}", json={"content": "Ada likes coffee"}, headers={"if-match": tag})
    assert done.status_code == 200
    again = client.patch(f"/memories/{ident}", json={"content": "Ada likes milk"}, headers={"if-match": tag})
    assert again.status_code == 412


def test_a_write_that_is_sent_twice_is_done_once(client: httpx.Client) -> None:
    headers, body = {"idempotency-key": "one"}, {"content": "Ada likes tea", "again": True}
    first, second = (client.post("/memories", json=body, headers=headers) for _ in range(2))
    assert first.json() == second.json()
    assert second.headers["idempotent-replay"] == "true"
    assert client.get("/stats").json()["total"] == 1
    other = client.post("/memories", json={"content": "something else"}, headers=headers)
    assert other.status_code == 409
    assert client.get("/stats").json()["total"] == 1
    refused = client.post("/memories", json={"content": ""}, headers={"idempotency-key": "two"})
    assert refused.status_code == 400
    assert (
        client.post("/memories", json={"content": "now it is"}, headers={"idempotency-key": "two"}).status_code == 201
    )


def test_what_was_answered_is_kept_nowhere_but_in_memory(tmp_path: Path) -> None:
    with Memory(tmp_path / "m") as memory, served(memory) as server:
        key, other = server.headers(), {"idempotency-key": "one"}
        body = {"content": "Ada likes heliotrope", "again": True}
        first = plain.post(f"{server.url}/v1/memories", json=body, headers={**key, **other})
        with served(memory) as second:  # another process, or this one started anew
            replayed = plain.post(f"{second.url}/v1/memories", json=body, headers={**key, **other})
            assert replayed.json() == first.json()
            assert replayed.status_code == 201
            memory.forget(first.json()["id"], erase=True)
            gone = plain.post(f"{second.url}/v1/memories", json=body, headers={**key, **other})
            assert gone.status_code == 409
        files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert b"heliotrope" not in files
        assert memory.stats().total == 0


def test_of_many_that_send_the_same_at_once_one_is_done(server: Served, client: httpx.Client) -> None:
    together = threading.Barrier(8)

    def send(_: int) -> int:
        together.wait()
        return client.post(
            "/memories", json={"content": "once", "again": True}, headers={"idempotency-key": "same"}
        ).status_code

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(send, range(8)))
    assert set(told) <= {201, 409}
    assert 201 in told
    assert client.get("/stats").json()["total"] == 1


def test_a_key_belongs_to_whoever_sent_it(server: Served, client: httpx.Client) -> None:
    body = {"content": "mine", "again": True}
    client.post("/memories", json=body, headers={"idempotency-key": "k"})
    other = plain.post(f"{server.url}/v1/memories", json=body, headers={**server.headers(), "idempotency-key": "k"})
    assert "idempotent-replay" not in other.headers
    assert client.get("/stats").json()["total"] == 2


def test_old_answers_are_forgotten(server: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.post("/memories", json={"content": "x"}, headers={"idempotency-key": "k"})
    assert server.serving.answers.clean() == 0
    monkeypatch.setattr(idempotency, "_KEPT", -idempotency._KEPT)
    assert server.serving.answers.clean() == 1


def test_an_export_comes_as_a_document_or_line_by_line(server: Served, client: httpx.Client) -> None:
    client.post("/memories/batch", json={"items": ["one", "two", "three"]})
    with server.memory() as memory:
        here, there = io.BytesIO(), io.BytesIO()
        assert memory.export(there) == server.serving.memory.export(here) == 3
    assert json.loads(there.getvalue())["memories"] == json.loads(here.getvalue())["memories"]
    lines = client.get("/export", headers={"accept": "application/x-ndjson"})
    assert lines.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line)["content"] for line in lines.text.splitlines()] == ["one", "two", "three"]
    told = client.post("/import", content=there.getvalue())
    assert told.json() == {"added": 0, "unchanged": 3, "damaged": []}
    with server.memory(workspace="copy") as copy:
        assert copy.import_(io.BytesIO(there.getvalue())).added == 3
        assert [one.text for one in copy.list(newest_first=False)] == ["one", "two", "three"]


def test_long_answers_are_compressed(client: httpx.Client) -> None:
    client.post("/memories", json={"content": "tea " * 2000})
    with client.stream("GET", "/memories") as answer:
        assert answer.headers["content-encoding"] == "gzip"


def test_a_body_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    limits = Limits(per_second=1e6, burst=1000, body=1000)
    with Memory(tmp_path / "m") as memory, served(memory, limits=limits) as server:
        headers = server.headers()
        large = plain.post(f"{server.url}/v1/memories", content=b"x" * 1001, headers=headers)
        assert (large.status_code, large.json()["field"]) == (413, "body")
        parts = (b"x" * 500 for _ in range(3))
        assert plain.post(f"{server.url}/v1/memories", content=parts, headers=headers).status_code == 413
        assert plain.get(f"{server.url}/v1/stats", headers=headers).json()["total"] == 0


def test_names_may_hold_anything(server: Served) -> None:
    with server.memory() as memory:
        talk = memory.at(conversation="über/all ä?&#%")
        talk.scratchpad.write("a/b c?d", {"x": 1})
        assert talk.scratchpad.read("a/b c?d") == {"x": 1}
        assert memory.at(workspace="naïve café").remember("hello").address.workspace == "naïve café"


def test_health_is_open_and_numbers_are_for_admins(server: Served) -> None:
    assert plain.get(f"{server.url}/healthz").json() == {"status": "ok"}
    assert plain.get(f"{server.url}/readyz").json() == {"status": "ready"}
    assert plain.get(f"{server.url}/metrics").status_code == 401
    assert plain.get(f"{server.url}/metrics", headers=server.headers("member")).status_code == 403
    plain.get(f"{server.url}/v1/stats", headers=server.headers())
    text = plain.get(f"{server.url}/metrics", headers=server.headers("admin")).text
    assert 'recollect_http_requests_total{method="GET",route="/stats",status="200",surface="api"} 1' in text
    assert 'recollect_http_request_seconds_bucket{le="+Inf",method="GET",route="/stats",surface="api"} 1' in text
    assert 'recollect_verb_seconds_count{verb="stats"} 1' in text
    assert "recollect_uptime_seconds" in text


def test_the_model_is_timed(tmp_path: Path) -> None:
    with Memory(tmp_path, embedder=Concepts()) as memory, served(memory, open_metrics=True) as server:
        memory.remember("Ute sold her automobile")
        memory.embed()
        assert [hit.memory.text for hit in memory.recall("car")] == ["Ute sold her automobile"]
        text = plain.get(f"{server.url}/metrics").text
        assert 'recollect_model_seconds_count{what="query"} 1' in text
        assert 'recollect_model_seconds_count{what="documents"} 1' in text


def test_a_ledger_tells_its_own_numbers_too(tmp_path: Path) -> None:
    with Memory(f"ledger:{tmp_path}/m", preset="ledger") as memory, served(memory, open_metrics=True) as server:
        memory.sessions.create("ada", session_id="s1")
        names = memory.sessions.metrics()
        text = plain.get(f"{server.url}/metrics").text
        assert names
        assert all(f"\n{name.replace('.', '_')} " in text for name in names)
        assert "\nmemory_sessions_active 1.0\n" in text


def test_logs_hold_no_content(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "recollect.server"), server.memory() as memory:
        memory.remember("Ada likes heliotrope")
        memory.recall("heliotrope")
        with pytest.raises(InputError):
            memory.remember("heliotrope", kind="heliotrope " * 20)
    lines = [
        json.loads(JsonLines().format(record)) for record in caplog.records if record.name == "recollect.server.access"
    ]
    assert {line["metadata"]["route"] for line in lines} >= {"/memories", "/recall"}
    assert all(line["metadata"]["ms"] > 0 for line in lines)
    assert "heliotrope" not in caplog.text


def test_spans_tell_the_route_and_the_status(server: Served) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    plain.post(f"{server.url}/v1/recall", json={"query": "heliotrope"}, headers=server.headers())
    (span,) = [one for one in kept.get_finished_spans() if one.name == "POST recall"]
    assert span.attributes == {"http.response.status_code": 200}


def test_a_tool_is_called_as_a_model_calls_it(server: Served, client: httpx.Client) -> None:
    assert "remember" in [tool["name"] for tool in client.get("/tools").json()]
    told = client.post("/tools/remember", json={"content": "Ada likes tea"}).json()
    assert "error" not in told
    assert client.post("/tools/remember", json={"content": ""}).json()["error"]["field"] == "content"
    reader = server.headers("reader")
    assert plain.post(f"{server.url}/v1/tools/remember", json={"content": "x"}, headers=reader).status_code == 403
    found = plain.post(f"{server.url}/v1/tools/recall", json={"query": "tea"}, headers=reader)
    assert "Ada likes tea" in found.text


def test_mcp_serves_the_view_of_the_key(server: Served) -> None:
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

    def call(key: dict[str, str], method: str, **params: object) -> httpx.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return plain.post(f"{server.url}/mcp", json=body, headers={**headers, **key})

    assert call({}, "tools/list").status_code == 401
    member, reader = server.headers("member", agent="atlas"), server.headers("reader", agent="other")
    stored = call(member, "tools/call", name="remember", arguments={"content": "Ada likes tea"})
    assert stored.json()["result"]["isError"] is False
    names = {
        role: [t["name"] for t in call(key, "tools/list").json()["result"]["tools"]]
        for role, key in (("m", member), ("r", reader))
    }
    assert "remember" in names["m"]
    assert "remember" not in names["r"]
    mine = call(member, "tools/call", name="recall", arguments={"query": "tea"}).text
    others = call(reader, "tools/call", name="recall", arguments={"query": "tea"}).text
    assert "Ada likes tea" in mine
    assert "Ada likes tea" not in others


def test_what_nobody_foresaw_is_a_500_that_is_counted_and_logged_without_its_text(
    server: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    content = "helio" + "trope"

    def broken(*_: object) -> None:
        raise RuntimeError(content)

    monkeypatch.setattr(McpMount, "_make", broken)
    answer = plain.post(f"{server.url}/mcp", json={}, headers=server.headers(), timeout=60)
    assert (answer.status_code, answer.json()["title"]) == (500, "StoreError")
    assert 'route="/mcp",status="500",surface="mcp"} 1.0' in server.serving.metrics.text().decode()
    (record,) = [record for record in caplog.records if record.exc_info]
    for formatter in (Discreet(), DiscreetJson()):
        assert content not in formatter.format(record)
        assert "RuntimeError" in formatter.format(record)


def test_a_cookie_beside_an_empty_key_is_a_cookie(server: Served) -> None:
    accounts = server.serving.accounts
    accounts.people.add("ada", "a long enough password", "owner")
    token, _ = accounts.logins.log_in("ada", "a long enough password")
    headers = {"cookie": f"recollect={token}", "authorization": ""}
    refused = plain.post(f"{server.url}/v1/memories", json={"content": "x"}, headers=headers)
    assert (refused.status_code, server.serving.memory.stats().total) == (403, 0)


def test_only_a_form_of_ours_changes_something_with_a_cookie(server: Served) -> None:
    server.serving.accounts.people.add("ada", "a long enough password", "owner")
    token, caller = server.serving.accounts.logins.log_in("ada", "a long enough password")
    with plain.Client(cookies={"recollect": token}, base_url=f"{server.url}/v1") as browser:
        assert browser.get("/stats").status_code == 200
        assert browser.post("/memories", json={"content": "x"}).status_code == 403
        proof = {"x-recollect-form": caller.session}
        assert browser.post("/memories", json={"content": "x"}, headers=proof).status_code == 201


def test_a_write_whose_answer_was_lost_is_answered_and_not_done_again(
    server: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, body = {"idempotency-key": "k"}, {"content": "once", "again": True}
    run = api._run

    def lost(*given: object) -> object:
        run(*given)  # type: ignore[arg-type]
        raise UnavailableError("the connection was lost")

    monkeypatch.setattr(api, "_run", lost)
    assert client.post("/memories", json=body, headers=headers).status_code == 503
    monkeypatch.setattr(api, "_run", run)
    again = client.post("/memories", json=body, headers=headers)
    assert (again.status_code, again.json()["content"]) == (201, "once")
    assert client.get("/stats").json()["total"] == 1


@pytest.mark.parametrize("part", ["tenant", "workspace"])
def test_a_repeated_write_is_the_same_only_in_the_same_place(server: Served, part: str) -> None:
    key = server.headers(all_tenants=True)
    answers = [
        plain.post(
            f"{server.url}/v1/memories",
            json={"content": "kept in each"},
            headers={**key, "recollect-tenant": "t", "idempotency-key": "one", f"recollect-{part}": name},
        )
        for name in ("first", "second")
    ]
    assert [answer.status_code for answer in answers] == [201, 409]
    assert "kept in each" not in answers[1].text


def test_what_was_erased_is_not_told_again(client: httpx.Client) -> None:
    ident = client.post("/memories", json={"content": "the erased words"}).json()["id"]
    headers = {"idempotency-key": "p"}
    changed = client.patch(f"/memories/{ident}", json={"importance": 0.9}, headers=headers).json()
    client.post("/forget", json={"id": changed["id"], "erase": True})
    again = client.patch(f"/memories/{ident}", json={"importance": 0.9}, headers=headers)
    assert again.status_code == 409
    assert "erased words" not in again.text


@pytest.mark.parametrize("name", [".", "..", "a/../b"])
def test_dots_in_a_name_are_no_steps(server: Served, name: str) -> None:
    with server.memory() as memory:
        memory.channels.create("general too")
        with pytest.raises(NotFoundError):
            memory.channels.get(name)
        talk = memory.at(conversation="c")
        talk.scratchpad.write(name, 1)
        assert talk.scratchpad.read(name) == 1


def test_a_key_is_never_in_an_error(server: Served) -> None:
    secret = server.key()
    with Memory(server.url, key=f" {secret}\n") as memory:
        assert memory.stats().total == 0
    with pytest.raises(InputError, match="no key has") as caught:
        Memory(server.url, key=f"{secret}\né")
    assert secret not in str(caught.value)


def test_of_two_who_change_what_they_read_one_is_refused(server: Served, client: httpx.Client) -> None:
    client.headers["recollect-conversation"] = "c"
    client.put("/scratchpad/x", json={"value": 0})
    for number in range(1, 6):
        tag = client.get("/scratchpad/x").headers["etag"]

        def write(value: int, tag: str = tag) -> int:
            return client.put("/scratchpad/x", json={"value": value}, headers={"if-match": tag}).status_code

        with ThreadPoolExecutor(4) as pool:
            told = sorted(pool.map(write, range(4 * number, 4 * number + 4)))
        assert told == [200, 412, 412, 412]


def test_of_two_who_change_what_they_read_by_two_servers_one_is_refused(tmp_path: Path) -> None:
    with (
        Memory(tmp_path / "m") as one,
        Memory(tmp_path / "m") as other,
        served(one) as first,
        served(other) as second,
    ):
        headers = {**first.headers(), "recollect-conversation": "c"}
        urls = [f"{server.url}/v1/scratchpad/x" for server in (first, second)]
        plain.put(urls[0], json={"value": 0}, headers=headers)
        for number in range(1, 6):
            tag = plain.get(urls[0], headers=headers).headers["etag"]

            def write(turn: int, tag: str = tag, number: int = number) -> int:
                sent = {"value": 8 * number + turn}
                return plain.put(urls[turn % 2], json=sent, headers={**headers, "if-match": tag}).status_code

            with ThreadPoolExecutor(4) as pool:
                told = sorted(pool.map(write, range(4)))
            assert told == [200, 412, 412, 412]


def test_nobodys_bytes_are_read_before_it_is_known_whose_they_are(server: Served) -> None:
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"POST /v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nxx")
        assert b" 401 " in connection.recv(1000).partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        ("POST", "/v1/memories", {"json": {"content": "x"}, "headers": {"x-recollect-form": b"\xe9"}}),
        ("GET", "/enter?ticket=%C3%A9", {}),
        ("GET", "/audit?page=" + "1" * 5000, {}),
        ("GET", "/lab?q=a&limit=" + "1" * 5000, {}),
        ("POST", "/login", {"content": b"a=&" * 1_000_000}),
        ("POST", "/login", {"content": b"a" * 9_000_000}),
    ],
)
def test_nonsense_is_refused_and_is_no_failure_of_ours(
    server: Served, method: str, path: str, more: dict[str, object]
) -> None:
    server.serving.accounts.people.add("ada", "a long enough password", "owner")
    token, _ = server.serving.accounts.logins.log_in("ada", "a long enough password")
    headers = more.pop("headers", {})
    assert isinstance(headers, dict)
    cookie = {"cookie": f"recollect={token}; recollect_said=aaa.\xe9".encode("latin-1")}
    answer = plain.request(method, f"{server.url}{path}", headers={**headers, **cookie}, **more)  # type: ignore[arg-type]
    assert answer.status_code < 500


def test_a_page_elsewhere_logs_nobody_in(server: Served) -> None:
    server.serving.accounts.people.add("mallory", "a long enough password", "reader")
    form = {"name": "mallory", "password": "a long enough password"}
    for headers in ({"origin": "null", "sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
        answer = plain.post(f"{server.url}/login", data=form, headers=headers)
        assert answer.status_code == 400
        assert "set-cookie" not in answer.headers
    mine = {"origin": "null", "sec-fetch-site": "same-origin"}
    assert plain.post(f"{server.url}/login", data=form, headers=mine).status_code == 303


def test_a_full_disk_is_507(server: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise DiskFullError("the disk is full; nothing was stored")

    with server.memory() as memory:
        monkeypatch.setattr(view_of(server.serving.memory).store, "put", full)
        answer = client.post("/memories", json={"content": "Ada likes tea"}, headers={"idempotency-key": "k"})
        assert (answer.status_code, answer.json()["title"]) == (507, "DiskFullError")
        with pytest.raises(DiskFullError, match="the disk is full"):
            memory.remember("Ada likes tea")
        monkeypatch.undo()
        again = client.post("/memories", json={"content": "Ada likes tea"}, headers={"idempotency-key": "k"})
        assert again.status_code == 201  # nothing was done, so the same request may be sent again


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_refused(server: Served, client: httpx.Client, number: str) -> None:
    for body in (f'{{"content":"x","importance":{number}}}', f'{{"content":"x","metadata":{{"n":{number}}}}}'):
        answer = client.post("/memories", content=body.encode())
        assert (answer.status_code, answer.json()["title"]) == (400, "InputError")
    with server.memory() as memory:
        with pytest.raises(InputError, match=r"^importance: "):
            memory.remember("x", importance=float(number))
        with pytest.raises(InputError, match=r"^metadata"):
            memory.remember("x", metadata={"n": float(number)})
        assert memory.stats().total == 0


def test_a_short_id_given_to_a_tool_lists_no_memories(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.memory() as memory:
        records = memory.remember_many([f"heron {n}" for n in range(20)])
        with monkeypatch.context() as patched:
            patched.setattr(type(memory), "list", None, raising=False)
            assert "error" not in tools.call(memory, "revise", {"id": records[3].id[-12:], "content": "an owl"})
        assert memory.get(records[3].id).superseded_by
