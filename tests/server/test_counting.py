"""Every request is counted and logged once, by what it was for, and answers have the tag of their bytes."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import httpx
import pytest
from support import plain
from support.served import Served, served

from recollect import Memory
from recollect.runtime.logs import JsonLines
from recollect.server.limits import Limits


def numbers(server: Served) -> dict[str, float]:
    text = server.serving.metrics.text().decode()
    lines = (line.rpartition(" ") for line in text.splitlines() if line.startswith("recollect_http_requests_total"))
    return {name.removeprefix("recollect_http_requests_total"): float(value) for name, _, value in lines}


def test_a_large_body_is_counted_once(tmp_path: Path) -> None:
    limits = Limits(per_second=1e-6, burst=6)
    with Memory(tmp_path / "m") as memory, served(memory, limits=limits) as server:
        headers = server.headers()
        body = {"content": "tea " * 25_000}
        told = [plain.post(f"{server.url}/v1/memories", json=body, headers=headers).status_code for _ in range(7)]
        assert told == [201] * 6 + [429]
        assert numbers(server) == {
            '{method="POST",route="/memories",status="201",surface="api"}': 6,
            '{method="POST",route="/memories",status="429",surface="api"}': 1,
        }


def test_an_import_is_counted_once(server: Served, client: httpx.Client) -> None:
    export = client.get("/export").content
    assert client.post("/import", content=export).status_code == 200
    assert numbers(server)['{method="POST",route="/import",status="200",surface="api"}'] == 1


def test_pages_calls_and_mcp_are_told_apart_and_refusals_count(server: Served, client: httpx.Client) -> None:
    headers = server.headers()
    for method, path, key in [
        ("GET", "/v1/memories", headers),
        ("GET", "/v1/memories", {}),
        ("GET", "/memories", {}),
        ("GET", "/v1/somewhere-else", headers),
        ("DELETE", "/v1/stats", headers),
        ("GET", "/v1/openapi.json", {}),
        ("POST", "/mcp", {}),
        ("GET", "/healthz", {}),
        ("POST", "/v1/keys", server.headers("reader")),
    ]:
        plain.request(method, server.url + path, headers=key)
    assert numbers(server) == {
        '{method="GET",route="/memories",status="200",surface="api"}': 1,
        '{method="GET",route="/memories",status="401",surface="api"}': 1,
        '{method="GET",route="/memories",status="303",surface="page"}': 1,
        '{method="GET",route="none",status="404",surface="api"}': 1,
        '{method="DELETE",route="/stats",status="405",surface="api"}': 1,
        '{method="GET",route="/openapi.json",status="200",surface="api"}': 1,
        '{method="POST",route="/mcp",status="401",surface="mcp"}': 1,
        '{method="GET",route="/healthz",status="200",surface="probe"}': 1,
        '{method="POST",route="/keys",status="403",surface="api"}': 1,
    }


def test_files_pages_forms_and_unknown_paths_are_counted_by_their_pattern(server: Served) -> None:
    for method, path in [
        ("GET", "/static/app.js"),
        ("GET", "/static/nowhere.js"),
        ("GET", "/memories/one"),
        ("GET", "/memories/t%2Fwo"),
        ("POST", "/memories/new"),
        ("PUT", "/memories"),
        ("GET", "/made-up-by-a-client"),
        ("GET", "/%6dcp"),
        ("GET", "/v1%2Fstats"),
        ("HEAD", "/healthz"),
        ("BREW", "/v1/stats"),
    ]:
        plain.request(method, server.url + path)
    assert numbers(server) == {
        '{method="GET",route="/static/{name}",status="200",surface="page"}': 1,
        '{method="GET",route="/static/{name}",status="404",surface="page"}': 1,
        '{method="GET",route="/memories/{id}",status="303",surface="page"}': 2,
        '{method="POST",route="/memories/new",status="303",surface="page"}': 1,
        '{method="PUT",route="/memories",status="405",surface="page"}': 1,
        '{method="GET",route="none",status="303",surface="page"}': 3,
        '{method="HEAD",route="/healthz",status="200",surface="probe"}': 1,
        '{method="other",route="/stats",status="405",surface="api"}': 1,
    }


def test_a_call_over_mcp_is_counted_and_limited_once(tmp_path: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}
    limits = Limits(per_second=1e-6, burst=2)
    with Memory(tmp_path / "m") as memory, served(memory, limits=limits) as server:
        headers = {**server.headers(), **accept}
        told = [plain.post(f"{server.url}/mcp", json=call, headers=headers, timeout=60).status_code for _ in range(3)]
        assert told == [200, 200, 429]
        assert numbers(server) == {
            '{method="POST",route="/mcp",status="200",surface="mcp"}': 2,
            '{method="POST",route="/mcp",status="429",surface="mcp"}': 1,
        }


def test_a_line_of_the_log_names_the_key_and_the_tenant(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    made = server.serving.accounts.keys.create("nightly job", "member", tenant="acme").secret
    service = server.serving.accounts.keys.create("for all", "member", all_tenants=True).secret
    with caplog.at_level(logging.INFO, "recollect.server.access"):
        plain.post(f"{server.url}/v1/recall", json={"query": "heliotrope"}, headers={"authorization": f"Bearer {made}"})
        plain.get(
            f"{server.url}/v1/memories",
            headers={"authorization": f"Bearer {service}", "recollect-tenant": "other"},
        )
        plain.get(f"{server.url}/v1/memories?kind=heliotrope")
    lines = [json.loads(JsonLines().format(record))["metadata"] for record in caplog.records]
    assert [{name: value for name, value in line.items() if name != "ms"} for line in lines] == [
        {"surface": "api", "route": "/recall", "status": 200, "caller": "nightly job", "tenant": "acme"},
        {"surface": "api", "route": "/memories", "status": 200, "caller": "for all", "tenant": "other"},
        {"surface": "api", "route": "/memories", "status": 401},
    ]
    assert "heliotrope" not in caplog.text
    assert made not in caplog.text


def test_an_address_that_cannot_be_read_is_refused_and_logged(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    """With a key for all tenants, the tenant that the line of the log names comes from such a header."""
    headers = {**server.headers(all_tenants=True), "recollect-tenant": "%ff"}
    with caplog.at_level(logging.INFO, "recollect.server.access"):
        answer = plain.get(f"{server.url}/v1/memories", headers=headers)
    assert (answer.status_code, answer.json()["title"]) == (400, "InputError")
    (line,) = [json.loads(JsonLines().format(record))["metadata"] for record in caplog.records]
    assert (line["status"], line["caller"], "tenant" in line) == (400, "test", False)


@pytest.mark.parametrize("weight", [b"\xb2", b"x", b"1e999", b"nan", b""])
def test_a_weight_that_is_no_number_breaks_no_answer(server: Served, weight: bytes) -> None:
    server.serving.accounts.people.add("ada", "a long enough password", "owner")
    assert plain.get(f"{server.url}/login", headers={b"accept-encoding": b"gzip;q=" + weight}).status_code == 200
    key = f"Bearer {server.key()}".encode()
    headers = {b"authorization": key, b"accept": b"application/x-ndjson;q=" + weight}
    assert plain.get(f"{server.url}/v1/export", headers=headers).status_code == 200


def test_a_memory_with_its_vector_has_another_tag(server: Served, client: httpx.Client) -> None:
    body = {"content": "tea", "embedding": [0.5, 0.5], "embedding_model": "mine"}
    url = f"/memories/{client.post('/memories', json=body).json()['id']}"
    bare, whole = client.get(url), client.get(url, headers={"recollect-vectors": "1"})
    assert (bare.json()["embedding"], bool(whole.json()["embedding"])) == (None, True)
    assert client.get(url, headers={"recollect-vectors": "0"}).json()["embedding"] is None
    seen = {"if-none-match": bare.headers["etag"]}
    assert client.get(url, headers=seen).status_code == 304
    assert client.get(url, headers={**seen, "recollect-vectors": "1"}).status_code == 200
    assert client.patch(url, json={"content": "x"}, headers={"if-match": '"other"'}).status_code == 412
    assert client.patch(url, json={"content": "x"}, headers={"if-match": whole.headers["etag"]}).status_code == 200


def test_what_a_reader_asks_wrongly_is_not_written_to_the_audit_log(server: Served) -> None:
    headers = server.headers("reader")
    server.serving.memory.remember("so that there is a log")
    for _ in range(3):
        assert plain.get(f"{server.url}/v1/memories?nosuch=1", headers=headers).status_code == 400
    assert plain.post(f"{server.url}/v1/recall", json={"nosuch": 1}, headers=headers).status_code == 400
    assert [entry.action for entry in server.serving.memory.audit.search(limit=10)] == ["remember"]
    assert plain.post(f"{server.url}/v1/memories", json={"nosuch": 1}, headers=server.headers()).status_code == 400
    assert [entry.action for entry in server.serving.memory.audit.search(action="refuse")] == ["refuse"]


def test_packed_and_plain_answers_have_their_own_tags(client: httpx.Client) -> None:
    ident = client.post("/memories", json={"content": "tea " * 2000}).json()["id"]
    packed = client.get(f"/memories/{ident}", headers={"accept-encoding": "gzip"})
    bare = client.get(f"/memories/{ident}", headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in bare.headers
    assert packed.headers["vary"] == bare.headers["vary"] == "accept-encoding"
    assert packed.headers["etag"] != bare.headers["etag"]
    for answer in (packed, bare):  # each is known again, and both are tags of the same memory
        tag = answer.headers["etag"]
        same = client.get(f"/memories/{ident}", headers={"if-none-match": f'"other", W/{tag}'})
        assert (same.status_code, same.headers["etag"], same.headers["vary"]) == (304, tag, "accept-encoding")
    done = client.patch(f"/memories/{ident}", json={"importance": 0.9}, headers={"if-match": packed.headers["etag"]})
    assert done.status_code == 200


def test_an_export_varies_by_both_and_a_file_has_one_vary(server: Served, client: httpx.Client) -> None:
    client.post("/memories", json={"content": "tea " * 2000})
    for encoding in ("gzip", "identity"):
        answer = client.get("/export", headers={"accept-encoding": encoding})
        assert answer.headers["vary"] == "accept, accept-encoding"
        assert answer.headers.get("content-encoding", "identity") == encoding
        assert answer.json()["format"] == "recollect"
        assert plain.get(f"{server.url}/static/app.js", headers={"accept-encoding": encoding}).headers["vary"] == (
            "accept-encoding"
        )


def test_a_page_that_was_asked_for_is_shown_after_the_login(server: Served) -> None:
    server.serving.accounts.people.add("ada", "a long enough password", "member")
    with plain.Client(base_url=server.url, follow_redirects=True) as browser:
        asked = browser.get("/memories?tag=style&state=any")
        assert asked.url.path == "/login"
        target = asked.url.params["next"]
        wrong = browser.post("/login", data={"name": "ada", "password": "wrong", "next": target})
        assert "/memories?tag=style&amp;state=any" in wrong.text  # a slip does not lose it
        done = browser.post("/login", data={"name": "ada", "password": "a long enough password", "next": target})
        assert (done.url.path, dict(done.url.params)) == ("/memories", {"tag": "style", "state": "any"})
