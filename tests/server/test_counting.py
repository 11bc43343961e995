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
from recollect.server.metrics import exposition


def numbers(server: Served) -> dict[str, float]:
    text = exposition(server.serving.metrics.counters(), [])
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
        '{method="DELETE",route="none",status="405",surface="api"}': 1,
        '{method="GET",route="/openapi.json",status="200",surface="api"}': 1,
        '{method="POST",route="/mcp",status="401",surface="mcp"}': 1,
        '{method="GET",route="/healthz",status="200",surface="probe"}': 1,
        '{method="POST",route="/keys",status="403",surface="api"}': 1,
    }


def test_a_line_of_the_log_names_the_key_and_the_tenant(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    made = server.serving.vault.create_key("nightly job", "member", tenant="acme").secret
    service = server.serving.vault.create_key("for all", "member", all_tenants=True).secret
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


def test_a_page_that_was_asked_for_is_shown_after_the_login(server: Served) -> None:
    server.serving.vault.add_person("ada", "a long enough password", "member")
    with plain.Client(base_url=server.url, follow_redirects=True) as browser:
        asked = browser.get("/memories?tag=style&state=any")
        assert asked.url.path == "/login"
        target = asked.url.params["next"]
        wrong = browser.post("/login", data={"name": "ada", "password": "wrong", "next": target})
        assert "/memories?tag=style&amp;state=any" in wrong.text  # a slip does not lose it
        done = browser.post("/login", data={"name": "ada", "password": "a long enough password", "next": target})
        assert (done.url.path, dict(done.url.params)) == ("/memories", {"tag": "style", "state": "any"})
